"""Hyperparameters of a row that several tasks have in common, by slice sampling.

Task k has a row `θ_k ~ Dirichlet(κ β)` and shows counts `N_k` of it, `T_k` in all. The evidence of `(κ, β)` is a
product of Dirichlet-multinomials,

    Π_k Γ(κ) / Γ(κ + T_k) Π_j Γ(κ β_j + N_kj) / Γ(κ β_j),

with `log κ ~ Normal(m, d²)` and `β ~ Dirichlet(b)` before. A sweep draws `log κ` given `β`, then for every j, with
another i chosen at random, how `β_i + β_j` is divided between the two, on the scale of log odds: each by slice sampling
with stepping out (Neal 2003), which leaves the posterior as it is whatever the width. Only counts that are not zero
cost anything: outcomes that no task has shown are one outcome here, of the sum of their `b`.
"""

import math

import numpy as np
from numba import njit

from beliefbound.kernels.options import EXACT
from beliefbound.kernels.random import below, normal, uniform

kernel = njit(**EXACT)

WIDTH = 2.0  # of a slice, at first, on the scale of logarithms
FAR = 700.0  # log odds and log κ stay within: e^±700 are doubles


@kernel
def column(weight, counts, first, last):
    """`Σ log Γ(w + N) / Γ(w)` over the counts of an outcome."""
    total = 0.0
    if first < last:
        start = math.lgamma(weight)
        for e in range(first, last):
            total += math.lgamma(weight + counts[e]) - start
    return total


@kernel
def of_strength(x, row, beta):
    """The log density of `log κ = x` given β, up to a constant."""
    counts, begin, totals, _, prior = row
    kappa = math.exp(x)
    z = (x - prior[0]) / prior[1]
    density = -0.5 * z * z
    if totals.size:
        start = math.lgamma(kappa)
        for k in range(totals.size):
            density += start - math.lgamma(kappa + totals[k])
    for j in range(beta.size):
        density += column(kappa * beta[j], counts, begin[j], begin[j + 1])
    return density


@kernel
def of_share(z, row, kappa, both, i, j):
    """The log density of the log odds z by which outcomes i and j divide `both = β_i + β_j`."""
    counts, begin, _, weights, _ = row
    log_i, log_j = -math.log1p(math.exp(-z)), -math.log1p(math.exp(z))
    one, other = kappa * both * math.exp(log_i), kappa * both * math.exp(log_j)
    if not (one > 0.0 and other > 0.0):
        return -math.inf
    density = weights[i] * log_i + weights[j] * log_j
    density += column(one, counts, begin[i], begin[i + 1])
    return density + column(other, counts, begin[j], begin[j + 1])


@kernel
def density(x, row, kappa, beta, i, j):
    """That of the log odds of outcomes i and j, or of `log κ` where `i` is −1."""
    return of_strength(x, row, beta) if i < 0 else of_share(x, row, kappa, beta[i] + beta[j], i, j)


@kernel
def slice_around(stream, x, row, kappa, beta, i, j):
    """A draw from a slice of `density` around x."""
    level = density(x, row, kappa, beta, i, j) + math.log(1.0 - uniform(stream))
    low = x - WIDTH * uniform(stream)
    high = low + WIDTH
    while low > -FAR and density(low, row, kappa, beta, i, j) > level:
        low -= WIDTH
    while high < FAR and density(high, row, kappa, beta, i, j) > level:
        high += WIDTH
    while True:
        new = low + (high - low) * uniform(stream)
        if new == x or (abs(new) < FAR and density(new, row, kappa, beta, i, j) > level):
            return new
        if new < x:
            low = new
        else:
            high = new


@kernel
def sample_row(stream, row, warmup, thin, strengths, shares):
    """A chain: `strengths[draw]` and `shares[draw,j]`, of which the first `warmup` sweeps and all but every `thin`-th
    are left out.

    `row`: counts that are not zero by outcome, `counts[e]` with `begin[j] ≤ e < begin[j + 1]`; `totals[task]`;
    `weights[j]`, the b of the outcomes; `prior`, mean and deviation of `log κ`.
    """
    _, _, _, weights, prior = row
    n = weights.size
    beta = np.empty(n)
    for j in range(n):
        beta[j] = 1.0 / n
    x = prior[0] + prior[1] * normal(stream)
    for sweep in range(warmup + thin * strengths.size):
        x = slice_around(stream, x, row, 0.0, beta, -1, -1)
        kappa = math.exp(x)
        for j in range(n if n > 1 else 0):
            i = below(stream, n - 1)
            i += i >= j
            if beta[i] > 0.0 and beta[j] > 0.0:
                both = beta[i] + beta[j]
                z = slice_around(stream, math.log(beta[i]) - math.log(beta[j]), row, kappa, beta, i, j)
                beta[i], beta[j] = both / (1.0 + math.exp(-z)), both / (1.0 + math.exp(z))
        kept = sweep + 1 - warmup
        if kept > 0 and kept % thin == 0:
            strengths[kept // thin - 1] = kappa
            for j in range(n):
                shares[kept // thin - 1, j] = beta[j]
