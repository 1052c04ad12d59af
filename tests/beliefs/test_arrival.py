"""Rewards that depend on where one arrives: what they reveal counts in every bound."""

import numpy as np
import pytest

from beliefbound import FiniteBelief
from beliefbound.bounds.bracket import bracket
from support.oracles import bayes_adaptive_value, random_models


def test_bounds_hold_when_rewards_on_arrival_tell_models_apart():
    tighter = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        p, _, w, p0 = random_models(rng, 3, 2, 2)
        paid = rng.integers(2, size=(3, 2, 2, 2)).astype(float)
        belief = FiniteBelief(p, paid, w, reward_signal="deterministic", initial=p0)
        exact = bayes_adaptive_value(p, belief.rewards, w, p0, 0.9, 4, "deterministic", arrival=paid)
        blind = bayes_adaptive_value(p, belief.rewards, w, p0, 0.9, 4, "unobserved")
        found = bracket(belief, discount=0.9, horizon=4, target_gap=1e-9, effort=1000, rng=rng)
        assert found.lower.value <= exact + 1e-9
        assert found.upper.value >= exact - 1e-9
        assert found.width <= 1e-6
        tighter += exact > blind + 1e-6
    assert tighter > 5  # seeing rewards is worth something here


def test_a_reward_seen_only_on_success_teaches_only_then():
    """Action 1 succeeds half the time; the reward of a success is the model's own, a failure shows nothing."""
    p = np.zeros((2, 3, 2, 3))
    p[:, 0, 0, 0] = 1.0
    p[:, 0, 1, 1] = p[:, 0, 1, 0] = 0.5
    p[:, 1:, :, 0] = 1.0
    paid = np.zeros((2, 3, 2, 3))
    paid[1, 0, 1, 1] = 1.0
    paid[:, 1, 0, 0] = 4.0, 0.0
    paid[:, 1, 1, 0] = 0.0, 4.0
    belief = FiniteBelief(p, paid, reward_signal="deterministic", initial=0)
    exact = bayes_adaptive_value(p, belief.rewards, belief.weights, 0, 1.0, 2, "deterministic", arrival=paid)
    assert exact == pytest.approx(0.25 + 0.5 * 4.0 + 0.5 * 0.25)  # on success the right action is known
    averaged = bayes_adaptive_value(p, belief.rewards, belief.weights, 0, 1.0, 2, "deterministic")
    assert averaged == pytest.approx(exact)
    found = bracket(belief, discount=1.0, horizon=2, target_gap=0.0, effort=1000, rng=np.random.default_rng(0))
    assert found.lower.value == pytest.approx(exact)
    assert found.upper.value == pytest.approx(exact)
