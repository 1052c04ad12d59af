"""A first look at a finite belief, in plain array operations: bounds to show while kernels are compiled.

From above QMDP, from below the policy that is greedy for it. With a horizon both are exact. Without one they are swept
from the side that is wanted, and valid after any number of sweeps (MacQueen): with `V' = TV`,

    V' + γ/(1−γ) min (V' − V)  ≤  the fixed point  ≤  V' + γ/(1−γ) max (V' − V).

Nothing where the problem is large: then its first steps, compiled, come sooner.
"""

import numpy as np

from beliefbound.base.validation import FloatArray, IntArray
from beliefbound.bounds.bound import Bound, Kind
from beliefbound.models.enclosing import swept
from beliefbound.planning.rounding import Allowance
from beliefbound.planning.task import FiniteTask
from beliefbound.policy import StationaryPolicy

_SWEEPS = 1000  # at most
_WORK = 4e7  # multiply-adds, at most
_EPSILON = 1e-6  # of the largest value: sweeps end


def first_bounds(task: FiniteTask) -> list[Bound]:
    """A lower and an upper bound, both exact; none where that would take more than a moment.

    >>> from beliefbound.beliefs import FiniteBelief
    >>> belief = FiniteBelief([[[[1.0]]], [[[1.0]]]], [[[1.0]], [[2.0]]], reward_signal="unobserved")
    >>> [round(bound.value, 9) for bound in first_bounds(FiniteTask.of(belief, discount=0.5))]
    [3.0, 3.0]
    """
    models = task.models
    entries = models.n_models * models.n_states**2 * models.n_actions
    if entries * (task.horizon or _SWEEPS) > _WORK:
        return []
    p = models.dense().reshape(models.n_models, -1, models.n_states)
    values = _swept(task, p, None)
    q = _backup(task, p, values) if task.horizon is None else _backup(task, p, _swept(task, p, None, 1))
    told = np.where(models.available, np.tensordot(task.weights, q, axes=1), -np.inf)
    policy = StationaryPolicy(told.argmax(axis=-1))
    below = task.value(_swept(task, p, np.array(policy.actions)))
    allowance = Allowance(task, closely=False)
    how = (", swept from below", ", swept from above") if task.horizon is None else ("", "")
    return [
        Bound(allowance.lower(below), "lower", f"QMDP's policy{how[0]}", policy=policy, kind=Kind.QMDP),
        Bound(allowance.upper(float(task.start @ told.max(axis=-1))), "upper", f"QMDP{how[1]}", kind=Kind.QMDP),
    ]


def _swept(task: FiniteTask, p: FloatArray, actions: IntArray | None, left_out: int = 0) -> FloatArray:
    """Values `[m,s]`: of each model by itself, or more; of a policy `[s]`, or less. With a horizon, exactly, and for
    `left_out` decisions less."""
    values, change = np.zeros(task.models.rewards.shape[:2]), np.zeros(1)
    for _ in range(_SWEEPS if task.horizon is None else task.horizon - left_out):
        q = _backup(task, p, values)
        if actions is None:
            better = np.where(task.models.available, q, -np.inf).max(axis=-1)
        else:
            better = q[:, np.arange(len(actions)), actions]
        values, change = better, better - values
        if task.horizon is None and np.ptp(change) <= _EPSILON * (1.0 - task.discount) * task.largest_value:
            break
    if task.horizon is not None:
        return values
    return swept(values, values - change, task.discount, task.models.rounding, up=actions is None)


def _backup(task: FiniteTask, p: FloatArray, values: FloatArray) -> FloatArray:
    """`[m,s,a]`. No library sums here: their last bits may depend on the number of threads."""
    later = np.einsum("mkt,mt->mk", p, values).reshape(task.models.rewards.shape)
    return np.asarray(task.models.rewards + task.discount * later)
