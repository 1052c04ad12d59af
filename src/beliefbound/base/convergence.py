"""Whether Markov chains have met, and how many independent draws theirs are worth (Vehtari et al. 2021).

Each chain is split in two. Draws are replaced by Normal scores of their ranks, so that moments need not exist.

* `R̂ = √((W(n − 1)/n + B)/W)`, `W` the mean variance within, `B` the variance of the means of chains; of the draws, and
  of how far they are from their median (chains of equal means and unequal spread); the larger counts. Good: ≤ 1.01.
* `ESS = mn/τ`, `τ = −1 + 2 Σ_t (ρ_2t + ρ_{2t+1})` over the pairs that are positive, made to fall (Geyer 1992), with
  `ρ_t = 1 − (W − mean autocovariance at t)/V`, `V = W(n − 1)/n + B`. *Bulk*: of the scores. *Tail*: the smaller of
  those of being below the 5% and the 95% quantile. Good: 100 for each chain.
"""

import math

import numpy as np

from beliefbound.base.validation import FloatArray

GOOD_RHAT, GOOD_ESS = 1.01, 100  # the second for each chain


def rhat(draws: FloatArray) -> float:
    """Rank-normalised split R̂ of draws `[chain, draw]`; 1 where all of them are equal.

    >>> chains = np.random.default_rng(1).normal(size=(4, 500))
    >>> bool(rhat(chains) < 1.01), bool(rhat(chains + np.arange(4)[:, None]) > 1.5)
    (True, True)
    """
    halves = _split(draws)
    return max(_ratio(_scores(halves)), _ratio(_scores(np.abs(halves - np.median(halves)))))


def bulk_ess(draws: FloatArray) -> float:
    """How many independent draws the middle of `[chain, draw]` is worth.

    >>> bool(bulk_ess(np.random.default_rng(1).normal(size=(4, 500))) > 1500)
    True
    """
    return ess(_scores(_split(draws)))


def tail_ess(draws: FloatArray) -> float:
    """The same of the 5% and 95% quantiles, the smaller of the two."""
    halves = _split(draws)
    return min(ess((halves <= np.quantile(draws, level)).astype(np.float64)) for level in (0.05, 0.95))


def mean_ess(draws: FloatArray) -> float:
    """The same of the mean: its standard error is the deviation of the draws over the root of this."""
    return ess(_split(draws))


def ess(draws: FloatArray) -> float:
    """The effective size of draws `[chain, draw]` as they are, neither split nor ranked."""
    m, n = draws.shape
    centred = draws - draws.mean(axis=1, keepdims=True)
    spectrum = np.fft.rfft(centred, 2 * n, axis=1)
    covariance = np.fft.irfft(np.abs(spectrum) ** 2, 2 * n, axis=1)[:, :n].mean(axis=0) / n
    within = covariance[0] * n / (n - 1.0)
    total = within * (n - 1.0) / n + (float(draws.mean(axis=1).var(ddof=1)) if m > 1 else 0.0)
    if not total > 0.0:
        return float(m * n)
    rho = 1.0 - (within - covariance) / total
    rho[0] = 1.0
    pairs = rho[0 : n - n % 2 : 2] + rho[1:n:2]
    ends = np.flatnonzero(pairs <= 0.0)
    kept = np.minimum.accumulate(pairs[: ends[0]] if len(ends) else pairs)
    tau = max(-1.0 + 2.0 * float(kept.sum()), 1.0 / math.log10(m * n))
    return float(m * n / tau)


def _split(draws: FloatArray) -> FloatArray:
    """Each chain in two, `[2 chain, draw]`; where their number is odd, the middle draw is left out."""
    n = draws.shape[1] // 2
    return np.concatenate([draws[:, :n], draws[:, draws.shape[1] - n :]])


def _scores(draws: FloatArray) -> FloatArray:
    """Normal scores of ranks; equal draws have equal ones."""
    from scipy.special import ndtri

    _, place, times = np.unique(draws, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(times) - 0.5 * (times - 1.0))[place.reshape(draws.shape)]
    scores: FloatArray = ndtri((ranks - 0.375) / (draws.size + 0.25))
    return scores


def _ratio(draws: FloatArray) -> float:
    n = draws.shape[1]
    within = float(draws.var(axis=1, ddof=1).mean())
    between = float(draws.mean(axis=1).var(ddof=1))
    if not within > 0.0:
        return 1.0 if not between > 0.0 else math.inf
    return math.sqrt(((n - 1.0) / n * within + between) / within)
