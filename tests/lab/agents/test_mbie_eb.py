"""MBIE-EB: a plain twin, and its bonus against arms of fixed rewards."""

import pytest

from beliefbound.lab.agents import canonical_agent
from support.environments import ENVIRONMENTS, arms
from support.every_agent import EveryAgent
from support.following import actions_of
from support.optimism_twins import IntervalTwin
from support.optimists import earned_on_riverswim, follow_optimist


class TestMbieEb(EveryAgent):
    name = "mbie-eb"
    mistakes = (("mbie-eb:beta=-1", "beta is -1.0"),)


@pytest.mark.parametrize("environment", ENVIRONMENTS.values(), ids=ENVIRONMENTS)
def test_it_equals_its_twin_step_by_step(environment):
    follow_optimist("mbie-eb", IntervalTwin(environment, 0.4, 0.0), environment)


def test_mbie_eb_weighs_bonus_against_mean():
    actions, total = actions_of("mbie-eb:beta=1,cap=no", arms(0.3, 0.7), 12)
    assert actions == [0, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1]
    assert total == pytest.approx(7.6)


def test_a_cap_makes_arms_equal_until_their_bonus_is_small():
    """`.3 + 1/√n ≥ 1` for n ≤ 2: the first arm is worth the cap, as is the one not tried, and ties go to the lowest."""
    assert actions_of("mbie-eb:beta=1", arms(0.3, 0.7), 4)[0] == [0, 0, 0, 1]


def test_it_reaches_riverswims_prize():
    assert earned_on_riverswim("mbie-eb") > 1200


def test_the_published_setting_is_a_preset():
    assert canonical_agent("mbie-eb:preset=six-arms") == "mbie-eb:beta=0.8"
