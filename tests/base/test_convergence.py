"""R̂ and effective sizes against the closed forms of Gaussian chains, and a twin from the definition."""

import numpy as np
import pytest

from beliefbound.base.convergence import bulk_ess, ess, mean_ess, rhat, tail_ess


def autoregressive(phi, n, chains, seed):
    rng = np.random.default_rng(seed)
    x = np.empty((chains, n))
    x[:, 0] = rng.normal(size=chains) / np.sqrt(1.0 - phi**2)
    for t in range(1, n):
        x[:, t] = phi * x[:, t - 1] + rng.normal(size=chains)
    return x


def slow_ess(x):
    """From the definition, lag by lag."""
    m, n = x.shape
    centred = x - x.mean(axis=1, keepdims=True)
    covariance = np.array([[c[: n - t] @ c[t:] / n for t in range(n)] for c in centred])
    within = (covariance[:, 0] * n / (n - 1)).mean()
    total = within * (n - 1) / n + x.mean(axis=1).var(ddof=1)
    rho = [1.0] + [1.0 - (within - covariance[:, t].mean()) / total for t in range(1, n)]
    tau, last = -1.0, np.inf
    for t in range(0, n - 1, 2):
        pair = rho[t] + rho[t + 1]
        if pair <= 0.0:
            break
        last = min(last, pair)
        tau += 2.0 * last
    return m * n / max(tau, 1.0 / np.log10(m * n))


@pytest.mark.parametrize("phi", [-0.3, 0.0, 0.5, 0.9])
def test_the_size_of_an_autoregressive_chain_is_the_closed_form(phi):
    """`n (1 − φ)/(1 + φ)` (with negative φ capped by what antithetic chains are credited with); within a fifth: 4
    chains of 20 000 leave about 3% of noise."""
    x = autoregressive(phi, 20_000, 4, seed=1)
    assert ess(x) == pytest.approx(x.size * (1.0 - phi) / (1.0 + phi), rel=0.2)
    assert mean_ess(x) == pytest.approx(ess(x), rel=0.1)
    assert rhat(x) < 1.01


def test_sizes_are_those_of_the_definition():
    for seed, phi in enumerate((0.0, 0.4, 0.8)):
        x = autoregressive(phi, 150, 3, seed)
        assert ess(x) == pytest.approx(slow_ess(x), rel=1e-10)


def test_chains_that_differ_in_place_or_in_spread_alone_are_told_apart():
    x = np.random.default_rng(2).normal(size=(4, 1000))
    assert rhat(x) < 1.01
    assert rhat(x + np.array([0.0, 0.0, 0.0, 1.0])[:, None]) > 1.1
    assert rhat(x * np.array([1.0, 1.0, 1.0, 3.0])[:, None]) > 1.05
    assert rhat(np.cumsum(x, axis=1)) > 1.05  # one that drifts: the halves of a chain differ


def test_ranks_alone_count():
    """Cauchy draws have no mean; R̂ and bulk size are those of any monotone image of them."""
    x = np.random.default_rng(3).standard_cauchy(size=(4, 400))
    assert bulk_ess(x) == pytest.approx(bulk_ess(np.arctan(x)), rel=1e-12)
    assert rhat(x) < 1.02


def test_draws_that_never_change():
    same = np.ones((4, 50))
    assert rhat(same) == 1.0
    assert rhat(same * np.arange(4)[:, None]) > 1e3
    assert tail_ess(same) == 200


def test_a_sticky_tail_is_seen():
    x = np.random.default_rng(4).normal(size=(4, 1000))
    x[0, 100:200] = 4.0
    assert tail_ess(x) < 0.5 * bulk_ess(x)
