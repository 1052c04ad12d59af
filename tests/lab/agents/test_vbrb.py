"""VBRB: a plain twin, and bonuses worked out by hand."""

import math

import pytest

from beliefbound.lab.agents import make_agent
from beliefbound.lab.envs import make_env
from support.environments import ENVIRONMENTS
from support.every_agent import EveryAgent
from support.optimism_twins import OptimistTwin
from support.optimists import PULL, after_a_step_of_tied_rows, follow_optimist, value_on_coin


class TestVbrb(EveryAgent):
    name = "vbrb"
    mistakes = (("vbrb:rewards=nan", "rewards is nan"),)


@pytest.mark.parametrize("environment", ENVIRONMENTS.values(), ids=ENVIRONMENTS)
def test_it_equals_its_twin_step_by_step(environment):
    follow_optimist("vbrb:rewards=0.7,transitions=1.3", OptimistTwin(environment, "vbrb", (0.7, 1.3)), environment)


def test_bonuses_on_the_coin():
    """Only the coin is uncertain."""
    assert value_on_coin("vbrb:rewards=0,transitions=1") == (0, pytest.approx((1 / math.sqrt(6) + 0.475) / PULL))
    assert value_on_coin("vbrb:rewards=9,transitions=0") == (0, pytest.approx(0.475 / PULL))  # rewards are known


def test_bayesian_bonuses_read_the_posterior():
    agent = make_agent("vbrb:rewards=1,transitions=0,concentration=1", make_env("bandit:means=0.2/0.8"))
    agent.reset(0)
    for reward in (1.0, 0.0, 1.0):
        agent.observe(0, 1, reward, 0)
    model = agent.machine.state.model  # Beta(3, 2): mean .6, variance 6 / 150
    assert model.r[0, 1] == pytest.approx(0.6 + math.sqrt(0.04))
    assert model.r[0, 0] == pytest.approx(0.5 + math.sqrt(1 / 12))


def test_tied_rows_learn_from_each_other():
    """A step in either narrows both."""
    model, before = after_a_step_of_tied_rows("vbrb")
    assert model.r[1, 0] < before
