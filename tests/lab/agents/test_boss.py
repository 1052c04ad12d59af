"""BOSS: a plain twin, when it plans, and how often it tries what it does not know."""

import math

import pytest

from beliefbound import BetaRewards, DirichletBelief
from beliefbound.base.errors import ParameterError
from beliefbound.lab.agents import canonical_agent, make_agent
from beliefbound.lab.agents.boss import PLANS
from beliefbound.lab.envs import make_env
from support.environments import CHAIN, ENVIRONMENTS
from support.every_agent import EveryAgent
from support.sampling_agents import (
    check_share_of_coin,
    check_tied_rows_come_from_one_draw,
    check_what_is_ruled_out_stays_out,
    check_who_knows_the_model_plays_optimally,
    follow_merged,
)
from support.sampling_twins import BossTwin


class TestBoss(EveryAgent):
    name = "boss"
    mistakes = (
        ("boss:k=0", "k is 0; give a whole number from 1"),
        ("boss:b=0", "b is 0; give a whole number from 1"),
    )


@pytest.mark.parametrize("environment", [CHAIN, ENVIRONMENTS["partial"]], ids=["chain", "partial"])
def test_it_equals_its_twin_step_by_step(environment):
    follow_merged("boss:k=3,b=4", BossTwin(environment, 3, 4), environment)


def test_boss_plans_when_a_pair_becomes_known_and_only_then():
    agent = make_agent("boss:k=2,b=3", CHAIN)
    agent.reset(0)
    plans = []
    for _ in range(6):
        agent.act(0)
        agent.observe(0, 0, 2.0, 0)
        plans.append(int(agent.machine.state.clock[PLANS]))
    assert plans == [1, 1, 1, 2, 2, 2]


@pytest.mark.parametrize(("name", "chance"), [("boss:k=1,b=5", 1 / 2), ("boss:k=3,b=5", 1 - 2**-3)])
def test_the_coin_is_tried_as_often_as_a_sample_likes_it(name, chance):
    check_share_of_coin(name, chance)


@pytest.mark.full
def test_tied_rows_of_one_model_come_from_one_draw():
    check_tied_rows_come_from_one_draw("boss:k=4,b=3")


def test_what_the_belief_rules_out_stays_out():
    check_what_is_ruled_out_stays_out("boss")


def test_who_knows_the_model_plays_optimally():
    check_who_knows_the_model_plays_optimally("boss")


def test_rewards_on_any_belief_with_counts():
    """Beta rewards in a range of their own."""
    belief = DirichletBelief(5, 2, rewards=BetaRewards(2.0, 5.0, low=0.0, high=10.0))
    agent = make_agent("boss:k=4000,b=1", CHAIN, belief=belief)
    agent.reset(0)
    agent.act(0)
    drawn = agent.machine.state.models.r
    assert abs(drawn.mean() - 2 / 7) < 4 * math.sqrt(2 * 5 / (49 * 8) / drawn.size)


def test_models_that_need_too_much_memory_are_refused():
    with pytest.raises(ParameterError, match="k is 1048576: .* GB; take fewer"):
        make_agent("boss:k=1048576,prior=flat", make_env("garnet:40,3,4"))


def test_published_settings_are_presets():
    assert canonical_agent("boss:preset=guez") == "boss:k=20,b=5"
    assert canonical_agent("boss") == "boss:k=5,b=10"
