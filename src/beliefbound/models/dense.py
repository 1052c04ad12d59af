"""Transition probabilities of a set of models as one array, used where it is and never copied."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from beliefbound.base.limits import COMPRESS_BYTES, COMPRESS_SHARE, SOLVE_BYTES
from beliefbound.base.validation import FloatArray, IntArray
from beliefbound.kernels.lines import copied
from beliefbound.kernels.planning import occupancy, sweep
from beliefbound.kernels.planning.rows import Rows, whole
from beliefbound.models import enclosing
from beliefbound.models.enclosing import Linear
from beliefbound.models.sparse import Csr


@dataclass(frozen=True, eq=False)
class Dense:
    """Transition probabilities as one array `[m,s,a,t]`."""

    array: FloatArray
    close: ClassVar[float] = 1e-12  # of what meets at a state: LU leaves smaller residuals where values are of one size

    @property
    def n_entries(self) -> int:
        """Probabilities that one sweep reads."""
        return self.array.size if self._compressed is None else self._compressed.n_entries

    @property
    def longest(self) -> int:
        """Most entries of a row."""
        return self.array.shape[-1] if self._compressed is None else self._compressed.longest

    @property
    def stored(self) -> Any:
        """The array itself."""
        return self.array

    def backup(self, rewards: FloatArray, discount: float, values: FloatArray, q: FloatArray) -> None:
        """`q[m,s,a] = r + γ Σ_t P V`."""
        if self._compressed is not None:
            self._compressed.backup(rewards, discount, values, q)
            return
        rows = self.array.reshape(-1, self.array.shape[-1])
        sweep.backup_rows(rows, rewards.reshape(-1), discount, values, q.reshape(-1))

    @property
    def swept_dense(self) -> bool:
        """Whether stages read the array itself."""
        return self._compressed is None

    @cached_property
    def _compressed(self) -> Csr | None:
        """The same in compressed rows, where the array is large and nearly empty; made when first swept."""
        rows = self.array.reshape(-1, self.array.shape[-1])
        if self.array.nbytes < COMPRESS_BYTES or _share(rows[:: max(1, len(rows) // 256)]) > COMPRESS_SHARE:
            return None
        return self.compressed() if _share(rows) <= COMPRESS_SHARE else None

    def nonzero(self) -> tuple[IntArray, IntArray, FloatArray]:
        """What is not 0, row after row: where rows begin, next states, probabilities."""
        rows = self.array.reshape(-1, self.array.shape[-1])
        where = np.flatnonzero(rows)
        starts = np.searchsorted(where, np.arange(len(rows) + 1) * rows.shape[1])
        return starts, where % rows.shape[1], rows.reshape(-1)[where]

    def compressed(self) -> Csr:
        """The same in compressed rows."""
        import scipy.sparse as sp

        starts, columns, data = self.nonzero()
        n_rows, n_columns = self.array.size // self.array.shape[-1], self.array.shape[-1]
        matrix = sp.csr_array((data, columns.astype(np.int32), starts), shape=(n_rows, n_columns))
        return Csr((matrix,), self.array.shape[:3])

    def by_row(self) -> Rows:
        """What `kernels.planning.rows` reads."""
        return whole(self.array) if self._compressed is None else self._compressed.by_row()

    def by_part(self) -> Iterator[tuple[slice, Rows]]:
        """Models whose rows lie one after the other: all of them."""
        yield slice(None), self.by_row()

    def forward(self, actions: IntArray, first: int, b: FloatArray) -> None:
        """Occupancies `b[k,m,s]` after stage `first` under `actions[k,s]`."""
        occupancy.forward_rows(self.array, actions, first, b)

    def solve(self, policy: FloatArray | IntArray, rewards: FloatArray, discount: float) -> FloatArray:
        """`[m,s]`: `(I − γ P_π) V = r_π` of a policy per model, `[m,s,a]` or its actions `[m,s]`, and `rewards[m,s]`,
        by LU."""
        values = np.empty_like(rewards)
        for part, solve, _ in self._systems(policy, discount):
            values[part] = solve(rewards[part])
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
        for part, solve, ahead in self._systems(policy, discount):
            found = enclosing.enclosed(solve, ahead, rewards[part], sizes[part], self.close, discount, rounding)
            values[part], error[part] = found
        return values, error

    def _systems(self, policy: FloatArray | IntArray, discount: float) -> Iterator[tuple[slice, Linear, Linear]]:
        """Models in batches that fit in memory: which they are, and `x ↦ (I − γP)⁻¹x`, `x ↦ γPx` of the policy."""
        n_models, n_states = len(self.array), self.array.shape[-1]
        batch = max(1, SOLVE_BYTES // (8 * n_states**2))
        for i in range(0, n_models, batch):
            part = slice(i, i + batch)
            own = self.array[part]
            if policy.ndim == 2:
                begin = np.arange(0, own.size // n_states, own.shape[2]).reshape(-1, n_states)
                chain = own.reshape(-1, n_states).take(begin + policy[part].astype(np.int64), axis=0)
            else:
                chain = np.einsum("msa,msat->mst", policy[part], own)
            chain *= discount
            system = -chain
            system.reshape(len(own), -1)[:, :: n_states + 1] += 1.0
            yield part, partial(_solve, system), partial(np.einsum, "mst,mt->ms", chain)

    def chain(self, model: int, chances: FloatArray) -> FloatArray:
        """The Markov chain `[s,t]` of one model under a policy `[s,a]`."""
        chain: FloatArray = np.einsum("sa,sat->st", chances, self.array[model])
        return chain

    def rows(self, state: int, action: int) -> FloatArray:
        """Next-state probabilities `[m,t]` of one pair in every model."""
        rows: FloatArray = self.array[:, state, action]
        return rows

    def likelihood(self, state: int, action: int, next_state: int) -> FloatArray:
        """`P_m(t|s,a)`, `[m]`."""
        return self.array[:, state, action, next_state]

    def entries(self, state: int, action: int) -> tuple[IntArray, FloatArray]:
        """Next states `[i]` that some model allows, ascending, and their chances `[m,i]`."""
        block = self.array[:, state, action]
        arrivals = np.flatnonzero(block.any(axis=0))
        return arrivals, block[:, arrivals]

    def mean(self, weights: FloatArray) -> "Dense":
        """`Σ_m w_m P_m`, as a set of one."""
        return Dense(np.einsum("m,msat->sat", weights, self.array)[None])

    def select(self, models: IntArray) -> "Dense":
        """The models with these indices."""
        return Dense(self.array[models])

    def lanes(self) -> FloatArray:
        """A models-last copy `[s,a,t,m]`, at the start of a cache line."""
        return copied(self.array.transpose(1, 2, 3, 0))

    def dense(self) -> FloatArray:
        """`[m,s,a,t]`: the array itself."""
        return self.array


def _solve(system: FloatArray, rewards: FloatArray) -> FloatArray:
    """`[m,s]` by LU with partial pivoting."""
    return np.asarray(np.linalg.solve(system, rewards[..., None])[..., 0])


def _share(rows: FloatArray) -> float:
    """Share of entries that are not zero."""
    return float(np.count_nonzero(rows) / rows.size)
