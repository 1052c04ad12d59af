"""A set of models that share states and actions: the arrays behind `MDP` and `FiniteBelief`.

`ModelSet` is dense (`[model, state, action, next_state]`) or sparse (compressed rows over `(model, state, action)`)
behind one interface, so no algorithm asks which. Large dense arrays are used where they are, never copied.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from beliefbound.errors import BeliefboundError, ModelError
from beliefbound.kernels.planning import sweep
from beliefbound.kernels.planning.simd import copied
from beliefbound.validation import (
    BoolArray,
    FloatArray,
    IntArray,
    as_floats,
    check_distributions,
    check_finite,
    frozen,
)

_COMPRESS_BYTES = 1 << 20  # from here on a dense array that is nearly empty is swept in compressed rows
_COMPRESS_SHARE = 0.04  # "nearly empty": at most this share of entries; the rows then take under 6% of the array
LANES_BYTES = 1 << 20  # up to here a models-last copy lives in the second-level cache and SIMD over models pays


@dataclass(frozen=True, eq=False)
class Dense:
    """Transition probabilities as one array `[m,s,a,t]`."""

    array: FloatArray

    def backup(self, rewards: FloatArray, discount: float, values: FloatArray, q: FloatArray) -> None:
        if self._compressed is not None:
            self._compressed.backup(rewards, discount, values, q)
            return
        rows = self.array.reshape(-1, self.array.shape[-1])
        sweep.backup_rows(rows, rewards.reshape(-1), discount, values, q.reshape(-1))

    @cached_property
    def _compressed(self) -> "Csr | None":
        """The same in compressed rows, where the array is large and nearly empty; made when first swept."""
        rows = self.array.reshape(-1, self.array.shape[-1])
        if self.array.nbytes < _COMPRESS_BYTES or _share(rows[:: max(1, len(rows) // 256)]) > _COMPRESS_SHARE:
            return None
        if _share(rows) > _COMPRESS_SHARE:
            return None
        where = np.flatnonzero(rows)
        data = rows.reshape(-1)[where]
        starts = np.searchsorted(where, np.arange(len(rows) + 1) * rows.shape[1])
        matrix = sp.csr_array((data, (where % rows.shape[1]).astype(np.int32), starts), shape=rows.shape)
        return Csr(matrix, self.array.shape[:3])

    def row(self, model: int, state: int, action: int) -> FloatArray:
        row: FloatArray = self.array[model, state, action]
        return row

    def likelihood(self, state: int, action: int, next_state: int) -> FloatArray:
        return self.array[:, state, action, next_state]

    def entries(self, state: int, action: int) -> tuple[IntArray, FloatArray]:
        """Next states `[i]` that some model allows, ascending, and their chances `[m,i]`."""
        block = self.array[:, state, action]
        arrivals = np.flatnonzero(block.any(axis=0))
        return arrivals, block[:, arrivals]

    def under(self, model: int, probabilities: FloatArray) -> FloatArray:
        """The Markov chain `[s,t]` of one model under a policy `[s,a]`."""
        chain: FloatArray = np.einsum("sa,sat->st", probabilities, self.array[model])
        return chain

    def mean(self, weights: FloatArray) -> "Dense":
        return Dense(np.einsum("m,msat->sat", weights, self.array)[None])

    def select(self, models: IntArray) -> "Dense":
        return Dense(self.array[models])

    def lanes(self) -> FloatArray:
        """A models-last copy `[s,a,t,m]`, at the start of a cache line."""
        return copied(np.moveaxis(self.array, 0, -1))

    @property
    def nbytes(self) -> int:
        return self.array.nbytes


def _share(rows: FloatArray) -> float:
    """Share of entries that are not zero."""
    return float(np.count_nonzero(rows) / rows.size)


@dataclass(frozen=True, eq=False)
class Csr:
    """Transition probabilities as compressed rows over `(m,s,a)`."""

    matrix: Any  # scipy.sparse.csr_array [(m,s,a), t]
    shape: tuple[int, int, int]

    def backup(self, rewards: FloatArray, discount: float, values: FloatArray, q: FloatArray) -> None:
        indptr, indices, data = self.matrix.indptr, self.matrix.indices, self.matrix.data
        sweep.backup_csr(indptr, indices, data, rewards.reshape(-1), discount, values, q.reshape(-1))

    def row(self, model: int, state: int, action: int) -> FloatArray:
        _, n_states, n_actions = self.shape
        index = (model * n_states + state) * n_actions + action
        return np.asarray(self.matrix[[index]].toarray()[0], dtype=np.float64)

    def likelihood(self, state: int, action: int, next_state: int) -> FloatArray:
        arrivals, block = self.entries(state, action)
        i = int(np.searchsorted(arrivals, next_state))
        if i == len(arrivals) or arrivals[i] != next_state:
            return np.zeros(self.shape[0])
        return block[:, i]

    def entries(self, state: int, action: int) -> tuple[IntArray, FloatArray]:
        """As in `Dense`; only the entries that exist are read."""
        n_models, n_states, n_actions = self.shape
        kept = self.matrix[(np.arange(n_models) * n_states + state) * n_actions + action].tocoo()
        arrivals, place = np.unique(kept.coords[1], return_inverse=True)
        block = np.zeros((n_models, len(arrivals)))
        block[kept.coords[0], place] = kept.data
        used = block.any(axis=0)
        return arrivals[used].astype(np.int64), np.ascontiguousarray(block[:, used])

    def under(self, model: int, probabilities: FloatArray) -> Any:
        _, n_states, n_actions = self.shape
        rows = n_states * n_actions
        block = self.matrix[model * rows : (model + 1) * rows]
        states = np.repeat(np.arange(n_states), n_actions)
        mix = sp.csr_array((probabilities.ravel(), (states, np.arange(rows))), shape=(n_states, rows))
        return sp.csr_array(mix @ block)

    def mean(self, weights: FloatArray) -> "Csr":
        n_models, n_states, n_actions = self.shape
        rows = n_states * n_actions
        total = sum(
            (weights[m] * self.matrix[m * rows : (m + 1) * rows] for m in range(1, n_models)),
            start=weights[0] * self.matrix[:rows],
        )
        return Csr(sp.csr_array(total), (1, n_states, n_actions))

    def select(self, models: IntArray) -> "Csr":
        _, n_states, n_actions = self.shape
        rows = n_states * n_actions
        blocks = [self.matrix[m * rows : (m + 1) * rows] for m in models]
        return Csr(sp.csr_array(sp.vstack(blocks)), (len(blocks), n_states, n_actions))

    def lanes(self) -> FloatArray:
        dense = self.matrix.toarray().reshape(*self.shape, self.shape[1])
        return copied(np.moveaxis(dense, 0, -1))

    @property
    def nbytes(self) -> int:
        return int(self.matrix.data.nbytes + self.matrix.indices.nbytes)


@dataclass(frozen=True, eq=False)
class ModelSet:
    """`n_models` MDPs on the same states and actions.

    Attributes:
      transitions: `Dense` or `Csr`; rows of unavailable actions are zero.
      rewards: expected rewards `[m,s,a]`, zero where the action is unavailable.
      available: `[s,a]`, which actions each state offers; the same in every model.
    """

    transitions: Dense | Csr
    rewards: FloatArray
    available: BoolArray

    @property
    def n_models(self) -> int:
        return int(self.rewards.shape[0])

    @property
    def n_states(self) -> int:
        return int(self.rewards.shape[1])

    @property
    def n_actions(self) -> int:
        return int(self.rewards.shape[2])

    @property
    def models(self) -> "ModelSet":
        return self

    @cached_property
    def reward_range(self) -> tuple[float, float]:
        """Least and largest expected reward of an available action in any model."""
        seen = self.rewards[:, self.available]
        return float(seen.min()), float(seen.max())

    def backup(self, values: FloatArray, discount: float, q: FloatArray | None = None) -> FloatArray:
        """`Q[m,s,a]` from values `[m,s]`, written to `q` when given."""
        if q is None:
            q = np.empty_like(self.rewards)
        self.transitions.backup(self.rewards, discount, values, q)
        return q

    def mean(self, weights: FloatArray) -> "ModelSet":
        """The expected MDP under `weights`, as a set of one."""
        rewards = np.tensordot(weights, self.rewards, axes=1)[None]
        return ModelSet(self.transitions.mean(weights), rewards, self.available)

    def select(self, models: IntArray) -> "ModelSet":
        """The models with these indices, in this order."""
        return ModelSet(self.transitions.select(models), self.rewards[models], self.available)

    def dense(self) -> FloatArray:
        """Transition probabilities as an array `[m,s,a,t]`: the stored one where it is dense, else a new one."""
        if isinstance(self.transitions, Dense):
            return self.transitions.array
        shape = (self.n_models, self.n_states, self.n_actions, self.n_states)
        return np.asarray(self.transitions.matrix.toarray(), dtype=np.float64).reshape(shape)


class HasModels(Protocol):
    """Anything made of models that share states and actions: an `MDP`, a `FiniteBelief`, a `ModelSet`."""

    @property
    def models(self) -> ModelSet: ...


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
    if sp.issparse(transitions):
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
    if r.shape == (*shape, shape[1]) and not sp.issparse(transitions):
        check_finite(r[0] if skip else r, "rewards", axes, error)
        r = np.einsum("msat,msat->msa", array, r)  # reward on arrival: take its expectation
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

    fix = "rescale the row or pass normalize=True" if not normalize else "it cannot be normalised"
    if sp.issparse(transitions):
        matrix = _check_sparse(matrix, shape, empty, axes, error, normalize, fix)
        kept: Dense | Csr = Csr(matrix, shape)
    else:
        if normalize:
            array = _normalized(array, empty)
        if not offered.all() and array[:, ~offered].any():
            array = np.where(offered[None, :, :, None], array, 0.0)
        check_distributions(
            array[0] if skip else array,
            "transitions",
            axes,
            error,
            empty=empty[0] if skip else empty,
            fix=fix,
        )
        kept = Dense(frozen(array))
    return ModelSet(kept, frozen(np.ascontiguousarray(r)), frozen(offered))


def _check_available(
    available: Any, rewards: FloatArray, shape: tuple[int, ...], error: type[BeliefboundError]
) -> BoolArray:
    if available is None:
        return np.ones(shape[1:], dtype=np.bool_)
    offered = np.array(available, dtype=np.bool_)
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


def _check_sparse(
    matrix: Any,
    shape: tuple[int, int, int],
    empty: BoolArray,
    axes: tuple[str, ...],
    error: type[BeliefboundError],
    normalize: bool,
    fix: str,
) -> Any:
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
    if normalize:
        scale = np.divide(1.0, sums, out=np.zeros_like(sums), where=sums > 0)
        matrix = sp.csr_array(sp.diags_array(scale) @ matrix)
        sums = np.asarray(matrix.sum(axis=1)).ravel()
    wrong = ~(np.abs(sums - 1.0) <= 1e-9) & ~(empty.ravel() & (sums == 0.0))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise error(f"transitions[{at(row)}] sums to {sums[row]:.12g}, expected 1 within 1e-09; {fix}")
    for part in (matrix.data, matrix.indices, matrix.indptr):
        part.flags.writeable = False
    return matrix
