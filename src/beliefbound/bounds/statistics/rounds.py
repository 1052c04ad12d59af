"""A lower bound for a mean to which samples of several kinds add up, at all numbers of samples at once.

Samples `X_i ≥ 0` come in *rounds* of `B`: in each the same kinds in the same order, cheap ones often and costly ones
rarely, so weighted that the mean of a round's sum is `B m`. What one would know of `m` from sums of rounds alone is
little: there are few, and no sum is certain to be near `B m`. But every sample can be bet on by itself.

Let `x̂` be what is expected of a sample by those of its kind in earlier rounds, and `λ ≥ 0` the stake of the round, with
`λ x̂ < 1`, both known before it. With `ξ = X/x̂ − 1 ≥ −1` and `ψ(s) = −ln(1−s) − s`,

    exp(s ξ − ψ(s) ξ²) ≤ 1 + s ξ    for ξ ≥ −1, 0 ≤ s < 1    (Fan, Grama & Liu 2015),

so with `s = λ x̂` and `μ` the mean of the kind, `E exp(λ (X − μ) − ψ(λ x̂) (X/x̂ − 1)²) ≤ exp(λ (x̂ − μ)) (1 + λ (μ − x̂)) ≤
1`. The product over samples is a non-negative supermartingale (Howard, Ramdas, McAuliffe & Sekhon 2021), and after
whole rounds what it says of the means of kinds is their sum `B m` alone: by Ville's inequality

    Σ_r λ_r (S_r − B m) − Σ_i ψ(λ x̂_i) (X_i/x̂_i − 1)² < ln(1/α)    for all numbers of rounds

with probability `1 − α`, `S_r` the sum of a round. The range of samples above does not enter. Stakes are those that
would make the bound highest after a given number of samples that spread as those before; as in
`bounds.statistics.betting` the capital is divided among purses with a number each.
"""

import math
from collections.abc import Sequence

import numpy as np

from beliefbound.base.validation import FloatArray

GOALS = (128, 1024)  # samples, about
_STAKES = np.geomspace(1e-3, 0.95, 48)  # of what is possible at all
_AT_FIRST = 0.2  # how far a sample is off what is expected, squared, as if one had been seen


def rounds_at_least(
    samples: FloatArray, kinds: Sequence[int], alpha: float, *, goals: tuple[int, ...] = GOALS
) -> float:
    """A number that the mean over whole rounds of samples exceeds with probability `1 − alpha`. `kinds`: of the samples
    of a round, in order; samples of a kind are independent and have one law, and none is below 0. `goals`: numbers of
    samples near which the bound is meant to be read.

    The first round only says what to expect. Samples after the last whole round are not looked at.

    >>> x = np.tile([1.0, 1.2, 0.8, 3.0], 100)
    >>> round(rounds_at_least(x, (0, 0, 0, 1), 0.01), 2)
    1.46
    """
    which = np.equal.outer(kinds, np.unique(kinds))  # [sample of a round,kind]
    x = np.asarray(samples[: len(samples) // len(which) * len(which)], dtype=np.float64).reshape(-1, len(which))
    n, often = len(x) - 1, which.sum(axis=0)
    if n < 1:
        return 0.0
    sums, squares = x @ which, x**2 @ which  # [round,kind]
    before = np.arange(1, n + 1)[:, None]  # rounds before 1, 2, …
    of_all = np.cumsum(x[:-1].mean(axis=1))[:, None] / before
    expected = np.maximum(np.cumsum(sums[:-1], axis=0) + of_all, 1e-100) / (before * often + 1)
    off = np.maximum(0.0, squares[1:] / expected**2 - 2.0 * sums[1:] / expected + often)  # Σ (X/x̂ − 1)²
    spread = np.cumsum(np.concatenate([np.full((1, len(often)), _AT_FIRST), off[:-1]]), axis=0) / (before * often)
    possible = _STAKES / expected.max(axis=1)[:, None]  # [round,stake]
    prices = (_psi(possible[:, :, None] * expected[:, None]) * (spread * often)[:, None]).sum(axis=2) / len(which)
    target = math.log(len(goals) / alpha)
    won, staked = np.empty(len(goals)), np.empty(len(goals))
    for i, goal in enumerate(goals):
        stakes = possible[np.arange(n), ((target + goal * prices) / possible).argmin(axis=1)]
        won[i] = stakes @ sums[1:].sum(axis=1) - (_psi(stakes[:, None] * expected) * off).sum()
        staked[i] = len(which) * stakes.sum()
    left, right = 0.0, float(x[1:].mean())
    for _ in range(60):
        m = 0.5 * (left + right)
        left, right = (m, right) if np.logaddexp.reduce(won - m * staked) >= target else (left, m)
    return left


def _psi(s: FloatArray) -> FloatArray:
    return np.asarray(-np.log1p(-s) - s)
