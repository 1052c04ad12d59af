"""Many models merged into one optimistic MDP: its optimum against value iteration."""

import numpy as np
import pytest

from beliefbound.kernels.planning.merged_models import merged_models, solve_merged


def two_in_a_row():
    """Two states to pass, two models: one passes the first and not the second, the other the reverse."""
    p = np.zeros((2, 4, 1, 4))
    p[:, 2:, 0, 3] = 1.0  # state 2 pays and leads to the end
    p[0, 0, 0, 1] = p[0, 1, 0, 3] = 1.0
    p[1, 0, 0, 3] = p[1, 1, 0, 2] = 1.0
    r = np.zeros((2, 4, 1))
    r[:, 2] = 1.0
    return p, r


def merge(p, r, copies=None, discount=0.9):
    """The merged optimum of models `p[k,s,a,t]`, `r[k,s,a]`."""
    K, S, A, _ = p.shape
    models = merged_models(K, S, A, discount)
    models.p[:], models.r[:] = np.moveaxis(p, 0, -1), np.moveaxis(r, 0, -1)
    models.copies[:] = K if copies is None else copies
    solve_merged(models)
    return models


def test_the_merged_mdp_mixes_rows_of_different_models():
    p, r = two_in_a_row()
    assert merge(p, r).v[0, 0] == pytest.approx(0.81)  # each model alone pays 0 from the start
    assert merge(p[:1], r[:1]).v[0, 0] == merge(p[1:], r[1:]).v[0, 0] == 0.0


@pytest.mark.parametrize("seed", range(5))
def test_the_merged_optimum_is_that_of_value_iteration_with_all_actions(seed):
    rng = np.random.default_rng(seed)
    K, S, A = rng.integers(1, 6), rng.integers(1, 7), rng.integers(1, 4)
    p, r = rng.dirichlet(np.full(S, 0.3), size=(K, S, A)), rng.random((K, S, A))
    copies = rng.integers(0, K + 1, size=(S, A))
    copies[:, -1] = np.maximum(1, copies[:, -1])
    models = merge(p, r, copies)
    wide_p, wide_r = np.moveaxis(p, 0, 2).reshape(S, A * K, S), np.moveaxis(r, 0, 2).reshape(S, A * K)
    offered = (np.arange(K) < copies[:, :, None]).reshape(S, A * K)
    v = np.zeros(S)
    for _ in range(400):
        q = np.where(offered, wide_r + 0.9 * wide_p @ v, -np.inf)
        v = q.max(axis=1)
    np.testing.assert_allclose(models.v[:, 0], v, rtol=1e-11)
    np.testing.assert_array_equal(models.actions, q.argmax(axis=1) // K)
    whole = merge(p, r)
    for k in range(K):  # never below what one model promises
        assert (whole.v[:, 0] >= merge(p[k : k + 1], r[k : k + 1]).v[:, 0] - 1e-12).all()


def test_equal_actions_are_ties_and_go_to_the_lowest():
    p = np.tile(np.random.default_rng(2).dirichlet(np.ones(3), size=(3, 1)), (1, 1, 3, 1))
    r = np.tile(np.random.default_rng(3).random((1, 3, 1)), (1, 1, 3))
    assert merge(p, r).actions.tolist() == [0, 0, 0]
