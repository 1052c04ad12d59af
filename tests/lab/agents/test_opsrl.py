"""Optimistic PSRL: a plain twin, when episodes begin, and how often it tries what it does not know."""

import pytest

from beliefbound.lab.agents import make_agent
from beliefbound.lab.agents.opsrl import PLANS
from support.environments import CHAIN, ENVIRONMENTS
from support.every_agent import EveryAgent
from support.sampling_agents import (
    check_share_of_coin,
    check_tied_rows_come_from_one_draw,
    check_what_is_ruled_out_stays_out,
    check_who_knows_the_model_plays_optimally,
    follow_merged,
)
from support.sampling_twins import OpsrlTwin


class TestOpsrl(EveryAgent):
    name = "opsrl"
    mistakes = (("opsrl:psi=0", "psi is 0; give a whole number from 1"),)


@pytest.mark.parametrize("environment", [CHAIN, ENVIRONMENTS["partial"]], ids=["chain", "partial"])
def test_it_equals_its_twin_step_by_step(environment):
    follow_merged("opsrl:psi=3", OpsrlTwin(environment, 3), environment)


def test_episodes_begin_when_a_count_has_doubled():
    """The same pair again and again: before steps 1, 2, 3, 5, 9."""
    agent = make_agent("opsrl:psi=2", CHAIN)
    agent.reset(0)
    began = []
    for k in range(1, 12):
        before = int(agent.machine.state.clock[PLANS])
        agent.act(0)
        if agent.machine.state.clock[PLANS] > before:
            began.append(k)
        agent.observe(0, 0, 2.0, 0)
    assert began == [1, 2, 3, 5, 9]


@pytest.mark.parametrize(("name", "chance"), [("opsrl:psi=1", 1 / 2), ("opsrl:psi=3", 1 - 2**-3)])
def test_the_coin_is_tried_as_often_as_one_of_its_draws_likes_it(name, chance):
    check_share_of_coin(name, chance)


def test_tied_rows_of_one_model_come_from_one_draw():
    check_tied_rows_come_from_one_draw("opsrl:psi=4")


def test_what_the_belief_rules_out_stays_out():
    check_what_is_ruled_out_stays_out("opsrl")


def test_who_knows_the_model_plays_optimally():
    check_who_knows_the_model_plays_optimally("opsrl")
