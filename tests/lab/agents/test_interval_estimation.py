"""Interval estimation: the score interval, and what it misses."""

import pytest

from beliefbound.lab.agents import make_agent
from beliefbound.lab.agents.interval_estimation import upper_end
from beliefbound.lab.envs import make_env
from support.every_agent import EveryAgent
from support.optimists import earned_on_riverswim


class TestIntervalEstimation(EveryAgent):
    name = "interval-estimation"
    mistakes = (("interval-estimation:z=-1", "z is -1.0"),)


def test_interval_estimation_has_the_score_interval():
    assert upper_end(0.3, 10, 1.96) == pytest.approx(0.603227, abs=1e-6)
    assert upper_end(0.0, 10, 1.96) == pytest.approx(0.277540, abs=1e-6)
    agent = make_agent("interval-estimation", make_env("bandit:means=0.3/0.5"))
    agent.reset(0)
    assert agent.act(0) == 0
    for k in range(10):
        agent.observe(0, 0, float(k < 3), 0)
    assert agent.machine.state.upper[0].tolist() == pytest.approx([0.603227, 1.0], abs=1e-6)
    assert agent.act(0) == 1


def test_it_is_too_myopic_for_riverswims_prize():
    """Which optimists reach: they have more than 1200."""
    assert earned_on_riverswim("interval-estimation") < 100
