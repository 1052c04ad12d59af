"""E³: balanced wandering, and the choice between exploring and exploiting."""

import pytest

from beliefbound.base.errors import ParameterError
from beliefbound.lab.agents import make_agent
from beliefbound.lab.envs import make_env
from support.environments import CHAIN
from support.every_agent import EveryAgent


class TestE3(EveryAgent):
    name = "e3"
    mistakes = (
        ("e3:threshold=2", "threshold is 2.0"),
        ("e3:discount=0.99999999", "plans of so many steps for 5 states need"),
    )


def exploring(threshold):
    """State 0 known with m = 10: action 0 escapes with chance .1, action 1 stays and pays more."""
    agent = make_agent(f"e3:m=10,horizon=2,threshold={threshold}", make_env("garnet:2,2,1"))
    agent.reset(0)
    for k in range(10):
        agent.observe(0, 0, 0.0, int(k == 0))
        agent.observe(0, 1, 0.5, 0)
    return agent.act(0), agent.machine.state


def test_e3_explores_when_escape_is_likelier_than_the_threshold():
    action, state = exploring(0.18)
    assert state.explore.v[0] == pytest.approx(0.19)  # .1 + .9 · .1
    assert action == 0
    assert state.left[0] == 1
    action, state = exploring(0.2)
    assert state.explore.v[0] == pytest.approx(0.19)
    assert action == 1


def test_e3_wanders_in_balance_and_then_plans():
    agent = make_agent("e3:m=2,horizon=3", CHAIN)
    agent.reset(0)
    actions = []
    for _ in range(4):
        a = agent.act(0)
        agent.observe(0, a, 0.0, 0)
        actions.append(a)
    assert actions == [0, 1, 0, 1]
    state = agent.machine.state
    assert state.known.tolist() == [True, False, False, False, False]
    assert state.left[0] == 0
    agent.act(0)  # nothing leads out of what is known: exploit
    assert state.explore.v[0] == 0.0
    assert state.left[0] == 2
    agent.act(1)  # an unknown state ends the plan
    assert state.left[0] == 0


def test_models_too_large_are_refused():
    with pytest.raises(ParameterError, match="needs .* GB"):
        make_agent("e3", make_env("riverswim:20000"))
