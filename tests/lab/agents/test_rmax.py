"""R-max: what is known after m tries, and what is solved when."""

import numpy as np
import pytest

from beliefbound.base.errors import ParameterError
from beliefbound.lab.agents import canonical_agent, make_agent
from beliefbound.lab.envs import make_env
from support.environments import CHAIN, arms
from support.every_agent import EveryAgent
from support.following import actions_of
from support.optimists import earned_on_riverswim


class TestRmax(EveryAgent):
    name = "rmax"
    mistakes = (("rmax:m=0", "m is 0; give a whole number from 1"), ("rmax:prior=flat", "rmax has no 'prior'"))


def test_rmax_tries_each_arm_m_times():
    actions, total = actions_of("rmax:m=3", arms(0.3, 0.7), 10)
    assert actions == [0, 0, 0, 1, 1, 1, 1, 1, 1, 1]
    assert total == pytest.approx(5.8)


def test_rmax_freezes_a_pair_when_it_is_known_and_solves_then_only():
    agent = make_agent("rmax:m=2", CHAIN)
    agent.reset(0)
    agent.act(0)
    model = agent.machine.state.model
    for r, t in ((0.0, 1), (10.0, 0)):
        agent.observe(0, 1, r, t)
    assert model.r[0, 1] == pytest.approx(0.5)
    assert model.p[0, 1].tolist() == [0.5, 0.5, 0.0, 0.0, 0.0]
    agent.act(0)
    values = model.v.copy()
    agent.observe(0, 1, 10.0, 3)
    agent.act(0)
    np.testing.assert_array_equal(model.v, values)
    assert model.p[0, 1, 3] == 0.0


def test_it_reaches_riverswims_prize():
    assert earned_on_riverswim("rmax") > 1200


def test_models_too_large_are_refused():
    with pytest.raises(ParameterError, match="needs .* GB"):
        make_agent("rmax", make_env("riverswim:20000"))


def test_the_published_setting_is_a_preset():
    assert canonical_agent("rmax:preset=six-arms") == "rmax:m=6"
