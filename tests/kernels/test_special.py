"""Special functions in compiled code, against SciPy."""

import math

import numpy as np
import pytest
from scipy import special, stats

from beliefbound.kernels.special import digamma, shape_of, student_cdf, student_density, trigamma

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("x", np.exp(RNG.uniform(-7, 9, 40)))
def test_digamma_trigamma_and_the_shape_of_a_gap(x):
    assert digamma(x) == pytest.approx(special.digamma(x), rel=1e-12, abs=1e-13)
    assert trigamma(x) == pytest.approx(special.polygamma(1, x), rel=1e-13)
    if 0.01 < x < 1000:
        assert shape_of(math.log(x) - special.digamma(x)) == pytest.approx(x, rel=1e-9)


@pytest.mark.parametrize("freedom", [2.002, 3.0, 7.5, 40.0, 3000.0])
def test_students_law(freedom):
    for z in (-30.0, -2.5, -0.3, -1e-9, 0.0, 1e-200, 0.01, 1.0, 4.0, 100.0):
        assert student_cdf(z, freedom) == pytest.approx(stats.t.cdf(z, freedom), rel=1e-9, abs=1e-14)
        assert student_density(z, freedom) == pytest.approx(stats.t.pdf(z, freedom), rel=1e-9, abs=1e-300)
