"""Hypotheses drawn once a run: plans that learn, and weights as of finite beliefs."""

import contextlib

import numpy as np
import pytest

from beliefbound import BetaRewards, DirichletBelief, DirichletRewards, FiniteBelief, KnownRewards
from beliefbound.base.errors import ObservationError
from beliefbound.kernels.graph.alpha import look_below
from beliefbound.lab.agents import make_agent
from beliefbound.lab.agents.hypotheses import best_action, planned, reweigh
from support.coin import coin
from support.every_agent import EveryAgent
from support.structured_priors import PRIORS, check_structured_prior

COIN, BELIEF = coin()


class TestHypotheses(EveryAgent):
    name = "hypotheses"
    small = "hypotheses:n=4,beliefs=8,rounds=1"
    mistakes = (("hypotheses:n=0", "n is 0"),)


def two_coins(discount=0.95, most=200):
    """COIN with θ ¼ or ¾: a belief is the wins minus the losses, and value iteration is exact. `(V, Q[k=0])`."""
    k = np.arange(-most, most + 1)
    chance = 1 / (1 + 3.0 ** -np.clip(k, -500, 500).astype(float))
    win = 0.25 + 0.5 * chance
    v = np.zeros(len(k))
    for _ in range(3000):
        up, down = np.append(v[1:], v[-1]), np.append(v[0], v[:-1])
        toss = discount * (win * (1 + discount * up) + (1 - win) * discount * down)
        safe = discount * (0.5 + discount * v)
        v = np.maximum(toss, safe)
    return v[most], np.array([toss[most], safe[most]])


def test_hypotheses_plan_for_learning_and_weigh_what_they_see():
    models = FiniteBelief.from_mdps([coin(theta)[0].mdp for theta in (0.25, 0.75)])
    state = planned(models, np.array(COIN.start), 0.95, 200, 4, np.random.default_rng(0))
    _, exact = two_coins()
    weights = state.weights
    given = (state.models, state.vectors, 0)
    values = np.array([look_below(*given, a, weights, state.likely, state.chosen) for a in (0, 1)])
    assert (values <= exact + 1e-9).all()  # vectors are values of policies
    np.testing.assert_allclose(values, exact, atol=2e-3)
    assert best_action(state.models, state.vectors, weights, state.likely, state.chosen, 0) == 0
    reweigh(state.models, weights, state.likely, 0, 0, 0.0, 1)
    np.testing.assert_allclose(weights, [0.25, 0.75])
    reweigh(state.models, weights, state.likely, 1, 0, 1.0, 0)
    reweigh(state.models, weights, state.likely, 0, 0, 0.0, 3)  # tossing never leads to H: nobody explains it
    np.testing.assert_allclose(weights, [0.25, 0.75])
    short = 0.95 / 2 + 0.95**3 * 0.5625  # four decisions, by hand: forever is worth more
    assert exact[0] > short


def test_hypotheses_are_drawn_from_the_prior_once_a_run():
    agent = make_agent("hypotheses:n=400,beliefs=1,rounds=1", COIN, belief=BELIEF)
    agent.reset(1)
    state = agent.machine.state
    rows = state.models.first[0, 1] - state.models.first[0, 0]
    won = int(np.flatnonzero(state.models.arrive[:rows] == 1)[0])
    theta = state.models.like[: 400 * state.models.first[0, -1]].reshape(400, -1)[:, won]
    assert abs(theta.mean() - 0.5) < 4 * np.sqrt(1 / 12 / 400)  # false alarms: 6e-5
    before = state.models.like.copy()
    agent.observe(0, 0, 0.0, 1)
    np.testing.assert_array_equal(agent.machine.state.models.like, before)
    np.testing.assert_allclose(state.weights, theta / theta.sum())


@pytest.mark.parametrize(
    "rewards",
    [
        BetaRewards(1.0, 1.0, low=-1.0, high=3.0),
        DirichletRewards([-1.0, 0.5, 3.0]),
        KnownRewards(np.array([[0.0, 3.0], [1.0, -1.0]])),
    ],
)
def test_hypotheses_weigh_what_they_see_as_finite_beliefs_do(rewards):
    belief = DirichletBelief(2, 2, concentration=[[[1.0, 1.0], [1.0, 0.0]], [[0.5, 2.0], [1.0, 1.0]]], rewards=rewards)
    rng = np.random.default_rng(3)
    hypotheses = belief.sample(6, rng)
    state = planned(hypotheses, np.array([0.5, 0.5]), 0.9, 4, 1, rng)
    seen = [(0, 0, -1.0, 1), (1, 1, 3.0, 0), (0, 1, 0.5, 0), (1, 0, -1.0, 0), (0, 1, 3.0, 1), (0, 0, 7.0, 0)]
    for s, a, r, t in seen:
        reweigh(state.models, state.weights, state.likely, s, a, r, t)
        with contextlib.suppress(ObservationError):  # nobody explains it: the weights stay
            hypotheses = hypotheses.update(s, a, r, t)
        np.testing.assert_allclose(state.weights, hypotheses.weights, rtol=1e-12)
    assert np.ptp(state.weights) > 0.01


@pytest.mark.parametrize("prior", PRIORS)
def test_structured_priors_are_learnt_from(prior):
    check_structured_prior("hypotheses:n=4,beliefs=8,rounds=1", prior)
