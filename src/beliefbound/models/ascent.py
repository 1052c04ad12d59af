"""One sweep of coordinate ascent on time-indexed policies (CADP), in two layouts: `kernels.planning.occupancy`."""

from typing import TYPE_CHECKING, Protocol

import numpy as np

from beliefbound.base.validation import BoolArray, FloatArray, IntArray
from beliefbound.kernels.lines import zeros
from beliefbound.kernels.planning import occupancy
from beliefbound.kernels.planning.sweep import lanes_of

if TYPE_CHECKING:
    from beliefbound.models.model_set import ModelSet


class Ascent(Protocol):
    """The occupancies of one policy after another; made by `ModelSet.ascent`."""

    @property
    def occupancies(self) -> FloatArray:
        """`b[k,m,s]` of the policy last swept: the weight of a model times its chance of a state. In states that are
        never met it may be that of the model alone."""

    def sweep(self, actions: IntArray, first: int) -> tuple[int, float, FloatArray]:
        """Occupancies of `actions [t,s]` after stage `first`, then one improvement of every stage, in place.

        Returns the first stage that changed (the horizon when none did), the new objective `Σ_m w_m p0·V_m`, and the
        values `[m,s]`.
        """


class LanesAscent:
    """For small problems: models last, one SIMD lane each, a sweep in one call. `p[s,a,t,m]`, `r[s,a,m]`."""

    def __init__(
        self,
        p: FloatArray,
        r: FloatArray,
        available: BoolArray,
        weights: FloatArray,
        start: FloatArray,
        discount: float,
        horizon: int,
        rounding: float,
    ) -> None:
        n_states, n_models = r.shape[0], r.shape[2]
        b, mass = zeros(horizon, n_states, n_models), np.empty((horizon, n_states))
        total = float(weights.sum())
        met = start * total > occupancy.NEGLIGIBLE
        mass[0] = np.where(met, start * total, 0.0)
        b[0] = np.where(met, start, 1.0)[:, None] * weights
        self._lanes, self._start = lanes_of(p, r, np.array(weights), available, discount), np.array(start)
        self._b, self._mass, self._rounding = b, mass, rounding
        self._shape = (n_states, n_models)

    @property
    def occupancies(self) -> FloatArray:
        """See `Ascent`."""
        return self._b.transpose(0, 2, 1)

    def sweep(self, actions: IntArray, first: int) -> tuple[int, float, FloatArray]:
        """See `Ascent`."""
        v = np.empty(self._shape)
        fixed = self._lanes, self._start, self._rounding
        first, rho = occupancy.ascend_lanes(*fixed, first, self._b, self._mass, actions, v)
        return first, rho, v.T


class RowsAscent:
    """For large problems: the models where they are, dense or compressed, one backup a stage."""

    def __init__(
        self,
        models: "ModelSet",
        weights: FloatArray,
        start: FloatArray,
        discount: float,
        horizon: int,
        rounding: float,
    ) -> None:
        n_models, n_states, n_actions = models.rewards.shape
        self._models, self._discount, self._horizon, self._rounding = models, discount, horizon, rounding
        self._weights, self._start = np.array(weights), np.array(start)
        self._b, self._mass = np.empty((horizon, n_models, n_states)), np.empty(n_states)
        self._b[0] = self._weights[:, None] * self._start
        self._q, self._mixed = np.empty_like(models.rewards), np.empty((n_states, n_actions))

    @property
    def occupancies(self) -> FloatArray:
        """See `Ascent`."""
        return self._b

    def sweep(self, actions: IntArray, first: int) -> tuple[int, float, FloatArray]:
        """See `Ascent`."""
        models = self._models
        models.transitions.forward(actions, first, self._b)
        values = np.zeros((models.n_models, models.n_states))
        first = self._horizon
        for k in range(self._horizon - 1, -1, -1):
            models.backup(values, self._discount, self._q)
            if occupancy.improve_stage(
                self._q,
                self._weights,
                models.available,
                self._b[k],
                self._rounding,
                self._mixed,
                self._mass,
                actions[k],
                values,
            ):
                first = k
        return first, float(self._weights @ values @ self._start), values
