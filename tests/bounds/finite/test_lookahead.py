"""Look-ahead bounds against the exact Bayes-adaptive tree, for every kind of reward signal."""

import itertools

import numpy as np
import pytest

from beliefbound.base.errors import ParameterError
from beliefbound.beliefs import FiniteBelief
from beliefbound.bounds.basic import e_max, qmdp
from beliefbound.bounds.finite.lookahead import lookahead_lower, lookahead_upper
from beliefbound.planning.mmbi import mmbi
from support import oracles
from support.beliefs import ROUNDING, SIGNALS, random_belief
from support.tiers import tiers


@pytest.mark.parametrize("signal", tiers(SIGNALS, "bernoulli"))
def test_lower_rises_to_the_exact_value_and_upper_falls_to_it(signal):
    rng = np.random.default_rng(1)
    for _ in range(20):
        belief, (P, r, w, p0) = random_belief(rng, signal)
        exact = oracles.bayes_adaptive_value(P, r, w, p0, 0.9, 4, signal)
        upper = [lookahead_upper(belief, depth=k, discount=0.9, horizon=4).value for k in range(5)]
        lower = [lookahead_lower(belief, depth=k, discount=0.9, horizon=4).value for k in range(5)]
        top = p0 @ e_max(belief, discount=0.9, horizon=4).values
        bottom = mmbi(belief, discount=0.9, horizon=4).value(p0)
        chain = [bottom, *lower, exact, *upper[::-1], top]
        assert all(x <= y + ROUNDING for x, y in itertools.pairwise(chain))
        assert upper[0] == pytest.approx(p0 @ qmdp(belief, discount=0.9, horizon=4).values)
        assert upper[4] == pytest.approx(exact)
        assert lower[4] == pytest.approx(exact)


@pytest.mark.full
def test_without_a_horizon_the_bounds_enclose_a_long_horizon():
    rng = np.random.default_rng(2)
    for signal in SIGNALS:
        belief, (P, r, w, p0) = random_belief(rng, signal, n_models=2)
        discount, horizon = 0.3, 6
        exact = oracles.bayes_adaptive_value(P, r, w, p0, discount, horizon, signal)
        tail = discount**horizon / (1 - discount)  # rewards lie in [0, 1]
        assert lookahead_lower(belief, depth=3, discount=discount).value <= exact + tail + ROUNDING
        assert lookahead_upper(belief, depth=3, discount=discount).value >= exact - ROUNDING


def test_what_rewards_reveal_belongs_to_the_outcome():
    """One state, one arm known to pay 0.5, one that pays always or never: an agent that sees rewards tries it once.

    A look-ahead that only watched next states would learn nothing, and its upper bound would fall below the truth.
    """
    P = np.ones((2, 1, 2, 1))
    r = np.array([[[0.5, 1.0]], [[0.5, 0.0]]])
    w = np.array([0.5, 0.5])
    exact = oracles.bayes_adaptive_value(P, r, w, 0, 1.0, 3, "deterministic")
    assert exact == pytest.approx(0.5 + 0.5 * (2 * 1.0) + 0.5 * (2 * 0.5))
    blind = FiniteBelief(P, r, w, reward_signal="unobserved", initial=0)
    assert lookahead_upper(blind, depth=3, discount=1.0, horizon=3).value < exact - 0.4
    for signal in ("deterministic", "bernoulli"):
        belief = FiniteBelief(P, r, w, reward_signal=signal, initial=0)
        for depth in range(4):
            assert lookahead_upper(belief, depth=depth, discount=1.0, horizon=3).value >= exact - ROUNDING


def test_actions_that_are_not_offered_are_never_taken():
    rng = np.random.default_rng(3)
    P, r, w, p0 = oracles.random_models(rng, 3, 3, 3)
    available = np.array([[True, False, True], [True, True, False], [False, False, True]])
    belief = FiniteBelief(P, r, w, reward_signal="bernoulli", initial=p0, available=available)
    exact = oracles.bayes_adaptive_value(P, r, w, p0, 0.8, 3, "bernoulli", available=available)
    assert lookahead_upper(belief, depth=3, discount=0.8, horizon=3).value == pytest.approx(exact)
    assert lookahead_lower(belief, depth=3, discount=0.8, horizon=3).value == pytest.approx(exact)


def test_continuous_rewards_are_refused():
    belief = FiniteBelief([[[[1.0]]], [[[1.0]]]], [[[1.0]], [[2.0]]], reward_signal="continuous")
    with pytest.raises(ParameterError, match="continuous"):
        lookahead_upper(belief, depth=1, discount=0.5)
