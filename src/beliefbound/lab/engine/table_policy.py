"""A table policy as a compiled machine, so that thousands of runs of it are played at once.

`a ~ π(· | k, s)` at stage `k`, the number of transitions observed since the reset; a stationary policy has one stage.
A deterministic policy draws nothing. `StationaryPolicy` and `MemorylessPolicy` stepped by hand take the same actions
from the same stream.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from beliefbound.kernels.options import EXACT, EXACT_INLINE
from beliefbound.kernels.random import categorical, load, save
from beliefbound.lab.engine.protocol import Machine
from beliefbound.policy import TablePolicy


class State(NamedTuple):
    """The table, and where in it we are."""

    stream: npt.NDArray[np.uint64]
    stage: npt.NDArray[np.int64]  # [1]
    actions: npt.NDArray[np.int64]  # [stage,s]; no stages when stochastic
    chances: npt.NDArray[np.float64]  # [stage,s,a]; no stages when deterministic


@njit(**EXACT)
def reset(state, stream):
    """Take a stream and begin at the first stage."""
    save(state.stream, load(stream))
    state.stage[0] = 0


@njit(**EXACT_INLINE)
def act(state, s):
    """The action of the present stage."""
    if state.actions.shape[0] > 0:
        return state.actions[min(state.stage[0], state.actions.shape[0] - 1), s]
    return categorical(state.stream, state.chances[min(state.stage[0], state.chances.shape[0] - 1), s])


@njit(**EXACT_INLINE)
def observe(state, s, a, r, t):
    """Time goes on."""
    state.stage[0] += 1


def table_machine(policy: TablePolicy) -> Machine:
    """The machine of a policy that fits where it is played, for no more steps than it has decisions."""
    actions, chances = np.empty((0, policy.n_states), np.int64), np.empty((0, policy.n_states, 1))
    if policy.is_deterministic:
        actions = np.array(np.atleast_2d(policy.actions))
    else:
        table = np.array(policy.probabilities)
        chances = table[None] if table.ndim == 2 else table
    state = State(np.zeros(4, np.uint64), np.zeros(1, np.int64), actions, chances)
    return Machine(state, reset, act, observe)
