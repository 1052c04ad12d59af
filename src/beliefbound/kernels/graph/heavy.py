"""Models that matter at a belief.

After some observations nearly all weight is on a few models. Which policy is best is then decided by these, and what it
is worth on the others is looked at afterwards, of the best one alone: its value is exact, and it is next to the best.
A model matters as much as its weight times the scale of its values, so that one of little weight where much can be lost
is not left out.
"""

import numpy as np
from numba import njit

from beliefbound.kernels.options import FAST_INLINE

_LIGHT = 1e-4  # of the sum over models, weights times scale: a model of less is light


@njit(**FAST_INLINE)
def heavy_models(weight, scale, heavy):
    """Write the models that matter at unnormalised weights `[m]` to `heavy`, in order; returns how many."""
    least = 0.0
    for m in range(weight.size):
        least += weight[m] * scale[m]
    least *= _LIGHT
    n = 0
    for m in range(weight.size):
        if weight[m] * scale[m] > least:
            heavy[n] = m
            n += 1
    return n


def mean_heavy(weights: np.ndarray, scale: np.ndarray) -> float:
    """How many models matter at beliefs `[n,m]`, on average."""
    matter = weights * scale
    return float((matter > _LIGHT * matter.sum(axis=1, keepdims=True)).sum(axis=1).mean())
