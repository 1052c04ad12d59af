"""UCRL2 and UCRL2B: published radii, a plain twin, episodes that double."""

import numpy as np
import pytest
from scipy.optimize import linprog

from beliefbound.base.errors import ParameterError
from beliefbound.kernels.planning.optimism import best_in_box
from beliefbound.lab.agents import make_agent
from beliefbound.lab.agents.ucrl2 import EPISODES, radii
from beliefbound.lab.envs import make_env
from support.environments import ENVIRONMENTS, arms
from support.every_agent import EveryAgent
from support.following import follow
from support.optimism_twins import UcrlTwin
from support.optimists import earned_on_riverswim


class TestUcrl2(EveryAgent):
    name = "ucrl2"
    variants = ("ucrl2:radii=bernstein",)
    mistakes = (
        ("ucrl2:radii=bernstein,scale=0", "scale is 0"),
        ("ucrl2:delta=2", "delta is 2.0"),
        ("ucrl2:discount=0.9", "ucrl2 has no 'discount'"),
    )


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


def test_ucrl2b_reads_its_radii_into_the_model():
    """From the formulas: 999 tries of one pair, a tenth of them to the right."""
    agent = make_agent("ucrl2:radii=bernstein,scale=0.5", ENVIRONMENTS["riverswim"])
    agent.reset(0)
    for k in range(999):
        agent.observe(0, 0, 0.005, int(k % 10 == 0))
    agent.act(0)
    model, log = agent.machine.state.model, np.log(6 * 6 * 2 * 999 / 0.05)
    assert model.width[0, 0] == pytest.approx(log / 999)
    mean = 0.005
    assert model.r[0, 0] == pytest.approx(mean + np.sqrt(mean * (1 - mean) * log / 999) + 3 * log / 999)
    assert 0.5 * 6 * model.width[1, 0] == pytest.approx(1.0)  # never tried: anywhere


@pytest.mark.parametrize("environment", ["riverswim", "partial"])
@pytest.mark.parametrize(("radii", "scale"), [("hoeffding", 0.05), ("bernstein", 0.05), ("bernstein", 0.2)])
def test_it_equals_its_twin_step_by_step(radii, scale, environment):
    place = ENVIRONMENTS[environment]
    agent = make_agent(f"ucrl2:radii={radii},scale={scale}", place)
    follow(agent, place, 200, twin=UcrlTwin(place, scale=scale, bernstein=radii == "bernstein"))
    assert agent.machine.state.clock[EPISODES] > 10


def test_the_best_of_a_box_is_that_of_a_linear_programme():
    rng = np.random.default_rng(4)
    for _ in range(50):
        n = int(rng.integers(2, 7))
        p, v, w = rng.dirichlet(np.full(n, 0.5)), rng.normal(size=n), rng.choice([1e-4, 1e-2, 0.05, 0.3])
        reach = 0.7 * (2 * np.sqrt(p * (1 - p) * w) + 6 * w)
        sides = np.column_stack([np.maximum(0.0, p - reach), np.minimum(1.0, p + reach)])
        best = linprog(-v, A_eq=np.ones((1, n)), b_eq=[1.0], bounds=sides)
        found = best_in_box(p, v, np.argsort(v), w, 0.7)
        assert found == pytest.approx(-best.fun, abs=1e-9)


@pytest.mark.parametrize("name", ["ucrl2:scale=0.05", "ucrl2:radii=bernstein,scale=0.05"])
def test_it_reaches_riverswims_prize(name):
    assert earned_on_riverswim(name) > 1200


def test_models_too_large_are_refused():
    with pytest.raises(ParameterError, match="needs .* GB"):
        make_agent("ucrl2", make_env("riverswim:20000"))
