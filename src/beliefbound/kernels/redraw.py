"""Rows of parameters drawn into models that an agent holds, one at a time and without allocating anything.

Rows are independent, so a model whose row is replaced by a draw from the present posterior of that row is a draw from
the present posterior, if it was one before something was seen of that row. All pairs that share the row get the same
draw, each in its own places: rows of one model always come from one joint draw.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from beliefbound.kernels.draws import dirichlet_row
from beliefbound.kernels.options import EXACT
from beliefbound.kernels.posterior import Posterior, arrival_of, draw_row, paid_on
from beliefbound.kernels.reference import by_reference

kernel = njit(**EXACT)  # compiled once for all agents that call it


@by_reference
class Scratch(NamedTuple):
    """Empty arrays for one draw."""

    theta: np.ndarray  # [outcome]
    rho: np.ndarray  # [reward value]


def scratch_for(posterior: Posterior) -> Scratch:
    """Empty arrays for a draw from a posterior."""
    return Scratch(np.zeros(posterior.alpha.shape[1]), np.zeros(len(posterior.reward)))


@kernel
def redraw(posterior, stream, row, first, last, p, r, scratch):
    """Draw a row again in models first … last − 1, for every pair that has it: `p[s,a,t,m]` and rewards `r[s,a,m]`."""
    theta, rho = scratch
    low, high = (0, posterior.row.size) if posterior.tied else (row, row + 1)
    for m in range(first, last):
        draw_row(posterior, stream, row, theta)
        for pair in range(low, high):
            if not posterior.tied or posterior.row[pair] == row:
                place(posterior, stream, pair, m, p, r, theta, rho)


@njit(inline="always", **EXACT)
def place(posterior, stream, pair, m, p, r, theta, rho):
    """Write a row of parameters where a pair's outcomes lead, and draw the pair's reward."""
    s, a = pair // posterior.n_actions, pair % posterior.n_actions
    if posterior.tied:
        for t in range(p.shape[2]):
            p[s, a, t, m] = 0.0
        for j in range(theta.size):
            t = arrival_of(posterior, pair, j)
            if t >= 0:
                p[s, a, t, m] = theta[j]
    else:
        for t in range(theta.size):
            p[s, a, t, m] = theta[t]
    n_values = posterior.reward.shape[0]
    rho[0] = 1.0
    if n_values > 1:
        dirichlet_row(stream, posterior.reward[:, pair], rho)
    total = 0.0
    for k in range(n_values):
        total += rho[k] * paid_on(posterior, k, pair, p[s, a, :, m])
    r[s, a, m] = total


@kernel
def redraw_all(posterior, stream, p, r, scratch):
    """Draw all models `p[s,a,t,m]`, `r[s,a,m]` anew."""
    for row in range(posterior.alpha.shape[0]):
        redraw(posterior, stream, row, 0, p.shape[3], p, r, scratch)
