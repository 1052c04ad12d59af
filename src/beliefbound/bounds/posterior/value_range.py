"""How small and how large a value can be under any model that a belief allows.

A belief that knows no more than the range of its rewards has values between `r_min Σγ^k` and `r_max Σγ^k`. One that
knows what its models allow (`beliefs.belief.Allowed`) has a narrower range.

Whatever the chances, a step leads to *some* state that they allow, and pays something between the least and the largest
reward that is believed possible. So no policy earns more in any model than whoever may choose the action, the next
state and the reward:

    U(s) = max_a max_{t possible} [ r_max(s,a,t) + γ U(t) ],

and none less than its mirror image. Where a reward is paid once, on the way to a state that ends the episode, this
range is far smaller than `r_max/(1−γ)`, and intervals for bounded samples shrink with it.
"""

import numpy as np

from beliefbound.base.validation import BoolArray, FloatArray
from beliefbound.beliefs.capabilities import allowed
from beliefbound.models.enclosing import rounding_of
from beliefbound.planning.task import Task, made_once

_MOST_SWEEPS = 100_000  # valid after any number
_CLOSE = 1e-12  # of the largest value: sweeps end


@made_once
def value_range(task: Task) -> tuple[float, float] | None:
    """`(least, largest)` value of any policy from the task's start in any model of its belief; `None` if unbounded.

    >>> from beliefbound.beliefs import DirichletBelief, KnownRewards
    >>> belief = DirichletBelief(3, 1, rewards=KnownRewards([0.0, 1.0, 0.0]), terminal=[2])
    >>> low, high = value_range(Task.of(belief, discount=0.5, initial=0))
    >>> abs(low) < 1e-9, abs(high - 1.0) < 1e-9
    (True, True)
    """
    known = allowed(task.belief)
    if known is not None:
        return -_best(-known.low, known.possible, task), _best(known.high, known.possible, task)
    return simple_range(task)


def simple_range(task: Task) -> tuple[float, float] | None:
    """The same by the range of rewards alone."""
    range_ = task.belief.reward_range
    return None if range_ is None else (range_[0] * task.effective_horizon, range_[1] * task.effective_horizon)


def _best(paid: FloatArray, possible: BoolArray, task: Task) -> float:
    """What whoever chooses actions and next states earns from the start, from above."""
    gain = np.where(possible, paid, -np.inf)  # [s,a,t]
    best = gain.max(axis=1)  # [s,t]
    values = np.zeros(len(best))
    close = _CLOSE * float(np.abs(best[np.isfinite(best)]).max(initial=0.0))
    if task.horizon is not None:
        for _ in range(task.horizon):
            after = (best + task.discount * values).max(axis=1)
            gap = float(np.abs(after - values).max())
            values = after
            if task.discount < 1.0 and gap <= close:
                return float(task.start @ values) + gap * task.discount / (1.0 - task.discount)
        return float(task.start @ values)
    gap = 0.0
    for _ in range(_MOST_SWEEPS):
        after = (best + task.discount * values).max(axis=1)
        gap = float(np.abs(after - values).max())
        values = after
        if gap <= close * (1.0 - task.discount):
            break
    gap += rounding_of(1) * float(np.abs(values).max())
    return float(task.start @ values) + gap / (1.0 - task.discount)
