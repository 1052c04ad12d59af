"""Wyatt's selection: it follows the model that promises most."""

import pytest

from beliefbound import MDP, policy_iteration
from beliefbound.lab.agents import make_agent
from support.environments import CHAIN
from support.every_agent import EveryAgent
from support.sampling_agents import (
    check_share_of_coin,
    check_tied_rows_come_from_one_draw,
    check_what_is_ruled_out_stays_out,
    check_who_knows_the_model_plays_optimally,
)


class TestWyatt(EveryAgent):
    name = "wyatt"
    mistakes = (("wyatt:interval=0", "interval is 0"),)


def test_wyatt_follows_the_model_that_promises_most_until_the_next_plan():
    agent = make_agent("wyatt:n=5,interval=3", CHAIN)
    agent.reset(1)
    state = agent.machine.state
    for k in range(7):
        before = state.models.p.copy()
        a = agent.act(2)
        assert (state.models.p != before).any() == (k % 3 == 0)
        if k % 3 == 0:
            assert state.clock[1] == state.models.v[2].argmax()
        m = state.clock[1]
        mdp = MDP(state.models.p[..., m], state.models.r[..., m])
        assert a == policy_iteration(mdp, discount=CHAIN.discount).policy.actions[2]
        agent.observe(2, a, 0.0, 3)


@pytest.mark.parametrize(("name", "chance"), [("wyatt:n=1", 1 / 2), ("wyatt:n=4", 1 - 2**-4)])
def test_the_coin_is_tried_as_often_as_a_sample_likes_it(name, chance):
    check_share_of_coin(name, chance)


def test_tied_rows_of_one_model_come_from_one_draw():
    check_tied_rows_come_from_one_draw("wyatt:n=3")


def test_what_the_belief_rules_out_stays_out():
    check_what_is_ruled_out_stays_out("wyatt")


def test_who_knows_the_model_plays_optimally():
    check_who_knows_the_model_plays_optimally("wyatt")
