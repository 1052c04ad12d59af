"""The random agent."""

import numpy as np

from beliefbound.lab.agents import make_agent, play
from support.environments import CHAIN, partial_environment
from support.every_agent import EveryAgent


class TestRandom(EveryAgent):
    name = "random"
    mistakes = (("random:n=3", "random has no 'n'"),)


def test_random_chooses_available_actions_equally_often():
    environment = partial_environment()
    agent = make_agent("random", environment)
    agent.reset(0)
    counts = np.bincount([agent.act(0) for _ in range(4000)], minlength=3)
    assert counts[0] == 0
    assert abs(counts[1] - 2000) < 4 * np.sqrt(1000)  # false alarms: 6e-5


def test_chance_earns_little_on_chain():
    """Less than 1500; exploring by intervals has more than 1900 (`test_ieql.py`, `test_delayed_q.py`)."""
    assert play(make_agent("random", CHAIN), CHAIN, seed=1, runs=50, steps=1000).total.mean() < 1500
