"""One sweep of coordinate ascent (CADP) on models that are on an accelerator; `models.ascent` has the others."""

from typing import TYPE_CHECKING, Any

import numpy as np

from beliefbound.base.validation import FloatArray, IntArray
from beliefbound.kernels.planning.occupancy import NEGLIGIBLE
from beliefbound.models.on_device import OnDevice, Stage

if TYPE_CHECKING:
    from beliefbound.models.model_set import ModelSet


class DeviceAscent:
    """See `models.ascent.Ascent`."""

    def __init__(
        self,
        models: "ModelSet",
        sent: OnDevice,
        weights: FloatArray,
        start: FloatArray,
        discount: float,
        horizon: int,
        rounding: float,
    ) -> None:
        self._stage, self._sent, self._rounding = Stage(models, sent, discount), sent, rounding
        self._weights, self._start, self._horizon = np.array(weights), np.array(start), horizon
        self._w = sent.on.send(weights)
        self._b = [sent.on.send(weights[:, None] * start)]

    @property
    def occupancies(self) -> FloatArray:
        """See `Ascent`."""
        return np.stack([self._sent.on.fetch(each) for each in self._b])

    def sweep(self, actions: IntArray, first: int) -> tuple[int, float, FloatArray]:
        """See `Ascent`."""
        stage, xp, on = self._stage, self._stage.xp, self._sent.on
        old = on.send(actions)
        self._forward(old, first)
        values = on.send(np.zeros(self._sent.shape[:2]))
        changed, chosen = [None] * self._horizon, [None] * self._horizon
        for k in range(self._horizon - 1, -1, -1):
            q, b = stage.q(values), self._b[k]
            mass = xp.sum(b, axis=0)
            met = mass > NEGLIGIBLE
            used = xp.where(met[None, :], b, self._w[:, None] + 0.0 * b)
            mixed = stage.masked(xp.sum(used[:, :, None] * q, axis=0))
            best = xp.argmax(mixed, axis=-1)
            flat, slack = xp.reshape(mixed, (-1,)), self._rounding * xp.where(met, mass, 1.0 + 0.0 * mass)
            kept, gained = xp.take(flat, stage.first + old[k], axis=0), xp.take(flat, stage.first + best, axis=0)
            better = gained > kept + slack
            chosen[k] = xp.where(better, best, old[k])
            changed[k] = xp.any(better)
            values = stage.take(q, chosen[k])
        actions[:] = on.fetch(xp.stack(chosen))
        moved, found = np.flatnonzero(on.fetch(xp.stack(changed))), np.ascontiguousarray(on.fetch(values))
        new = int(moved[0]) if len(moved) else self._horizon
        return new, float(self._weights @ found @ self._start), found

    def _forward(self, actions: Any, first: int) -> None:
        xp = self._stage.xp
        del self._b[first + 1 :]
        for k in range(len(self._b) - 1, self._horizon - 1):
            rows = self._stage.first + actions[k]
            later = [
                xp.matmul(self._b[k][some][:, None, :], xp.take(p, rows, axis=1))[:, 0, :]
                for some, p in self._sent.each()
            ]
            self._b.append(later[0] if len(later) == 1 else xp.concat(later, axis=0))
