"""Bayesian Q-learning, VPI over sampled models, the PAC-Bayes hybrid: twins, closed forms and numerical integrals."""

import math

import numpy as np
import pytest
from scipy import integrate, stats

from beliefbound import MDP, BetaRewards, DirichletBelief, DirichletRewards, KnownRewards, policy_iteration
from beliefbound.agents import make_agent
from beliefbound.agents.bayes_q import gain, mixture_update, moment_update
from beliefbound.agents.pac_bayes import BAYES, CHOSEN, EMPIRICAL, PRIOR_ONLY, slack
from beliefbound.agents.vpi import DRAWS, DUE, value_information
from beliefbound.envs import environment_from_mdp, make_env
from beliefbound.errors import BeliefError, ParameterError
from beliefbound.kernels.actions import action_lists
from beliefbound.kernels.outcomes import begin, step
from beliefbound.kernels.play import agent_stream, environment_stream
from beliefbound.kernels.random import uniform
from support.coin import coin
from support.sampling_twins import BayesQTwin, mixture

CHAIN = make_env("chain")
LAWS = [
    ((0.0, 1.0, 2.0, 1.0), (0.0, 1.0, 2.0, 1.0)),
    ((3.0, 0.1, 1.05, 5.0), (0.0, 0.1, 1.05, 5.0)),
    ((3.0, 10.0, 6.0, 2.0), (5.0, 0.1, 1.05, 5.0)),
    ((3.0, 100.0, 60.0, 20.0), (5.0, 30.0, 20.0, 50.0)),
    ((3.0, 100.0, 60.0, 0.2), (5.0, 300.0, 200.0, 1.0)),
    ((3.0, 100.0, 60.0, 0.02), (5.0, 0.1, 1.1, 50.0)),
]


def play_by_hand(agent, environment, steps, twin=None, each=None):
    luck = environment_stream(5, 1)
    agent.reset(agent_stream(5, 0, 1))
    if twin is not None:
        twin.reset(5, 0, 1)
    s = int(begin(environment.outcomes, uniform(luck)))
    for k in range(steps):
        a = agent.act(s)
        assert twin is None or a == twin.act(s), f"step {k}"
        r, t = step(environment.outcomes, s, a, uniform(luck))
        agent.observe(s, a, r, t)
        if twin is not None:
            twin.observe(s, a, r, t)
        if each is not None:
            each(s, a, r, int(t))
        s = int(t)


@pytest.mark.parametrize("choose", ["vpi", "sample"])
@pytest.mark.parametrize("update", ["moment", "mixture"])
def test_bayesian_q_learning_equals_its_twin_step_by_step(choose, update):
    prior = (2.0, 0.5, 1.5, 0.5 * 36.0)  # .1 and .3 of the largest return, 20
    agent = make_agent(f"bayes-q:choose={choose},update={update},optimism=.1,strength=.5,shape=1.5,deviation=.3", CHAIN)
    twin = BayesQTwin(CHAIN, choose, update, prior)
    play_by_hand(agent, CHAIN, 40, twin)
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


def test_information_over_samples_by_hand():
    """Values 0 and 1 of one action against .6: the first is worth .5 + .2, the second .6 + 0."""
    mean, worth = np.zeros(2), np.zeros(2)
    q = np.array([[0.0, 1.0], [0.6, 0.6]])
    value_information(action_lists(np.ones((1, 2), bool)), q, np.array([0.5, 0.5]), 0, mean, worth)
    assert mean == pytest.approx([0.5, 0.6])
    assert worth == pytest.approx([0.7, 0.6])


def test_information_over_many_samples_is_its_integral():
    """Normal values: E (X − b)⁺ = σ (φ(z) − z (1 − Φ(z))), z = (b − μ) / σ."""
    rng = np.random.default_rng(0)
    q = np.stack([rng.normal(1.0, 0.5, 40_000), rng.normal(0.7, 1.5, 40_000), rng.normal(-1.0, 0.1, 40_000)])
    mean, worth = np.zeros(3), np.zeros(3)
    value_information(action_lists(np.ones((1, 3), bool)), q, np.full(40_000, 1 / 40_000), 0, mean, worth)
    expected = []
    for mu, sigma, other in ((1.0, 0.5, -0.7), (0.7, 1.5, 1.0), (-1.0, 0.1, 1.0)):  # the first mirrored: it leads
        mu = -mu if other == -0.7 else mu
        z = (other - mu) / sigma
        expected.append(sigma * (stats.norm.pdf(z) - z * stats.norm.sf(z)))
    np.testing.assert_allclose(worth - mean, expected, atol=0.02)


@pytest.mark.parametrize("variant", ["global", "importance", "repair", "local"])
def test_only_the_coin_has_information_to_give(variant):
    """A tie in the mean, and `safe` is known: whatever the models, the coin is tried; and dropped when it is bad."""
    environment, belief = coin(chance=0.1)
    agent = make_agent(f"vpi:k=12,variant={variant}", environment, belief=belief, discount=0.95)
    for seed in range(20):
        agent.reset(seed)
        assert agent.act(0) == 0
    for _ in range(12):
        agent.observe(0, 0, 0.0, 2)
        agent.act(2)
        agent.observe(2, 0, 0.0, 0)
        action = agent.act(0)
    assert action == 1


def test_weights_are_the_probabilities_of_what_was_seen():
    agent = make_agent("vpi:k=6,variant=importance", CHAIN)
    agent.reset(3)
    agent.act(0)
    state = agent.machine.state
    p, chance = state.models.p[0, 1, 1].copy(), state.models.r[0, 1].copy()
    agent.observe(0, 1, 2.0, 1)  # a scaled reward of .2 counts as .2 of a success
    expected = p * chance**0.2 * (1 - chance) ** 0.8
    expected /= expected.sum()
    if state.clock[DUE] == 0:
        np.testing.assert_allclose(state.weights, expected, rtol=1e-12)
    assert (state.clock[DUE] == 1) == (1 / (expected**2).sum() < 3)
    agent.act(1)
    assert state.clock[DRAWS] == 1 + (1 / (expected**2).sum() < 3)


@pytest.mark.parametrize("seed", range(3))
def test_repaired_models_have_the_values_of_solved_ones(seed):
    """With backups enough: optimal values of the models as they are, and rows of the present posterior."""
    agent = make_agent("vpi:k=4,variant=repair,backups=100000,tolerance=1e-12", CHAIN, discount=0.8)
    agent.reset(seed)
    agent.act(0)
    state = agent.machine.state
    for s, a, r, t in ((0, 1, 0.0, 1), (1, 1, 0.0, 2), (0, 0, 2.0, 0)):
        before = state.models.p.copy()
        agent.observe(s, a, r, t)
        changed = (state.models.p != before).any(axis=(2, 3))
        assert np.argwhere(changed).tolist() == [[s, a]]
        for m in range(4):
            plan = policy_iteration(MDP(state.models.p[..., m], state.models.r[..., m]), discount=0.8)
            np.testing.assert_allclose(state.models.v[:, m], plan.values, atol=1e-9)
    assert state.clock[DRAWS] == 1


def test_repaired_rows_are_draws_from_the_posterior():
    environment, belief = coin()
    agent = make_agent("vpi:k=4000,variant=repair,backups=1", environment, belief=belief)
    agent.reset(1)
    agent.act(0)
    for t in (1, 1, 2):
        agent.observe(0, 0, 0.0, t)
    chances = agent.machine.state.models.p[0, 0, 1]  # Beta(3, 2)
    assert stats.kstest(chances, stats.beta(3, 2).cdf).pvalue > 1e-4


def test_importance_needs_the_chances_of_rewards():
    values, counts = np.tile([0.0, 2.0, 10.0], (5, 2, 1)), np.ones((5, 2, 3))
    belief = DirichletBelief(5, 2, rewards=DirichletRewards(values, counts))
    with pytest.raises(BeliefError, match="3 reward values.*take variant=global"):
        make_agent("vpi:variant=importance", CHAIN, belief=belief)
    agent = make_agent("vpi:k=3,variant=repair", CHAIN, belief=belief)
    play_by_hand(agent, CHAIN, 20)


def test_the_slack_of_the_bound():
    assert slack(101, 1, 0.0, 0.05) == pytest.approx(0.2116, abs=1e-4)


def misled():
    """Two states; the prior is sure that action 0 pays, in truth action 1 does."""
    p = np.zeros((2, 2, 2))
    p[:, 0, 0], p[:, 1, 1] = 1.0, 1.0
    environment = environment_from_mdp(MDP(p, [[0.0, 0.0], [1.0, 1.0]], initial=0), name="two")
    wrong = np.array([[[1.0, 3000.0], [3000.0, 1.0]]] * 2)
    return environment, DirichletBelief(2, 2, concentration=wrong, rewards=KnownRewards(environment.mdp.rewards))


def test_a_misleading_prior_is_dropped_in_the_end():
    environment, belief = misled()
    agent = make_agent("pac-bayes:epsilon=0.0,spread=0.05", environment, belief=belief, discount=0.5)
    agent.reset(0)
    state = agent.machine.state
    assert agent.act(0) == 0  # the prior's policy
    rng = np.random.default_rng(0)
    chosen = []
    for _ in range(6000):
        s, a = rng.integers(2, size=2)
        agent.observe(int(s), int(a), float(s), int(a))
        agent.act(0)
        chosen.append(int(state.clock[CHOSEN]))
    assert chosen[0] == BAYES
    assert chosen[-1] == EMPIRICAL
    assert agent.act(0) == 1
    assert state.bounds[EMPIRICAL] < state.bounds[BAYES] <= state.bounds[PRIOR_ONLY] <= 2.0


def test_a_good_prior_is_kept():
    """A fair coin and a prior that says so: data are noise, far from the prior in its own units."""
    environment, belief = coin(heads=1000.0, tails=1000.0)
    agent = make_agent("pac-bayes:epsilon=0.0,spread=0.001", environment, belief=belief, discount=0.95)
    agent.reset(0)
    rng = np.random.default_rng(0)
    for _ in range(200):
        for s in range(4):
            for a in range(2):
                agent.observe(
                    s, a, float(environment.mdp.rewards[s, a]), int(rng.choice(4, p=environment.mdp.transitions[s, a]))
                )
        agent.act(0)
    state = agent.machine.state
    assert state.clock[CHOSEN] != EMPIRICAL
    assert state.bounds[state.clock[CHOSEN]] < state.bounds[EMPIRICAL] <= 20.0


def test_candidates_of_pac_bayes_are_the_optimal_values_of_their_models():
    belief = DirichletBelief(5, 2, rewards=BetaRewards(low=0.0, high=10.0))
    agent, seen = make_agent("pac-bayes:epsilon=1", CHAIN), []
    play_by_hand(agent, CHAIN, 64, each=lambda *transition: seen.append(transition))
    agent.machine.state.clock[0] = 1
    agent.act(0)
    models = agent.machine.state.models
    posterior = belief.update(*map(np.array, zip(*seen, strict=True)))
    for candidate, mdp in ((BAYES, posterior.mean()), (PRIOR_ONLY, belief.mean())):
        values = policy_iteration(mdp, discount=0.95).values / 10.0
        np.testing.assert_allclose(models.v[:, candidate], values, rtol=1e-9)
    visits, arrivals = agent.machine.state.counts.visits, agent.machine.state.counts.arrivals
    tried = visits > 0
    frequencies = arrivals / np.maximum(1, visits)[..., None]
    target = agent.machine.state.counts.rewards / np.maximum(1, visits) + 0.95 * frequencies @ models.v[:, EMPIRICAL]
    q = models.q[:, EMPIRICAL].reshape(5, 2)
    np.testing.assert_allclose(q[tried], target[tried], rtol=1e-9)
    np.testing.assert_allclose(q[~tried], models.q[:, PRIOR_ONLY].reshape(5, 2)[~tried], rtol=1e-9)
