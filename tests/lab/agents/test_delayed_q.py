"""Delayed Q-learning: attempts worked out by hand."""

import numpy as np
import pytest

from beliefbound import MDP
from beliefbound.lab.agents import make_agent, play
from beliefbound.lab.envs import environment_from_mdp
from support.environments import CHAIN
from support.every_agent import EveryAgent


class TestDelayedQ(EveryAgent):
    name = "delayed-q"
    mistakes = (
        ("delayed-q:m=0", "m is 0"),
        ("delayed-q:accuracy=0", "accuracy is 0.0; give a number above 0"),
    )


def test_delayed_q_lowers_its_value_until_an_attempt_fails():
    single = environment_from_mdp(MDP(np.ones((1, 1, 1)), [[0.0]], initial=0), name="nothing", reward_range=(0.0, 1.0))
    agent = make_agent("delayed-q:m=1,accuracy=0.1,discount=0.5", single)
    agent.reset(0)
    state = agent.machine.state
    values = [float(state.q[0, 0])]
    for _ in range(6):
        agent.observe(0, 0, 0.0, 0)
        values.append(float(state.q[0, 0]))
    assert values == pytest.approx([2, 1.1, 0.65, 0.425, 0.3125, 0.3125, 0.3125])
    assert not state.learning[0, 0]


def test_delayed_q_takes_up_learning_again_after_a_success_elsewhere():
    agent = make_agent("delayed-q:m=2,accuracy=0.1,discount=0.5", CHAIN)
    agent.reset(0)
    state = agent.machine.state
    agent.observe(0, 0, 10.0, 1)
    assert state.q[0, 0] == 2.0  # one target of two
    agent.observe(0, 0, 10.0, 1)  # targets 1 + .5 · 2 = 2: no success, and none since
    assert state.q[0, 0] == 2.0
    assert not state.learning[0, 0]
    for _ in range(2):
        agent.observe(1, 0, 0.0, 1)  # targets .5 · 2: a success
    assert state.q[1, 0] == pytest.approx(1.1)
    agent.observe(0, 0, 0.0, 1)  # this one only wakes it up
    assert state.learning[0, 0]
    assert state.samples[0, 0] == 0


def test_an_attempt_that_fails_keeps_learning_if_something_has_changed_meanwhile():
    agent = make_agent("delayed-q:m=1,accuracy=0.1,discount=0.5", CHAIN)
    agent.reset(0)
    agent.observe(1, 0, 0.0, 1)  # a success at time 1
    agent.observe(0, 0, 10.0, 2)  # fails at time 2; its previous attempt, at 0, was before the success
    state = agent.machine.state
    assert state.learning[0, 0]
    agent.observe(0, 0, 10.0, 2)  # fails again, with no success since
    assert not state.learning[0, 0]


def test_it_finds_more_than_chance_on_chain():
    """The random agent has less than 1500 (`test_random.py`)."""
    assert play(make_agent("delayed-q", CHAIN), CHAIN, seed=1, runs=50, steps=1000).total.mean() > 1900
