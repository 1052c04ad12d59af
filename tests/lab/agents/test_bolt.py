"""BOLT: a plain twin, and what it promises on the coin."""

import pytest

from support.environments import ENVIRONMENTS
from support.every_agent import EveryAgent
from support.optimism_twins import OptimistTwin
from support.optimists import PULL, after_a_step_of_tied_rows, follow_optimist, value_on_coin


class TestBolt(EveryAgent):
    name = "bolt"
    mistakes = (("bolt:eta=-1", "eta is -1.0"),)


@pytest.mark.parametrize("environment", ENVIRONMENTS.values(), ids=ENVIRONMENTS)
def test_it_equals_its_twin_step_by_step(environment):
    twin = OptimistTwin(environment, "bolt", 3.0, cap=1 / (1 - environment.discount))
    follow_optimist("bolt:eta=3", twin, environment)


def test_what_it_promises_on_the_coin():
    assert value_on_coin("bolt:eta=2") == (0, pytest.approx(0.95 * 0.75 / PULL))  # (1 + 2) / (2 + 2)
    assert value_on_coin("bolt:eta=0") == (0, pytest.approx(0.475 / PULL))


def test_tied_rows_learn_from_each_other():
    """Rewards have no bonus: they stay."""
    model, before = after_a_step_of_tied_rows("bolt")
    assert model.r[1, 0] == before
