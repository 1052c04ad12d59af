"""Sums whose last bits do not depend on where arrays lie in memory.

A loop that stores and sums at once is compiled twice: with reordered sums for arrays that lie apart, and as written for
arrays that may overlap; which of the two runs, and so the last bit, is decided by addresses. So what is stored is
summed afterwards, by a loop that stores nothing.
"""

from numba import njit

from beliefbound.kernels.options import FAST


@njit(**FAST)
def sum_of(x):
    """`Σ_m x[m]`."""
    total = 0.0
    for m in range(x.size):
        total += x[m]
    return total
