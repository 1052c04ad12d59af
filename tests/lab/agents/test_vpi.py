"""VPI over sampled models: information by hand and by integrals, weights and repairs against the posterior."""

import numpy as np
import pytest
from scipy import stats

from beliefbound import MDP, DirichletBelief, DirichletRewards, policy_iteration
from beliefbound.base.errors import BeliefError
from beliefbound.kernels.actions import action_lists
from beliefbound.lab.agents import make_agent
from beliefbound.lab.agents.vpi import DRAWS, DUE, value_information
from support.coin import coin
from support.environments import CHAIN
from support.every_agent import EveryAgent
from support.following import follow
from support.sampling_agents import check_tied_rows_come_from_one_draw, check_what_is_ruled_out_stays_out


class TestVpi(EveryAgent):
    name = "vpi"
    variants = ("vpi:k=3,variant=importance", "vpi:k=3,variant=repair", "vpi:k=3,variant=local")
    mistakes = (
        ("vpi:backups=3", "backups has no effect with variant=global"),
        ("vpi:variant=best", "give one of global, importance, repair, local"),
    )


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
    follow(agent, CHAIN, 20)


@pytest.mark.parametrize("name", ["vpi:k=3", "vpi:k=3,variant=repair"])
def test_tied_rows_of_one_model_come_from_one_draw(name):
    check_tied_rows_come_from_one_draw(name)


def test_what_the_belief_rules_out_stays_out():
    check_what_is_ruled_out_stays_out("vpi")
