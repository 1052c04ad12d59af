"""Models on an accelerator: the stage operations of `ModelSet` in the array API, so that arrays of PyTorch, CuPy, JAX
and NumPy serve alike (`models.device`).

A backup is one batched product, `Q = r + P(γV)`, limited by how fast the card reads `P`: 8·M·S²·A bytes a stage. Values
stay on the card from stage to stage; policies and the first stage's values come back. Models that do not fit beside
each other stay where they are and are sent block by block at every stage.

Sums are in another order than the processor's, so values agree to rounding, and policies where no two actions do. What
is solved for ever, and what proofs read, is in double precision always: in single precision only sweeps are.
"""

import math
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from beliefbound.base.errors import ParameterError
from beliefbound.base.validation import BoolArray, FloatArray, IntArray
from beliefbound.models import enclosing
from beliefbound.models.dense import Dense
from beliefbound.models.device import Device
from beliefbound.models.enclosing import Linear

if TYPE_CHECKING:
    from beliefbound.models.model_set import ModelSet

_SOLVE_BYTES = 2 << 30  # of linear systems that are solved together
_BLOCK_BYTES = 4 << 30  # of models that are sent together, or less where the card has less
_SPARE = 0.9  # of what is free: the rest is for the library's own scratch


class OnDevice:
    """Transition probabilities `[m,s,a,t]` on a device, and the stages of planners there.

    `blocks[i]` holds the rows `[m,(s,a),t]` of consecutive models, on the device or, where it is full, still here.
    """

    close = Dense.close

    def __init__(self, device: Device, blocks: list[Any], shape: tuple[int, int, int], host: FloatArray | None) -> None:
        self.on, self.shape, self._blocks, self._host = device, shape, blocks, host

    @classmethod
    def of(cls, array: FloatArray, device: Device) -> "OnDevice":
        """An array `[m,s,a,t]`: as much of it as fits, sent; before anything is, an error where too little does."""
        n_models, n_states, n_actions, _ = array.shape
        each = np.dtype(device.dtype).itemsize
        model = each * n_states * n_states * (n_actions + 1)  # and its rows under one policy
        values = 8 * each * n_models * n_states * (n_actions + 2)
        free, needed = _SPARE * device.free_bytes() - values, n_models * model
        if free < 3 * model and free < needed:
            raise ParameterError(
                f"{n_models} models of {n_states} states and {n_actions} actions need {(needed + values) / 2**30:.3g} "
                f"GiB on {device.name}, and {(3 * model + values) / 2**30:.3g} at the least, sent one by one; "
                f"{device.free_bytes() / 2**30:.3g} are free: use fewer models, or no device"
            )
        size = max(1, int(min(_BLOCK_BYTES, free / 4) // model)) if needed > free else n_models
        fits = n_models if needed <= free else max(0, int(free // model) - 2 * size)  # two are there at a time
        blocks = [device.send(array[:fits].reshape(fits, -1, n_states))] if fits else []
        rest = (array[i : i + size] for i in range(fits, n_models, size))
        blocks += [device.hold(some.reshape(len(some), -1, n_states)) for some in rest]
        return cls(device, blocks, (n_models, n_states, n_actions), array)

    # As any representation of models.

    @cached_property
    def array(self) -> FloatArray:
        """`[m,s,a,t]` in NumPy: what was given, or fetched when first asked for."""
        if self._host is not None:
            return self._host
        n_models, n_states, n_actions = self.shape
        fetched = np.concatenate([self.on.fetch(block) for block in self._blocks])
        fetched = fetched.reshape(n_models, n_states, n_actions, n_states)
        fetched.flags.writeable = False
        return fetched

    @cached_property
    def _dense(self) -> Dense:
        return Dense(self.array)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copied, or pickled, they are in memory of the processor again."""
        return Dense, (self.array,)

    def __getattr__(self, name: str) -> Any:
        """What is no matter of sweeps is asked of the array: rows, likelihoods, selections."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._dense, name)

    @property
    def n_entries(self) -> int:
        """Probabilities that one sweep reads."""
        return math.prod(self.shape) * self.shape[1]

    @property
    def longest(self) -> int:
        """Most entries of a row."""
        return self.shape[1]

    @property
    def unit(self) -> float:
        """A rounded operation of a sweep is off by at most this share."""
        return 2.0**-53 if self.on.dtype == "float64" else 2.0**-24

    def mean(self, weights: FloatArray) -> Dense:
        """`Σ_m w_m P_m`, as a set of one."""
        xp, w = self.on.xp, self.on.send(weights)
        total = sum(xp.tensordot(w[some], block, axes=1) for some, block in self.each())
        return Dense(self.on.fetch(total).reshape(1, *self.shape[1:], self.shape[1]))

    def backup(self, rewards: FloatArray, discount: float, values: FloatArray, q: FloatArray) -> None:
        """`q[m,s,a] = r + γ Σ_t P V`, in arrays of NumPy."""
        if self.unit > 2.0**-53:
            self._dense.backup(rewards, discount, values, q)
        else:
            q[:] = self.on.fetch(self._q(self.on.send(rewards), discount, self.on.send(values)))

    def solve(self, policy: FloatArray | IntArray, rewards: FloatArray, discount: float) -> FloatArray:
        """`[m,s]`: `(I − γ P_π) V = r_π` of a policy per model, in double precision."""
        if self.unit > 2.0**-53:
            return self._dense.solve(policy, rewards, discount)
        values = np.empty_like(rewards)
        for part, solve, _ in self._systems(policy, discount):
            values[part] = solve(rewards[part])
        return values

    def enclose(
        self, policy: FloatArray | IntArray, rewards: FloatArray, sizes: FloatArray, discount: float, rounding: float
    ) -> tuple[FloatArray, FloatArray]:
        """The same, and how far each value can be from the true one (`models.enclosing`)."""
        if self.unit > 2.0**-53:
            return self._dense.enclose(policy, rewards, sizes, discount, rounding)
        values, error = np.empty_like(rewards), np.empty_like(rewards)
        for part, solve, ahead in self._systems(policy, discount):
            found = enclosing.enclosed(solve, ahead, rewards[part], sizes[part], self.close, discount, rounding)
            values[part], error[part] = found
        return values, error

    # Stages, on the device.

    def greedy(self, models: "ModelSet", values: FloatArray, weights: FloatArray, discount: float) -> tuple[Any, Any]:
        """MMBI's step: `(actions [s], values [m,s])`."""
        there = Stage(models, self, discount)
        actions, new = there.greedy(self.on.send(weights), self.on.send(values))
        return self.on.fetch(actions), self.on.fetch(new)

    def induct_greedy(
        self, models: "ModelSet", weights: FloatArray, discount: float, horizon: int, terminal: FloatArray
    ) -> tuple[IntArray, FloatArray]:
        """As `ModelSet.induct_greedy`."""
        there, w, values = Stage(models, self, discount), self.on.send(weights), self.on.send(terminal)
        chosen = []
        for _ in range(horizon):
            actions, values = there.greedy(w, values)
            chosen.append(actions)
        stacked = self.on.fetch(self.on.xp.stack(chosen[::-1])).astype(np.int64)
        return np.ascontiguousarray(stacked), self.on.fetch(values)

    def induct_best(
        self, models: "ModelSet", discount: float, horizon: int, seen: Callable[[int, Any, Any], None] | None
    ) -> tuple[FloatArray, FloatArray]:
        """As `ModelSet.induct_best`."""
        there, xp = Stage(models, self, discount), self.on.xp
        values = self.on.send(np.zeros(self.shape[:2]))
        for k in range(horizon - 1, -1, -1):
            q = there.q(values)
            values = xp.max(there.masked(q), axis=-1)
            if seen is not None:
                seen(k, self.on.fetch(q), self.on.fetch(values))
        return self.on.fetch(values), self.on.fetch(q)

    def induct_follow(
        self,
        models: "ModelSet",
        chances: FloatArray,
        discount: float,
        horizon: int,
        seen: Callable[[int, Any, Any], None] | None,
    ) -> FloatArray:
        """As `ModelSet.induct_follow`."""
        there, xp = Stage(models, self, discount), self.on.xp
        values, sent = self.on.send(np.zeros(self.shape[:2])), self.on.send(chances)
        for k in range(horizon - 1, -1, -1):
            q = there.q(values)
            values = xp.sum(q * (sent if chances.ndim == 2 else sent[k]), axis=-1)
            if seen is not None:
                seen(k, self.on.fetch(q), self.on.fetch(values))
        return np.ascontiguousarray(self.on.fetch(values))

    def each(self) -> Iterator[tuple[slice, Any]]:
        """Which models, and their rows `[m,(s,a),t]` on the device."""
        first = 0
        for block in self._blocks:
            last = first + block.shape[0]
            yield slice(first, last), self.on.send(block)
            first = last

    def _q(self, rewards: Any, discount: float, values: Any) -> Any:
        """`Q[m,s,a]` of arrays on the device."""
        xp, discounted = self.on.xp, discount * values
        ahead = [xp.matmul(p, discounted[some][:, :, None])[:, :, 0] for some, p in self.each()]
        joined = ahead[0] if len(ahead) == 1 else xp.concat(ahead, axis=0)
        return rewards + xp.reshape(joined, rewards.shape)

    def _systems(self, policy: FloatArray | IntArray, discount: float) -> Iterator[tuple[slice, Linear, Linear]]:
        """As in `Dense`: models in batches, and `x ↦ (I − γP)⁻¹x`, `x ↦ γPx` of the policy."""
        xp, (_, n_states, n_actions) = self.on.xp, self.shape
        batch = max(1, _SOLVE_BYTES // (8 * n_states**2))
        identity = self.on.send(np.eye(n_states))
        if policy.ndim == 2:
            policy = np.eye(n_actions)[policy.astype(np.int64)]
        for some, rows in self.each():
            for i in range(0, rows.shape[0], batch):
                part = slice(some.start + i, min(some.start + i + batch, some.stop))
                own = xp.reshape(rows[i : i + batch], (-1, n_states, n_actions, n_states))
                chances = self.on.send(np.ascontiguousarray(policy[part]))
                chain = xp.matmul(chances[:, :, None, :], own)[:, :, 0, :] * discount
                system = identity - chain

                def solve(x: FloatArray, system: Any = system) -> FloatArray:
                    found: FloatArray = self.on.fetch(xp.linalg.solve(system, self.on.send(x)[..., None])[..., 0])
                    return found

                def ahead(x: FloatArray, chain: Any = chain) -> FloatArray:
                    found: FloatArray = self.on.fetch(xp.matmul(chain, self.on.send(x)[..., None])[..., 0])
                    return found

                yield part, solve, ahead


class Stage:
    """What every stage needs, sent once."""

    def __init__(self, models: "ModelSet", sent: OnDevice, discount: float) -> None:
        self.sent, self.xp, self.discount = sent, sent.on.xp, discount
        self.rewards, self.available = sent.on.send(models.rewards), _mask(models.available, sent.on)
        n_models, n_states, n_actions = models.rewards.shape
        self.first = sent.on.send(np.arange(0, n_states * n_actions, n_actions))
        self.pairs = (n_models, n_states * n_actions)

    def q(self, values: Any) -> Any:
        """`Q[m,s,a]`."""
        return self.sent._q(self.rewards, self.discount, values)

    def masked(self, q: Any) -> Any:
        """`−inf` where an action is not available."""
        return q if self.available is None else q + self.available

    def take(self, q: Any, actions: Any) -> Any:
        """`q[m,s,actions[s]]`."""
        return self.xp.take(self.xp.reshape(q, self.pairs), self.first + actions, axis=1)

    def greedy(self, weights: Any, values: Any) -> tuple[Any, Any]:
        """`(actions [s], values [m,s])` of MMBI's step."""
        q = self.q(values)
        mixed = self.xp.reshape(self.xp.matmul(weights[None, :], self.xp.reshape(q, self.pairs)), q.shape[1:])
        actions = self.xp.argmax(self.masked(mixed), axis=-1)
        return actions, self.take(q, actions)


def _mask(available: BoolArray, on: Device) -> Any:
    """`[s,a]`, 0 where an action is available and −inf where not; nothing where all are."""
    return None if available.all() else on.send(np.where(available, 0.0, -np.inf))
