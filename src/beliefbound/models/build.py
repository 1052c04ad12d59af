"""From what a user gives to a `ModelSet`: shapes, probabilities and rewards are checked, and each failure names its
place.

Rows must sum to one within 1e-9. Those further from it than rounding (`build_sparse.ROUNDING`) are rescaled, so that
every row sums to one as closely as doubles can, which is what bounds rely on; an array that needs none of that is not
copied.
"""

from typing import Any

import numpy as np

from beliefbound.base.errors import BeliefboundError, ModelError
from beliefbound.base.validation import (
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
from beliefbound.models.build_sparse import checked_rows, in_rows, off_one
from beliefbound.models.dense import Dense
from beliefbound.models.model_set import ModelSet
from beliefbound.models.sparse import Csr


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
    """Validate and freeze. `transitions` is `[m,s,a,t]` or a sparse matrix with rows over `(m,s,a)`, or a
    list of one for each model, over `(s,a)`.

    `axes` are the names used in messages; a single MDP leaves out the first.
    """
    skip = 4 - len(axes)
    matrices = [transitions] if is_sparse(transitions) else transitions
    sparse = isinstance(matrices, list) and bool(matrices) and all(is_sparse(each) for each in matrices)
    if sparse:
        matrices, shape = in_rows(matrices, n_models, axes, error)
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
    if r.shape == (*shape, shape[1]) and not sparse:
        check_finite(r[0] if skip else r, "rewards", axes, error)
        r = np.einsum("msat,msat->msa", array, r)  # reward on arrival: take its expectation
        sums = array.sum(axis=-1)
        if off_one(sums).any():  # under the row as it will be
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
    if sparse:
        kept: Dense | Csr = checked_rows(matrices, shape, empty, axes, error, normalize, fix)
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
        if off_one(sums).any():
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


def _normalized(array: FloatArray, empty: BoolArray) -> FloatArray:
    sums = array.sum(axis=-1, keepdims=True)
    positive = (sums > 0.0) & ~(empty[..., None] & (sums == 0.0))
    rescaled: FloatArray = np.divide(array, sums, out=np.zeros_like(array), where=positive)
    return rescaled
