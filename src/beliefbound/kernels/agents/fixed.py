"""Agents that do not learn: each state has a list of actions, one of which is drawn uniformly.

The oracle's lists hold one action each; the random agent's hold every available one.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from beliefbound.kernels.options import EXACT, EXACT_INLINE
from beliefbound.kernels.play import play_runs
from beliefbound.kernels.random import below, load, save


class State(NamedTuple):
    """The lists."""

    stream: npt.NDArray[np.uint64]
    offered: npt.NDArray[np.int64]  # [s,a]: the actions of s, then −1
    counts: npt.NDArray[np.int64]  # [s]: how many there are


@njit(**EXACT)
def reset(state, stream):
    """Take a stream."""
    save(state.stream, load(stream))


@njit(**EXACT_INLINE)
def act(state, s):
    """One of the actions of `s`."""
    if state.counts[s] == 1:
        return state.offered[s, 0]
    return state.offered[s, below(state.stream, state.counts[s])]


@njit(**EXACT_INLINE)
def observe(state, s, a, r, t):
    """Nothing to learn."""


@njit(**EXACT)
def play(state, outcomes, terminal, address, discount, skipped, every, results):
    """`play_runs` of this agent."""
    play_runs(reset, act, observe, state, outcomes, terminal, address, discount, skipped, every, results)
