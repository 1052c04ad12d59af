"""AMP-EM: a plain twin, the facts of the coin, and sites that match moments."""

import numpy as np
import pytest

from beliefbound.base.errors import ParameterError
from beliefbound.lab.agents import make_agent
from beliefbound.lab.agents.amp_em import match, plan, run_trajectories
from beliefbound.lab.envs import make_env
from support.em_agents import COMMON, TEXT, check_em_on_a_known_model, follow_em, on_coin, told_of_a_slip
from support.em_twins import AmpTwin, matched
from support.environments import CHAIN
from support.every_agent import EveryAgent


class TestAmpEm(EveryAgent):
    name = "amp-em"
    mistakes = (("amp-em:damping=0", "damping is 0.0; give a number above 0"), ("amp-em:floor=2", "floor is 2.0"))


def test_it_equals_its_twin_step_by_step():
    follow_em(f"amp-em:rounds=2,damping=0.4,{TEXT}", AmpTwin(CHAIN, rounds=2, damping=0.4, **COMMON))


def test_one_pull_is_exact_for_message_passing():
    state = on_coin("amp-em:horizon=2,iterations=1,damping=1,floor=0", policy=[1.0, 0.0])
    assert run_trajectories(state, 0) == pytest.approx(0.5, abs=1e-14)
    plan(state, 0)
    np.testing.assert_allclose(state.sites[0, 0], [0.0, 1.0, 0.0, 0.0], atol=1e-12)  # Beta(1, 1) to Beta(2, 1)
    assert run_trajectories(state, 0) == pytest.approx(0.5, abs=1e-14)  # the cavity of the only pull is the prior


def test_a_transition_that_pays_on_arrival_is_told_by_its_reward():
    """Beta(1, 1) becomes Beta(1, 2)."""
    np.testing.assert_allclose(told_of_a_slip("amp-em:damping=1", plan).sites[0, 0], [0.0, 1.0], atol=1e-12)


def test_sites_have_the_moments_of_the_mixture():
    rng = np.random.default_rng(5)
    for _ in range(5):
        c, w, site = rng.gamma(1.0, size=4), 0.2 * rng.dirichlet(np.ones(4)), np.zeros(4)
        match(c, w, site, 1.0)
        np.testing.assert_allclose(site, matched(c, w), rtol=1e-9)
    site = np.array([3.0, 1.0])
    match(np.array([2.0, 5.0]), np.zeros(2), site, 0.25)  # nothing said: the site fades
    np.testing.assert_allclose(site, [2.25, 0.75])


def test_on_a_known_model_it_is_em():
    check_em_on_a_known_model("amp-em")


def test_what_does_not_fit_in_memory_is_refused():
    with pytest.raises(ParameterError, match="need .* GB; take a shorter one"):
        make_agent("amp-em:horizon=5000", make_env("garnet:300,3,2"))
