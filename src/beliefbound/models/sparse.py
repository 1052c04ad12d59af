"""Transition probabilities of a set of models in compressed rows. Nothing here makes an array of all states squared
but `dense` and `lanes`, which say so.

A policy is solved by a Krylov method (`kernels.planning.krylov`, where that fails GMRES, then sparse LU). A Krylov
answer is accepted only when its residual proves it within `1e-10 · ‖r‖∞/(1−γ)` of the true value, as
`‖V − V_π‖∞ ≤ ‖r_π − (I − γ P_π) V‖∞ / (1 − γ)`.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from beliefbound.base.errors import ModelError
from beliefbound.base.limits import DENSE_BYTES
from beliefbound.base.validation import FloatArray, IntArray
from beliefbound.kernels.planning import krylov, occupancy, sweep
from beliefbound.kernels.planning.rows import Rows
from beliefbound.kernels.planning.simd import copied
from beliefbound.models import enclosing
from beliefbound.models.enclosing import Linear

_TOLERANCE = 1e-10  # of the largest value there can be
_MOST_STEPS = 2000


@dataclass(frozen=True, eq=False)
class Csr:
    """Transition probabilities as compressed rows over `(m,s,a)`."""

    matrix: Any  # scipy.sparse.csr_array [(m,s,a), t]
    shape: tuple[int, int, int]
    close: ClassVar[float] = 1e-9  # of what meets at a state: residuals are smaller where values are of one size

    @property
    def n_entries(self) -> int:
        """Probabilities that one sweep reads."""
        return int(self.matrix.nnz)

    @property
    def longest(self) -> int:
        """Most entries of a row."""
        return int(np.diff(self.matrix.indptr).max())

    @property
    def stored(self) -> Any:
        """The matrix itself."""
        return self.matrix

    @property
    def _parts(self) -> tuple[Any, Any, Any]:
        return self.matrix.indptr, self.matrix.indices, self.matrix.data

    def backup(self, rewards: FloatArray, discount: float, values: FloatArray, q: FloatArray) -> None:
        """`q[m,s,a] = r + γ Σ_t P V`."""
        sweep.backup_csr(*self._parts, rewards.reshape(-1), discount, values, q.reshape(-1))

    def compressed(self) -> "Csr":
        """Itself."""
        return self

    def by_row(self) -> Rows:
        """What `kernels.planning.rows` reads."""
        return Rows(*self._parts)

    def forward(self, actions: IntArray, first: int, b: FloatArray) -> None:
        """Occupancies `b[k,m,s]` after stage `first` under `actions[k,s]`."""
        occupancy.forward_csr(*self._parts, self.shape[2], actions, first, b)

    def solve(self, policy: FloatArray | IntArray, rewards: FloatArray, discount: float) -> FloatArray:
        """`[m,s]`: `(I − γ P_π) V = r_π` of a policy per model, `[m,s,a]` or actions `[m,s]`, and `rewards[m,s]`."""
        return self._system(policy, discount)[0](rewards)

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
        return enclosing.enclosed(*self._system(policy, discount), rewards, sizes, self.close, discount, rounding)

    def _system(self, policy: FloatArray | IntArray, discount: float) -> tuple[Linear, Linear]:
        """`x ↦ (I − γP)⁻¹x`, `x ↦ γPx` of the policy."""
        chances = np.zeros(self.shape) if policy.ndim == 2 else np.ascontiguousarray(policy, dtype=np.float64)
        if policy.ndim == 2:
            np.put_along_axis(chances, policy[..., None].astype(np.int64), 1.0, axis=-1)
        none = np.zeros(chances.size)

        def ahead(values: FloatArray) -> FloatArray:
            q = np.empty(self.shape)
            sweep.backup_csr(*self._parts, none, discount, values, q.reshape(-1))
            later: FloatArray = np.einsum("msa,msa->ms", chances, q)
            return later

        def solve(rewards: FloatArray) -> FloatArray:
            values, allowed = np.zeros(rewards.shape), _TOLERANCE * np.abs(rewards).max(axis=1)
            done = krylov.solve_policies(*self._parts, chances, rewards, discount, allowed, _MOST_STEPS, values)
            for m in np.flatnonzero(~done).tolist():
                values[m] = _solved(self._compressed_chain(m, chances[m]), rewards[m], discount)
            return values

        return solve, ahead

    def chain(self, model: int, chances: FloatArray) -> FloatArray:
        """The Markov chain of one model under a policy `[s,a]`, written out: an array `[s,t]`."""
        return np.asarray(self._compressed_chain(model, chances).toarray(), dtype=np.float64)

    def _compressed_chain(self, model: int, chances: FloatArray) -> Any:
        import scipy.sparse as sp

        _, n_states, n_actions = self.shape
        rows = n_states * n_actions
        block = self.matrix[model * rows : (model + 1) * rows]
        states = np.repeat(np.arange(n_states), n_actions)
        mix = sp.csr_array((chances.ravel(), (states, np.arange(rows))), shape=(n_states, rows))
        return sp.csr_array(mix @ block)

    def rows(self, state: int, action: int) -> FloatArray:
        """Next-state probabilities `[m,t]` of one pair in every model."""
        return np.asarray(self.matrix[self._rows_of(state, action)].toarray(), dtype=np.float64)

    def likelihood(self, state: int, action: int, next_state: int) -> FloatArray:
        """`P_m(t|s,a)`, `[m]`."""
        arrivals, block = self.entries(state, action)
        i = int(np.searchsorted(arrivals, next_state))
        if i == len(arrivals) or arrivals[i] != next_state:
            return np.zeros(self.shape[0])
        return block[:, i]

    def entries(self, state: int, action: int) -> tuple[IntArray, FloatArray]:
        """As in `Dense`; only the entries that exist are read."""
        kept = self.matrix[self._rows_of(state, action)].tocoo()
        arrivals, place = np.unique(kept.coords[1], return_inverse=True)
        block = np.zeros((self.shape[0], len(arrivals)))
        block[kept.coords[0], place] = kept.data
        used = block.any(axis=0)
        return arrivals[used].astype(np.int64), np.ascontiguousarray(block[:, used])

    def _rows_of(self, state: int, action: int) -> IntArray:
        n_models, n_states, n_actions = self.shape
        rows: IntArray = (np.arange(n_models) * n_states + state) * n_actions + action
        return rows

    def mean(self, weights: FloatArray) -> "Csr":
        """`Σ_m w_m P_m`, as a set of one."""
        import scipy.sparse as sp

        n_models, n_states, n_actions = self.shape
        rows = n_states * n_actions
        total = sum(
            (weights[m] * self.matrix[m * rows : (m + 1) * rows] for m in range(1, n_models)),
            start=weights[0] * self.matrix[:rows],
        )
        return Csr(sp.csr_array(total), (1, n_states, n_actions))

    def select(self, models: IntArray) -> "Csr":
        """The models with these indices."""
        import scipy.sparse as sp

        _, n_states, n_actions = self.shape
        rows = n_states * n_actions
        blocks = [self.matrix[m * rows : (m + 1) * rows] for m in models]
        return Csr(sp.csr_array(sp.vstack(blocks)), (len(blocks), n_states, n_actions))

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
