"""A set of models behaves alike however it is stored, and is never written out behind one's back."""

import numpy as np
import pytest
import scipy.sparse as sp

from beliefbound import MDP, FiniteBelief, StationaryPolicy, bracket, cadp, e_max, evaluate, mmbi, qmdp, value_iteration
from beliefbound.base.errors import BeliefError, ModelError
from beliefbound.models import Csr
from support.oracles import random_models


def both(seed=1, n_models=3, n_states=6, n_actions=2):
    p, r, w, p0 = random_models(np.random.default_rng(seed), n_models, n_states, n_actions, sparsity=0.6)
    knobs = {"reward_signal": "unobserved", "initial": p0}
    rows = [sp.csr_array(x.reshape(-1, n_states)) for x in p]
    return FiniteBelief(p, r, w, **knobs), FiniteBelief(rows, r, w, **knobs)


def test_every_stage_operation_is_the_same_in_both_forms(monkeypatch):
    monkeypatch.setattr("beliefbound.base.limits.LANES_BYTES", 0)
    dense, sparse = (belief.models for belief in both())
    rng = np.random.default_rng(2)
    values, chances = rng.random((3, 6)), rng.dirichlet(np.ones(2), 6)
    actions, w = rng.integers(0, 2, (5, 6)), rng.dirichlet(np.ones(3))
    objective = dense.ascent(w, np.full(6, 1 / 6), 0.9, 5, 1e-12), sparse.ascent(w, np.full(6, 1 / 6), 0.9, 5, 1e-12)
    pairs = [
        [each.backup(values, 0.9) for each in (dense, sparse)],
        [each.solve(chances, 0.9) for each in (dense, sparse)],
        [each.from_above(0.9, 1e-9, 500) for each in (dense, sparse)],
        [each.likelihood(3, 1, 2) for each in (dense, sparse)],
        [each.rows(3, 1) for each in (dense, sparse)],
        [each.induct_greedy(w, 0.9, 7)[1] for each in (dense, sparse)],
        [each.induct_best(0.9, 7)[1] for each in (dense, sparse)],
        [each.induct_follow(chances, 0.9, 7) for each in (dense, sparse)],
        [each.induct_own(0.9, 7)[0] for each in (dense, sparse)],
        [each.sweep(actions.copy(), 0)[2] for each in objective],
        [each.mean(w).dense() for each in (dense, sparse)],
        [each.select(np.array([2, 0])).dense() for each in (dense, sparse)],
        [each.compressed().toarray() for each in (dense, sparse)],
    ]
    for one, two in pairs:
        np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-14)
    assert np.array_equal(*pairs[2])  # sums in the same order


@pytest.mark.parametrize("seed", range(8))
def test_sweeps_until_something_changes_are_single_steps(seed):
    """To the bit: as many as it says, and none but the last changes the policy, settles, or comes back."""
    models = both(seed, n_models=4)[0].models
    rng = np.random.default_rng(seed)
    w, still, most = rng.dirichlet(np.ones(4)), (1e-3, 1.0), 40
    checkpoint = rng.random((4, 6))
    values, actions, q = np.zeros((4, 6)), np.zeros(6, dtype=np.int64), np.empty((4, 6, 2))
    stepped, followed = values.copy(), actions.copy()
    knobs = {"q": q, "checkpoint": checkpoint, "most": most, "still": still}
    longest = 0
    for _ in range(20):
        n, moved, settled, repeated = models.greedy_sweeps(values, w, 0.9, actions=actions, **knobs)
        assert 1 <= n <= most
        longest = max(longest, n)
        for k in range(n):
            before, last = stepped.copy(), followed.copy()
            models.greedy(stepped, w, 0.9, q=q, actions=followed, out=stepped)
            off, least = np.abs(stepped - before).max(), min(still[0], still[1] * np.abs(stepped).max())
            met = np.abs(stepped - checkpoint).max() <= least
            assert k == n - 1 or (np.array_equal(followed, last) and off > least and not met)
        assert np.array_equal(values, stepped)
        assert np.array_equal(actions, followed)
        assert (moved, settled, repeated) == (off, off <= least, met)
        assert settled or n == most or not np.array_equal(followed, last)
        checkpoint[:] = values if settled else checkpoint
    assert longest > 1


def test_what_works_on_sparse_models_never_writes_them_out(monkeypatch):
    """4000 states: as an array the models would take half a gigabyte, and the limit here is one megabyte."""
    monkeypatch.setattr("beliefbound.models.sparse.DENSE_BYTES", 1 << 20)
    n, rng = 4000, np.random.default_rng(3)
    rows = [
        sp.csr_array((np.full(4 * n, 0.5), (np.repeat(np.arange(2 * n), 2), rng.integers(n, size=4 * n))), (2 * n, n))
        for _ in range(2)
    ]
    belief = FiniteBelief(rows, rng.random((n, 2)), initial=0)
    lower, upper = mmbi(belief, discount=0.5).value(), e_max(belief, discount=0.5).values[0]
    assert 0.0 < lower <= qmdp(belief, discount=0.5).values[0] <= upper
    assert cadp(belief, discount=0.5, horizon=12).value() <= upper
    assert mmbi(belief, discount=0.5, horizon=12).value() <= upper
    assert evaluate(StationaryPolicy(np.zeros(n, dtype=int)), belief, discount=0.5).shape == (2, n)
    mean = belief.mean()
    assert mean.is_sparse
    assert mean.to_sparse().is_sparse
    assert mean.relabel(np.arange(n)[::-1]).is_sparse
    assert value_iteration(mean, discount=0.5).converged
    s, a = 5, 1
    t = int(belief.transitions[[s * 2 + a]].indices[0])
    assert belief.update(s, a, None, t).weights.sum() == pytest.approx(1.0)
    with pytest.raises(ModelError, match="GiB as an array"):
        belief.models.dense()
    with pytest.raises(ModelError, match="GiB as an array"):
        mean.to_dense()


def apart(monkeypatch, n_models=6, n_states=7, n_actions=3, seed=4):
    """Models that share one support, in one matrix, and each in the matrix it came in."""
    rng = np.random.default_rng(seed)
    inside = rng.random((n_states, n_actions, n_states)) < 0.5
    inside[..., 0] = True
    p = np.where(inside, rng.random((n_models, *inside.shape)), 0.0)
    p /= p.sum(axis=-1, keepdims=True)
    given = [sp.csr_array(each.reshape(-1, n_states)) for each in p]
    r, w = rng.random(p.shape[:3]), rng.dirichlet(np.ones(n_models))
    one = FiniteBelief(given, r, w, reward_signal="unobserved", initial=0)
    monkeypatch.setattr("beliefbound.models.build_sparse.STACK_BYTES", 0)
    return one, FiniteBelief(given, r, w, reward_signal="unobserved", initial=0), given


def test_models_of_one_support_keep_it_once_and_are_not_copied(monkeypatch):
    _, belief, given = apart(monkeypatch)
    kept = belief.models.transitions.matrices
    assert len(kept) == 6
    assert all(matrix.indices is kept[0].indices and matrix.indptr is kept[0].indptr for matrix in kept)
    assert all(np.shares_memory(matrix.data, own.data) for matrix, own in zip(kept, given, strict=True))
    assert kept[0].indices.dtype == np.int32
    assert all(own.data.flags.writeable and own.indices.flags.writeable for own in given)  # the caller's stay theirs
    other = [*given[:5], sp.csr_array(np.eye(7)[np.arange(21) % 7])]
    belief = FiniteBelief(other, belief.rewards, reward_signal="unobserved")
    kept = belief.models.transitions.matrices
    assert [matrix.indices is kept[0].indices for matrix in kept] == [True] * 5 + [False]


def test_models_in_matrices_of_their_own_are_those_in_one(monkeypatch):
    one, several, _ = apart(monkeypatch)
    assert [len(each.models.transitions.matrices) for each in (one, several)] == [1, 6]
    monkeypatch.setattr("beliefbound.base.limits.LANES_BYTES", 0)
    stacked, own = one.models, several.models
    rng = np.random.default_rng(5)
    values, chances = rng.random((6, 7)), rng.dirichlet(np.ones(3), 7)
    actions, start = rng.integers(0, 3, (4, 7)), np.full(7, 1 / 7)
    for ask in (
        lambda models: models.backup(values, 0.9),
        lambda models: models.solve(chances, 0.9),
        lambda models: models.enclose(chances, 0.9)[1],
        lambda models: models.from_above(0.9, 1e-9, 500),
        lambda models: models.rows(3, 1),
        lambda models: models.likelihood(3, 1, 0),
        lambda models: models.mean(one.weights).dense(),
        lambda models: models.select(np.array([5, 0, 5])).dense(),
        lambda models: models.compressed().toarray(),
        lambda models: models.transitions.chain(4, chances),
        lambda models: models.ascent(one.weights, start, 0.9, 4, 1e-12).sweep(actions.copy(), 0)[2],
        lambda models: models.induct_greedy(one.weights, 0.9, 6)[0],
    ):
        np.testing.assert_allclose(ask(stacked), ask(own), rtol=1e-9, atol=1e-14)
    assert mmbi(one, discount=0.9).policy.actions.tolist() == mmbi(several, discount=0.9).policy.actions.tolist()


@pytest.mark.parametrize("n_models", [2, 8, 11])
def test_models_swept_together_have_the_backup_of_each(monkeypatch, n_models):
    """Eight at a time and what is left of them, also where one in between has a support of its own."""
    one, several, given = apart(monkeypatch, n_models=n_models)
    strange = [*given[:1], sp.csr_array(np.eye(7)[np.arange(21) % 7]), *given[2:]]
    mixed = FiniteBelief(strange, one.rewards, one.weights, reward_signal="unobserved")
    values = np.random.default_rng(6).random((n_models, 7))
    for belief in (several, mixed):
        ahead = np.einsum("msat,mt->msa", belief.models.dense(), values)
        np.testing.assert_allclose(belief.models.backup(values, 0.9), belief.rewards + 0.9 * ahead, rtol=1e-13)


def test_a_sweep_on_threads_is_that_of_one(monkeypatch):
    _, belief, _ = apart(monkeypatch, n_states=40)
    plans = []
    for large, threads in ((1 << 22, 1), (0, 2), (0, 3)):
        monkeypatch.setattr("beliefbound.base.executors.threads._LARGE", large)
        monkeypatch.setattr("beliefbound.base.executors.threads.available_threads", lambda threads=threads: threads)
        plans.append(mmbi(belief, discount=0.9, horizon=9))
    for plan in plans[1:]:
        assert np.array_equal(plan.policy.actions, plans[0].policy.actions)
        assert np.array_equal(plan.model_values, plans[0].model_values)


def test_what_is_wrong_with_a_matrix_is_said_before_it_is_swept(monkeypatch):
    _, _, given = apart(monkeypatch)
    outside, negative, other = (each.copy() for each in given[:3])
    outside.indices[3], negative.data[9] = 7, -0.25
    shape = (6, 7, 3)
    with pytest.raises(BeliefError, match="sparse transitions of model 1 are no matrix"):
        FiniteBelief([given[0], outside, *given[2:]], np.zeros(shape), reward_signal="unobserved")
    with pytest.raises(BeliefError, match=r"transitions\[model 1, state \d, action \d\] has the entry -0.25"):
        FiniteBelief([given[0], negative, *given[2:]], np.zeros(shape), reward_signal="unobserved")
    with pytest.raises(BeliefError, match=r"of model 2 have shape \(14, 7\), those of model 0 \(21, 7\)"):
        FiniteBelief([*given[:2], other[:14], *given[3:]], np.zeros(shape), reward_signal="unobserved")


def test_a_bracket_of_sparse_models_is_that_of_dense_ones():
    found = [bracket(b, discount=0.9, target_gap=0.02, rng=np.random.default_rng(1), threads=1) for b in both()]
    assert found[0].relative_gap <= 0.02
    assert found[1].relative_gap <= 0.02
    assert found[0].lower.value <= found[1].upper.value
    assert found[1].lower.value <= found[0].upper.value


def test_rows_that_are_nearly_one_are_made_one_and_others_are_left_alone():
    good = np.array([[[0.25, 0.75]], [[1.0, 0.0]]])
    assert np.shares_memory(MDP(good, [[1.0], [0.0]]).transitions, good)
    thirds = np.full((3, 1, 3), 1.0 / 3.0)
    assert np.shares_memory(MDP(thirds, np.ones((3, 1))).transitions, thirds)
    off = good * (1.0 + 9e-10)
    for given in (off, sp.csr_array(off.reshape(2, 2))):
        mdp = MDP(given, [[1.0], [1.0]])
        sums = np.asarray(mdp.models.dense().sum(axis=-1))
        assert np.abs(sums - 1.0).max() <= 2**-52
        plan = value_iteration(mdp, discount=0.99999, epsilon=1e-3)
        assert plan.values == pytest.approx(1e5, abs=1e-3)  # one a step; 9e-5 of it too much with the rows as given
    assert off.max() > 1.0  # the caller's array is as it was
    with pytest.raises(ModelError, match="sums to 1.00000001, expected 1 within 1e-09"):
        MDP(good * (1.0 + 1e-8), [[1.0], [0.0]])
    with pytest.raises(BeliefError, match="sums to 1.00000001"):
        FiniteBelief([sp.csr_array(good.reshape(2, 2) * (1.0 + 1e-8))], [[1.0], [0.0]])


def test_rewards_on_arrival_are_expected_under_the_rows_that_are_kept():
    counts = np.array([[[1.0, 3.0]], [[2.0, 0.0]]])
    mdp = MDP(counts, np.array([[[0.0, 4.0]], [[5.0, 0.0]]]), normalize=True)
    assert mdp.rewards.tolist() == [[3.0], [5.0]]


def test_a_sparse_row_may_list_an_arrival_twice_or_not_at_all():
    doubled = sp.csr_array((np.full(4, 0.5), (np.array([0, 0, 1, 1]), np.array([1, 1, 0, 1]))), (2, 2))
    belief = FiniteBelief([doubled], [[1.0], [0.0]])
    assert isinstance(belief.models.transitions, Csr)
    assert belief.models.likelihood(0, 0, 1).tolist() == [1.0]
    assert belief.models.likelihood(0, 0, 0).tolist() == [0.0]
