"""Sets of models drawn from a belief: finite beliefs, whose brackets say something of the belief itself.

*From above.* Let `ξ_n` be `n` models drawn from `ξ`, equally weighted. `E ξ_n = ξ`, and the Bayes-optimal value is
convex in the belief, so

    V*(ξ) ≤ E V*(ξ_n) ≤ E U(ξ_n)

for any upper bound `U` of finite beliefs: it is as if somebody told the agent `n` models of which one is the true one.
The more models, the less is told. With `E max` of the same set, whose mean is that of the belief,

    V*(ξ) ≤ E max − E D,      D = E max(ξ_n) − U(ξ_n) ≥ 0,

so few sets are enough: `E max` is known from many more models, and `D` needs no range to be bounded from below.

*From below.* The policy of the bracket of one set is some policy: it weighs the `n` models by what it sees, and after
what none of them allows it goes on as the best memoryless one would. It is fixed, and then valued on fresh models
(`bounds.drawn.steps`).
"""

from typing import NamedTuple

import numpy as np

from beliefbound.beliefs import FiniteBelief
from beliefbound.bounds.drawn.policy import CompletedPolicy
from beliefbound.bounds.finite.search import finite_steps
from beliefbound.bounds.policies import AnyPolicy
from beliefbound.bounds.record import Record
from beliefbound.bounds.steps import Stepwise
from beliefbound.planning.optimal import solved_models
from beliefbound.planning.rounding import Allowance
from beliefbound.planning.task import FiniteTask, Task
from beliefbound.policy import TablePolicy

_TOGETHER = 4  # steps of a small search, of which the first few do little, in a step


class Closed(NamedTuple):
    """What the bracket of a set has found: how far its upper end is below `E max`, its policy for all models, and how
    many steps it took."""

    drop: float
    policy: TablePolicy | CompletedPolicy
    steps: int


def task_on(sample: FiniteBelief, task: Task) -> FiniteTask:
    """The task on models drawn."""
    return FiniteTask(sample, task.start, task.discount, task.horizon)


def closing(sample: FiniteBelief, task: Task, seed: int, effort: int, threads: int | None = 1) -> Stepwise[Closed]:
    """The bracket of a set, in at most `effort` steps of a search; a step is yielded after every few."""
    finite = task_on(sample, task)
    record = Record(0.95, allowance=Allowance(finite), decide=True)  # nothing is sampled
    taken = 0
    for taken, _ in enumerate(finite_steps(finite, np.random.default_rng(seed), threads, record), start=1):
        if record.lower is not None and record.upper is not None and (taken >= effort or record.closed):
            break
        if taken % _TOGETHER == 0:
            yield
    proven = min(bound.value for bound in record.bounds if bound.side == "upper" and bound.exact)
    assert record.policy is not None
    own = AnyPolicy(record.policy)
    table, controller = own.as_table(), own.as_controller(finite)
    policy = table if table is not None or controller is None else CompletedPolicy(controller)
    assert policy is not None
    top = finite.below(solved_models(finite).values)
    return Closed(max(0.0, top - proven), policy, taken)
