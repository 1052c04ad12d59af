"""Betting with several purses: still a bound at all numbers of samples at once, and nearer where it is meant to be."""

import numpy as np

from beliefbound.bounds.statistics.betting import mean_at_least

GOALS = (32, 256, 2048)


def test_purses_refute_the_true_mean_as_seldom_as_they_may():
    """The capital's maximum over 600 samples of a coin with mean .1, 200 times, at α = .2: no more than that share
    (three standard errors), which is of all numbers of samples together."""
    rng = np.random.default_rng(3)
    coins = (rng.random((200, 600)) < 0.1).astype(float)
    wrong = np.mean([mean_at_least(x, low=0.0, high=1.0, alpha=0.2, goals=GOALS) > 0.1 for x in coins])
    assert wrong <= 0.2 + 3 * np.sqrt(0.2 * 0.8 / 200)


def test_purses_are_nearer_at_a_thousand_samples():
    rng = np.random.default_rng(4)
    x, pilot = rng.gamma(4.0, 0.05, (10, 1500)).clip(0.0, 1.0), rng.gamma(4.0, 0.05, 8).clip(0.0, 1.0)
    one, several = (
        np.mean([mean_at_least(y, low=0.0, high=1.0, alpha=0.01, pilot=pilot, goals=g) for y in x]) for g in ((), GOALS)
    )
    assert several > one
