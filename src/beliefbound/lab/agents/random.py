"""Random: each available action with equal probability. A state with one action costs no random number."""

from typing import NamedTuple

import numpy as np
from numba import njit

from beliefbound.base.validation import BoolArray
from beliefbound.kernels.actions import ActionLists, action_lists
from beliefbound.kernels.options import EXACT, EXACT_INLINE
from beliefbound.kernels.random import below, load, save
from beliefbound.lab.engine.protocol import Machine, Setting
from beliefbound.lab.engine.registry import agent


class State(NamedTuple):
    """What to choose from."""

    stream: np.ndarray  # uint64 [4]
    lists: ActionLists


@njit(**EXACT)
def reset(state, stream):
    """Take a stream."""
    save(state.stream, load(stream))


@njit(**EXACT_INLINE)
def act(state, s):
    """One of the actions of `s`."""
    if state.lists.counts[s] == 1:
        return state.lists.offered[s, 0]
    return state.lists.offered[s, below(state.stream, state.lists.counts[s])]


@njit(**EXACT_INLINE)
def observe(state, s, a, r, t):
    """Nothing to learn."""


def choose_among(allowed: BoolArray) -> Machine:
    """The machine that draws uniformly among `allowed[s,a]`."""
    return Machine(State(np.zeros(4, np.uint64), action_lists(allowed)), reset, act, observe)


@agent("random", summary="every available action with equal probability")
def random(setting: Setting) -> Machine:
    """Every available action of every state."""
    return choose_among(setting.available)
