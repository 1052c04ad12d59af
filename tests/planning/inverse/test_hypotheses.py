"""Finite hypotheses weighed by demonstrations: exact numbers, and what must not change them."""

import numpy as np
import pytest

import beliefbound as bb
from beliefbound.base.errors import BeliefError, ParameterError
from beliefbound.planning.inverse.hypotheses import log_choices

D = {"state": [0, 1, 1], "action": [1, 1, 0], "next_state": [1, 1, 0]}


def leads(p):
    """Action a leads to state a with probability p, else to the other."""
    return [[[p, 1 - p], [1 - p, p]]] * 2


def four(level=0.0, scale=1.0):
    rewards = np.array([[[0.0, 0.0], [1.0, 1.0]], [[1.0, 1.0], [0.0, 0.0]]] * 2) * scale + level
    return bb.FiniteBelief([leads(0.9), leads(0.9), leads(0.6), leads(0.6)], rewards, reward_signal="unobserved")


def weights(hypotheses, rationality=2.0, demos=D):
    return bb.from_demonstrations(demos, discount=0.9, hypotheses=hypotheses, rationality=rationality).belief.weights


def test_the_exact_posterior():
    exact = [0.5525352787, 0.1309109452, 0.1864629737, 0.1300908024]
    np.testing.assert_allclose(weights(four()), exact, atol=5e-11)


def test_the_level_of_rewards_and_the_unit_of_rationality_change_nothing():
    np.testing.assert_allclose(weights(four(level=3.0)), weights(four()), rtol=1e-9)
    np.testing.assert_allclose(weights(four(scale=4.0), rationality=0.5), weights(four()), rtol=1e-9)


def test_who_chooses_at_random_teaches_the_dynamics_alone():
    belief = four()
    after = belief.update(D["state"], D["action"], None, D["next_state"])
    np.testing.assert_allclose(weights(belief, rationality=0.0), after.weights, rtol=1e-12)


def test_several_rationalities_are_averaged():
    q = bb.optimal_values(four(), discount=0.9).q
    visits = np.array([[0, 1], [1, 1]])
    like = np.mean([np.exp(log_choices(q, visits, eta)) for eta in (0.5, 2.0, 8.0)], axis=0)
    moved = np.prod([[leads(p)[s][a][t] for s, a, t in zip(*D.values(), strict=True)] for p in (0.9, 0.9, 0.6, 0.6)], 1)
    np.testing.assert_allclose(weights(four(), (0.5, 2.0, 8.0)), like * moved / (like * moved).sum(), rtol=1e-10)


def test_actions_that_are_not_offered_are_never_chosen():
    available = [[True, True], [True, False]]
    p = np.array(leads(0.9))[None]
    offered = bb.FiniteBelief(p, [[0.0, 0.0], [1.0, 0.0]], available=available)
    q = bb.optimal_values(offered, discount=0.9).q
    assert log_choices(q, np.array([[0, 1], [1, 0]]), 1.0)[0] == pytest.approx(
        q[0, 0, 1] - np.log(np.exp(q[0, 0]).sum()), rel=1e-9
    )
    with pytest.raises(BeliefError, match="probability 0 under every hypothesis"):
        weights(offered)


@pytest.mark.parametrize("wrong", [None, (), "much", -1.0, ("gamma", 2.0, 2.0), np.nan])
def test_a_rationality_that_is_none_is_refused(wrong):
    with pytest.raises(ParameterError, match="rational"):
        weights(four(), wrong)


def test_impossible_steps_and_other_sizes_are_refused():
    sure = bb.FiniteBelief([leads(1.0)], [[0.0, 0.0], [1.0, 1.0]], reward_signal="unobserved")
    with pytest.raises(BeliefError, match="next state '0' has probability 0"):
        weights(sure, demos={"state": [0, 1, 0], "action": [1, 1, 0], "next_state": [1, 0, 0]})
    with pytest.raises(BeliefError, match="the table has 3 and 2"):
        weights(four(), demos={"state": [0, 2], "action": [0, 1], "next_state": [2, 0]})
    with pytest.raises(ParameterError, match="of their own"):
        bb.from_demonstrations(D, discount=0.9, hypotheses=four(), rationality=1.0, reward="pair")


@pytest.mark.full
def test_brackets_of_such_a_belief_hold_on_the_exact_tree():
    from support.oracles import bayes_adaptive_value

    belief = bb.from_demonstrations(D, discount=0.9, hypotheses=four(), rationality=2.0).belief
    found = bb.bracket(belief, discount=0.9, horizon=5, initial=0, effort=4, rng=1)
    exact = bayes_adaptive_value(belief.transitions, belief.rewards, belief.weights, 0, 0.9, 5, "unobserved")
    assert found.lower.value <= exact + 1e-9
    assert exact <= found.upper.value + 1e-9
