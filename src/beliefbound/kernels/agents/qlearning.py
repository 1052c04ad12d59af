"""ε-greedy Q-learning (Watkins 1989) on rewards scaled to [0, 1].

After `(s, a, x, t)`, with N the visits of `(s, a)` including this one,
`Q(s,a) += step / N^power · (x + γ max_b Q(t,b) − Q(s,a))`. At step k = 0, 1, … a random available action is played with
probability `epsilon / (1 + decay k)`, else the greedy one, ties to the lowest.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from beliefbound.kernels.options import EXACT, EXACT_INLINE
from beliefbound.kernels.play import play_runs
from beliefbound.kernels.random import load, save, uniform

Floats = npt.NDArray[np.float64]


class State(NamedTuple):
    """Action values, visits and parameters."""

    stream: npt.NDArray[np.uint64]
    q: Floats  # [s,a]
    visits: npt.NDArray[np.int64]  # [s,a]
    steps: npt.NDArray[np.int64]  # [1]
    offered: npt.NDArray[np.int64]  # [s,a]: the available actions of s, then −1
    counts: npt.NDArray[np.int64]  # [s]: how many are available
    epsilon: float
    decay: float
    step: float
    power: float
    initial: float
    low: float
    width: float
    discount: float


@njit(**EXACT)
def reset(state, stream):
    """Forget everything."""
    save(state.stream, load(stream))
    state.q.fill(state.initial)
    state.visits.fill(0)
    state.steps.fill(0)


@njit(**EXACT_INLINE)
def greedy(state, s):
    """The best available action in `s`, ties to the lowest."""
    best = state.offered[s, 0]
    for i in range(1, state.counts[s]):
        a = state.offered[s, i]
        if state.q[s, a] > state.q[s, best]:
            best = a
    return best


@njit(**EXACT_INLINE)
def act(state, s):
    """Explore or exploit; one uniform decides both whether and where."""
    epsilon = state.epsilon / (1.0 + state.decay * state.steps[0])
    state.steps[0] += 1
    u = uniform(state.stream)
    if u < epsilon:
        i = min(np.int64(u / epsilon * state.counts[s]), state.counts[s] - 1)
        return state.offered[s, i]
    return greedy(state, s)


@njit(**EXACT_INLINE)
def observe(state, s, a, r, t):
    """One update."""
    state.visits[s, a] += 1
    target = (r - state.low) / state.width + state.discount * state.q[t, greedy(state, t)]
    state.q[s, a] += state.step / state.visits[s, a] ** state.power * (target - state.q[s, a])


@njit(**EXACT)
def play(state, outcomes, terminal, address, discount, skipped, every, results):
    """`play_runs` of this agent."""
    play_runs(reset, act, observe, state, outcomes, terminal, address, discount, skipped, every, results)
