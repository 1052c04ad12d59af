"""MBIE: a plain twin, and the radii of its analysis."""

import math

import pytest

from beliefbound import DirichletBelief
from beliefbound.base.errors import ParameterError
from beliefbound.lab.agents import canonical_agent, make_agent
from beliefbound.lab.envs import make_env
from support.environments import CHAIN, ENVIRONMENTS
from support.every_agent import EveryAgent
from support.optimism_twins import IntervalTwin
from support.optimists import follow_optimist


class TestMbie(EveryAgent):
    name = "mbie"
    mistakes = (
        ("mbie:delta=0.1", "delta has no effect with radii=simple"),
        ("mbie:radii=theory,rewards=1", "rewards has no effect with radii=theory"),
        ("mbie:radii=theory,delta=0", "delta is 0.0; give a number above 0"),
    )


@pytest.mark.parametrize("environment", ENVIRONMENTS.values(), ids=ENVIRONMENTS)
def test_it_equals_its_twin_step_by_step(environment):
    follow_optimist("mbie", IntervalTwin(environment, 0.3, 0.08), environment)


def test_mbie_has_the_radii_of_the_analysis():
    agent = make_agent("mbie:radii=theory,delta=0.05", CHAIN)
    agent.reset(0)
    for _ in range(10):
        agent.observe(2, 1, 10.0, 3)
    model = agent.machine.state.model
    assert model.width[2, 1] == pytest.approx(1.131099, abs=1e-6)
    assert model.r[2, 1] == pytest.approx(1 + math.sqrt(math.log(40) / 20))
    assert model.r[2, 0] == pytest.approx(20.0)
    large = make_agent("mbie:radii=theory", make_env("garnet:300,1,2"))
    assert large.machine.state.transition_width == pytest.approx(math.sqrt(2 * (300 * math.log(2) - math.log(0.05))))


def test_models_too_large_are_refused():
    with pytest.raises(ParameterError, match="needs .* GB"):
        make_agent("mbie", make_env("riverswim:20000"))


def test_an_agent_without_a_prior_says_so():
    with pytest.raises(ParameterError, match="mbie learns no model .* can use no belief"):
        make_agent("mbie", CHAIN, belief=DirichletBelief(5, 2))


def test_the_published_setting_is_a_preset():
    assert canonical_agent("mbie:preset=riverswim") == "mbie:transitions=0.0"
