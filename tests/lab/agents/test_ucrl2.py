"""UCRL2: published radii, episodes that double."""

import pytest

from beliefbound.base.errors import ParameterError
from beliefbound.lab.agents import make_agent
from beliefbound.lab.agents.ucrl2 import EPISODES, radii
from beliefbound.lab.envs import make_env
from support.environments import ENVIRONMENTS, arms
from support.every_agent import EveryAgent
from support.optimists import earned_on_riverswim


class TestUcrl2(EveryAgent):
    name = "ucrl2"
    mistakes = (("ucrl2:delta=2", "delta is 2.0"), ("ucrl2:discount=0.9", "ucrl2 has no 'discount'"))


def test_ucrl2_has_the_published_radii():
    assert radii(6, 2, 1, 0, 0.05) == pytest.approx((4.648468, 19.185678), abs=1e-6)
    assert radii(6, 2, 1000, 100, 0.05) == pytest.approx((0.676649, 3.079516), abs=1e-6)


def test_episodes_of_ucrl2_double_the_visits_of_the_action_they_follow():
    """One state, one action: episodes begin at steps 1, 2, 3, 5, 9, …"""
    agent = make_agent("ucrl2", arms(0.5))
    agent.reset(0)
    began = []
    for k in range(1, 40):
        before = agent.machine.state.clock[EPISODES]
        agent.act(0)
        if agent.machine.state.clock[EPISODES] > before:
            began.append(k)
        agent.observe(0, 0, 0.5, 0)
    assert began == [1, 2, 3, 5, 9, 17, 33]


def test_ucrl2_reads_its_radii_into_the_model():
    agent = make_agent("ucrl2:scale=0.5", ENVIRONMENTS["riverswim"])
    agent.reset(0)
    for _ in range(999):
        agent.observe(0, 0, 0.005, 0)
    agent.act(0)
    model = agent.machine.state.model
    reward, transition = radii(6, 2, 1000, 999, 0.05)
    assert model.r[0, 0] == pytest.approx(0.005 + reward / 2)
    assert model.width[0, 0] == pytest.approx(transition / 2)
    assert model.width[1, 0] == 2.0  # never tried: anywhere
    assert model.r[1, 0] == pytest.approx(radii(6, 2, 1000, 0, 0.05)[0] / 2)
    capped = make_agent("ucrl2:cap=yes", ENVIRONMENTS["riverswim"])
    capped.reset(0)
    capped.act(0)
    assert capped.machine.state.model.r.max() == 1.0


def test_it_reaches_riverswims_prize():
    assert earned_on_riverswim("ucrl2:scale=0.05") > 1200


def test_models_too_large_are_refused():
    with pytest.raises(ParameterError, match="needs .* GB"):
        make_agent("ucrl2", make_env("riverswim:20000"))
