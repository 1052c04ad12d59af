"""Kernels are compiled without scipy's linear algebra, and who needs it has it."""

import subprocess
import sys

import pytest

PROGRAM = """
import sys
from beliefbound.kernels.sums import sum_of
import numpy as np
assert sum_of(np.ones(3)) == 3.0
assert "scipy.linalg" not in sys.modules
from numba import njit
import numba.np.arraymath as arraymath, numba.np.linalg as linalg
assert arraymath._HAVE_BLAS and linalg.ensure_blas.__module__ == linalg.__name__
assert njit(lambda x: np.dot(x, x)[0, 0])(np.ones((2, 2))) == 2.0
assert "scipy.linalg" in sys.modules
"""


@pytest.mark.full
def test_it_is_imported_by_who_needs_it():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
