"""When two numbers are the same: rewards and chances that differ by rounding tell nothing apart, for anybody."""

import numpy as np
import pytest

import beliefbound as bb
from beliefbound.beliefs.amounts import groups, merged
from beliefbound.bounds import evppi
from soak import exact


def coin(heads):
    """Bet on a coin, or do not: two states, of which the second is where the coin fell heads."""
    return [[[1 - heads, heads], [1.0, 0.0]], [[1 - heads, heads], [1.0, 0.0]]]


def test_rows_that_differ_in_the_last_digit_are_worth_nothing():
    belief = bb.FiniteBelief([coin(0.3), coin(0.1 + 0.2)], [[[1.0, 0.0], [0.0, 0.0]], [[0.0, 1.0], [0.0, 0.0]]],
                             reward_signal="unobserved", initial=0)  # fmt: skip
    assert belief.transitions[0, 0, 0, 1] != belief.transitions[1, 0, 0, 1]
    worth = evppi(belief, (0, 0), discount=0.9)
    assert (worth.low, worth.high) == (0.0, 0.0)
    found = bb.value_of_information(belief, discount=0.9)
    assert found.ranking() == []
    assert found.evpi.low > 0.3


def test_continuous_rewards_that_differ_in_the_last_digit_are_worth_nothing():
    rewards = np.array([[[0.3, 0.0]], [[0.1 + 0.2, 0.0]]])
    belief = bb.FiniteBelief(np.ones((2, 1, 2, 1)), rewards, reward_signal="continuous")
    assert evppi(belief, (0, 0), discount=0.5).high == 0.0
    assert groups(np.ones((2, 1)), rewards[:, 0], rewards).tolist() == [0, 0]
    assert groups(np.ones((2, 1)), np.array([[0.3], [0.4]]), rewards).tolist() == [0, 1]


def test_known_rewards_may_differ_in_the_last_digit():
    belief = bb.FiniteBelief(np.ones((2, 1, 1, 1)), [[[0.3]], [[0.1 + 0.2]]], reward_signal="known")
    assert bb.bracket(belief, discount=0.5, rng=1).width <= 1e-12


def test_a_class_of_amounts_is_those_that_are_one_with_its_least():
    """A chain of neighbours each within the tolerance has more than one class, and none is wider than it."""
    chain = 1.0 + 0.8e-9 * np.arange(6)
    classes = merged(chain[None, None])[0, 0]
    assert len(set(classes.tolist())) == 3
    assert (np.abs(classes - chain) <= 1e-9 * chain).all()


def test_a_large_penalty_elsewhere_does_not_blur_small_rewards():
    """Amounts of 1 and 1.0005 tell two models apart beside an action at -1e9: the bracket counts that."""
    P = np.zeros((2, 2, 3, 2))
    P[:, 0, 0, 1] = P[:, 0, 1:, 0] = P[:, 1, :, 1] = 1.0
    r = np.array([[[1.0, 0.0, -1e9], [5.0, -5.0, -1e9]], [[1.0005, 0.0, -1e9], [-5.0, 5.0, -1e9]]])
    belief = bb.FiniteBelief(P, r, reward_signal="deterministic", initial=0)
    found = bb.bracket(belief, discount=0.9, effort=6, rng=1)
    stored = [exact.rational(np.asarray(x)) for x in (belief.transitions, belief.rewards, belief.weights)]
    truth, _ = exact.belief_mdp(*stored, 0, exact.Fraction(0.9), "deterministic")
    assert exact.Fraction(found.lower.value) <= truth <= exact.Fraction(found.upper.value)
    assert found.lower.value == pytest.approx(1.00025 + 0.9 * 50.0, rel=1e-9)


class ReadsDigits:
    """Takes the better action in the second state if it can read which model pays what from the last digits."""

    def __init__(self, first):
        self.first, self.seen = first, None

    def reset(self, seed):
        self.seen = None

    def act(self, state):
        return 0 if state == 0 or self.seen == self.first else 1

    def observe(self, state, action, reward, next_state):
        if state == 0:
            self.seen = reward


def test_both_ends_are_about_an_agent_to_whom_one_amount_looks_like_the_other():
    """Models whose amounts differ by 1e-12 stay as they are after the first reward, for the best agent there is as for
    a policy that tries to read digits."""
    P = np.zeros((2, 2, 2, 2))
    P[:, 0, :, 1] = P[:, 1, :, 1] = 1.0
    r = np.array([[[1.0, 1.0], [5.0, 0.0]], [[1.0 + 1e-12, 1.0], [0.0, 5.0]]])
    silent = bb.FiniteBelief(P, r, reward_signal="unobserved", initial=0)
    belief = bb.FiniteBelief(P[:, :1, :, :1] * 0 + 1.0, r[:, :1], reward_signal="deterministic", initial=0)
    assert belief.update(0, 0, 1.0, 0).weights.tolist() == belief.update(0, 0, 1.0 + 1e-12, 0).weights.tolist()
    whole = bb.FiniteBelief(P, r, reward_signal="deterministic", initial=0)
    found = bb.bracket(whole, discount=0.5, horizon=2, effort=8, rng=1)
    assert found.upper.value == pytest.approx(bb.bracket(silent, discount=0.5, horizon=2, effort=8, rng=1).upper.value)
    certified = bb.certify(ReadsDigits(1.0), whole, discount=0.5, horizon=2, upper=found.upper, samples=300, rng=1)
    assert certified.value <= found.upper.value
