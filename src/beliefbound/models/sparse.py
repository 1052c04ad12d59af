"""Transition probabilities of a set of models in compressed rows. Nothing here makes an array of all states squared
but `dense` and `lanes`, which say so.

A policy is solved by a Krylov method (`kernels.planning.krylov`, where that fails GMRES, then sparse LU). A Krylov
answer is accepted only when its residual proves it within `1e-10 · ‖r‖∞/(1−γ)` of the true value, as
`‖V − V_π‖∞ ≤ ‖r_π − (I − γ P_π) V‖∞ / (1 − γ)`.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, ClassVar

import numpy as np

from beliefbound.base.errors import ModelError
from beliefbound.base.executors.threads import in_ranges
from beliefbound.base.limits import DENSE_BYTES
from beliefbound.base.validation import FloatArray, IntArray
from beliefbound.kernels.lines import copied, zeros
from beliefbound.kernels.planning import csr_sweep, krylov, occupancy
from beliefbound.kernels.planning.rows import Rows
from beliefbound.models import enclosing
from beliefbound.models.enclosing import Linear

_TOLERANCE = 1e-10  # of the largest value there can be
_MOST_STEPS = 2000


@dataclass(frozen=True, eq=False)
class Csr:
    """Transition probabilities as compressed rows over `(m,s,a)`: matrices of one or more models each, one after the
    other. Large models stay in the matrices they came in; where these have one support, its index arrays are kept once
    and up to eight models are swept at a time.
    """

    matrices: tuple[Any, ...]  # scipy.sparse.csr_array [(m,s,a), t]
    shape: tuple[int, int, int]
    close: ClassVar[float] = 1e-9  # of what meets at a state: residuals are smaller where values are of one size

    @property
    def n_entries(self) -> int:
        """Probabilities that one sweep reads."""
        return sum(int(matrix.nnz) for matrix in self.matrices)

    @property
    def longest(self) -> int:
        """Most entries of a row."""
        return max(int(np.diff(matrix.indptr).max()) for matrix in self.matrices)

    @property
    def matrix(self) -> Any:
        """All rows in one matrix: the stored one where there is one, else new."""
        return _stacked(self.matrices)

    @property
    def stored(self) -> Any:
        """The same."""
        return self.matrix

    def nonzero(self) -> tuple[IntArray, IntArray, FloatArray]:
        """What is not 0, row after row: where rows begin, next states in order, probabilities."""
        rows = self.matrix
        rows.sort_indices()
        return rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data

    def _parts(self) -> Iterator[tuple[slice, Any]]:
        """Which models, and the matrix of their rows."""
        first, pairs = 0, self.shape[1] * self.shape[2]
        for matrix in self.matrices:
            last = first + matrix.shape[0] // pairs
            yield slice(first, last), matrix
            first = last

    def backup(self, rewards: FloatArray, discount: float, values: FloatArray, q: FloatArray) -> None:
        """`q[m,s,a] = r + γ Σ_t P V`."""
        if len(self.matrices) == 1:
            _backup(self.matrices[0], rewards, discount, values, q)
            return
        parts, pairs = list(self._parts()), self.shape[1] * self.shape[2]
        while parts:
            alike = _alike([matrix for _, matrix in parts[: csr_sweep.TOGETHER]], pairs)
            taken, some = [matrix for _, matrix in parts[:alike]], slice(parts[0][0].start, parts[alike - 1][0].stop)
            parts, own = parts[alike:], (rewards[some], discount, values[some], q[some])
            if alike == 1:
                _backup(taken[0], *own)
            else:
                _backup_together(taken, *own)

    def compressed(self) -> "Csr":
        """Itself."""
        return self

    def by_row(self) -> Rows:
        """What `kernels.planning.rows` reads: all rows, one after the other."""
        return Rows(*_arrays(self.matrix))

    def by_part(self) -> Iterator[tuple[slice, Rows]]:
        """Models whose rows lie one after the other, and these."""
        for part, matrix in self._parts():
            yield part, Rows(*_arrays(matrix))

    def forward(self, actions: IntArray, first: int, b: FloatArray) -> None:
        """Occupancies `b[k,m,s]` after stage `first` under `actions[k,s]`."""
        for part, matrix in self._parts():
            occupancy.forward_csr(*_arrays(matrix), self.shape[2], actions, first, part.start, b)

    def solve(self, policy: FloatArray | IntArray, rewards: FloatArray, discount: float) -> FloatArray:
        """`[m,s]`: `(I − γ P_π) V = r_π` of a policy per model, `[m,s,a]` or actions `[m,s]`, and `rewards[m,s]`."""
        values = np.empty_like(rewards)
        for part, matrix in self._parts():
            values[part] = self._system(matrix, policy[part], discount)[0](rewards[part])
        return values

    def enclose(
        self,
        policy: FloatArray | IntArray,
        rewards: FloatArray,
        sizes: FloatArray,
        discount: float,
        rounding: float,
    ) -> tuple[FloatArray, FloatArray]:
        """The same, and how far each value can be from the true one (`models.enclosing`); `sizes[m,s]` are those of the
        numbers behind `rewards`."""
        values, error = np.empty_like(rewards), np.empty_like(rewards)
        for part, matrix in self._parts():
            system, own = self._system(matrix, policy[part], discount), (rewards[part], sizes[part])
            values[part], error[part] = enclosing.enclosed(*system, *own, self.close, discount, rounding)
        return values, error

    def _system(self, matrix: Any, policy: FloatArray | IntArray, discount: float) -> tuple[Linear, Linear]:
        """`x ↦ (I − γP)⁻¹x`, `x ↦ γPx` of the policy in the models of one matrix."""
        shape = (len(policy), *self.shape[1:])
        chances = np.zeros(shape) if policy.ndim == 2 else np.ascontiguousarray(policy, dtype=np.float64)
        if policy.ndim == 2:
            np.put_along_axis(chances, policy[..., None].astype(np.int64), 1.0, axis=-1)
        none = np.zeros(shape)

        def ahead(values: FloatArray) -> FloatArray:
            q = np.empty(shape)
            _backup(matrix, none, discount, values, q)
            later: FloatArray = np.einsum("msa,msa->ms", chances, q)
            return later

        def solve(rewards: FloatArray) -> FloatArray:
            values, allowed = np.zeros(rewards.shape), _TOLERANCE * np.abs(rewards).max(axis=1)
            done = krylov.solve_policies(*_arrays(matrix), chances, rewards, discount, allowed, _MOST_STEPS, values)
            for m in np.flatnonzero(~done).tolist():
                values[m] = _solved(self._chain(matrix, m, chances[m]), rewards[m], discount)
            return values

        return solve, ahead

    def chain(self, model: int, chances: FloatArray) -> FloatArray:
        """The Markov chain of one model under a policy `[s,a]`, written out: an array `[s,t]`."""
        part, matrix = next(each for each in self._parts() if model < each[0].stop)
        return np.asarray(self._chain(matrix, model - part.start, chances).toarray(), dtype=np.float64)

    def _chain(self, matrix: Any, model: int, chances: FloatArray) -> Any:
        import scipy.sparse as sp

        _, n_states, n_actions = self.shape
        states = np.repeat(np.arange(n_states), n_actions)
        pairs = np.arange(n_states * n_actions)
        mix = sp.csr_array((chances.ravel(), (states, pairs)), shape=(n_states, len(pairs)))
        return sp.csr_array(mix @ self._rows_of_model(matrix, model))

    def _rows_of_model(self, matrix: Any, model: int) -> Any:
        """The rows of one of a matrix's models: the matrix itself where it is the only one."""
        pairs = self.shape[1] * self.shape[2]
        return matrix if matrix.shape[0] == pairs else matrix[model * pairs : (model + 1) * pairs]

    def _each(self) -> Iterator[Any]:
        """The rows of every model."""
        for part, matrix in self._parts():
            yield from (self._rows_of_model(matrix, m) for m in range(part.stop - part.start))

    def _pair(self, state: int, action: int) -> Any:
        """The rows `[m,t]` of one pair in every model."""
        _, n_states, n_actions = self.shape
        pair, pairs = state * n_actions + action, n_states * n_actions
        return _stacked([matrix[np.arange(pair, matrix.shape[0], pairs)] for matrix in self.matrices])

    def rows(self, state: int, action: int) -> FloatArray:
        """Next-state probabilities `[m,t]` of one pair in every model."""
        return np.asarray(self._pair(state, action).toarray(), dtype=np.float64)

    def likelihood(self, state: int, action: int, next_state: int) -> FloatArray:
        """`P_m(t|s,a)`, `[m]`."""
        arrivals, block = self.entries(state, action)
        i = int(np.searchsorted(arrivals, next_state))
        if i == len(arrivals) or arrivals[i] != next_state:
            return np.zeros(self.shape[0])
        return block[:, i]

    def entries(self, state: int, action: int) -> tuple[IntArray, FloatArray]:
        """As in `Dense`; only the entries that exist are read."""
        kept = self._pair(state, action).tocoo()
        arrivals, place = np.unique(kept.coords[1], return_inverse=True)
        block = np.zeros((self.shape[0], len(arrivals)))
        block[kept.coords[0], place] = kept.data
        used = block.any(axis=0)
        return arrivals[used].astype(np.int64), np.ascontiguousarray(block[:, used])

    def mean(self, weights: FloatArray) -> "Csr":
        """`Σ_m w_m P_m`, as a set of one."""
        import scipy.sparse as sp

        each = self._each()
        total = sum((w * rows for w, rows in zip(weights[1:], each, strict=False)), start=weights[0] * next(each))
        return Csr((sp.csr_array(total),), (1, *self.shape[1:]))

    def select(self, models: IntArray) -> "Csr":
        """The models with these indices; those that have a matrix of their own are not copied."""
        each = list(self._each())
        chosen = tuple(each[m] for m in models)
        apart = len(self.matrices) > 1
        return Csr(chosen if apart else (_stacked(chosen),), (len(chosen), *self.shape[1:]))

    def lanes(self) -> FloatArray:
        """A models-last copy `[s,a,t,m]`, written out, at the start of a cache line."""
        return copied(self.dense().transpose(1, 2, 3, 0))

    def dense(self) -> FloatArray:
        """`[m,s,a,t]`, written out; refused where that would not fit in memory."""
        nbytes = 8 * math.prod(self.shape) * self.shape[1]
        if nbytes > DENSE_BYTES:
            n_models, n_states, n_actions = self.shape
            raise ModelError(
                f"{n_models} models of {n_states} states and {n_actions} actions need {nbytes / 2**30:.1f} GiB as an "
                f"array; use what works on sparse models, or fewer of them"
            )
        array: FloatArray = np.asarray(self.matrix.toarray(), dtype=np.float64).reshape(*self.shape, self.shape[1])
        return array


def _arrays(matrix: Any) -> tuple[Any, Any, Any]:
    return matrix.indptr, matrix.indices, matrix.data


def _stacked(matrices: Sequence[Any]) -> Any:
    import scipy.sparse as sp

    return matrices[0] if len(matrices) == 1 else sp.csr_array(sp.vstack(matrices, format="csr"))


def _alike(matrices: Sequence[Any], rows: int) -> int:
    """How many of these, from the first on, are models with one support; at least 1."""
    first = matrices[0]

    def same(each: Any) -> bool:
        return each.shape[0] == rows and each.indices is first.indices and each.indptr is first.indptr

    return max(1, len(list(takewhile(same, matrices))))


def _backup(matrix: Any, rewards: FloatArray, discount: float, values: FloatArray, q: FloatArray) -> None:
    r, to = rewards.reshape(-1), q.reshape(-1)
    in_ranges(len(r), matrix.data.size, csr_sweep.backup_csr, *_arrays(matrix), r, discount, values, to)


def _backup_together(
    matrices: Sequence[Any], rewards: FloatArray, discount: float, values: FloatArray, q: FloatArray
) -> None:
    """The same of models that have one support, a matrix each."""
    n, first = len(matrices), matrices[0]
    v = zeros(values.shape[1], n)
    in_ranges(len(v), v.size, csr_sweep.lanes_of_values, values, v)
    chances = tuple(matrix.data for matrix in matrices)
    r, to = rewards.reshape(n, -1), q.reshape(n, -1)
    rows = (first.indptr, first.indices, chances)
    in_ranges(first.shape[0], n * first.nnz, csr_sweep.backup_together, *rows, r, discount, v, to)


def _solved(chain: Any, rewards: FloatArray, discount: float) -> FloatArray:
    """Solved for rewards of size one, as the libraries' own rules for stopping are absolute."""
    import scipy.sparse as sp
    import scipy.sparse.linalg as spla

    largest = float(np.abs(rewards).max(initial=0.0))
    if largest == 0.0:
        return np.zeros_like(rewards)
    unit = 2.0 ** (math.frexp(largest)[1] - 1)  # a power of two: no digit is lost
    rewards = rewards / unit
    system = sp.csr_array(sp.eye_array(len(rewards)) - discount * chain)
    allowed = _TOLERANCE * largest / unit
    guess, _ = spla.gmres(system, rewards, rtol=0.0, atol=allowed / 2, maxiter=_MOST_STEPS)
    if np.isfinite(guess).all() and np.abs(rewards - system @ guess).max() <= allowed:
        return np.asarray(guess, dtype=np.float64) * unit
    return np.asarray(spla.spsolve(sp.csc_array(system), rewards), dtype=np.float64) * unit
