"""A set of models that share states and actions, and the stage operations every algorithm is made of.

With `Q[m,s,a] = r_m(s,a) + γ Σ_t P_m(t|s,a) V_m(t)` (`backup`), a stage is one of

    greedy   a*(s) = argmax_a Σ_m w_m Q[m,s,a],  V_m(s) = Q[m,s,a*(s)]       one action for all models: MMBI
    best     V_m(s) = max_a Q[m,s,a]                                         each model by itself
    follow   V_m(s) = Σ_a π(a|s) Q[m,s,a]                                    a policy

(ties: lowest action), and `induct_…` repeats it backwards over a horizon. `solve` values a policy for ever, `ascent`
improves one conditioned on its occupancies (CADP), `from_above` bounds each model's values.

Whether models are stored as an array or as compressed rows, and whether a models-last copy with one SIMD lane per model
pays, is decided here and nowhere else. Sparse models are swept sparse; only `dense` and small copies write them out.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from beliefbound.base import limits
from beliefbound.base.errors import ModelError
from beliefbound.base.executors.threads import in_ranges
from beliefbound.base.validation import BoolArray, FloatArray, IntArray
from beliefbound.kernels.lines import copied
from beliefbound.kernels.planning import occupancy, swaps, sweep
from beliefbound.kernels.planning.from_above import values_from_above
from beliefbound.models.ascent import Ascent, LanesAscent, RowsAscent
from beliefbound.models.dense import Dense
from beliefbound.models.device import Device
from beliefbound.models.device_ascent import DeviceAscent
from beliefbound.models.enclosing import UNIT, divided, left_after, lowered, rounding_of
from beliefbound.models.on_device import OnDevice
from beliefbound.models.sparse import Csr

_BLOCK = 2**17  # pairs of several models that are looked at together: what is computed of them stays in the cache
_SMALL = 2**17  # probabilities: of fewer, many sweeps are made in one call, as what Python adds to each would count
_AT_ONCE = 2**24  # multiply-adds of such a call, some ten milliseconds: Ctrl-C waits no longer
Seen = Callable[[int, FloatArray, FloatArray], None]  # (stage, q [m,s,a], values [m,s]): what a stage has found


@dataclass(frozen=True, eq=False)
class ModelSet:
    """`n_models` MDPs on the same states and actions.

    Attributes:
      transitions: `Dense`, `Csr` or `OnDevice`; rows of unavailable actions are zero.
      rewards: expected rewards `[m,s,a]`, zero where the action is unavailable.
      available: `[s,a]`, which actions each state offers; the same in every model.
    """

    transitions: Dense | Csr | OnDevice
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

    @property
    def is_sparse(self) -> bool:
        """Whether the models are stored in compressed rows."""
        return isinstance(self.transitions, Csr)

    @property
    def n_entries(self) -> int:
        """Multiply-adds of one sweep: the probabilities it reads."""
        return self.transitions.n_entries

    @cached_property
    def reward_range(self) -> tuple[float, float]:
        """Least and largest expected reward of an available action in any model."""
        seen = self.rewards if self.available.all() else self.rewards[:, self.available]
        return float(seen.min()), float(seen.max())

    @property
    def largest_reward(self) -> float:
        """The largest expected reward in absolute value: the unit of every tolerance."""
        return max(abs(x) for x in self.reward_range)

    def mean(self, weights: FloatArray) -> "ModelSet":
        """The expected MDP under `weights`, as a set of one."""
        rewards = np.tensordot(weights, self.rewards, axes=1)[None]
        return ModelSet(self.transitions.mean(weights), rewards, self.available)

    def select(self, models: IntArray) -> "ModelSet":
        """The models with these indices, in this order."""
        return ModelSet(self.transitions.select(models), self.rewards[models], self.available)

    def on(self, device: Any, dtype: str = "float64") -> "ModelSet":
        """The same models on an accelerator (`models.device`), as much of them as fits; sparse ones are refused."""
        if isinstance(self.transitions, OnDevice) and (str(device), dtype) == self.transitions.on.called:
            return self
        if isinstance(self.transitions, Csr):
            raise ModelError("sparse models are swept on the processor; leave the device out")
        where = Device.named(device, dtype)
        return ModelSet(OnDevice.of(self.transitions.array, where), self.rewards, self.available)

    def nonzero(self) -> tuple[IntArray, IntArray, FloatArray]:
        """Transition probabilities that are not 0, row after row over `(m,s,a)`: where rows begin, next states in
        order, probabilities."""
        return self.transitions.nonzero()

    def dense(self) -> FloatArray:
        """Transition probabilities as an array `[m,s,a,t]`: the stored one where it is dense, else a new one, refused
        where it would not fit in memory."""
        return self.transitions.dense()

    def compressed(self) -> Any:
        """Transition probabilities in compressed rows over `(m,s,a)`: the stored ones where they are, else new."""
        return self.transitions.compressed().matrix

    def likelihood(self, state: int, action: int, next_state: int) -> FloatArray:
        """`P_m(t|s,a)` in every model, `[m]`."""
        return self.transitions.likelihood(state, action, next_state)

    # One stage.

    def backup(self, values: FloatArray, discount: float, q: FloatArray | None = None) -> FloatArray:
        """`Q[m,s,a]` from values `[m,s]`, written to `q` when given."""
        if q is None:
            q = np.empty_like(self.rewards)
        self.transitions.backup(self.rewards, discount, values, q)
        return q

    def backup_above(self, values: FloatArray, discount: float) -> FloatArray:
        """The same, rounded up: no less than the backup of `values` in exact arithmetic."""
        q = self.backup(values, discount)
        sizes = np.abs(self.rewards) + self.backup(np.abs(values), discount) - self.rewards
        return np.asarray(q + 2.0 * self.rounding * sizes)

    def greedy(
        self,
        values: FloatArray,
        weights: FloatArray,
        discount: float,
        *,
        q: FloatArray,
        actions: IntArray,
        out: FloatArray,
    ) -> None:
        """MMBI's step from `values[m,s]`: `actions[s]`, `out[m,s]` and `q[m,s,a]` written; `out` may be `values`."""
        if isinstance(self.transitions, OnDevice):
            actions[:], out[:] = self.transitions.greedy(self, values, weights, discount)
            return
        self.backup(values, discount, q)
        self._by_states(sweep.greedy, q, weights, self.available, actions, out)

    def greedy_sweeps(
        self,
        values: FloatArray,
        weights: FloatArray,
        discount: float,
        *,
        q: FloatArray,
        actions: IntArray,
        checkpoint: FloatArray,
        most: int,
        still: tuple[float, float],
    ) -> tuple[int, float, bool, bool]:
        """Steps of MMBI, as `greedy`, until the policy changes, values repeat – those before the last step, or
        `checkpoint[m,s]` – or there were `most`, or as many as a call makes; for large sets after one: `(steps, by how
        much the last one moved values, whether it was less than counts, the same from the checkpoint)`. Less than
        `still[0]` counts for nothing, if it is less than `still[1]` of the largest value as well."""
        before = np.empty_like(values)
        if isinstance(self.transitions, Dense) and self.n_entries < _SMALL and self.transitions.swept_dense:
            p, r = self.transitions.array, self.rewards.reshape(-1)
            most = min(most, max(1, _AT_ONCE // p.size))
            given = (p.reshape(-1, p.shape[-1]), r, discount, weights, self.available, most, still)
            steps, moved, settled, repeated = sweep.greedy_sweeps(*given, checkpoint, actions, values, q, before)
            return int(steps), float(moved), bool(settled), bool(repeated)
        before[:] = values
        self.greedy(values, weights, discount, q=q, actions=actions, out=values)
        moved, off = (float(np.abs(np.subtract(values, other, out=before)).max()) for other in (before, checkpoint))
        least = min(still[0], still[1] * float(np.abs(values).max()))
        return 1, moved, moved <= least, off <= least

    def best(self, values: FloatArray, discount: float, *, q: FloatArray, out: FloatArray) -> None:
        """Each model's own maximum from `values[m,s]`: `out[m,s]` and `q[m,s,a]` written."""
        self.backup(values, discount, q)
        self._by_states(sweep.best_values, q, self.available, out)

    def follow(
        self, values: FloatArray, chances: FloatArray, discount: float, *, q: FloatArray, out: FloatArray
    ) -> None:
        """A policy's step, `chances[s,a]`, from `values[m,s]`: `out[m,s]` and `q[m,s,a]` written."""
        self.backup(values, discount, q)
        self._by_states(sweep.follow, q, chances, out)

    def _by_states(self, step: Any, *arrays: Any) -> None:
        in_ranges(self.rewards.shape[1], self.rewards.size, step, *arrays)

    # A horizon.

    def induct_greedy(
        self, weights: FloatArray, discount: float, horizon: int, terminal: FloatArray | None = None
    ) -> tuple[IntArray, FloatArray]:
        """MMBI: `(actions [t,s], values [m,s])`, from terminal values `[m,s]` (zero by default)."""
        actions = np.empty((horizon, self.n_states), dtype=np.int64)
        values = self._zeros() if terminal is None else terminal.copy()
        if isinstance(self.transitions, OnDevice):
            return self.transitions.induct_greedy(self, weights, discount, horizon, values)
        if self._lanes_pay:
            v = np.ascontiguousarray(values.T)
            sweep.induct_lanes(sweep.lanes_of(*self.lanes(), weights, self.available, discount), v, actions)
            return actions, np.ascontiguousarray(v.T)
        q = np.empty_like(self.rewards)
        for k in range(horizon - 1, -1, -1):
            self.greedy(values, weights, discount, q=q, actions=actions[k], out=values)
        return actions, values

    def induct_best(self, discount: float, horizon: int, seen: Seen | None = None) -> tuple[FloatArray, FloatArray]:
        """Each model by itself: `values[m,s]` and `q[m,s,a]` of the first stage; `seen` is shown every stage."""
        if isinstance(self.transitions, OnDevice):
            return self.transitions.induct_best(self, discount, horizon, seen)
        values, q = self._zeros(), np.empty_like(self.rewards)
        for k in range(horizon - 1, -1, -1):
            self.best(values, discount, q=q, out=values)
            if seen is not None:
                seen(k, q, values)
        return values, q

    def induct_follow(self, chances: FloatArray, discount: float, horizon: int, seen: Seen | None = None) -> FloatArray:
        """Values `[m,s]` of a policy, `chances[s,a]` or `chances[t,s,a]`; `seen` is shown every stage."""
        if isinstance(self.transitions, OnDevice):
            return self.transitions.induct_follow(self, chances, discount, horizon, seen)
        values, q = self._zeros(), np.empty_like(self.rewards)
        for k in range(horizon - 1, -1, -1):
            self.follow(values, chances if chances.ndim == 2 else chances[k], discount, q=q, out=values)
            if seen is not None:
                seen(k, q, values)
        return values

    def induct_own(self, discount: float, horizon: int) -> tuple[IntArray, FloatArray]:
        """Each model's own optimal policy and values: `actions[t,m,s]`, `values[m,s]`."""
        actions = np.empty((horizon, self.n_models, self.n_states), dtype=np.int64)

        def note(k: int, q: FloatArray, values: FloatArray) -> None:
            occupancy.own_actions(q, self.available, actions[k], values)

        values, _ = self.induct_best(discount, horizon, note)
        return actions, values

    def ascent(self, weights: FloatArray, start: FloatArray, discount: float, horizon: int, rounding: float) -> Ascent:
        """Coordinate ascent on time-indexed policies, in the layout that suits these models."""
        if isinstance(self.transitions, OnDevice):
            return DeviceAscent(self, self.transitions, weights, start, discount, horizon, rounding)
        if self._lanes_pay:
            return LanesAscent(*self.lanes(), self.available, weights, start, discount, horizon, rounding)
        return RowsAscent(self, weights, start, discount, horizon, rounding)

    # For ever.

    def solve(self, policy: FloatArray | IntArray, discount: float, rewards: FloatArray | None = None) -> FloatArray:
        """Values `[m,s]` without a horizon of a policy per model, `[m,s,a]` or its actions `[m,s]`, or of one for all,
        `[s,a]`: as the solver leaves them, which is exact up to rounding of the largest. `rewards[m,s]`: in place of
        the models' own."""
        policy, own = self._followed(policy)
        return self.transitions.solve(policy, own if rewards is None else rewards, discount)

    def enclose(self, policy: FloatArray | IntArray, discount: float) -> tuple[FloatArray, FloatArray]:
        """The same, exact up to rounding in each state; and `[m,s]`, how far each can be from the true value
        (`models.enclosing`)."""
        policy, rewards = self._followed(policy)
        several = policy.ndim == 3
        sizes = np.abs(rewards)
        if several:
            block = max(1, _BLOCK // self.rewards[0].size)
            for m in range(0, self.n_models, block):
                part = slice(m, m + block)
                np.einsum("msa,msa->ms", policy[part], np.abs(self.rewards[part]), out=sizes[part])
        rounding = self.rounding + (self.n_actions * UNIT if several else 0.0)
        return self.transitions.enclose(policy, rewards, sizes, discount, rounding)

    def _followed(self, policy: FloatArray | IntArray) -> tuple[FloatArray | IntArray, FloatArray]:
        """A policy of each model, and its rewards `[m,s]`."""
        if policy.dtype.kind == "i":
            begin = np.arange(0, self.rewards.size, self.n_actions).reshape(policy.shape)
            return policy, self.rewards.reshape(-1)[begin + policy]
        chances: FloatArray = np.broadcast_to(policy, self.rewards.shape)
        return chances, np.einsum("msa,msa->ms", chances, self.rewards)

    def below(self, policy: FloatArray | IntArray, discount: float) -> FloatArray:
        """The same, no more than the true values."""
        return lowered(*self.enclose(policy, discount))

    @property
    def rounding(self) -> float:
        """What rounding takes of a backup, as a share of `|r| + γP|V|`."""
        return rounding_of(self.transitions.longest)

    def from_above(
        self, discount: float, epsilon: float, max_sweeps: int, guess: FloatArray | None = None
    ) -> FloatArray:
        """`[m,s]`, at least each model's optimal values and falling under its own backup: within `epsilon` of them,
        or looser after `max_sweeps` sweeps, which begin with a `guess [m,s]`."""
        values = self._zeros() if guess is None else guess.copy()
        for part, rows in self.transitions.by_part():
            own = self.rewards[part], self.available
            values_from_above(rows, *own, discount, epsilon, max_sweeps, values[part])
        paid = np.where(self.available, self.rewards, -np.inf).max(axis=-1)  # by the best action in each state
        met = np.abs(values).max(axis=1) + divided(np.abs(paid).max(axis=1), left_after(discount))
        return np.asarray(values + divided(4.0 * self.rounding * met, left_after(discount))[:, None])

    def invert(self, actions: IntArray, discount: float, inverse: FloatArray) -> None:
        """`inverse[m] = ((I − γ P_m^π)^{-1})ᵀ` of a stationary policy `actions[s]`, `[m,t,s]`."""
        identity, chances = np.eye(self.n_states), np.zeros(self.rewards.shape[1:])
        np.put_along_axis(chances, actions[:, None], 1.0, axis=1)
        for m in range(self.n_models):
            inverse[m] = np.linalg.inv(identity - discount * self.transitions.chain(m, chances)).T

    def swap_gains(self, objective: swaps.Objective, gain: FloatArray) -> None:
        """What changing one action of a stationary policy adds to the objective, `gain[s,a]`."""
        swaps.gains(self.transitions.by_row(), objective, gain)

    def rows(self, state: int, action: int) -> FloatArray:
        """Next-state probabilities `[m,t]` of one pair in every model."""
        return np.ascontiguousarray(self.transitions.rows(state, action))

    # Layout.

    @property
    def _lanes_pay(self) -> bool:
        """Whether a models-last copy pays: several models, or rows too short for SIMD, and all of it fits the cache."""
        dense_bytes = 8 * self.n_models * self.n_states**2 * self.n_actions
        if isinstance(self.transitions, OnDevice) or dense_bytes > limits.LANES_BYTES:
            return False
        return self.n_models > 1 or self.n_states <= limits.SHORT_ROW

    def lanes(self) -> tuple[FloatArray, FloatArray]:
        """Models-last copies: probabilities `[s,a,t,m]` and rewards `[s,a,m]`."""
        return self.transitions.lanes(), copied(self.rewards.transpose(1, 2, 0))

    def _zeros(self) -> FloatArray:
        return np.zeros(self.rewards.shape[:2])


class HasModels(Protocol):
    """Anything made of models that share states and actions: an `MDP`, a `FiniteBelief`, a `ModelSet`."""

    @property
    def models(self) -> ModelSet: ...
