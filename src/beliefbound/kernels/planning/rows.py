"""Next-state probabilities of `(m,s,a)` row by row, whole or compressed, behind one `dot`."""

from typing import NamedTuple

import numpy as np
from numba import njit

from beliefbound.kernels.options import EXACT, FAST
from beliefbound.kernels.reference import by_reference


@by_reference
class Rows(NamedTuple):
    """Rows over `(m,s,a)`. Where `indices` is empty they are whole, one after the other in `data`."""

    indptr: np.ndarray  # [rows + 1], or empty
    indices: np.ndarray  # [entries], or empty
    data: np.ndarray  # [entries]


def whole(array: np.ndarray) -> Rows:
    """The rows of a dense array `[m,s,a,t]`, which is not copied."""
    none = np.empty(0, dtype=np.int32)
    return Rows(none, none, array.reshape(-1))


@njit(inline="always", **EXACT)
def dot(rows, row, v):
    """`Σ_t P[row,t] v[t]`, in order: the same bits from whole and from compressed rows."""
    total = 0.0
    if rows.indices.size == 0:
        first = row * v.size
        for t in range(v.size):
            total += rows.data[first + t] * v[t]
    else:
        for i in range(rows.indptr[row], rows.indptr[row + 1]):
            total += rows.data[i] * v[rows.indices[i]]
    return total


@njit(inline="always", **FAST)
def two_dots(rows, row, v, w):
    """`(Σ_t P[row,t] v[t], Σ_t P[row,t] w[t])`."""
    one, two = 0.0, 0.0
    if rows.indices.size == 0:
        first = row * v.size
        for t in range(v.size):
            one += rows.data[first + t] * v[t]
            two += rows.data[first + t] * w[t]
    else:
        for i in range(rows.indptr[row], rows.indptr[row + 1]):
            one += rows.data[i] * v[rows.indices[i]]
            two += rows.data[i] * w[rows.indices[i]]
    return one, two
