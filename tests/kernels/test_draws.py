"""Posterior draws have their laws at every concentration, and both layouts hold the same models.

Statistical tests have fixed seeds. Under others each comparison would fail with probability at most 1e-6.
"""

import math

import numpy as np
import pytest
from scipy import stats

from beliefbound.kernels import draws as dirichlet
from beliefbound.kernels import random

ALARM = 1e-6
SIGMAS = 5.0  # 6e-7, two-sided
CONCENTRATIONS = [1e-4, 0.2, 1.0, 50.0, 1e6]


def stream_at(*address):
    return random.seed_stream(np.array(address, dtype=np.uint64))


def dirichlet_lanes(stream, alpha, out):
    """A draw of each row of `alpha[s, a, t]` per model, models last: `out[s, a, t, m]`."""
    T, n = out.shape[2:]
    dirichlet.draw_lanes(stream, np.array(alpha).reshape(-1, T), out.reshape(-1), np.empty(n))


def beta_lanes(stream, a, b, low, high, out):
    """As `beta_models`, models last: `out[s, a, m]`."""
    dirichlet.draw_betas(stream, a.flatten(), b.flatten(), low, high, out.reshape(-1), out.shape[-1], 1)


def normal_lanes(stream, *given):
    """As `normal_models`, models last: `out[s, a, m]`."""
    *parameters, out = given
    dirichlet.draw_means(stream, tuple(x.flatten() for x in parameters), out.reshape(-1), out.shape[-1], 1)


def rows(alpha, n, seed=1):
    """n draws of one Dirichlet, `[n, t]`."""
    alpha = np.asarray(alpha, dtype=float)
    out = np.empty((n, 1, 1, alpha.size))
    dirichlet.dirichlet_models(stream_at(seed), alpha[None, None], out)
    return out[:, 0, 0]


def agrees(values, cdf):
    """Kolmogorov–Smirnov between distinct values, so that draws may round to the ends of their range."""
    x, counts = np.unique(values, return_counts=True)
    distance = np.abs(np.cumsum(counts) / values.size - cdf(x))[1:].max()
    return stats.kstwo.sf(distance, values.size) > ALARM


def near(values, expected, deviation):
    """Sample means within five standard errors of what they should be (and of rounding)."""
    error = np.abs(values.mean(axis=0) - expected)
    return np.all(error <= SIGMAS * deviation / math.sqrt(len(values)) + 1e-14)


# -------------------------------------------------------------------------------------------------- Dirichlet


@pytest.mark.parametrize("concentration", CONCENTRATIONS)
def test_marginals_are_beta(concentration):
    alpha = concentration * np.array([1.0, 1.0, 0.5, 2.0, 3.0])
    p = rows(alpha, 30_000)
    for t in range(5):
        assert agrees(p[:, t], stats.beta(alpha[t], alpha.sum() - alpha[t]).cdf)


@pytest.mark.parametrize(
    "alpha",
    [
        *(np.full(5, c) for c in CONCENTRATIONS),
        [0.2, 3.2, 1.2, 0.2, 17.2],
        [1e-2, 0.9, 1.0, 40.0, 5e-2],
        [0.2, 0.0, 5.2, 0.0, 1.0],
    ],
    ids=str,
)
def test_first_and_second_moments(alpha):
    alpha = np.asarray(alpha)
    p, total = rows(alpha, 200_000), alpha.sum()
    mean = alpha / total
    assert near(p, mean, np.sqrt(mean * (1 - mean) / (total + 1)))
    i, j = np.triu_indices(5)
    second = alpha[i] * (alpha[j] + (i == j)) / (total * (total + 1))
    fourth = np.where(
        i == j, (alpha[i] + 1) * (alpha[i] + 2) * (alpha[i] + 3), (alpha[i] + 1) * alpha[j] * (alpha[j] + 1)
    ) * (alpha[i] / (total * (total + 1) * (total + 2) * (total + 3)))
    assert near(p[:, i] * p[:, j], second, np.sqrt(np.maximum(fourth - second**2, 0.0)))


def test_at_concentration_1e_minus_4_one_component_takes_all_and_any_may():
    p = rows(np.full(5, 1e-4), 50_000)
    assert np.mean(p.max(axis=1) > 0.999) > 0.99
    assert stats.chisquare(np.bincount(p.argmax(axis=1), minlength=5)).pvalue > ALARM


def test_successive_draws_are_uncorrelated():
    p = rows([0.2, 3.2, 1.2], 200_000)
    for lag in (1, 2, 8):
        for t in range(3):
            assert abs(np.corrcoef(p[:-lag, 0], p[lag:, t])[0, 1]) < SIGMAS / math.sqrt(len(p))


@pytest.mark.parametrize("small", [5e-324, 1e-310, 1e-300, 1e-100, 1e-8, 1e-4, 0.2, 1.0])
@pytest.mark.parametrize("large", [1.0, 1e6, 1e15, 1e200])
def test_rows_sum_to_one_and_are_never_nan(small, large):
    for alpha in ([small] * 7, [small, small, large], [large, 0.0, small, 0.5], [0.0, small], [large]):
        p = rows(alpha, 500)
        assert np.all((p >= 0.0) & (p <= 1.0))
        assert np.all(np.abs(p.sum(axis=1) - 1.0) <= 4 * np.finfo(float).eps)


def test_components_without_concentration_are_zero():
    alpha = np.array([0.0, 0.2, 0.0, 4.2, 0.2])
    p = rows(alpha, 2000)
    assert np.all(p[:, alpha == 0.0] == 0.0)
    assert np.all(p[:, alpha > 0.0] > 0.0)
    assert np.all(rows([0.0, 0.0, 3.0], 50) == [0.0, 0.0, 1.0])
    assert np.all(rows([0.0, 1e-3], 50) == [0.0, 1.0])
    assert np.all(rows([0.0, 0.0], 50) == 0.0)  # no support at all: zeros, not NaN


def test_components_of_zero_concentration_take_no_draws():
    assert np.array_equal(rows([0.2, 3.0], 20), rows([0.2, 0.0, 3.0], 20)[:, [0, 2]])


@pytest.mark.parametrize("n", [1, 2, 7, 8, 16, 33])
def test_both_layouts_hold_the_same_models(n):
    rng = np.random.default_rng(n)
    S, A = 4, 3
    alpha = rng.choice([0.0, 1e-4, 0.2, 0.2, 1.0, 3.2, 900.0], size=(S, A, S))
    streams = stream_at(n), stream_at(n)
    lanes, models = np.empty((S, A, S, n)), np.empty((n, S, A, S))
    dirichlet_lanes(streams[0], alpha, lanes)
    dirichlet.dirichlet_models(streams[1], alpha, models)
    assert np.array_equal(np.moveaxis(lanes, -1, 0), models)
    assert np.array_equal(*streams)


def test_one_model_is_row_after_row():
    rng = np.random.default_rng(0)
    alpha = rng.choice([0.0, 1e-4, 0.2, 0.2, 1.0, 3.2, 900.0], size=(4, 3, 4))
    streams = stream_at(9), stream_at(9)
    model, by_row = np.empty((1, 4, 3, 4)), np.empty((4, 3, 4))
    dirichlet.dirichlet_models(streams[0], alpha, model)
    for s in range(4):
        for a in range(3):
            dirichlet.dirichlet_row(streams[1], alpha[s, a], by_row[s, a])
    assert np.array_equal(model[0], by_row)
    assert np.array_equal(*streams)


def test_the_exponential_function():
    rng = np.random.default_rng(0)
    x = -np.concatenate([rng.random(3000), 40 * rng.random(3000), 706 * rng.random(3000), [0.0]])
    values = np.array([dirichlet.exp_negative(t) for t in x])
    assert np.all(np.abs(values - np.exp(x)) <= 3 * np.spacing(values))
    assert dirichlet.exp_negative(0.0) == 1.0
    assert [dirichlet.exp_negative(t) for t in (-708.0, -1e5, -1e301, -np.inf)] == [0.0] * 4


# ----------------------------------------------------------------------------------------------- reward means

SHAPE = (2, 3)


def both(kernels, parameters, n, seed=1):
    """The draws of a pair of kernels, `[m, s, a]`, after checking that they agree."""
    lanes_kernel, models_kernel = kernels
    streams = stream_at(seed), stream_at(seed)
    lanes, models = np.empty((*SHAPE, n)), np.empty((n, *SHAPE))
    lanes_kernel(streams[0], *parameters, lanes)
    models_kernel(streams[1], *parameters, models)
    assert np.array_equal(np.moveaxis(lanes, -1, 0), models)
    assert np.array_equal(*streams)
    return models


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-3.0, 0.1)])
def test_beta_means(low, high):
    a = np.array([[1.0, 0.2, 1e-2], [3.5, 1.0, 1e4]])
    b = np.array([[1.0, 0.7, 2e-2], [7.5, 9.0, 3e4]])
    draws = both((beta_lanes, dirichlet.beta_models), (a, b, low, high), 50_000)
    assert draws.min() >= low
    assert draws.max() <= high
    for i in np.ndindex(SHAPE):
        assert agrees(draws[:, *i], stats.beta(a[i], b[i], loc=low, scale=high - low).cdf)


def test_beta_means_at_tiny_parameters():
    a, b = np.full(SHAPE, 1e-4), np.full(SHAPE, 3e-4)
    draws = both((beta_lanes, dirichlet.beta_models), (a, b, 0.0, 1.0), 20_000)
    assert near(draws, 0.25, math.sqrt(3 / 16))


def test_normal_gamma_means_are_student():
    mean = np.array([[0.0, -2.0, 5.0], [1.0, 0.3, 100.0]])
    kappa = np.array([[1.0, 0.1, 2.0], [30.0, 4.5, 1e4]])
    shape = np.array([[1.0, 0.3, 0.05], [2.5, 16.0, 1e5]])
    rate = np.array([[1.0, 3.0, 0.5], [10.0, 2.0, 1e4]])
    kernels = (normal_lanes, dirichlet.normal_models)
    draws = both(kernels, (mean, kappa, shape, rate), 50_000)
    for i in np.ndindex(SHAPE):
        scale = math.sqrt(rate[i] / (kappa[i] * shape[i]))
        assert agrees(draws[:, *i], stats.t(2 * shape[i], loc=mean[i], scale=scale).cdf)


def test_normal_gamma_means_are_finite_at_any_shape():
    one = np.ones(SHAPE)
    for shape in (1e-300, 1e-4, 1.0, 1e12):
        draws = both((normal_lanes, dirichlet.normal_models), (one, one, shape * one, one), 1000)
        assert np.all(np.isfinite(draws))
