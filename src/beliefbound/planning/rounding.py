"""What rounding can take from values that were found by backups: graphs of beliefs, grids, backwards induction.

A backup `x = Σ_m b_m r_m + γ Σ_k p_k x_k`, in doubles, is off by at most `κ (Σ_m b_m |r_m| + γ Σ_k p_k a_k)`, with `κ`
some times the number of terms times `2⁻⁵³`, and `a_k = Σ_m b_m |V_m|` the size of what is behind `x_k`: posterior
weights are rounded as well, and values of opposite sign may cancel. So a value is off by at most

    κ E Σ_k γ^k (|r_k| + a_k)

along the policy that it belongs to. That is *not* a share of the largest reward there is: with a policy's value `v` at
the start and `P = E V⁺`, where `V⁺` is the optimal value of the model when negative rewards are left out,

    E Σ_k γ^k |r_k| ≤ |v| + 2P,      γ^k E a_k ≤ |v| + 4P      for every k,

as what is lost for ever is at most what is won minus `v`. What a policy that is worth `v` avoids does not count, and an
action that is forbidden at −10⁹ costs no digits. Over `D` backups this gives `κ (D + 1) (|v| + 4P)`. Without a horizon,
`D = 32/(1−γ)`: what comes later has faded by `e⁻³²`, and `γ^D` times the largest value there is covers it. Where all
values are of one size that is pessimistic, and `κ/(1−γ)` times a bound of all `a_k` is less: `a_k ≤ 2 max V⁺ + N`,
where the policy earns at least `−N` from anywhere on. The best one, which an upper bound must allow for, does so with
`−N` the worst reward of the best action in the worst state, for ever; any policy, with the worst reward there is. The
least of both is allowed for.

An upper bound plus this, and a lower bound minus this, hold in exact arithmetic for the numbers as they are stored.
"""

from functools import cached_property
from typing import Literal

import numpy as np

from beliefbound.base.validation import FloatArray, IntArray
from beliefbound.kernels.graph.search import SAME
from beliefbound.models import ModelSet
from beliefbound.models.enclosing import UNIT, enough, left_after, rounding_of
from beliefbound.planning.task import FiniteTask, effective_horizon, made_once_for_models

_FADED = 32.0  # times 1/(1 − γ): backups after which e⁻³² is left
_ENOUGH = 1e-9  # of a value: rounding that is bounded by the largest rewards may be this large
_SPARE = 1.01  # rounding of what is computed here
_WORK = 1e9  # multiply-adds for bounding gains more closely

Side = Literal["lower", "upper"]


def stages_of(discount: float, horizon: int | None) -> float:
    """Backups that count: those of a horizon, or until values have faded."""
    left = left_after(discount)
    faded = _FADED / left if left > 0.0 else np.inf
    return 2.0 + (faded if horizon is None else min(horizon, faded))


def gains(models: ModelSet, discount: float, horizon: int | None) -> FloatArray:
    """`[m,s]`, no less than `V⁺`: optimal values where negative rewards are left out. One sweep a stage, or a policy
    iteration."""
    from beliefbound.planning.optimal import optimal_values  # whose own rounding is bounded here

    won = ModelSet(models.transitions, np.maximum(models.rewards, 0.0), models.available)
    if horizon is None:
        return optimal_values(won, discount=discount).above
    values, _ = won.induct_best(discount, horizon)
    return values * (1.0 + 2.0 * models.rounding * stages_of(discount, horizon))


@made_once_for_models
def gains_of(task: FiniteTask) -> FloatArray:
    """The same of a task's models."""
    return gains(task.models, task.discount, task.horizon)


def most_gained(models: ModelSet, discount: float, horizon: int | None) -> FloatArray:
    """`[m]`, no less than `V⁺` anywhere: the largest reward, for ever."""
    most = np.where(models.available, models.rewards, -np.inf).max(axis=(1, 2))
    return np.asarray(np.maximum(most, 0.0) * effective_horizon(discount, horizon))


def induction_errors(
    models: ModelSet, values: FloatArray, q: FloatArray, discount: float, horizon: int
) -> tuple[FloatArray, FloatArray]:
    """`[m,s]` and `[m,s,a]`: how far values by backwards induction, each model by itself, can be from the true ones."""
    share = _SPARE * models.rounding * stages_of(discount, horizon)
    gained = most_gained(models, discount, horizon)[:, None]
    size = np.abs(values)
    if (4.0 * share * gained[:, 0] > enough(size, models.rewards)).any() and _affordable(models):
        gained = gains(models, discount, horizon)
    sizes = np.abs(models.rewards) + np.abs(q - models.rewards)
    return share * (size + 4.0 * gained), share * (sizes + 6.0 * gained[..., None])


class ChainErrors:
    """How far values of policies that backups have found, on each model by itself, can be from the true ones.

    >>> from beliefbound.beliefs import FiniteBelief
    >>> task = FiniteTask.of(FiniteBelief([[[[1.0]]]], [[[1.0]]]), discount=0.5)
    >>> bool(0.0 < ChainErrors(task)(np.array([[2.0]]), np.array([0]))[0, 0] < 1e-11)
    True
    """

    def __init__(self, task: FiniteTask) -> None:
        self.task, models = task, task.models
        self._share = _SPARE * rounding_of(2 * models.transitions.longest) * stages_of(task.discount, task.horizon)
        self._most = most_gained(models, task.discount, task.horizon)

    def __call__(self, values: FloatArray, states: IntArray) -> FloatArray:
        """`[i,m]`, of values `[i,m]` of policies that start in `states[i]`."""
        gained, size = self._most, np.abs(values)
        if (4.0 * self._share * gained > _ENOUGH * size).any() and _affordable(self.task.models):
            gained = gains_of(self.task).T[states]
        return np.asarray(self._share * (size + 4.0 * gained))


class Allowance:
    """How far values of a task's belief that backups have found can be from the true ones.

    `rows`: the most outcomes that a step can have, as they are told apart. `closely`: whether models may be solved once
    more where rewards differ so much in scale that it pays. `paid`: the largest amount that steps were charged with
    besides their rewards (`bounds.finite.joined`).

    >>> from beliefbound.beliefs import FiniteBelief
    >>> belief = FiniteBelief([[[[1.0]]], [[[1.0]]]], [[[1.0]], [[2.0]]], reward_signal="unobserved")
    >>> 0.0 < Allowance(FiniteTask.of(belief, discount=0.5))(3.0, "upper") < 1e-12
    True
    """

    def __init__(self, task: FiniteTask, rows: int = 0, *, closely: bool = True, paid: float = 0.0) -> None:
        self.task, models, lasting = task, task.models, task.effective_horizon
        self._closely = closely and _affordable(models)
        self._rounding = rounding_of(3 * models.n_models + max(rows, models.transitions.longest)) + SAME
        self.besides = 4.0 * self._rounding * paid * lasting if paid > 0.0 else 0.0
        self._stages, self._undiscounted = stages_of(task.discount, task.horizon), _SPARE * lasting + 3.0
        self._most = most_gained(models, task.discount, task.horizon)
        best = np.where(models.available, models.rewards.min(axis=0), -np.inf).max(axis=-1)
        worst = {"upper": float(best.min()), "lower": models.reward_range[0]}
        won = 2.0 * float(self._most.max())
        self._everywhere = {side: won + max(0.0, -reward) * lasting for side, reward in worst.items()}
        self._faded = np.exp(-_FADED) * task.largest_value * lasting if task.horizon is None else 0.0

    def lower(self, value: float) -> float:
        """A computed value, and no more than the true one."""
        return float(value) - self(value, "lower")

    def upper(self, value: float) -> float:
        """A computed value, and no less than the true one."""
        return float(value) + self(value, "upper")

    def __call__(self, value: float, side: Side) -> float:
        """What is allowed for in a bound at the start, or in one of an action there."""
        size = abs(float(value))
        allowed = self._undiscounted * self._everywhere[side] + 2.0 * size
        if self._rounding * allowed > _ENOUGH * size:
            along = self._along(size, float(self.task.weights @ self._most))
            if self._rounding * along > _ENOUGH * size and self._closely:
                along = self._along(size, self._gained)
            allowed = min(allowed, along)
        return float(_SPARE * self._rounding * allowed + 4.0 * UNIT * size + self.besides)

    def _along(self, size: float, gained: float) -> float:
        return self._stages * (size + 4.0 * gained) + self._faded

    @cached_property
    def _gained(self) -> float:
        return float(self.task.weights @ gains_of(self.task) @ self.task.start)


def _affordable(models: ModelSet) -> bool:
    """Whether solving the models once more is a matter of a moment."""
    if models.is_sparse:
        return 200.0 * models.n_entries <= _WORK
    return models.n_models * float(models.n_states) ** 3 + models.n_entries <= _WORK
