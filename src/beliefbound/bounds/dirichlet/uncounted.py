"""The steps of a belief without counts, such as one with Normal rewards: all that is known is how to draw models.

Below, the value of a memoryless plan; above, QMDP: `V* ≤ max_a E Q*_μ(s,a)`, with an interval for every start state and
action at once. Both on fresh models, ever more of them. Where rewards have no range, intervals are Student's, which are
asymptotic.
"""

from typing import Any

import numpy as np

from beliefbound.base.validation import FloatArray
from beliefbound.bounds.bound import Kind
from beliefbound.bounds.record import Record
from beliefbound.bounds.sampled import bound_of_mean, qmdp_of_samples
from beliefbound.bounds.statistics.intervals import Interval
from beliefbound.bounds.steps import STEP_WORK, Meter, Steps
from beliefbound.models.evaluation import evaluate
from beliefbound.planning.expected import expected_optimum
from beliefbound.planning.mmbi import mmbi
from beliefbound.planning.optimal import optimal_values
from beliefbound.planning.task import Task
from beliefbound.policy import TablePolicy

_DESIGN = 64  # models that a plan is made on, where that is cheap
_SWEEPS = 20.0  # of MMBI, for each step that counts
_BATCH_BYTES, _DRAW = 8 << 20, 100  # models drawn together; operations to draw a number
_MOST_MODELS = 1 << 18


def first_plan(task: Task, rng: np.random.Generator) -> TablePolicy:
    """A memoryless policy: MMBI on a few models where that takes no longer than a step, else the expected MDP's."""
    belief, discount, horizon = task.belief, task.discount, task.horizon
    lasts = _SWEEPS / (1.0 - discount) if horizon is None else float(horizon)
    if _DESIGN * belief.n_states**2 * belief.n_actions * lasts <= 2.0 * STEP_WORK:
        return mmbi(belief.sample(_DESIGN, rng), discount=discount, horizon=horizon).policy
    return expected_optimum(task)


def uncounted_steps(task: Task, rng: np.random.Generator, record: Record, interval: Interval) -> Steps:
    """The steps of a belief without counts."""
    belief, rewards, lasts = task.belief, task.belief.reward_range, task.effective_horizon
    range_ = None if rewards is None else (rewards[0] * lasts, rewards[1] * lasts)
    plan, meter, states = first_plan(task, rng), Meter(), np.flatnonzero(task.start)
    size = belief.n_states**2 * belief.n_actions
    batch = int(np.clip(_BATCH_BYTES // (8 * size), 2, 256))
    below, above = list[FloatArray](), list[FloatArray]()
    knobs: dict[str, Any] = {"alpha": 0.5 * (1.0 - record.confidence), "range_": range_}
    knobs["interval"] = "t" if range_ is None else interval
    while len(below) * batch < _MOST_MODELS:
        earned = evaluate(plan, belief.sample(batch, rng), discount=task.discount, horizon=task.stages_of(plan))
        below.append(earned @ task.start)
        solved = optimal_values(belief.sample(batch, rng), discount=task.discount, horizon=task.horizon)
        above.append(solved.q_above[:, states])
        meter.add(batch * (belief.n_states**3 + _DRAW * size))
        if meter.full():
            x, q = np.concatenate(below), np.concatenate(above)
            what, start, offered = f"on {len(x)} fresh models", task.start[states], belief.available[states]
            record.add(
                bound_of_mean(x, "lower", Kind.TABLE, f"value of a memoryless policy {what}", policy=plan, **knobs),
                qmdp_of_samples(q, start, offered, f"QMDP {what}", **knobs),
            )
            yield
