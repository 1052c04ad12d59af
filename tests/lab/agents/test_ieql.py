"""IEQL+: values and bonuses worked out by hand."""

import numpy as np
import pytest

from beliefbound.lab.agents import make_agent, play
from support.environments import CHAIN
from support.every_agent import EveryAgent


class TestIeql(EveryAgent):
    name = "ieql"
    mistakes = (("ieql:sigma=-1", "sigma is -1.0"), ("ieql:step=0", "step is 0.0; give a number above 0"))


def test_ieql_propagates_values_and_bonuses():
    agent = make_agent("ieql:z=2,sigma=1,step=0.5,power=0,discount=0.5", CHAIN)
    agent.reset(0)
    state = agent.machine.state
    assert (state.q == 0.0).all()
    assert (state.bonus == 2.0).all()
    agent.observe(0, 0, 10.0, 1)  # Q: ½(1 + 0 − 0); bonus: 2 + ½(½·2 + ½·2 − 2)
    assert (state.q[0, 0], state.bonus[0, 0]) == (0.5, 2.0)
    agent.observe(0, 0, 0.0, 0)  # greedy in 0 is action 0, 2.5 against 2
    assert state.q[0, 0] == 0.5 + 0.5 * (0.5 * 0.5 - 0.5)
    assert state.bonus[0, 0] == pytest.approx(2.0 + 0.5 * (0.5 * 2 / np.sqrt(2) + 0.5 * 2 - 2.0))
    assert state.hope[0, 0] == state.q[0, 0] + state.bonus[0, 0]
    assert agent.act(0) == int(state.hope[0, 1] > state.hope[0, 0])


def test_the_deviation_of_ieql_is_that_of_bounded_returns():
    agent = make_agent("ieql:z=2,discount=0.75", CHAIN)
    agent.reset(0)
    assert agent.machine.state.hope[0, 0] == 4.0  # 1 / (1 − .75)


def test_it_finds_more_than_chance_on_chain():
    """The random agent has less than 1500 (`test_random.py`)."""
    assert play(make_agent("ieql", CHAIN), CHAIN, seed=1, runs=50, steps=1000).total.mean() > 1900
