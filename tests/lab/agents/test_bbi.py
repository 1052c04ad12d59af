"""Bayesian backwards induction: a plain twin, MMBI at one end and the average model at the other."""

import numpy as np
import pytest

from beliefbound import FiniteBelief, mmbi
from beliefbound.kernels.random import uniform
from beliefbound.lab.agents import make_agent
from support.coin import coin
from support.environments import CHAIN, ENVIRONMENTS
from support.every_agent import EveryAgent

COIN, BELIEF = coin()


class TestBbi(EveryAgent):
    name = "bbi"
    small = "bbi:n=4,horizon=10"
    variants = ("bbi:n=3,bandwidth=0,horizon=8", "bbi:n=3,horizon=5,schedule=posterior")
    mistakes = (("bbi:n=0", "n is 0"), ("bbi:bandwidth=-1", "bandwidth is -1"))


def planned(spec, environment, **knobs):
    agent = make_agent(spec, environment, **knobs)
    agent.reset(3)
    agent.act(0)
    return agent.machine.state


def by_the_book(p, r, discount, horizon, bandwidth, stream, available):
    """The induction from its description: `p[m,s,a,t]`, `r[m,s,a]`; values `[j,s]`, and the first stage's actions."""
    n, S, A, _ = p.shape
    v, u, model = np.zeros((n, S)), np.zeros((n, S)), np.arange(n)
    for stage in range(horizon):
        if stage > 0:
            sigma = np.sqrt(u.var(axis=0).sum())
            for j in range(n):
                distance = ((v[j] - u) ** 2).sum(axis=1)
                model[j] = distance.argmin() if distance.min() < distance[model[j]] else model[j]
                if bandwidth * sigma > 0.0:
                    weights = np.exp((distance.min() - distance) / (2 * (bandwidth * sigma) ** 2))
                    model[j] = min(np.searchsorted(np.cumsum(weights), uniform(stream) * weights.sum(), "right"), n - 1)
        q = r[model] + discount * np.einsum("jsat,jt->jsa", p[model], v)
        actions = np.where(available, q.sum(axis=0), -np.inf).argmax(axis=1)
        own = r + discount * np.einsum("msat,mt->msa", p, u)
        v, u = q[:, np.arange(S), actions], own[:, np.arange(S), actions]
    return v, u, actions


@pytest.mark.parametrize("name", ["chain", "partial"])
def test_a_plan_equals_its_twin(name):
    environment = ENVIRONMENTS.get(name, CHAIN)
    agent = make_agent("bbi:n=6,horizon=12,bandwidth=0.7,discount=0.9", environment)
    agent.reset(5)
    again = make_agent("mcbrl:n=6,discount=0.9", environment)  # draws the same models from the same stream
    again.reset(5)
    agent.act(0)
    again.act(0)
    models = agent.machine.state.core.models
    p, r = np.moveaxis(models.p, 3, 0), np.moveaxis(models.r, 2, 0)
    v, u, actions = by_the_book(p, r, 0.9, 12, 0.7, again.machine.state.stream.copy(), environment.mdp.available)
    ensemble = agent.machine.state.ensemble
    np.testing.assert_allclose(ensemble.v.T, v, rtol=1e-9)
    np.testing.assert_allclose(ensemble.u.T, u, rtol=1e-9)
    assert ensemble.actions.tolist() == actions.tolist()


def test_without_bandwidth_it_is_mmbi_on_the_models_drawn():
    state = planned("bbi:n=12,bandwidth=0,horizon=30,discount=0.95", CHAIN)
    models, ensemble = state.core.models, state.ensemble
    p, r = np.moveaxis(models.p, 3, 0), np.moveaxis(models.r, 2, 0)
    belief = FiniteBelief(np.ascontiguousarray(p), np.ascontiguousarray(r), reward_signal="unobserved")
    plan = mmbi(belief, discount=0.95, horizon=30)
    assert ensemble.actions.tolist() == np.array(plan.policy.actions)[0].tolist()
    np.testing.assert_array_equal(ensemble.v, ensemble.u)
    assert ensemble.v.mean(axis=1) == pytest.approx(np.array(plan.values), rel=1e-9)


def test_with_a_wide_one_it_is_backwards_induction_on_their_average():
    """1500 values whose models are drawn anew at each of four stages. False alarms: 6e-5 a state."""
    state = planned("bbi:n=1500,bandwidth=1e9,horizon=4,discount=0.95", CHAIN)
    models, ensemble = state.core.models, state.ensemble
    p, r, v = models.p.mean(axis=3), models.r.mean(axis=2), np.zeros(5)
    for _ in range(4):
        v = (r + 0.95 * p @ v).max(axis=1)
    off = np.abs(ensemble.v.mean(axis=1) - v)
    assert (off < 4 * ensemble.v.std(axis=1) / np.sqrt(1500) + 1e-12).all()


def test_a_plan_does_not_know_that_it_will_learn():
    """On the coin it is worth what the better action earns on average, and not what learning would add."""
    state = planned("bbi:n=400,bandwidth=0,horizon=4", COIN, belief=BELIEF)
    value = state.ensemble.v.mean(axis=1)[0]
    theta = state.core.models.p[0, 0, 1].mean()
    assert value == pytest.approx((0.95 + 0.95**3) * max(theta, 0.5), rel=1e-9)
