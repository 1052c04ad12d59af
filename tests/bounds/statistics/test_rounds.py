"""Intervals of samples that come in rounds of several kinds: never too high too often, and narrow."""

import numpy as np
import pytest

from beliefbound.bounds.statistics.rounds import rounds_at_least
from support.tiers import tiers

KINDS = (0, 1, 0, 2, 0, 1, 0)


def test_the_inequality_behind_the_bets():
    """`exp(sξ − ψ(s)ξ²) ≤ 1 + sξ` on a grid that reaches both ends."""
    s = np.linspace(0.0, 0.999, 400)[:, None]
    xi = np.concatenate([np.linspace(-1.0, 2.0, 601), np.geomspace(2.0, 1e4, 99)])
    psi = -np.log1p(-s) - s
    assert (np.exp(s * xi - psi * xi**2) <= 1.0 + s * xi + 1e-12).all()


LAWS = {
    "rare": lambda rng, n: (rng.random((n, 7)) < 0.05) * [1, 9, 1, 20, 1, 9, 1.0],
    "long": lambda rng, n: rng.exponential(size=(n, 7)) ** 2 * [1, 3, 1, 9, 1, 3, 1.0],
    "constant": lambda rng, n: rng.uniform(0.9, 1.1, (n, 7)) * [5, 1, 5, 2, 5, 1, 5.0],
}


@pytest.mark.parametrize("law", tiers(LAWS, "rare"))
def test_bounds_hold_at_all_numbers_of_rounds_at_once(law):
    """Of 200 sequences, looked at after every few rounds, at most a tenth and four standard errors are ever wrong."""
    rng, wrong = np.random.default_rng(4), 0
    mean = LAWS[law](np.random.default_rng(5), 400_000).mean()
    for _ in range(200):
        x = LAWS[law](rng, 60).ravel()
        wrong += any(rounds_at_least(x[: 7 * n], KINDS, 0.1) > 1.001 * mean for n in (2, 4, 8, 15, 30, 60))
    assert wrong <= 200 * 0.1 + 4 * np.sqrt(200 * 0.09)


def test_bounds_are_about_as_narrow_as_the_spread_of_rounds_allows():
    x = LAWS["constant"](np.random.default_rng(6), 500)
    error = x.mean(axis=1).std() / np.sqrt(len(x))
    found = rounds_at_least(x.ravel(), KINDS, 0.01)
    assert x.mean() - 8.0 * error - 5.0 * np.log(100) / x.size < found < x.mean() - 2.3 * error


def test_what_is_no_whole_round_is_not_looked_at_and_one_round_proves_nothing():
    x = np.arange(1.0, 22.0)
    assert rounds_at_least(x[:13], KINDS, 0.1) == 0.0
    assert rounds_at_least(x[:20], KINDS, 0.1) == rounds_at_least(x[:14], KINDS, 0.1)
    assert rounds_at_least(np.zeros(70), KINDS, 0.1) == 0.0
