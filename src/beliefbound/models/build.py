"""From what a user gives to a `ModelSet`: shapes, probabilities and rewards are checked, and each failure names its
place.

Rows must sum to one within 1e-9. Those further from it than rounding (`_ROUNDING`) are rescaled, so that every row sums
to one as closely as doubles can, which is what bounds rely on; an array that needs none of that is not copied.
"""

from typing import Any

import numpy as np

from beliefbound.base.errors import BeliefboundError, ModelError
from beliefbound.base.validation import (
    TOLERANCE,
    BoolArray,
    FloatArray,
    as_bools,
    as_flag,
    as_floats,
    check_distributions,
    check_finite,
    frozen,
    is_sparse,
)
from beliefbound.models.dense import Dense
from beliefbound.models.model_set import ModelSet
from beliefbound.models.sparse import Csr

_ROUNDING = 32 * np.finfo(np.float64).eps  # a row that was divided by its sum is closer to one than this


def build(
    transitions: Any,
    rewards: Any,
    *,
    n_models: int,
    n_actions: int | None,
    available: Any = None,
    normalize: bool = False,
    axes: tuple[str, ...] = ("model", "state", "action", "next state"),
    error: type[BeliefboundError] = ModelError,
) -> ModelSet:
    """Validate and freeze. `transitions` is `[m,s,a,t]` or a sparse matrix with rows over `(m,s,a)`.

    `axes` are the names used in messages; a single MDP leaves out the first.
    """
    skip = 4 - len(axes)
    if is_sparse(transitions):
        import scipy.sparse as sp

        matrix = sp.csr_array(transitions, dtype=np.float64)
        if matrix is transitions or np.shares_memory(matrix.data, transitions.data):
            matrix = sp.csr_array((matrix.data, matrix.indices, matrix.indptr), shape=matrix.shape)
        n_rows, n_states = matrix.shape
        if n_states == 0 or n_rows == 0 or n_rows % (n_models * n_states):
            raise error(
                f"sparse transitions have shape {matrix.shape}; expected one row per "
                f"({', '.join(axes[:-1])}) and one column per state"
            )
        shape = (n_models, n_states, n_rows // (n_models * n_states))
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
    else:
        array = as_floats(transitions, "transitions", error)
        if array.ndim != 4 or array.shape[1] != array.shape[3] or 0 in array.shape:
            shown = array.shape[skip:] if array.ndim == 4 else array.shape
            raise error(
                f"transitions have shape {shown}; expected [{', '.join(axes)}] with as many next states as states"
            )
        shape = (array.shape[0], array.shape[1], array.shape[2])
    if n_actions is not None and shape[2] != n_actions:
        raise error(f"transitions have {shape[2]} actions but {n_actions} action names were given")

    r = as_floats(rewards, "rewards", error)
    if r.shape == (*shape, shape[1]) and not is_sparse(transitions):
        check_finite(r[0] if skip else r, "rewards", axes, error)
        r = np.einsum("msat,msat->msa", array, r)  # reward on arrival: take its expectation
        sums = array.sum(axis=-1)
        if _off(sums).any():  # under the row as it will be
            r = np.divide(r, sums, out=np.zeros_like(r), where=sums > 0.0)
    if r.shape == shape[1:]:
        r = np.broadcast_to(r, shape)
    if r.shape != shape:
        raise error(
            f"rewards have shape {r.shape}; expected [{', '.join(axes[:-1])}] = {shape[skip:]} "
            f"to go with the transitions"
        )
    offered = _check_available(available, r, shape, error)
    empty = np.broadcast_to(~offered, shape)
    r = np.where(offered, r, 0.0) if not offered.all() else r
    check_finite(r[0] if skip else r, "rewards", axes[:-1], error)

    normalize = as_flag(normalize, "normalize")
    fix = "rescale the row or pass normalize=True" if not normalize else "it cannot be normalised"
    if is_sparse(transitions):
        matrix = _check_sparse(matrix, shape, empty, axes, error, normalize, fix)
        kept: Dense | Csr = Csr(matrix, shape)
    else:
        if normalize:
            array = _normalized(array, empty)
        if not offered.all() and array[:, ~offered].any():
            array = np.where(offered[None, :, :, None], array, 0.0)
        sums = check_distributions(
            array[0] if skip else array,
            "transitions",
            axes,
            error,
            empty=empty[0] if skip else empty,
            fix=fix,
        )
        if _off(sums).any():
            array = _normalized(array, empty)
        kept = Dense(frozen(array))
    return ModelSet(kept, frozen(np.ascontiguousarray(r)), frozen(offered))


def _check_available(
    available: Any, rewards: FloatArray, shape: tuple[int, ...], error: type[BeliefboundError]
) -> BoolArray:
    if available is None:
        return np.ones(shape[1:], dtype=np.bool_)
    offered = as_bools(available, "available", error)
    if offered.shape != shape[1:]:
        raise error(f"available has shape {offered.shape}; expected [state, action] = {shape[1:]}")
    none = ~offered.any(axis=1)
    if none.any():
        state = int(np.argmax(none))
        raise error(f"available[state {state}] has no action; every state needs at least one")
    return offered


def _off(sums: FloatArray) -> BoolArray:
    """Row sums that are not one up to rounding; rows of unavailable actions are zero."""
    off: BoolArray = (np.abs(sums - 1.0) > _ROUNDING) & (sums != 0.0)
    return off


def _normalized(array: FloatArray, empty: BoolArray) -> FloatArray:
    sums = array.sum(axis=-1, keepdims=True)
    positive = (sums > 0.0) & ~(empty[..., None] & (sums == 0.0))
    rescaled: FloatArray = np.divide(array, sums, out=np.zeros_like(array), where=positive)
    return rescaled


def _check_sparse(
    matrix: Any,
    shape: tuple[int, int, int],
    empty: BoolArray,
    axes: tuple[str, ...],
    error: type[BeliefboundError],
    normalize: bool,
    fix: str,
) -> Any:
    import scipy.sparse as sp

    def at(row: int) -> str:
        index = np.unravel_index(row, shape)[4 - len(axes) :]
        return ", ".join(f"{axis} {int(i)}" for axis, i in zip(axes, index, strict=False))

    bad = ~(matrix.data >= 0.0)
    if bad.any():
        k = int(np.argmax(bad))
        row = int(np.searchsorted(matrix.indptr, k, side="right")) - 1
        raise error(f"transitions[{at(row)}] has the entry {matrix.data[k]}; probabilities are between 0 and 1")
    if empty.any():
        keep = sp.diags_array((~empty.ravel()).astype(np.float64))
        matrix = sp.csr_array(keep @ matrix)
        matrix.eliminate_zeros()
    sums = np.asarray(matrix.sum(axis=1)).ravel()
    wrong = ~(np.abs(sums - 1.0) <= TOLERANCE) & ~(empty.ravel() & (sums == 0.0))
    if normalize:
        wrong = ~((sums > 0.0) & np.isfinite(sums)) & ~empty.ravel()
    if wrong.any():
        row = int(np.argmax(wrong))
        raise error(f"transitions[{at(row)}] sums to {sums[row]:.12g}, expected 1 within {TOLERANCE:g}; {fix}")
    if _off(sums).any():
        lengths = np.diff(matrix.indptr)
        data = matrix.data / np.repeat(sums, lengths)
        matrix = sp.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)
    for part in (matrix.data, matrix.indices, matrix.indptr):
        part.flags.writeable = False
    return matrix
