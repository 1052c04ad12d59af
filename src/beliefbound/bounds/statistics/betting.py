"""Confidence bounds for the mean of bounded samples that stay valid however often one looks.

Samples `X_i` in [0, 1] with conditional mean `μ`. A gambler who bets that the mean exceeds `m`
has capital `K_n(m) = Π_i (1 + λ_i (X_i − m))`, with stakes `0 ≤ λ_i ≤ 0.9/m` that depend on earlier samples only. At
`m = μ` the capital is a non-negative martingale, so by Ville's inequality it *ever* reaches `1/α` with probability at
most `α`. Every `m` at which it has done so is refuted, and `K_n(m)` falls as `m` rises: the refuted `m` form an
interval from 0, whose end is a lower bound for `μ` at all `n` at once (Waudby-Smith & Ramdas 2024). Stakes `λ_i =
sqrt(2 ln(1/α) / (N_i v_{i−1}))`, with `v` the variance seen so far and `N_i` the next power of two at which the bound
is meant to be read, make it about `sqrt(2 v ln(1/α) / n)` wide: the range enters only through the first few samples.

Every power of two that is passed costs `½ ln(1/α)` of what the last stakes have to win, a width of some 1.4 times that.
A gambler who divides the capital among `J` purses, one with those stakes and the others with stakes for one `N` each,
has a martingale as well, and at `n` near an `N` at least `1/J` of what stakes for it alone win: a width of about
`sqrt(2 v ln(J/α) / n)`. Stakes of a purse may be up to `0.99/m`.
"""

import math

import numpy as np

from beliefbound.base.errors import ParameterError
from beliefbound.base.validation import FloatArray

_ALL = 0.99  # of a purse, at most: others are left
_MANY, _FEW = 1 << 14, 8  # samples up to which every one is looked at; then, between two looks


def mean_at_least(
    samples: FloatArray,
    *,
    low: float,
    high: float,
    alpha: float,
    pilot: FloatArray | None = None,
    goals: tuple[int, ...] = (),
) -> float:
    """A number that the mean of independent samples in `[low, high]` exceeds with probability `1 − alpha`, at all `n`
    at once.

    Independent `pilot` samples, if given, only set the first stakes: a better guess of the spread, a tighter bound.
    `goals`: numbers of samples near which the bound is meant to be read, each with a purse of its own.

    >>> x = np.tile([0.4, 0.6], 500)
    >>> round(mean_at_least(x, low=0.0, high=1.0, alpha=0.025), 2)
    0.49
    """
    if not 0.0 < alpha < 1.0:
        raise ParameterError(f"alpha is {alpha}; it must lie strictly between 0 and 1")
    if len(samples) == 0 or high <= low:
        return low
    x = (np.asarray(samples, dtype=np.float64) - low) / (high - low)
    if x.min() < -1e-9 or x.max() > 1.0 + 1e-9:
        raise ParameterError(f"samples span {samples.min():g} to {samples.max():g}, outside {low:g} to {high:g}")
    x = np.clip(x, 0.0, 1.0)
    n = len(x)
    i = np.arange(n)
    centre, variance, weight = 0.5, 0.25, 1.0
    if pilot is not None and len(pilot) > 1:
        first = np.clip((np.asarray(pilot, dtype=np.float64) - low) / (high - low), 0.0, 1.0)
        centre, variance, weight = float(first.mean()), max(float(first.var()), 1e-12), 16.0
    # Running means and variances, one step behind.
    sums = np.concatenate([[0.0], np.cumsum(x)[:-1]])
    before = (weight * centre + sums) / (i + weight)
    squares = np.concatenate([[0.0], np.cumsum((x - before) ** 2)[:-1]])
    spread = (weight * variance + squares) / (i + weight)
    goal = np.exp2(np.ceil(np.log2(i + 1.0) + 1e-12))
    target = math.log(1.0 / alpha)
    stakes = np.sqrt(2.0 * target / (np.maximum(goal, 16.0) * spread))
    purses = [stakes, *(np.sqrt(2.0 * (target + math.log(1.0 + len(goals))) / (n_ * spread)) for n_ in goals)]

    def refuted(m: float) -> bool:
        if goals:
            won = [np.cumsum(np.log1p(np.minimum(own, _ALL / m) * (x - m))) for own in purses]
            return bool(np.logaddexp.reduce(won).max() >= target + math.log(len(purses)))
        gains = np.minimum(stakes, 0.9 / m) * (x - m)
        if n <= _MANY:
            return bool(np.cumsum(np.log1p(gains)).max() >= target)
        # Looked at after every few samples only, with one logarithm for them: each factor is between 0.1 and 1 + 0.9/m.
        gains += 1.0
        whole = n // _FEW * _FEW
        with np.errstate(over="ignore"):
            logs = np.log(np.multiply.reduce(gains[:whole].reshape(-1, _FEW), axis=1))
        return bool(np.cumsum(logs).max() >= target)

    left, right = 0.0, float(x.mean())
    for _ in range(60):
        middle = 0.5 * (left + right)
        if middle <= left or middle >= right:
            break
        left, right = (middle, right) if refuted(middle) else (left, middle)
    return low + left * (high - low)


def mean_at_most(
    samples: FloatArray, *, low: float, high: float, alpha: float, pilot: FloatArray | None = None
) -> float:
    """As `mean_at_least`, from the other side."""
    flipped = None if pilot is None else -np.asarray(pilot, dtype=np.float64)
    return -mean_at_least(-np.asarray(samples, dtype=np.float64), low=-high, high=-low, alpha=alpha, pilot=flipped)
