"""BEB: a plain twin, its bonus worked out by hand, and riverswim's prize."""

import pytest

from beliefbound.lab.agents import agent_parameters
from support.environments import ENVIRONMENTS
from support.every_agent import EveryAgent
from support.optimism_twins import OptimistTwin
from support.optimists import PULL, after_a_step_of_tied_rows, earned_on_riverswim, follow_optimist, value_on_coin


class TestBeb(EveryAgent):
    name = "beb"
    mistakes = (("beb:beta=inf", "beta is inf"),)


@pytest.mark.parametrize("environment", ENVIRONMENTS.values(), ids=ENVIRONMENTS)
def test_it_equals_its_twin_step_by_step(environment):
    follow_optimist("beb:beta=1.5", OptimistTwin(environment, "beb", 1.5), environment)


def test_the_bonus_on_the_coin():
    """Every row has α0 = 2: bonus 1."""
    assert value_on_coin("beb:beta=3") == (0, pytest.approx((1 + 0.475 + 0.95) / PULL))


@pytest.mark.full
def test_tied_rows_learn_from_each_other():
    """A step in either narrows both."""
    model, before = after_a_step_of_tied_rows("beb")
    assert model.r[1, 0] < before


def test_it_reaches_riverswims_prize():
    assert earned_on_riverswim("beb") > 1200


def test_the_published_setting_is_the_usual_one():
    assert "beta=2.5" in agent_parameters("beb")
