"""Sparse transitions at the door: checked one matrix at a time, so that checking takes the memory of one, and kept
where they are. Large models that have one support keep its index arrays once; small ones are put into one matrix.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from beliefbound.base.errors import BeliefboundError
from beliefbound.base.limits import STACK_BYTES
from beliefbound.base.validation import TOLERANCE, BoolArray, FloatArray, frozen
from beliefbound.models.sparse import Csr

ROUNDING = 32 * np.finfo(np.float64).eps  # a row that was divided by its sum is closer to one than this


def off_one(sums: FloatArray) -> BoolArray:
    """Row sums that are not one up to rounding; rows of unavailable actions are zero."""
    off: BoolArray = (np.abs(sums - 1.0) > ROUNDING) & (sums != 0.0)
    return off


def in_rows(
    matrices: Sequence[Any], n_models: int, axes: tuple[str, ...], error: type[BeliefboundError]
) -> tuple[list[Any], tuple[int, int, int]]:
    """SciPy's matrices in compressed rows of doubles, each column of a row once and in order; and `(m,s,a)`. Only what
    is not in that form is copied."""
    import scipy.sparse as sp

    found, per_matrix = list[Any](), n_models // len(matrices)
    for i, given in enumerate(matrices):
        which = f" of model {i}" if len(matrices) > 1 else ""
        try:
            matrix = sp.csr_array(given, dtype=np.float64)
            matrix = sp.csr_array((matrix.data, matrix.indices, matrix.indptr), shape=matrix.shape)
            matrix.check_format(full_check=True)
        except (TypeError, ValueError) as cause:
            raise error(f"sparse transitions{which} are no matrix of numbers in compressed rows: {cause}") from None
        n_rows, n_states = matrix.shape
        if n_states == 0 or n_rows == 0 or n_rows % (per_matrix * n_states):
            raise error(
                f"sparse transitions{which} have shape {matrix.shape}; expected one row per "
                f"({', '.join(axes[:-1])}) and one column per state"
            )
        if found and matrix.shape != found[0].shape:
            raise error(f"sparse transitions{which} have shape {matrix.shape}, those of model 0 {found[0].shape}")
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
        found.append(matrix)
    n_rows, n_states = found[0].shape
    return found, (n_models, n_states, n_rows // (per_matrix * n_states))


def checked_rows(
    matrices: list[Any],
    shape: tuple[int, int, int],
    empty: BoolArray,
    axes: tuple[str, ...],
    error: type[BeliefboundError],
    normalize: bool,
    fix: str,
) -> Csr:
    """Distributions, rescaled where they are not one up to rounding; rows that are `empty [m,s,a]` are."""
    each, per_matrix = empty.reshape(len(matrices), -1), shape[0] // len(matrices)

    def at(matrix: int, row: int) -> str:
        index = np.unravel_index(matrix * per_matrix * shape[1] * shape[2] + row, shape)[4 - len(axes) :]
        return ", ".join(f"{axis} {int(i)}" for axis, i in zip(axes, index, strict=False))

    def checked(i: int, matrix: Any) -> Any:
        if matrix.nnz and not matrix.data.min() >= 0.0:  # also catches NaN
            k = int(np.argmin(matrix.data >= 0.0))
            row = int(np.searchsorted(matrix.indptr, k, side="right")) - 1
            raise error(f"transitions[{at(i, row)}] has the entry {matrix.data[k]}; probabilities are between 0 and 1")
        unavailable = each[i]
        if unavailable.any():
            matrix = _without(matrix, unavailable)
        sums = matrix @ np.ones(matrix.shape[1])
        wrong = ~(np.abs(sums - 1.0) <= TOLERANCE) & ~(unavailable & (sums == 0.0))
        if normalize:
            wrong = ~((sums > 0.0) & np.isfinite(sums)) & ~unavailable
        if wrong.any():
            row = int(np.argmax(wrong))
            raise error(f"transitions[{at(i, row)}] sums to {sums[row]:.12g}, expected 1 within {TOLERANCE:g}; {fix}")
        if off_one(sums).any():
            matrix.data = matrix.data / np.repeat(sums, np.diff(matrix.indptr))
        return matrix

    kept = [checked(i, matrix) for i, matrix in enumerate(matrices)]
    if len(kept) > 1 and sum(matrix.data.nbytes for matrix in kept) <= STACK_BYTES:
        import scipy.sparse as sp

        kept = [sp.csr_array(sp.vstack(kept, format="csr"))]
    for matrix in kept:
        matrix.data = frozen(matrix.data)
        alike = all(_same(getattr(matrix, name), getattr(kept[0], name)) for name in ("indices", "indptr"))
        matrix.indices, matrix.indptr = (
            (kept[0].indices, kept[0].indptr)
            if alike and matrix is not kept[0]
            else (frozen(matrix.indices), frozen(matrix.indptr))
        )
    return Csr(tuple(kept), shape)


def _same(one: Any, other: Any) -> bool:
    """Whether two arrays hold the same, and in the same form."""
    return one.dtype == other.dtype and bool(one.ctypes.data == other.ctypes.data or np.array_equal(one, other))


def _without(matrix: Any, rows: BoolArray) -> Any:
    """The matrix with these rows empty, and no zeros."""
    import scipy.sparse as sp

    left = sp.csr_array(sp.diags_array((~rows).astype(np.float64)) @ matrix)
    left.eliminate_zeros()
    return left
