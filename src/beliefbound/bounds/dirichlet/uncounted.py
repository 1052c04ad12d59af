"""The ladder of a belief without counts, such as one with Normal rewards: all that is known is how to draw models.

Below, the value of a memoryless plan; above, QMDP: `V* ≤ max_a E Q*_μ(s,a)`, with an interval for every start state and
action at once. Both on fresh models, ever more of them. Where rewards have no range, intervals are Student's, which are
asymptotic.
"""

import numpy as np

from beliefbound.bounds.bound import Bound
from beliefbound.bounds.ladder import RUNG, Meter, Rungs
from beliefbound.bounds.log import Log
from beliefbound.bounds.statistics.intervals import Interval, describe, mean_bound
from beliefbound.evaluation import evaluate
from beliefbound.planning.mmbi import mmbi
from beliefbound.planning.optimal import backward_induction, optimal_values, policy_iteration
from beliefbound.planning.task import Task
from beliefbound.policy import TablePolicy
from beliefbound.validation import FloatArray

_DESIGN = 64  # models that a plan is made on, where that is cheap
_SWEEPS = 20.0  # of MMBI, for each step that counts
_BATCH_BYTES, _DRAW = 8 << 20, 100  # models drawn together; operations to draw a number
_MOST_MODELS = 1 << 18


def first_plan(task: Task, rng: np.random.Generator) -> TablePolicy:
    """A memoryless policy: MMBI on a few models where that takes no longer than a rung, else the expected MDP's."""
    belief, discount, horizon = task.belief, task.discount, task.horizon
    lasts = _SWEEPS / (1.0 - discount) if horizon is None else float(horizon)
    if _DESIGN * belief.n_states**2 * belief.n_actions * lasts <= 2.0 * RUNG:
        return mmbi(belief.sample(_DESIGN, rng), discount=discount, horizon=horizon).policy
    if horizon is None:
        return policy_iteration(belief.mean(), discount=discount).policy
    return backward_induction(belief.mean(), discount=discount, horizon=horizon).policy


def uncounted_rungs(task: Task, rng: np.random.Generator, log: Log, interval: Interval) -> Rungs:
    """The ladder of a belief without counts."""
    belief, rewards, lasts = task.belief, task.belief.reward_range, task.effective_horizon
    range_ = None if rewards is None else (rewards[0] * lasts, rewards[1] * lasts)
    interval = "t" if range_ is None else interval
    plan, meter, states = first_plan(task, rng), Meter(), np.flatnonzero(task.start)
    size = belief.n_states**2 * belief.n_actions
    batch = int(np.clip(_BATCH_BYTES // (8 * size), 2, 256))
    below, above = list[FloatArray](), list[FloatArray]()
    alpha = 0.5 * (1.0 - log.confidence)
    while len(below) * batch < _MOST_MODELS:
        earned = evaluate(plan, belief.sample(batch, rng), discount=task.discount, horizon=task.stages_of(plan))
        below.append(earned @ task.start)
        solved = optimal_values(belief.sample(batch, rng), discount=task.discount, horizon=task.horizon)
        above.append(solved.q_above[:, states])
        meter.add(batch * (belief.n_states**3 + _DRAW * size))
        if not meter.full():
            continue
        x, q = np.concatenate(below), np.concatenate(above)
        each = 1.0 - alpha / (len(states) * belief.n_actions)
        high = [
            max(
                mean_bound(q[:, i, a], "upper", confidence=each, range_=range_, interval=interval)
                for a in np.flatnonzero(belief.available[s])
            )
            for i, s in enumerate(states)
        ]
        how = f"on {len(x)} fresh models, {describe(interval)} interval"
        yield [
            Bound(
                mean_bound(x, "lower", confidence=1.0 - alpha, range_=range_, interval=interval),
                "lower",
                f"value of a memoryless policy {how}",
                exact=False,
                confidence=1.0 - alpha,
                estimate=float(x.mean()),
                n_samples=len(x),
                policy=plan,
            ),
            Bound(
                float(task.start[states] @ high),
                "upper",
                f"QMDP {how}",
                exact=False,
                confidence=1.0 - alpha,
                estimate=float(task.start[states] @ q.mean(axis=0).max(axis=-1)),
                n_samples=len(x),
            ),
        ]
