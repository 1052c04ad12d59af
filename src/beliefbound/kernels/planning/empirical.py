"""Counts of what was seen, and the empirical model they make: frequencies `p̂` and mean scaled rewards `r̂`."""

from typing import NamedTuple

import numpy as np
from numba import njit

from beliefbound.kernels.options import EXACT, EXACT_INLINE
from beliefbound.kernels.reference import by_reference


@by_reference
class Counts(NamedTuple):
    """Visits, arrivals and sums of rewards scaled to [0, 1]."""

    visits: np.ndarray  # int64 [s,a]
    arrivals: np.ndarray  # int64 [s,a,t]
    rewards: np.ndarray  # [s,a]
    low: float
    width: float


def no_counts(n_states: int, n_actions: int, *, low: float, width: float) -> Counts:
    """Nothing seen yet."""
    return Counts(
        visits=np.zeros((n_states, n_actions), np.int64),
        arrivals=np.zeros((n_states, n_actions, n_states), np.int64),
        rewards=np.zeros((n_states, n_actions)),
        low=low,
        width=width,
    )


@njit(**EXACT)
def forget_counts(counts):
    """Back to nothing seen."""
    n_states, n_actions = counts.visits.shape
    for s in range(n_states):
        for a in range(n_actions):
            counts.visits[s, a] = 0
            counts.rewards[s, a] = 0.0
            for t in range(n_states):
                counts.arrivals[s, a, t] = 0


@njit(**EXACT_INLINE)
def count(counts, s, a, r, t):
    """One transition; returns the visits of the pair."""
    counts.visits[s, a] += 1
    counts.arrivals[s, a, t] += 1
    counts.rewards[s, a] += (r - counts.low) / counts.width
    return counts.visits[s, a]


@njit(**EXACT)
def estimate(counts, model, s, a):
    """`p̂` and `r̂` of a visited pair, into an `optimism.OptimisticModel`."""
    n = counts.visits[s, a]
    for t in range(model.v.size):
        model.p[s, a, t] = counts.arrivals[s, a, t] / n
    model.blank[s, a] = False
    model.r[s, a] = counts.rewards[s, a] / n


@njit(**EXACT)
def unknown(model, value):
    """Every pair is worth `value`, and so is every state: what an optimist thinks of a world not yet seen."""
    n_states, n_actions = model.r.shape
    for s in range(n_states):
        model.v[s] = value
        for a in range(n_actions):
            model.r[s, a] = value
            model.width[s, a] = 0.0
            model.blank[s, a] = True
            for t in range(n_states):
                model.p[s, a, t] = 0.0
