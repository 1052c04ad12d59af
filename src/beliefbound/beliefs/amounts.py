"""When two rewards are one amount: where they are equal up to rounding, in whatever unit they are paid.

`x` and `y` are one amount when `|x − y| ≤ 1e-9 · max(|x|, |y|) + 1e-12 · r`, with `r` the largest amount, in absolute
value, that there is in the same belief: 0.1 + 0.2 is 0.3, 0.1 + 0.2 − 0.3 is 0, and a problem in millionths is the same
problem. Beliefs, bounds and policies all ask here, so that none sees a difference which another does not.
"""

from typing import Any

import numpy as np

from beliefbound.kernels.amounts import OF_LARGEST, RELATIVE
from beliefbound.validation import BoolArray, FloatArray


def alike(x: Any, y: Any, every: FloatArray) -> BoolArray:
    """Whether `x` and `y` are one amount, entry by entry; `every`: the amounts of the belief, NaN where there is none.

    >>> alike(0.1 + 0.2, 0.3, np.array([1.0])), alike(1e-12, 0.0, np.array([1e-12]))
    (np.True_, np.False_)
    """
    reach = OF_LARGEST * _largest(every) + RELATIVE * np.maximum(np.abs(x), np.abs(y))
    with np.errstate(over="ignore"):
        same: BoolArray = np.abs(np.subtract(x, y)) <= reach
    return same


def _largest(every: FloatArray) -> FloatArray:
    return np.asarray(np.nanmax(np.abs(every), initial=0.0))


def merged(values: FloatArray) -> FloatArray:
    """`values[s,a,...]` with those of a pair that are equal up to rounding replaced by the least of them."""
    out, every = np.empty(values.shape), _largest(values)
    for s in range(len(values)):  # state by state: what is sorted is small
        x = values[s].reshape(values.shape[1], -1)
        order = np.argsort(x, axis=1, kind="stable")
        ranked = np.take_along_axis(x, order, axis=1)
        begins = np.where(alike(ranked[:, 1:], ranked[:, :-1], every), 0, np.arange(1, x.shape[1]))
        first = np.maximum.accumulate(np.pad(begins, ((0, 0), (1, 0))), axis=1)
        same = np.empty_like(x)
        np.put_along_axis(same, order, np.take_along_axis(ranked, first, axis=1), axis=1)
        out[s] = same.reshape(values.shape[1:])
    return out


def nearest(paid: FloatArray, amount: FloatArray, reward: float, every: FloatArray) -> float:
    """The amount that a reward seen stands for; NaN where it is none of them."""
    i = int(np.argmin(np.abs(paid - reward)))
    return float(amount[i]) if paid[i] == reward or alike(paid[i], reward, every) else np.nan
