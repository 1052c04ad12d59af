"""A finite belief as the arrays of `kernels.graph.search`: outcome rows, leaf values from above, a pool of policies
from below.

*Outcome rows.* What a step reveals: `bounds.finite.outcomes`.

*From above.* `Q_m ≥ Q*_m` with `Q_m ≥ r_m + γ P_m max Q_m`, so that QMDP falls under its own backups. With a horizon:
backwards induction, one table a stage. Without: the optimal values of each model by itself, rounded up.

*From below.* The exact value on each model of policies, such as those of `bounds.finite.pool`; by stage with a horizon.

All of these are made once for a set of models, whatever their weights (`planning.task`): a problem takes them from
there, with as many stages as it asks for.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from beliefbound.base.errors import ParameterError
from beliefbound.base.limits import TABLE_BYTES
from beliefbound.base.validation import FloatArray
from beliefbound.bounds.finite.outcomes import row_steps
from beliefbound.bounds.steps import Meter, Stepwise, finish
from beliefbound.kernels.graph.cells import no_cells
from beliefbound.kernels.graph.nodes import MAX_STAGE, BeliefMDP
from beliefbound.models import ModelSet
from beliefbound.models.enclosing import lowered
from beliefbound.planning.lemmas import stages_until
from beliefbound.planning.optimal import inducted, solved_models
from beliefbound.planning.rounding import Allowance
from beliefbound.planning.task import FiniteTask, made_once_for_models
from beliefbound.policy import TablePolicy

FOREVER = 1 << 60
LEAF = 2e-5  # a scenario ends where what is left to gain is this share of the value at the root
_MIXED = 1e3  # times the value at the start: values beyond are of another scale


def problem_of(task: FiniteTask, *, stages: int, policies: Sequence[TablePolicy], mix: float = 0.6) -> BeliefMDP:
    """The arrays for nodes up to stage `stages`; `mix`: how much the policy is drawn to upper values."""
    return finish(problem_steps(task, Meter(), stages=stages, policies=policies, mix=mix))


def problem_steps(
    task: FiniteTask,
    meter: Meter,
    *,
    stages: int,
    policies: Sequence[TablePolicy],
    mix: float = 0.6,
    apart: FloatArray | None = None,
    values: Sequence[FloatArray] | None = None,
) -> Stepwise[BeliefMDP]:
    """The same, step by step. `apart`, `values`: in place of the task's own, where models are too large to solve."""
    rows, models, kept = (yield from row_steps(task, meter)), task.models, stages_kept(task, stages)
    if values is None:
        values = [values_of(task, policy, kept) for policy in policies]
    q, v = models_apart(task, kept) if apart is None else apart, _stacked(values, models)
    return BeliefMDP(
        like=rows.like,
        arrive=rows.arrive,
        first=rows.first,
        reward=np.array(models.rewards),
        available=np.array(models.available),
        q=q,
        partner=np.empty((0, models.n_models), dtype=np.int64),
        cell=np.empty((0, models.n_models), dtype=np.int64),
        pairs=np.empty((0, 0, 1, 1, 1, 1)),
        cells=no_cells(),
        scale=scale_of_models(q, v),
        v=v,
        number=pool_numbers(models.n_states, len(policies)),
        keys=rows.keys,
        discount=float(task.discount),
        horizon=FOREVER if task.horizon is None else task.horizon,
        mix=float(mix),
        merged=False,
        edition=0,
    )


def scale_of_models(q: FloatArray, v: FloatArray) -> FloatArray:
    """`[m]`: the largest value of each model, of `q[stage,m,s,a]` and `v[stage,m,s,policy]`; one model after another,
    for tables are large."""
    found = np.zeros(q.shape[1])
    for m in range(len(found)):
        for values in (q[:, m], v[:, m]):
            found[m] = np.abs(values).max(where=np.isfinite(values), initial=found[m])
    return found


def stages_kept(task: FiniteTask, stages: int) -> int:
    """The last stage that tables have for nodes up to a stage; 0 where there is no horizon, and one table for all."""
    return 0 if task.horizon is None else min(stages + 1, task.horizon)


def pool_numbers(n_states: int, n_policies: int) -> npt.NDArray[np.int32]:
    """`[s,policy]`: a policy is called by its place in the pool."""
    return np.tile(np.arange(n_policies, dtype=np.int32), (n_states, 1))


def search_depth(task: FiniteTask, n_policies: int = 0) -> int:
    """Stages beyond which next to nothing is left to gain, as far as tables of leaf values fit."""
    low, high = task.models.reward_range
    if low == high:
        return 1
    depth = stages_until(0.1 * LEAF, task.discount, most=MAX_STAGE)
    if task.horizon is not None:
        kept = TABLE_BYTES // (8 * task.models.rewards.size * (1 + n_policies // task.models.n_actions))
        depth = min(depth, task.horizon, max(8, kept))
    return depth


def allowance_of(task: FiniteTask, problem: BeliefMDP, paid: float = 0.0) -> Allowance:
    """What rounding can take from values on the graph of a problem: sums over outcomes, and places on grids of pairs,
    which are a share of the grid's size off. `paid`: for states that were joined."""
    return Allowance(task, int(np.diff(problem.first, axis=1).max()) + 2 * problem.pairs.shape[4], paid=paid)


def scale_of(problem: BeliefMDP, weights: FloatArray, start: FloatArray, largest: float | None = None) -> float:
    """What is small is small beside this: the `largest` value there is, by default the largest that is told; or some
    times what is told at the start, where that is much less, and the largest are those of actions and states to be
    avoided."""
    best = np.where(problem.available, problem.q[0], -np.inf).max(axis=-1)
    largest = float(np.abs(problem.q).max()) if largest is None else largest
    return min(largest, _MIXED * float(weights @ np.abs(best) @ start))


class _Tables:
    """Values on each model by stage, as far as somebody asked for them."""

    def __init__(self) -> None:
        self.apart: FloatArray | None = None
        self.values: dict[TablePolicy, FloatArray] = {}
        self.enclosed: dict[TablePolicy, FloatArray] = {}
        self.nbytes = 0

    def keep(self, held: dict[TablePolicy, FloatArray], policy: TablePolicy, found: FloatArray) -> FloatArray:
        """Keep what was found of a policy, as far as there is space."""
        if self.nbytes + found.nbytes <= TABLE_BYTES:
            held[policy] = found
            self.nbytes += found.nbytes
        return found


@made_once_for_models
def _tables(task: FiniteTask) -> _Tables:
    return _Tables()


def models_apart(task: FiniteTask, stages: int) -> FloatArray:
    """`[stage,m,s,a]`: the optimal values of each model by itself, from above, zero where unavailable: stages
    `0..stages` of a finite horizon, one stage when infinite."""
    tables, models = _tables(task), task.models
    if task.horizon is None:
        if tables.apart is None:
            tables.apart = np.where(models.available, solved_models(task).q_above, 0.0)[None]
        return tables.apart
    if tables.apart is None or len(tables.apart) <= stages:
        kept = np.zeros((stages + 1, *models.rewards.shape))

        def keep(k: int, q: FloatArray, _: FloatArray) -> None:
            if k <= stages:
                kept[k] = np.where(models.available, q, 0.0)

        values, q = models.induct_best(task.discount, task.horizon, keep)
        solved_models.keep(task, inducted(models, values, q, task.discount, task.horizon))
        tables.apart = kept
    return tables.apart[: stages + 1]


def values_of(task: FiniteTask, policy: TablePolicy, stages: int) -> FloatArray:
    """`[stage,m,s]`: `stage_values` of a policy on the task's models, kept for the next who asks."""
    tables = _tables(task)
    known = tables.values.get(policy)
    if known is None or (task.horizon is not None and len(known) <= stages):
        if task.horizon is None:
            known = lowered(*enclosed_of(task, policy))[None]
        else:
            known = stage_values(policy, task.models, task.discount, task.horizon, stages)
        tables.keep(tables.values, policy, known)
    return known[: stages + 1]


def enclosed_of(task: FiniteTask, policy: TablePolicy) -> FloatArray:
    """`[2,m,s]`: the values of a stationary policy for ever, and how far they can be from the true ones; kept too."""
    tables = _tables(task)
    known = tables.enclosed.get(policy)
    if known is None:
        known = np.stack(task.models.enclose(_for_ever(policy, task.models), task.discount))
        tables.keep(tables.enclosed, policy, known)
    return known


def stage_values(
    policy: TablePolicy, models: ModelSet, discount: float, horizon: int | None, stages: int
) -> FloatArray:
    """`[stage,m,s]`: the value on each model of what remains of a policy from each stage on, exact up to rounding;
    without a horizon, rounded down."""
    if horizon is None:
        return models.below(_for_ever(policy, models), discount)[None]
    chances = policy.chances(models.n_actions)
    kept = np.zeros((stages + 1, *models.rewards.shape[:2]))

    def keep(k: int, _: FloatArray, values: FloatArray) -> None:
        if k <= stages:
            kept[k] = values

    models.induct_follow(chances, discount, horizon, keep)
    return kept


def _for_ever(policy: TablePolicy, models: ModelSet) -> FloatArray:
    """Chances `[s,a]` of a policy that has no end."""
    if policy.horizon is not None:
        raise ParameterError("a time-indexed policy has no value without a horizon; pass its first step")
    return policy.chances(models.n_actions)


def _stacked(values: Sequence[FloatArray], models: ModelSet) -> FloatArray:
    """Values `[stage,m,s,policy]` of a pool."""
    if not values:
        return np.empty((1, models.n_models, models.n_states, 0))
    return np.ascontiguousarray(np.stack(values, axis=-1))
