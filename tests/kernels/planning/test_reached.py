"""Sweeps over next states that some model allows: the dense sweeps, bit for bit."""

import numpy as np
import pytest

from beliefbound.kernels.planning.held_bounds import new_optimum, optimum_from_above
from beliefbound.kernels.planning.held_models import HeldModels, held_models, mmbi_sweeps
from beliefbound.kernels.planning.reached import find_reached, mmbi_sweeps_reached, new_reached, optimum_reached

pytestmark = pytest.mark.full  # compiles what one agent uses


def models_of(n: int, seed: int, everything: bool = False) -> HeldModels:
    """Six states and three actions, rows with one to six successors, or with all; one action is not there."""
    rng = np.random.default_rng(seed)
    available = np.ones((6, 3), bool)
    available[2, 1] = False
    models = held_models(n, available, 0.9)
    for s, a in np.ndindex(6, 3):
        allowed = np.sort(rng.choice(6, size=6 if everything else 1 + (s + a) % 6, replace=False))
        models.p[s, a, allowed] = rng.dirichlet(np.ones(len(allowed)), n).T
    models.r[:] = rng.random((6, 3, n))
    return models


@pytest.mark.parametrize("n", [1, 3, 29, 64])  # 29 = 16 + 8 + 4 + 1 lanes
@pytest.mark.parametrize("everything", [False, True])  # listed: nothing is left out
def test_only_zeros_are_left_out(n, everything):
    dense, listed, reached = models_of(n, n, everything), models_of(n, n, everything), new_reached(6, 3)
    find_reached(listed.p, reached)
    possible = (dense.p > 0.0).any(axis=-1)
    for s, a in np.ndindex(6, 3):
        assert reached.states[s, a, : reached.many[s, a]].tolist() == np.flatnonzero(possible[s, a]).tolist()
    assert mmbi_sweeps_reached(listed, reached, 7, 0.0) == mmbi_sweeps(dense, 7, 0.0)
    for name in ("q", "vbar", "even", "odd", "side", "actions"):
        assert getattr(listed, name).tolist() == getattr(dense, name).tolist(), name
    below, above = new_optimum(6, 3, n), new_optimum(6, 3, n)
    optimum_reached(listed, reached, below, 50, 1e-6)
    optimum_from_above(dense, above, 50, 1e-6)
    assert below.q.tolist() == above.q.tolist()
    assert below.mean.tolist() == above.mean.tolist()
