"""SBOSS: a plain twin, how many samples it takes, and when it draws again."""

import math

import numpy as np
import pytest

from beliefbound.base.errors import ParameterError
from beliefbound.lab.agents import canonical_agent, make_agent
from beliefbound.lab.agents.boss import PLANS
from beliefbound.lab.agents.sboss import movement
from beliefbound.lab.envs import make_env
from support.coin import coin
from support.environments import CHAIN, ENVIRONMENTS
from support.every_agent import EveryAgent
from support.following import follow
from support.sampling_agents import (
    check_share_of_coin,
    check_tied_rows_come_from_one_draw,
    check_what_is_ruled_out_stays_out,
    follow_merged,
)
from support.sampling_twins import SbossTwin


class TestSboss(EveryAgent):
    name = "sboss"
    variants = ("sboss:copies=fixed,k=2",)
    mistakes = (
        ("sboss:epsilon=0", "epsilon is 0.0; give a number above 0"),
        ("sboss:k=4", "k has no effect with copies=local"),
        ("sboss:copies=fixed,epsilon=0.1", "epsilon has no effect with copies=fixed"),
    )


@pytest.mark.parametrize("environment", [CHAIN, ENVIRONMENTS["partial"]], ids=["chain", "partial"])
def test_it_equals_its_twin_step_by_step(environment):
    follow_merged("sboss:epsilon=0.02,delta=1.5", SbossTwin(environment, 0.02, 1.5), environment)


def test_the_coin_is_tried_as_often_as_a_sample_likes_it():
    """A variance of 1/12: five copies."""
    check_share_of_coin("sboss:epsilon=0.02", 1 - 2**-5)


def test_sboss_draws_again_at_the_third_equal_outcome():
    law = np.array([1.0, 1.0])
    moved = [movement(law, law + np.array([k, 0.0])) for k in (1, 2, 3)]
    assert moved == pytest.approx([math.sqrt(12) * k / (k + 2) for k in (1, 2, 3)])  # 1.15, 1.73, 2.08
    environment, belief = coin()
    agent = make_agent("sboss:delta=2", environment, belief=belief)
    agent.reset(0)
    plans = []
    for _ in range(4):
        agent.act(0)
        agent.observe(0, 0, 0.0, 1)
        plans.append(int(agent.machine.state.clock[PLANS]))
    agent.observe(0, 1, 0.0, 3)  # a row that is known does not move
    assert plans == [1, 1, 1, 2]


@pytest.mark.parametrize(("counts", "copies"), [(1.0, 9), (10.0, 2)])
def test_sboss_takes_as_many_samples_as_the_variance_asks_for(counts, copies):
    environment, belief = coin(heads=counts, tails=counts)
    agent = make_agent("sboss:epsilon=0.01", environment, belief=belief)
    agent.reset(0)
    agent.act(0)
    assert agent.machine.state.models.copies.tolist() == [[copies, 1]] + [[1, 1]] * 3


def test_sboss_learns_rewards_where_only_they_are_unknown():
    """One state: without rewards in the rule, it would plan once and never again."""
    environment = make_env("bandit:means=0.2/0.9")
    agent = make_agent("sboss", environment)
    assert sum(a for _, a, _, _ in follow(agent, environment, 200)[100:]) > 90


def test_tied_rows_of_one_model_come_from_one_draw():
    check_tied_rows_come_from_one_draw("sboss:epsilon=0.01", used=1)


def test_what_the_belief_rules_out_stays_out():
    check_what_is_ruled_out_stays_out("sboss")


def test_models_that_need_too_much_memory_are_refused():
    with pytest.raises(ParameterError, match="epsilon is 1e-09: .* models .* need .* GB; take a larger one"):
        make_agent("sboss:epsilon=1e-9", make_env("garnet:40,3,4"))


def test_the_published_setting_is_a_preset():
    assert canonical_agent("sboss:preset=guez") == "sboss:copies=fixed"
