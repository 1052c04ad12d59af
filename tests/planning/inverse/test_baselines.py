"""The classic alternatives: facts that their papers prove."""

import numpy as np
import pytest

import beliefbound as bb
from beliefbound.base.errors import ModelError, ParameterError
from beliefbound.planning.inverse.imitation import imitation
from beliefbound.planning.inverse.ng_russell import ng_russell
from beliefbound.planning.inverse.projection import expected_features, projection


def world(seed, S=6, A=3):
    rng = np.random.default_rng(seed)
    return rng, rng.dirichlet(np.full(S, 0.4), size=(S, A))


@pytest.mark.parametrize("seed", range(8))
def test_the_policy_is_optimal_for_ng_and_russells_reward(seed):
    """And by a margin: for any policy that is the only best one of some reward."""
    rng, p = world(seed)
    best = bb.policy_iteration(bb.MDP(p, np.repeat(rng.random(6)[:, None], 3, axis=1)), discount=0.9)
    policy = best.policy.actions if seed % 2 else rng.integers(0, 3, 6)
    r = ng_russell(p, policy, discount=0.9, penalty=0.1 * (seed % 3))
    assert np.abs(r).max() <= 1.0 + 1e-9
    mdp = bb.MDP(p, np.repeat(r[:, None], 3, axis=1))
    own = bb.evaluate(bb.StationaryPolicy(policy), mdp, discount=0.9)
    np.testing.assert_allclose(own, bb.policy_iteration(mdp, discount=0.9).values, atol=1e-6)
    if seed % 2 and seed % 3 == 0:
        assert np.abs(r).max() > 0.5  # not the reward that makes every policy optimal


def test_ng_and_russells_margin_is_the_largest_on_a_grid():
    """Two states: no reward of a fine grid that makes the policy optimal has a larger sum of margins."""
    p = np.array([[[0.8, 0.2], [0.3, 0.7]], [[0.6, 0.4], [0.1, 0.9]]])
    policy = np.array([1, 1])
    own = p[[0, 1], policy]
    gains = (own - p[[0, 1], 1 - policy]) @ np.linalg.inv(np.eye(2) - 0.9 * own)
    grid = np.linspace(-1.0, 1.0, 81)
    rewards = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
    for penalty in (0.0, 0.3, 5.0):
        r = ng_russell(p, policy, discount=0.9, penalty=penalty)
        score = (rewards @ gains.T).sum(axis=1) - penalty * np.abs(rewards).sum(axis=1)
        score[(rewards @ gains.T < 0.0).any(axis=1)] = -np.inf
        assert (gains @ r).sum() - penalty * np.abs(r).sum() >= score.max() - 1e-9


@pytest.mark.parametrize("seed", range(6))
def test_projection_reaches_the_demonstrators_features_and_its_margin_never_grows(seed):
    rng, p = world(seed)
    features = rng.random((6, 3, 4)) if seed % 2 else rng.random((6, 4))
    mdp = bb.MDP(p, np.zeros((6, 3)), initial=0)
    expert = bb.StationaryPolicy(probabilities=rng.dirichlet(np.ones(3), size=6))
    aim = expected_features(mdp, expert, features, discount=0.9)
    found = projection(mdp, features, aim, discount=0.9, epsilon=1e-2, rounds=5000)
    assert found.margins[-1] <= 1e-2
    assert (np.diff(found.margins) <= 1e-12).all()
    assert found.shares.sum() == pytest.approx(1.0)
    assert (found.shares >= 0.0).all()
    each = [expected_features(mdp, policy, features, discount=0.9) for policy in found.policies]
    np.testing.assert_allclose(found.shares @ np.stack(each), found.features, atol=1e-9)
    w = rng.normal(size=4)
    w /= np.linalg.norm(w)  # what they want, whatever it is
    assert abs(w @ (found.features - aim)) <= 1e-2


def test_features_out_of_reach_end_the_projection():
    _, p = world(1)
    found = projection(bb.MDP(p, np.zeros((6, 3)), initial=0), np.ones((6, 1)), [50.0], discount=0.9)
    assert found.margins.tolist() == pytest.approx([40.0])  # every policy has 1/(1 − γ) of it


def test_expected_features_are_values_of_rewards():
    rng, p = world(3)
    features, policy = rng.random((6, 3, 2)), bb.StationaryPolicy(probabilities=rng.dirichlet(np.ones(3), size=6))
    mean = expected_features(bb.MDP(p, np.zeros((6, 3)), initial=2), policy, features, discount=0.9)
    for f in range(2):
        assert mean[f] == pytest.approx(bb.evaluate(policy, bb.MDP(p, features[..., f]), discount=0.9)[2])


def test_imitation_does_what_was_done_most():
    assert imitation(np.array([[0, 2, 1], [0, 0, 0], [3, 3, 1]])).actions.tolist() == [1, 0, 0]


def test_wrong_calls_are_refused():
    _, p = world(0)
    with pytest.raises(ModelError, match="shape"):
        ng_russell(p[0], [0] * 6, discount=0.9)
    with pytest.raises(ParameterError, match="policy"):
        ng_russell(p, [0] * 5, discount=0.9)
    with pytest.raises(ParameterError, match="demonstrated"):
        projection(bb.MDP(p, np.zeros((6, 3))), np.ones((6, 2)), [1.0], discount=0.9)
    with pytest.raises(ParameterError, match="features have shape"):
        projection(bb.MDP(p, np.zeros((6, 3))), np.ones((5, 2)), [1.0, 1.0], discount=0.9)
