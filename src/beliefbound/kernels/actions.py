"""The actions that each state offers, as lists: what agents draw from and search through."""

from typing import NamedTuple

import numpy as np
from numba import njit

from beliefbound.kernels.options import EXACT, EXACT_INLINE
from beliefbound.kernels.reference import by_reference


@by_reference
class ActionLists(NamedTuple):
    """`offered[s, :counts[s]]`, in order."""

    offered: np.ndarray  # int64 [s,a]: the actions of s, then −1
    counts: np.ndarray  # int64 [s]


def action_lists(available: np.ndarray) -> ActionLists:
    """The lists of `available[s,a]`.

    >>> action_lists(np.array([[False, True], [True, True]]))
    ActionLists(offered=array([[ 1, -1],
           [ 0,  1]]), counts=array([1, 2]))
    """
    offered = np.full(available.shape, -1, dtype=np.int64)
    for s, row in enumerate(available):
        actions = np.flatnonzero(row)
        offered[s, : len(actions)] = actions
    return ActionLists(offered, available.sum(axis=1, dtype=np.int64))


@njit(inline="always", **EXACT)
def natural(number):
    """A whole number that is not negative, as it is, and known to be so: an index that might count from the end costs
    every array that it reaches into three instructions."""
    return number & 0x7FFFFFFFFFFFFFFF


@njit(**EXACT_INLINE)
def best_offered(lists, values, s):
    """The offered action of largest `values[s,a]`, ties to the lowest."""
    best = natural(lists.offered[s, 0])
    for i in range(1, lists.counts[s]):
        a = natural(lists.offered[s, i])
        if values[s, a] > values[s, best]:
            best = a
    return best
