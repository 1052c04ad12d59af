"""Models solved each on its own: against plain value iteration."""

import numpy as np

from beliefbound.kernels.planning.sampled_models import greedy, sampled_models, solve_each, start_lowest
from support.oracles import optimal_values


def test_models_are_solved_each_on_its_own():
    rng = np.random.default_rng(1)
    available = np.array([[True, True, True], [False, True, False], [False, True, True], [True, False, True]])
    models = sampled_models(5, available, 0.9)
    models.p[:] = np.moveaxis(rng.dirichlet(np.ones(4), size=(4, 3, 5)), 3, 2)
    models.r[:] = rng.random((4, 3, 5))
    start_lowest(models.policy, models.available)
    solve_each(models)
    for m in range(5):
        v = optimal_values(models.p[None, ..., m], models.r[None, ..., m], 0.9, 400, available)[0][0]
        np.testing.assert_allclose(models.v[:, m], v, rtol=1e-10)
        q = np.where(available, models.r[..., m] + 0.9 * models.p[..., m] @ v, -np.inf)
        assert [greedy(models, s, m) for s in range(4)] == q.argmax(axis=1).tolist()


def test_equal_actions_are_ties_and_go_to_the_lowest():
    p = np.tile(np.random.default_rng(2).dirichlet(np.ones(3), size=(3, 1)), (1, 1, 3, 1))
    r = np.tile(np.random.default_rng(3).random((1, 3, 1)), (1, 1, 3))
    models = sampled_models(1, np.array([[False, True, True]] * 3), 0.95)
    models.p[:], models.r[:] = np.moveaxis(p, 0, -1), np.moveaxis(r, 0, -1)
    models.policy[:] = 2
    solve_each(models)
    assert [greedy(models, s, 0) for s in range(3)] == [1, 1, 1]
