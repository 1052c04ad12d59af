"""Bayes-UCB: quantiles of exactly solved draws, and the coin in closed form."""

import math

import numpy as np
import pytest

from beliefbound import MDP, policy_iteration
from beliefbound.lab.agents import make_agent
from beliefbound.lab.agents.bayes_ucb import PLANS, rank_of
from support.environments import CHAIN, ENVIRONMENTS
from support.every_agent import EveryAgent
from support.following import follow
from support.sampling_agents import (
    check_share_of_coin,
    check_tied_rows_come_from_one_draw,
    check_what_is_ruled_out_stays_out,
    check_who_knows_the_model_plays_optimally,
)


class TestBayesUcb(EveryAgent):
    name = "bayes-ucb"
    variants = ("bayes-ucb:n=1",)
    mistakes = (("bayes-ucb:n=0", "n is 0; give a whole number from 1"),)


@pytest.mark.parametrize("n", [1, 2, 7, 32])
def test_the_rank_is_that_of_the_level(n):
    """The smallest of the values that at least a share `1 − 1/t` does not exceed, from its definition."""
    for t in range(1, 3 * n):
        places = [i for i in range(n) if (i + 1) * t >= (t - 1) * n]  # in whole numbers
        assert rank_of(t, n) == min(places)
    assert rank_of(n, n) == max(0, n - 2)
    assert rank_of(n + 1, n) == n - 1


@pytest.mark.parametrize("environment", [CHAIN, ENVIRONMENTS["partial"]], ids=["chain", "partial"])
def test_actions_are_the_best_quantiles_of_models_solved_independently(environment):
    agent = make_agent("bayes-ucb:n=5", environment, discount=0.9)
    state, planned = agent.machine.state, []

    def watch(k):
        if len(planned) == state.clock[PLANS]:
            return
        planned.append(k)
        q = np.array([q_of(state.models.p[..., m], state.models.r[..., m], environment) for m in range(5)])
        rank = max(0, math.ceil(k * 5 / (k + 1)) - 1)
        quantile = np.where(environment.mdp.available, np.sort(q, axis=0)[rank], -np.inf)
        best = quantile.max(axis=1, keepdims=True)
        chosen = np.take_along_axis(quantile, state.actions[:, None], axis=1)
        np.testing.assert_allclose(chosen, best, rtol=1e-9)

    follow(agent, environment, 60, watch=watch)
    assert planned[0] == 0
    assert len(planned) > 3


def q_of(p, r, environment):
    """Optimal values of a model, by the planner."""
    available = environment.mdp.available
    whole = np.where(available[..., None], p, np.eye(len(p))[:, None])  # any row will do
    mdp = MDP(whole / whole.sum(axis=2, keepdims=True), r, available=available)
    values = policy_iteration(mdp, discount=0.9).values
    return r + 0.9 * p @ values


def test_the_coin_is_tried_as_often_as_the_quantile_likes_it():
    """At step 1 the level is 0, the least of n draws: all have to like the coin. After a head (step 2) half of them."""
    check_share_of_coin("bayes-ucb:n=1", 1 / 2)
    check_share_of_coin("bayes-ucb:n=3", 2**-3)
    # θ ~ Beta(2, 1), P(θ > ½) = ¾; level ½ of 2 draws is the lesser one
    check_share_of_coin("bayes-ucb:n=2", 0.75**2, seen=[1])


def test_tied_rows_of_one_model_come_from_one_draw():
    check_tied_rows_come_from_one_draw("bayes-ucb:n=4")


def test_what_the_belief_rules_out_stays_out():
    check_what_is_ruled_out_stays_out("bayes-ucb")


def test_who_knows_the_model_plays_optimally():
    check_who_knows_the_model_plays_optimally("bayes-ucb")
