"""MDPs refuse what is not an MDP, keep dense and sparse alike, and never touch their input."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from beliefbound import MDP, FiniteBelief, backward_induction, policy_iteration
from beliefbound.base.errors import BeliefError, ModelError
from beliefbound.lab.envs import make_env
from support.oracles import random_models


def garnet(seed, n_states=6, n_actions=3):
    p, r, _, p0 = random_models(np.random.default_rng(seed), 1, n_states, n_actions, sparsity=0.5)
    return MDP(p[0], r[0], initial=p0)


P2 = np.array([[[0.5, 0.5], [1.0, 0.0]], [[0.0, 1.0], [0.25, 0.75]]])
R2 = np.array([[0.0, 1.0], [2.0, 3.0]])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda p, r: (p * 0.97, r), r"transitions\[state 0, action 0\] sums to 0\.97, expected 1 .* normalize=True"),
        (
            lambda p, r: (p - 0.6 * (p == 0.5), r),
            r"transitions\[state 0, action 0, next state 0\] is -0\.0999.*negative",
        ),
        (lambda p, r: (np.where(p == 0.25, np.nan, p), r), r"\[state 1, action 1, next state 0\] is nan"),
        (lambda p, r: (p[:, :, :1], r), r"shape \(2, 2, 1\)"),
        (lambda p, r: (p[0], r), r"expected \[state, action, next state\]"),
        (lambda p, r: (p, r[:1]), r"rewards have shape \(1, 2\); expected \[state, action\] = \(2, 2\)"),
        (lambda p, r: (p, np.where(r == 3, np.inf, r)), r"rewards\[state 1, action 1\] is inf"),
        (lambda p, r: ([["a"]], r), "not a rectangular array of numbers"),
    ],
)
def test_bad_arrays_are_named(change, message):
    with pytest.raises(ModelError, match=message):
        MDP(*change(P2, R2))


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"initial": [0.5, 0.4]}, "initial sums to 0.9"),
        ({"initial": [0.5, 0.25, 0.25]}, r"initial has shape \(3,\)"),
        ({"initial": 2}, "initial state is 2; ids run from 0 to 1"),
        ({"states": ["a"]}, "1 state names for 2 states"),
        ({"states": ["a", "a"]}, "'a' is used twice"),
        ({"actions": ["x", "y", "z"]}, "2 actions but 3 action names"),
        ({"available": [[True, True], [False, False]]}, r"available\[state 1\] has no action"),
        ({"available": [True, True]}, r"available has shape \(2,\)"),
    ],
)
def test_bad_keywords_are_named(keywords, message):
    with pytest.raises(ModelError, match=message):
        MDP(P2, R2, **keywords)


def test_sparse_input_is_checked_the_same_way():
    flat = P2.reshape(4, 2)
    with pytest.raises(ModelError, match=r"transitions\[state 1, action 0\] sums to 0\.5"):
        MDP(sp.csr_array(flat * [[1], [1], [0.5], [1]]), R2)
    with pytest.raises(ModelError, match=r"transitions\[state 0, action 0\] has the entry -0\.5"):
        MDP(sp.csr_array(flat * [[-1], [1], [1], [1]]), R2)
    with pytest.raises(ModelError, match="one row per"):
        MDP(sp.csr_array(flat[:3]), R2)
    assert np.allclose(MDP(sp.csr_array(flat * 0.5), R2, normalize=True).transitions.toarray(), flat)


def test_inputs_are_neither_modified_nor_copied_and_the_mdp_is_frozen():
    p, r = P2.copy(), R2.copy()
    mdp = MDP(p, r, normalize=False)
    assert np.shares_memory(mdp.transitions, p)
    assert p.flags.writeable
    assert not mdp.transitions.flags.writeable
    assert np.array_equal(p, P2)
    assert np.array_equal(r, R2)
    with pytest.raises(AttributeError, match="frozen"):
        mdp.initial = None
    matrix = sp.csr_array(P2.reshape(4, 2))
    MDP(matrix, R2)
    matrix.data[0] = 0.5  # the caller's own arrays stay writeable
    FiniteBelief(p[None], r)
    p[0, 0] = [0.1, 0.9]


def test_reward_on_arrival_is_averaged_and_reward_per_state_is_spread():
    arrival = np.arange(8.0).reshape(2, 2, 2)
    assert np.allclose(MDP(P2, arrival).rewards, (P2 * arrival).sum(-1))
    assert MDP(P2, [1.0, 2.0]).rewards.tolist() == [[1.0, 1.0], [2.0, 2.0]]


def test_unavailable_actions_are_never_chosen_even_when_they_pay():
    rewards = np.array([[0.0, 100.0], [1.0, 100.0]])
    p = P2.copy()
    p[:, 1] = 0.0  # rows of unavailable actions may be empty
    mdp = MDP(p, rewards, available=[[True, False], [True, False]])
    for form in (mdp, mdp.to_sparse()):
        assert policy_iteration(form, discount=0.9).policy.actions.tolist() == [0, 0]
        assert backward_induction(form, discount=0.9, horizon=4).policy.actions.max() == 0


@given(seed=st.integers(0, 10**6), horizon=st.integers(1, 12))
@settings(max_examples=30)
def test_sparse_equals_dense_and_relabelling_changes_nothing(seed, horizon):
    mdp = garnet(seed)
    dense = backward_induction(mdp, discount=0.9, horizon=horizon)
    sparse = backward_induction(mdp.to_sparse(), discount=0.9, horizon=horizon)
    assert np.allclose(dense.values, sparse.values, atol=1e-12)
    assert np.array_equal(mdp.to_sparse().to_dense().transitions, mdp.transitions)
    order = np.random.default_rng(seed).permutation(mdp.n_states)
    moved = backward_induction(mdp.relabel(order), discount=0.9, horizon=horizon)
    assert np.allclose(moved.values, dense.values[order], atol=1e-12)
    assert np.array_equal(moved.policy.actions, dense.policy.actions[:, order])


def test_a_belief_names_the_model_too():
    p = np.stack([P2, P2])
    short = p.copy()
    short[1, 0, 1] *= 0.5
    with pytest.raises(BeliefError, match=r"transitions\[model 1, state 0, action 1\] sums to 0\.5"):
        FiniteBelief(short, R2)
    with pytest.raises(BeliefError, match="weights sums to 0.9"):
        FiniteBelief(p, R2, [0.5, 0.4])
    with pytest.raises(BeliefError, match=r"weights\[model 0\] is -0.5"):
        FiniteBelief(p, R2, [-0.5, 1.5])
    with pytest.raises(BeliefError, match=r"weights have shape \(3,\)"):
        FiniteBelief(p, R2, [0.2, 0.2, 0.6])
    with pytest.raises(BeliefError, match=r"rewards\[model 1, state 0, action 0\] is 5.0 but model 0 has 0.0"):
        FiniteBelief(p, np.stack([R2, R2 + 5]))
    with pytest.raises(BeliefError, match="outside the Bernoulli range"):
        FiniteBelief(p, R2, reward_signal="bernoulli")
    with pytest.raises(BeliefError, match="reward_signal is 'often'"):
        FiniteBelief(p, R2, reward_signal="often")


def test_a_large_dense_array_that_is_nearly_empty_is_swept_in_compressed_rows(monkeypatch):
    large = make_env("garnet:300,3,5").mdp.to_dense()
    mdp = MDP(large.transitions, large.rewards)
    assert mdp.models.transitions._compressed is not None
    compressed = backward_induction(mdp, discount=0.95, horizon=30)
    monkeypatch.setattr("beliefbound.models.dense.COMPRESS_SHARE", -1.0)
    plain = MDP(large.transitions, large.rewards)
    assert plain.models.transitions._compressed is None
    rows = backward_induction(plain, discount=0.95, horizon=30)
    assert np.array_equal(compressed.policy.actions, rows.policy.actions)
    assert np.allclose(compressed.values, rows.values, atol=1e-12)
