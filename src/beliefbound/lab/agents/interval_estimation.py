"""Interval estimation (Kaelbling 1993): in every state, the action whose mean reward may be highest.

With mean x of n scaled rewards, the upper end of the score interval of a Bernoulli mean at z deviations,

`u = (x + z²/2n + (z/√n) sqrt(x(1 − x) + z²/4n)) / (1 + z²/n)`, and 1 where n = 0,

is computed for each action of the present state; the largest is played, ties to the lowest. Every state is a bandit of
its own: consequences for later states are ignored (IEQL+, `ieql`, is the version that looks further). It learns no
model and uses no prior.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from beliefbound.base.grammar import Number
from beliefbound.base.validation import FloatArray, IntArray
from beliefbound.kernels.actions import ActionLists, action_lists, best_offered
from beliefbound.kernels.options import EXACT, EXACT_INLINE
from beliefbound.lab.engine.protocol import Machine, Setting
from beliefbound.lab.engine.registry import agent


class State(NamedTuple):
    """Sums of rewards and the upper ends of their intervals."""

    total: FloatArray  # [s,a]
    visits: IntArray  # [s,a]
    upper: FloatArray  # [s,a]
    lists: ActionLists
    z: float
    low: float
    width: float


@njit(**EXACT)
def upper_end(x, n, z):
    """The upper end of the score interval for mean `x` of `n ≥ 1` rewards.

    >>> round(upper_end(0.3, 10, 1.96), 6), round(upper_end(0.0, 10, 1.96), 6)
    (0.603227, 0.27754)
    """
    share = z * z / n
    inside = max(0.0, x * (1.0 - x)) + 0.25 * share
    return (x + 0.5 * share + z / math.sqrt(n) * math.sqrt(inside)) / (1.0 + share)


@njit(**EXACT)
def reset(state, stream):
    """Forget everything. No random numbers are used."""
    state.total.fill(0.0)
    state.visits.fill(0)
    state.upper.fill(1.0)


@njit(**EXACT_INLINE)
def act(state, s):
    """The largest upper end."""
    return best_offered(state.lists, state.upper, s)


@njit(**EXACT_INLINE)
def observe(state, s, a, r, t):
    """The interval of one pair."""
    state.visits[s, a] += 1
    state.total[s, a] += (r - state.low) / state.width
    n = state.visits[s, a]
    state.upper[s, a] = upper_end(state.total[s, a] / n, n, state.z)


@agent(
    "interval-estimation",
    summary="the action whose mean reward may be highest, each state a bandit (Kaelbling 1993)",
    parameters=(Number("z", 1.96, 0.0, 1e3, "deviations from the mean to the end of an interval"),),
)
def interval_estimation(setting: Setting, *, z: float) -> Machine:
    """The machine."""
    shape = (setting.n_states, setting.n_actions)
    state = State(
        total=np.zeros(shape),
        visits=np.zeros(shape, np.int64),
        upper=np.zeros(shape),
        lists=action_lists(setting.available),
        z=float(z),
        low=setting.low,
        width=setting.width,
    )
    return Machine(state, reset, act, observe)
