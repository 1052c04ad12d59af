"""numba begins without scipy's linear algebra, which takes a tenth of the time of a command whose kernels are on disk.

Before it compiles or reads anything, numba imports `scipy.linalg` to see whether there is a BLAS. Here it is told that
there is one, if scipy is installed. Who compiles `np.dot` has it imported then, as ever; no kernel of ours does.
"""

import importlib.util
import sys

import numba.np.linalg


def start_without_blas() -> None:
    """Import the part of numba that would look."""
    if "numba.np.arraymath" in sys.modules or not hasattr(numba.np.linalg, "ensure_blas"):
        return
    look = numba.np.linalg.ensure_blas
    setattr(numba.np.linalg, "ensure_blas", _ensure_scipy)  # noqa: B010
    try:
        importlib.import_module("numba.np.arraymath")
    finally:
        setattr(numba.np.linalg, "ensure_blas", look)  # noqa: B010


def _ensure_scipy() -> None:
    if importlib.util.find_spec("scipy") is None:
        raise ImportError("scipy is not installed")
