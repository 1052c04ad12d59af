"""Q-learning: updates worked out by hand, exploration that decays."""

import numpy as np
import pytest

from beliefbound.lab.agents import canonical_agent, make_agent
from support.environments import CHAIN
from support.every_agent import EveryAgent


class TestQLearning(EveryAgent):
    name = "qlearning"
    mistakes = (
        ("qlearning:epsilon=1.5", "epsilon is 1.5; give a number from 0 to 1"),
        ("qlearning:step=0", "step is 0.0"),
    )


def test_qlearning_follows_its_formulas():
    agent = make_agent("qlearning:epsilon=0,step=0.5,power=1,optimism=0.5,discount=0.5", CHAIN)
    agent.reset(0)
    assert agent.act(0) == 0
    agent.observe(0, 0, 10.0, 1)  # Q starts at 0.5 / (1 − 0.5) = 1: target 1 + 0.5·1, step 0.5
    assert agent.machine.state.q[0, 0] == 1.25
    agent.observe(0, 0, 0.0, 1)  # target 0.5, step 0.5 / 2
    assert agent.machine.state.q[0, 0] == 1.25 - 0.25 * 0.75
    agent.observe(0, 0, 0.0, 0)  # step 0.5 / 3, target 0.5 max(1.0625, 1)
    assert agent.machine.state.q[0, 0] == pytest.approx(1.0625 - 0.5 / 3 * 0.53125)


def test_exploration_of_qlearning_decays():
    agent = make_agent("qlearning:epsilon=1,decay=0.1", CHAIN)
    agent.reset(3)
    actions = np.array([agent.act(0) for _ in range(4000)])  # nothing observed: greedy is 0
    chance = 1 / (1 + 0.1 * np.arange(4000)) / 2
    for part in (slice(0, 40), slice(40, 4000)):
        mean, deviation = chance[part].sum(), np.sqrt((chance[part] * (1 - chance[part])).sum())
        assert abs(actions[part].sum() - mean) < 4 * deviation  # false alarms: 6e-5 each


def test_numbers_are_written_in_one_way():
    assert canonical_agent("qlearning:epsilon=.2") == "qlearning:epsilon=0.2"
