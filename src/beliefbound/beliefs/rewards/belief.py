"""What a product belief asks of its reward part: one class is a reward model.

Write a class with the methods of `RewardBelief` and hand an instance to `DirichletBelief(..., rewards=...)`. Rewards of
different (state, action) pairs are independent, and independent of the transitions. `columns` decides what works:

* counts of finitely many values (Dirichlet-multinomial, of which Beta and known rewards are the cases of two values
  and of one): agents, and brackets by particles of the exact posterior;
* `None`, rewards without counts: planning on samples, and brackets from sampled models.
"""

from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from beliefbound.base.errors import BeliefError
from beliefbound.base.validation import FloatArray, IntArray, as_floats, check_finite, frozen
from beliefbound.beliefs.signals import Signal

StreamArray = np.ndarray[Any, np.dtype[np.uint64]]


class RewardColumns(NamedTuple):
    """A reward belief as `kernels.posterior` takes it: Dirichlet counts of finitely many values per pair."""

    counts: FloatArray  # [k,s,a]
    paid: FloatArray  # [k,s,a,1], or [k,s,a,t] where the reward depends on the arrival
    fractional: bool  # whether a reward between the two values counts as a share of each


class RewardSample(NamedTuple):
    """Rewards of `n` models, and what their steps show of them."""

    rewards: FloatArray  # expected ones [n,s,a], or on arrival [n,s,a,t]
    signal: Signal


class RewardBelief(Protocol):
    """Independent beliefs about the rewards of each (state, action).

    Immutable: `update` returns another one. `states`, `actions`, `rewards` are arrays of equal length, ids checked.
    """

    @property
    def learns(self) -> bool:
        """Whether an update needs the rewards."""

    @property
    def range(self) -> tuple[float, float] | None:
        """Least and largest possible expected reward; `None` when unbounded."""

    def expand(self, n_states: int, n_actions: int) -> Self:
        """The same for so many states and actions, checked: what the belief keeps."""

    def mean(self) -> FloatArray:
        """Expected rewards `[s,a]`, or on arrival `[s,a,t]`."""

    def columns(self) -> RewardColumns | None:
        """Counts of values; `None` where there are none."""

    def update(
        self, states: IntArray, actions: IntArray, rewards: FloatArray, *, times: IntArray | None = None
    ) -> Self:
        """The posterior; raises `ObservationError` for a reward that cannot be. `times`: how often each was seen."""

    def sample(self, n: int, stream: StreamArray) -> RewardSample:
        """Rewards of `n` independent models, drawn with `kernels.draws` from a stream."""

    def log_marginal_likelihood(self, states: IntArray, actions: IntArray, rewards: FloatArray) -> float:
        """Log probability, or density, of these rewards."""

    def credible_intervals(self, mass: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Equal-tailed intervals for the expected reward of each pair."""


def numbers(value: Any, name: str, *, positive: bool) -> FloatArray:
    """Whatever their number: finite, and above zero where `positive`."""
    array = as_floats(value, name, BeliefError)
    if array.size == 1:
        check_finite(array.reshape(()), name, (), BeliefError)
    axes = ("state", "action", "next state")[: array.ndim] if array.ndim <= 3 else ("axis",) * array.ndim
    check_finite(array, name, axes, BeliefError)
    if positive and not (array > 0).all():
        raise BeliefError(f"{name} is {array[~(array > 0)].flat[0]}; it must be above 0")
    return array


def per_pair(value: Any, n_states: int, n_actions: int, name: str, *, positive: bool) -> FloatArray:
    """One number, or one per pair, as `[s,a]`: finite, and above zero where `positive`."""
    array = as_floats(value, name, BeliefError)
    if array.ndim == 1 and array.shape == (1,):
        array = array.reshape(())
    try:
        full = np.array(np.broadcast_to(array, (n_states, n_actions)))
    except ValueError:
        raise BeliefError(f"{name} has shape {array.shape}; expected one number or ({n_states}, {n_actions})") from None
    check_finite(full, name, ("state", "action"), BeliefError)
    if positive and not (full > 0).all():
        s, a = (int(i) for i in np.argwhere(~(full > 0))[0])
        raise BeliefError(f"{name}[state {s}, action {a}] is {full[s, a]}; it must be above 0")
    return frozen(full)
