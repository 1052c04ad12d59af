"""The Gittins index policy (Gittins 1979): Bayes-optimal for discounted bandits, one state and independent arms.

The mean reward of each action is an independent Beta(`successes`, `failures`), rewards being scaled to [0, 1]; the
action of largest Gittins index at the present counts is played, ties to the lowest. Indices are computed by
calibration, between a lower and an upper bound at most `tolerance` apart (`kernels.planning.gittins`; their middle is
used), when counts are first met, and kept for later runs.

Exactly optimal for the infinite discounted sum when rewards are 0 or 1. A reward x in between is counted as a success
with probability x (Agrawal & Goyal 2012). Not optimal for a finite horizon or a total, and not defined where there are
several states: those are refused.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from beliefbound.base.errors import ParameterError
from beliefbound.base.grammar import Number
from beliefbound.base.validation import FloatArray, IntArray
from beliefbound.kernels.actions import ActionLists, action_lists, best_offered
from beliefbound.kernels.options import EXACT, EXACT_INLINE
from beliefbound.kernels.planning.gittins import index_bounds
from beliefbound.kernels.random import load, save, uniform
from beliefbound.lab.engine.protocol import DISCOUNT, Machine, Setting
from beliefbound.lab.engine.registry import agent

KEPT = 1024  # indices of fewer successes and failures than this are kept: eight megabytes, as far as they are used


class State(NamedTuple):
    """Counts and indices."""

    stream: np.ndarray  # uint64 [4]
    counts: IntArray  # [a,2]: successes and failures seen
    indices: FloatArray  # [1,a]
    kept: FloatArray  # [successes,failures]: indices met so far, else 0; the same in every run
    layer: FloatArray  # [N+1] scratch
    lists: ActionLists
    successes: float
    failures: float
    tolerance: float
    low: float
    width: float
    discount: float


@njit(**EXACT)
def reset(state, stream):
    """Back to the prior."""
    save(state.stream, load(stream))
    state.counts.fill(0)
    for a in range(state.indices.size):
        index_again(state, a)


@njit(**EXACT)
def index_again(state, a):
    """The index of an arm at its present counts."""
    won, lost = state.counts[a, 0], state.counts[a, 1]
    keep = won < state.kept.shape[0] and lost < state.kept.shape[1]
    if keep and state.kept[won, lost] > 0.0:
        state.indices[0, a] = state.kept[won, lost]
        return
    lower, upper = index_bounds(
        state.successes + won, state.failures + lost, state.discount, state.tolerance, state.layer
    )
    state.indices[0, a] = 0.5 * (lower + upper)
    if keep:
        state.kept[won, lost] = state.indices[0, a]


@njit(**EXACT_INLINE)
def act(state, s):
    """The largest index."""
    return best_offered(state.lists, state.indices, s)


@njit(**EXACT_INLINE)
def observe(state, s, a, r, t):
    """A success or a failure; only a reward in between takes a random number."""
    x = (r - state.low) / state.width
    won = x >= 1.0 or (x > 0.0 and uniform(state.stream) < x)
    state.counts[a, 0 if won else 1] += 1
    index_again(state, a)


@agent(
    "gittins",
    summary="the Gittins index policy, Bayes-optimal for discounted bandits; one state only (Gittins 1979)",
    parameters=(
        Number("successes", 1.0, 0.0, 1e6, "first parameter of the Beta prior on scaled rewards", above=True),
        Number("failures", 1.0, 0.0, 1e6, "second parameter of the Beta prior", above=True),
        Number("tolerance", 1e-6, 1e-12, 1.0, "between the bounds on an index"),
        Number("depth", 4000, 1, 100_000, "most plays looked ahead for an index", whole=True),
        DISCOUNT,
    ),
)
def gittins(
    setting: Setting, *, successes: float, failures: float, tolerance: float, depth: int, discount: float
) -> Machine:
    """The machine."""
    if setting.n_states != 1:
        raise ParameterError(
            f"gittins is for bandits, of one state; this environment has {setting.n_states}, and no index is defined"
        )
    state = State(
        stream=np.zeros(4, np.uint64),
        counts=np.zeros((setting.n_actions, 2), np.int64),
        indices=np.zeros((1, setting.n_actions)),
        kept=np.zeros((KEPT, KEPT)),
        layer=np.zeros(depth + 1),
        lists=action_lists(setting.available),
        successes=float(successes),
        failures=float(failures),
        tolerance=float(tolerance),
        low=setting.low,
        width=setting.width,
        discount=float(discount),
    )
    return Machine(state, reset, act, observe)
