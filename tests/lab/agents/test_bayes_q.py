"""Bayesian Q-learning: a plain twin, updates by hand, values of information against integrals."""

import math

import numpy as np
import pytest
from scipy import integrate, stats

from beliefbound import DirichletBelief
from beliefbound.base.errors import ParameterError
from beliefbound.lab.agents import make_agent
from beliefbound.lab.agents.bayes_q import gain, mixture_update, moment_update
from support.environments import CHAIN
from support.every_agent import EveryAgent
from support.following import follow
from support.sampling_twins import BayesQTwin, mixture

LAWS = [
    ((0.0, 1.0, 2.0, 1.0), (0.0, 1.0, 2.0, 1.0)),
    ((3.0, 0.1, 1.05, 5.0), (0.0, 0.1, 1.05, 5.0)),
    ((3.0, 10.0, 6.0, 2.0), (5.0, 0.1, 1.05, 5.0)),
    ((3.0, 100.0, 60.0, 20.0), (5.0, 30.0, 20.0, 50.0)),
    ((3.0, 100.0, 60.0, 0.2), (5.0, 300.0, 200.0, 1.0)),
    ((3.0, 100.0, 60.0, 0.02), (5.0, 0.1, 1.1, 50.0)),
]


class TestBayesQ(EveryAgent):
    name = "bayes-q"
    variants = ("bayes-q:choose=sample,update=moment",)
    mistakes = (("bayes-q:shape=1", "shape is 1.0"), ("bayes-q:prior=flat", "bayes-q has no 'prior'"))


@pytest.mark.parametrize("choose", ["vpi", "sample"])
@pytest.mark.parametrize("update", ["moment", "mixture"])
def test_bayesian_q_learning_equals_its_twin_step_by_step(choose, update):
    prior = (2.0, 0.5, 1.5, 0.5 * 36.0)  # .1 and .3 of the largest return, 20
    agent = make_agent(f"bayes-q:choose={choose},update={update},optimism=.1,strength=.5,shape=1.5,deviation=.3", CHAIN)
    twin = BayesQTwin(CHAIN, choose, update, prior)
    follow(agent, CHAIN, 40, seed=5, twin=twin)
    state = agent.machine.state
    laws = [state.mean, state.strength, state.shape, state.rate]
    for (s, a), law in twin.law.items():
        np.testing.assert_allclose([x[s, a] for x in laws], law, rtol=1e-6)


def test_a_moment_update_by_hand():
    law = (0.0, 1.0, 2.0, 1.0)
    assert moment_update(law, 1.0, 2.62) == pytest.approx((0.5, 2.0, 2.5, 2.06))  # r = 1, γ = .9, E R² = 2
    assert moment_update(law, 1.0, 1.0) == pytest.approx((0.5, 2.0, 2.5, 1.25))  # nothing follows


@pytest.mark.parametrize(("law", "following"), LAWS)
def test_a_mixture_update_has_the_moments_of_the_mixture(law, following):
    found = mixture_update(law, 0.2, 0.95, following)
    np.testing.assert_allclose(found, mixture(law, 0.2, 0.95, following, nodes=2_000_001), rtol=2e-6)


def test_a_mixture_over_a_return_that_is_known_is_one_update():
    law = (1.0, 3.0, 4.0, 2.0)
    found = mixture_update(law, 0.5, 0.9, (2.0, 1e12, 1e9, 1e-9))
    np.testing.assert_allclose(found, moment_update(law, 0.5 + 1.8, (0.5 + 1.8) ** 2), rtol=1e-5)


@pytest.mark.parametrize(
    ("law", "other"), [((0.0, 1.0, 2.0, 1.0), 0.5), ((1.0, 0.1, 1.05, 3.0), 2.0), (LAWS[4][0], 3.1)]
)
def test_the_value_of_information_is_its_integral(law, other):
    mean, strength, shape, rate = law
    belief = stats.t(2 * shape, loc=mean, scale=math.sqrt(rate / (strength * shape)))
    above = integrate.quad(lambda x: (x - other) * belief.pdf(x), other, np.inf)[0]
    assert gain(law, other, False) == pytest.approx(above, rel=1e-6)
    lower = 2 * mean - other  # it leads, `lower` is second
    below = integrate.quad(lambda x: (lower - x) * belief.pdf(x), -np.inf, lower)[0]
    assert gain(law, lower, True) == pytest.approx(below, rel=1e-6)


def test_both_actions_of_two_equal_laws_are_worth_a_sixth_more():
    assert gain((0.0, 1.0, 2.0, 1.0), 0.5, False) == pytest.approx(1 / 6)
    assert gain((0.5, 1.0, 2.0, 1.0), 0.0, True) == pytest.approx(1 / 6)


def test_bayesian_q_learning_uses_no_belief():
    with pytest.raises(ParameterError, match="bayes-q learns no model"):
        make_agent("bayes-q", CHAIN, belief=DirichletBelief(5, 2))
