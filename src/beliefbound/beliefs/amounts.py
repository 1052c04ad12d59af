"""When two numbers of a belief are the same: where they are equal up to rounding. One rule for rewards and chances.

*Amounts.* `x` and `y` are one amount when `|x − y| ≤ 1e-9 · max(|x|, |y|) + 1e-14 · r`, with `r` the largest amount, in
absolute value, that there is in the same belief: 0.1 + 0.2 is 0.3, 0.1 + 0.2 − 0.3 is 0, and a problem in millionths is
the same problem. Of the amounts that models pay for one pair, those that are one with the least of them are a class,
then those that are one with the least of the rest, and so on.

*Chances.* `p` and `q` are one chance when `|p − q| ≤ 1e-9 · max(p, q) + 1e-14`: the same with `r = 1`.

*Where a bound depends on it.* A signal that shows rewards shows the *class* of an amount, never its last digits:
outcome rows, updates, saved policies and simulated walks all ask here. So the Bayes-optimal value that a bracket
encloses is that of an agent for which amounts of one class look alike; both ends are about this agent. A policy that
read digits beyond could earn more where these tell models apart, and no bound speaks of it: where they are meant to,
scale them up. What is *paid* is never merged: values are those of the rewards as they are given.

Chances are not merged either, in outcome rows and updates. They need not be: what an outcome teaches is continuous in
them, a difference in the last digit teaches next to nothing, and both ends of a bracket count the same. Knowing a row
for certain is not continuous: two models that agree up to rounding are then the same or are told apart. There
(`bounds.information`) models whose chances are the same are one.
"""

from typing import Any

import numpy as np

from beliefbound.base.validation import BoolArray, FloatArray, IntArray
from beliefbound.kernels.amounts import OF_LARGEST, RELATIVE

_CERTAIN = np.ones(1)  # the largest chance


def alike(x: Any, y: Any, every: FloatArray) -> BoolArray:
    """Whether `x` and `y` are one amount, entry by entry; `every`: the amounts of the belief, NaN where there is none.

    >>> alike(0.1 + 0.2, 0.3, np.array([1.0])), alike(1e-12, 0.0, np.array([1e-12]))
    (np.True_, np.False_)
    """
    reach = OF_LARGEST * _largest(every) + RELATIVE * np.maximum(np.abs(x), np.abs(y))
    with np.errstate(over="ignore"):
        same: BoolArray = np.abs(np.subtract(x, y)) <= reach
    return same


def chances_alike(p: Any, q: Any) -> BoolArray:
    """Whether `p` and `q` are one chance, entry by entry.

    >>> chances_alike(0.1 + 0.2, 0.3), chances_alike(0.3, 0.3001)
    (np.True_, np.False_)
    """
    return alike(p, q, _CERTAIN)


def groups(laws: FloatArray, amounts: FloatArray | None = None, every: FloatArray | None = None) -> IntArray:
    """`[m]`: models with the same chances `[m,…]`, and the same `amounts[m,…]` where there are any among `every` of the
    belief, have the same number; each group is those that agree with its first.

    >>> groups(np.array([[0.3, 0.7], [0.5, 0.5], [0.1 + 0.2, 0.7]])).tolist()
    [0, 1, 0]
    """
    group, first = np.empty(len(laws), dtype=np.int64), list[int]()
    for m, law in enumerate(laws):
        same = chances_alike(laws[first], law).all(axis=1)
        if amounts is not None and every is not None:
            same &= alike(amounts[first], amounts[m], every).all(axis=1)
        if not same.any():
            first.append(m)
        group[m] = np.argmax(same) if same.any() else len(first) - 1
    return group


def _largest(every: FloatArray) -> FloatArray:
    return np.asarray(np.nanmax(np.abs(every), initial=0.0))


def merged(values: FloatArray) -> FloatArray:
    """`values[s,a,...]` with those of a pair that are one amount replaced by the least of them."""
    out, every = np.empty(values.shape), _largest(values)
    for s in range(len(values)):  # state by state: what is sorted is small
        x = values[s].reshape(values.shape[1], -1)
        order = np.argsort(x, axis=1, kind="stable")
        ranked = np.take_along_axis(x, order, axis=1)
        begins = np.where(alike(ranked[:, 1:], ranked[:, :-1], every), 0, np.arange(1, x.shape[1]))
        first = np.maximum.accumulate(np.pad(begins, ((0, 0), (1, 0))), axis=1)
        least = np.take_along_axis(ranked, first, axis=1)
        for a in np.flatnonzero(~alike(ranked, least, every).all(axis=1)):  # neighbours are one, and the ends are not
            for i in range(1, len(least[a])):
                least[a, i] = least[a, i - 1] if alike(ranked[a, i], least[a, i - 1], every) else ranked[a, i]
        same = np.empty_like(x)
        np.put_along_axis(same, order, least, axis=1)
        out[s] = same.reshape(values.shape[1:])
    return out


def nearest(paid: FloatArray, amount: FloatArray, reward: float, every: FloatArray) -> float:
    """The amount that a reward seen stands for; NaN where it is none of them."""
    i = int(np.argmin(np.abs(paid - reward)))
    return float(amount[i]) if paid[i] == reward or alike(paid[i], reward, every) else np.nan
