"""SEM: a plain twin, one pull on two models, and a value that never falls."""

from dataclasses import replace

import numpy as np
import pytest

from beliefbound.base.errors import ParameterError
from beliefbound.lab.agents import make_agent
from beliefbound.lab.agents.common.em import trajectories_for
from beliefbound.lab.agents.sem import improve_on
from beliefbound.lab.engine.protocol import setting_of
from beliefbound.lab.envs import make_env
from support.coin import coin
from support.em_agents import COMMON, TEXT, check_em_on_a_known_model, follow_em
from support.em_twins import SemTwin, gains
from support.environments import CHAIN
from support.every_agent import EveryAgent


class TestSem(EveryAgent):
    name = "sem"
    mistakes = (
        ("sem:n=4", "n has no effect with estimate=point"),
        ("sem:estimate=mode", "give one of point, sampled"),
        ("sem:horizon=0", "horizon is 0"),
    )


@pytest.mark.parametrize(
    ("name", "extra"),
    [(f"sem:{TEXT}", {}), (f"sem:estimate=sampled,n=3,{TEXT},floor=0.1", {"n": 3, "floor": 0.1})],
)
def test_it_equals_its_twin_step_by_step(name, extra):
    follow_em(name, SemTwin(CHAIN, **extra, **COMMON))


def test_em_on_two_models_weighs_actions_by_their_mean_value():
    """One pull: `safe` is worth ½, `coin` .2 or .9. From the uniform policy, π' is ½ to .55."""
    environment, _ = coin()
    values = {"horizon": 2, "interval": 1, "iterations": 1, "floor": 0.0}
    trajectories = trajectories_for(replace(setting_of(environment, 0.5), discount=1.0), values)
    trajectories.policy[:] = 0.5
    p = np.stack([coin(theta)[0].mdp.transitions for theta in (0.2, 0.9)], axis=-1)
    r = np.stack([environment.mdp.rewards] * 2, axis=-1)
    improve_on(trajectories, p, r, 0)
    np.testing.assert_allclose(trajectories.policy[0], [11 / 21, 10 / 21], rtol=1e-14)


def test_the_value_never_falls_under_em():
    rng = np.random.default_rng(2)
    p, r = rng.dirichlet(np.ones(4), size=(5, 4, 3)), rng.random((5, 4, 3))
    environment = make_env("garnet:4,3,2")
    planning = {"horizon": 12, "interval": 1, "iterations": 1, "floor": 0.0}
    trajectories = trajectories_for(replace(setting_of(environment, 0.9), available=np.ones((4, 3), bool)), planning)
    trajectories.policy[:] = rng.dirichlet(np.ones(3), size=4)
    models_last = [np.ascontiguousarray(np.moveaxis(x, 0, -1)) for x in (p, r)]
    values = []
    for _ in range(60):
        each = [gains(trajectories.policy, [x] * 12, [y] * 12, 1, 0.9)[0] for x, y in zip(p, r, strict=True)]
        values.append(np.mean(each))
        improve_on(trajectories, *models_last, 1)
    assert (np.diff(values) >= -1e-12).all()
    assert values[-1] > 1.05 * values[0]


def test_on_a_known_model_it_is_em():
    check_em_on_a_known_model("sem")


def test_what_does_not_fit_in_memory_is_refused():
    with pytest.raises(ParameterError, match="n is 100000: .* GB; take fewer"):
        make_agent("sem:estimate=sampled,n=100000", make_env("garnet:300,3,2"))
