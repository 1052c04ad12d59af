"""An outcome at a quantile of a row, of any length."""

import numpy as np
import pytest
from numba import njit

from beliefbound.kernels.planning.urn import new_urn, outcome_at, prepare
from beliefbound.kernels.posterior import smallest

preparing = njit(lambda posterior, urn: prepare(posterior, urn))
outcome = njit(lambda posterior, urn, row, u: outcome_at(posterior, urn, row, u))


@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 16, 17, 25])
def test_an_outcome_is_where_the_sum_of_a_row_passes_its_quantile(n):
    """Also where nothing but the first, the last or one in the middle is possible, and at a quantile of 1."""
    rng = np.random.default_rng(n)
    alpha = rng.random((n, n)) * (rng.random((n, n)) < 0.6)
    alpha[0] = np.arange(n) == 0
    alpha[n // 2] = np.arange(n) == n // 2
    alpha[n - 1] = np.arange(n) == n - 1
    alpha[alpha.sum(1) == 0.0] = 1.0
    posterior = smallest()._replace(alpha=alpha, reward=np.ones((1, n)), paid=np.ones((1, n, 1)))
    urn = new_urn(posterior, 1)
    preparing(posterior, urn)
    for s in range(n):
        sums = alpha[s].cumsum()
        for u in rng.random(200):
            assert outcome(posterior, urn, s, u) == np.searchsorted(sums, u * sums[-1], "right")
        assert outcome(posterior, urn, s, 1.0) == np.flatnonzero(alpha[s])[-1]
