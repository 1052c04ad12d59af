"""Pairs of held models: their value against the exact tree."""

import numpy as np
import pytest

from beliefbound.kernels.planning.held_bounds import new_optimum, optimum_from_above
from beliefbound.kernels.planning.held_models import held_models
from beliefbound.kernels.planning.held_pairs import new_pairs, value_of_pairs


@pytest.mark.full
def test_pairs_are_worth_what_the_exact_tree_says():
    """Two models, transitions and rewards unknown, weights ½: finer grids come down to it, all are below QMDP."""
    rng = np.random.default_rng(5)
    models = held_models(2, np.array([[True, True], [True, False]]), 0.3)
    p, r = rng.dirichlet(np.ones(2), (2, 2, 2)), rng.random((2, 2, 2))
    models.p[:], models.r[:] = np.moveaxis(p, 0, -1), np.moveaxis(r, 0, -1)
    shown = np.concatenate([p * r[..., None], p * (1.0 - r[..., None])], axis=-1)  # success and arrival, failure and …

    def value(weights, s, left):
        if left == 0:
            return 0.0
        options = []
        for a in range(2 if s == 0 else 1):
            likely = weights[:, None] * shown[:, s, a]
            following = sum(
                chance * value(likely[:, k] / chance, k % 2, left - 1) for k, chance in enumerate(likely.sum(axis=0))
            )
            options.append(weights @ r[:, s, a] + 0.3 * following)
        return max(options)

    optimum = new_optimum(2, 2, 2)
    optimum_from_above(models, optimum, 100, 1e-9)
    paid = np.array([np.ones(4), np.zeros(4)])
    values = [value_of_pairs(models, optimum, new_pairs(paid, 2, 2, grid), 100, 1e-9, 0) for grid in (3, 5, 401)]
    exact = value(np.full(2, 0.5), 0, 6)
    assert exact - 1e-9 <= values[2] <= exact + 0.3**6 / 0.7 + 1e-3
    assert values[2] <= values[1] + 1e-9 <= values[0] + 2e-9 <= optimum.mean[0].max() + 3e-9
