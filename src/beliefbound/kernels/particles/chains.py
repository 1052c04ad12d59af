"""Chains in one call: the search of `kernels.particles.renewal`, and the particles that it waits for on the way.

There are dozens to a chain, a few microseconds each. Fetched one by one from Python, they made two threads wait for
each other most of the time.
"""

import numpy as np
from numba import njit

from beliefbound.kernels.options import FAST
from beliefbound.kernels.particles.changed import solve_again
from beliefbound.kernels.particles.renewal import RENEW, SETS, WAITING, cheapest
from beliefbound.kernels.particles.rows import particles_at


@njit(**FAST)
def relax(problem, search, rows, changed, x, scenario, depth, max_nodes, least):
    """`renewal.cheapest` without a horizon, called again whenever it has waited: ends with `DONE` or `MORE`. A set of
    particles is solved from the one that it shares most rows with."""
    while True:
        fits = rows.size[0] + problem.available.size <= rows.draws.shape[0]
        most = search.start.size if fits else search.size[SETS]
        cost, found = cheapest(problem, search, rows.draws, x, scenario, depth, max_nodes, most, least, np.int64(0))
        if found != RENEW:
            return cost, found
        x, newest = search.size[WAITING], search.size[SETS] - 1
        before, slots = np.int64(search.node[x].set), search.slots[newest]
        particles_at(problem, rows, search.counts, slots)
        old, new = search.q[before, 0], search.q[newest, 0]
        solve_again(problem.discount, rows.draws, search.slots[before], slots, old, changed, new)
