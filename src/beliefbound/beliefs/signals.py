"""What a step shows of the reward, as data: one class per signal.

In model `m` action `a` of state `s` leads to `t`; then value `k` of finitely many is shown, with a chance that the
signal knows per model, and per arrival where that matters. Bounds branch on the values, updates multiply by the chance
of the one that was seen, policies look it up: all three ask the same object.

* `Known`: rewards are the same function of state, action and arrival in every model, up to rounding; nothing to be
  learnt from them.
* `Unobserved`: the agent never sees rewards.
* `Deterministic`: a model pays one amount per (state, action), or per (state, action, next state); models that pay
  otherwise are ruled out. What is shown is the amount up to rounding: amounts within 1e-9 of each other are one, for
  the best agent there can be as for every policy (`beliefs.amounts` has the rule, and why bounds hold).
* `Bernoulli`: `high` with probability `(r − low)/(high − low)`, else `low`. A reward between the two, a fraction `x` of
  the way, counts as `x` successes and `1 − x` failures.
* `FiniteValues`: any finite set of values with chances per model.
* `Continuous`: rewards are seen but have no finite set of values. Such a belief has valid lower bounds, `E max` and
  QMDP, but no exact update.

A signal of your own is a subclass of `Signal` with `shown`, `likelihood` and `select`, and `joined` where it is to be
part of a mixture; see `Deterministic`.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np

from beliefbound.base.errors import BeliefError, ObservationError, ParameterError
from beliefbound.base.validation import (
    BoolArray,
    FloatArray,
    Frozen,
    IntArray,
    as_floats,
    check_distributions,
    check_finite,
    frozen,
    shown,
)
from beliefbound.beliefs.amounts import alike, merged, nearest
from beliefbound.models import ModelSet

RewardSignal = Literal["known", "deterministic", "bernoulli", "unobserved", "continuous"]
Shown = list[tuple[float, FloatArray]]


class Signal(Frozen):
    """What every signal answers.

    `name`: what it is called; `teaches`: whether an update needs the reward; `finite`: whether a step shows one of
    finitely many values; `common`: whether it shows the same reward in every model.
    """

    __slots__ = ()
    _called = "a reward signal"
    name: ClassVar[str]
    teaches: ClassVar[bool] = True
    finite: ClassVar[bool] = True
    common: ClassVar[bool] = False

    @property
    def range(self) -> tuple[float, float] | None:
        """The declared range of rewards, where the signal has one."""
        return None

    @property
    def rewards(self) -> FloatArray | None:
        """Expected rewards `[m,s,a]`, or on arrival `[m,s,a,t]`, where they follow from the signal alone."""
        return None

    @property
    def on_arrival(self) -> FloatArray | None:
        """Rewards `[m,s,a,t]`, or `[1,s,a,t]`, where what is paid depends on the arrival."""
        return None

    def shown(self, state: int, action: int, arrivals: IntArray) -> Shown:
        """Every value that a step may show (NaN: nothing) with its chance `[m,i]` on the way to each of `arrivals[i]`;
        axes of length one where model or arrival make no difference."""
        raise NotImplementedError

    def likelihood(self, state: int, action: int, reward: float, next_state: int) -> FloatArray:
        """Chance `[m]` of the reward that was seen; of length one where models do not differ."""
        raise NotImplementedError

    def select(self, models: IntArray) -> "Signal":
        """The same for the models with these indices."""
        raise NotImplementedError

    def joined(self, others: Sequence[Self]) -> "Signal":
        """The same for these models and then those of other signals of this class; an error where what they show would
        tell the one from the other."""
        raise BeliefError(f"rewards that show {self.name!r} cannot be joined; its class has no method joined")

    @property
    def heard(self) -> "Signal":
        """As it is where it is not silent."""
        return self


class _Silent(Signal):
    __slots__ = ()
    teaches = False

    def shown(self, state: int, action: int, arrivals: IntArray) -> Shown:
        return [(np.nan, np.ones((1, 1)))]

    def likelihood(self, state: int, action: int, reward: float, next_state: int) -> FloatArray:
        return np.ones(1)

    def select(self, models: IntArray) -> Signal:
        return self

    def joined(self, others: Sequence[Self]) -> Signal:
        return self


class Unobserved(_Silent):
    """Rewards are never seen."""

    __slots__ = ()
    name = "unobserved"


class Known(_Silent):
    """The same rewards in every model, so that seeing them adds nothing; `paid[s,a,t]` where they are on arrival."""

    __slots__ = ("paid",)
    name = "known"
    common = True
    paid: FloatArray | None

    def __init__(self, paid: FloatArray | None = None) -> None:
        self._set(paid=paid)

    @property
    def on_arrival(self) -> FloatArray | None:
        return None if self.paid is None else self.paid[None]


class Continuous(Signal):
    """Rewards are seen, and no two of them are alike."""

    __slots__ = ()
    name = "continuous"
    finite = False

    def shown(self, state: int, action: int, arrivals: IntArray) -> Shown:
        raise ParameterError(
            "rewards are continuous, so a step has no finite set of outcomes; use E max or QMDP (`upper_bound`)"
        )

    def likelihood(self, state: int, action: int, reward: float, next_state: int) -> FloatArray:
        raise ParameterError(
            "continuous rewards have no exact update on a finite belief; update the belief it was sampled from"
        )

    def select(self, models: IntArray) -> Signal:
        return self

    def joined(self, others: Sequence[Self]) -> Signal:
        return self


class Deterministic(Signal):
    """A model pays `paid[m,s,a]`, or `paid[m,s,a,t]` on arrival; what is seen of it is `amount`, where amounts that are
    equal up to rounding (`beliefs.amounts`) are the same number."""

    __slots__ = ("amount", "paid")
    name = "deterministic"
    paid: FloatArray
    amount: FloatArray

    def __init__(self, paid: FloatArray, amount: FloatArray | None = None) -> None:
        """`amount`: where it has been decided already."""
        if amount is None:
            amount = np.moveaxis(merged(np.moveaxis(paid, 0, -1)), -1, 0)
            amount = paid if np.array_equal(amount, paid) else frozen(amount)
        self._set(paid=paid, amount=amount)

    @property
    def on_arrival(self) -> FloatArray | None:
        return self.paid if self.paid.ndim == 4 else None

    def shown(self, state: int, action: int, arrivals: IntArray) -> Shown:
        amount = self.amount[:, state, action]
        amount = amount[:, None] if amount.ndim == 1 else amount[:, arrivals]
        return [(float(x), (amount == x).astype(np.float64)) for x in np.unique(amount)]

    def likelihood(self, state: int, action: int, reward: float, next_state: int) -> FloatArray:
        where = (slice(None), state, action, next_state)[: self.paid.ndim]
        amount = self.amount[where]
        same: FloatArray = (amount == nearest(self.paid[where], amount, reward, self.paid)).astype(np.float64)
        return same

    def select(self, models: IntArray) -> Signal:
        return Deterministic(frozen(self.paid[models]), frozen(self.amount[models]))

    def joined(self, others: Sequence[Self]) -> Signal:
        return Deterministic(frozen(np.concatenate([self.paid, *(each.paid for each in others)])))


class Bernoulli(Signal):
    """`high` or `low`, of mean `means[m,s,a]`, or `means[m,s,a,t]` on arrival."""

    __slots__ = ("high", "low", "means")
    name = "bernoulli"
    means: FloatArray
    low: float
    high: float

    def __init__(self, means: FloatArray, *, low: float = 0.0, high: float = 1.0) -> None:
        self._set(means=means, low=float(low), high=float(high))

    @property
    def range(self) -> tuple[float, float]:
        return self.low, self.high

    @property
    def on_arrival(self) -> FloatArray | None:
        return self.means if self.means.ndim == 4 else None

    def shown(self, state: int, action: int, arrivals: IntArray) -> Shown:
        means = self.means[:, state, action]
        means = means[:, None] if means.ndim == 1 else means[:, arrivals]
        chance = (means - self.low) / (self.high - self.low)
        return [(self.high, chance), (self.low, 1.0 - chance)]

    def likelihood(self, state: int, action: int, reward: float, next_state: int) -> FloatArray:
        if not self.low <= reward <= self.high:
            raise ObservationError(
                f"reward is {reward}; a Bernoulli reward lies between {self.low:g} and {self.high:g}"
            )
        means = self.means[(slice(None), state, action, next_state)[: self.means.ndim]]
        x = (reward - self.low) / (self.high - self.low)
        p = np.clip((means - self.low) / (self.high - self.low), 0.0, 1.0)
        likelihood: FloatArray = np.power(p, x) * np.power(1.0 - p, 1.0 - x)
        return likelihood

    def select(self, models: IntArray) -> Signal:
        return Bernoulli(frozen(self.means[models]), low=self.low, high=self.high)

    def joined(self, others: Sequence[Self]) -> Signal:
        if any(each.range != self.range for each in others):
            raise BeliefError("parts have rewards of different ranges; give all the same low= and high=")
        means = np.concatenate([self.means, *(each.means for each in others)])
        return Bernoulli(frozen(means), low=self.low, high=self.high)


class FiniteValues(Signal):
    """Value `k` of finitely many with probability `chances[m,s,a,k]`.

    Args:
      values: `[k]`, or `[s,a,k]`, or on arrival `[s,a,t,k]`.
      chances: `[m,s,a,k]`.

    >>> signal = FiniteValues([0.0, 1.0, 5.0], [[[[0.5, 0.5, 0.0]]], [[[0.5, 0.0, 0.5]]]])
    >>> signal.rewards.tolist(), signal.likelihood(0, 0, 5.0, 0).tolist()
    ([[[0.5]], [[2.5]]], [0.0, 0.5])
    """

    __slots__ = ("amount", "chances", "values")
    name = "finite"
    values: FloatArray  # [s,a,t or 1,k]
    amount: FloatArray  # the same, equal values made the same number
    chances: FloatArray

    def __init__(self, values: Any, chances: Any) -> None:
        c = as_floats(chances, "chances", BeliefError)
        if c.ndim != 4 or 0 in c.shape:
            raise BeliefError(f"chances have shape {c.shape}; expected [model, state, action, value]")
        check_distributions(c, "chances", ("model", "state", "action", "value"), BeliefError)
        v = as_floats(values, "values", BeliefError)
        n_states, n_actions, n_values = c.shape[1:]
        if v.shape not in ((n_values,), c.shape[1:], (n_states, n_actions, n_states, n_values)):
            raise BeliefError(
                f"values have shape {v.shape}; expected {(n_values,)}, {c.shape[1:]} or, on arrival, "
                f"{(n_states, n_actions, n_states, n_values)}, to go with chances of shape {c.shape}"
            )
        check_finite(v, "values", ("state", "action", "next state", "value")[-v.ndim :], BeliefError)
        if v.ndim < 4:
            v = np.broadcast_to(v, c.shape[1:])[:, :, None]
        self._set(values=frozen(v), amount=frozen(merged(v)), chances=frozen(c))

    @property
    def rewards(self) -> FloatArray:
        mean: FloatArray = np.einsum("msak,satk->msat", self.chances, self.values)
        return mean if mean.shape[3] > 1 else mean[..., 0]

    @property
    def on_arrival(self) -> FloatArray | None:
        return self.rewards if self.values.shape[2] > 1 else None

    @property
    def range(self) -> tuple[float, float]:
        return float(self.values.min()), float(self.values.max())

    def _amounts(self, state: int, action: int, arrivals: Any, source: FloatArray) -> FloatArray:
        there: FloatArray = source[state, action]
        return there[arrivals] if len(there) > 1 else there

    def shown(self, state: int, action: int, arrivals: IntArray) -> Shown:
        amount = self._amounts(state, action, arrivals, self.amount)  # [i,k]
        chances = self.chances[:, state, action]
        return [(float(x), chances @ (amount == x).astype(np.float64).T) for x in np.unique(amount)]

    def likelihood(self, state: int, action: int, reward: float, next_state: int) -> FloatArray:
        at = np.array([next_state])
        amount = self._amounts(state, action, at, self.amount)[0]
        seen = nearest(self._amounts(state, action, at, self.values)[0], amount, reward, self.values)
        likelihood: FloatArray = self.chances[:, state, action] @ (amount == seen)
        return likelihood

    def select(self, models: IntArray) -> Signal:
        return self._with(self.chances[models])

    def joined(self, others: Sequence[Self]) -> Signal:
        if not all(np.array_equal(each.values, self.values) for each in others):
            raise BeliefError("parts have rewards of different values; give all the same values")
        return self._with(np.concatenate([self.chances, *(each.chances for each in others)]))

    def _with(self, chances: FloatArray) -> "FiniteValues":
        part = FiniteValues.__new__(FiniteValues)
        part._set(values=self.values, amount=self.amount, chances=frozen(chances))
        return part


class SilentStates(Signal):
    """Another signal, except that nothing is to be seen in some states."""

    __slots__ = ("signal", "states")
    signal: Signal
    states: BoolArray

    def __init__(self, signal: Signal, states: BoolArray) -> None:
        self._set(signal=signal, states=frozen(states))

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.signal.name

    @property
    def teaches(self) -> bool:  # type: ignore[override]
        return self.signal.teaches

    @property
    def finite(self) -> bool:  # type: ignore[override]
        return self.signal.finite

    @property
    def common(self) -> bool:  # type: ignore[override]
        return self.signal.common

    @property
    def range(self) -> tuple[float, float] | None:
        return self.signal.range

    @property
    def on_arrival(self) -> FloatArray | None:
        paid = self.signal.on_arrival
        return None if paid is None else np.where(self.states[:, None, None], 0.0, paid)

    def shown(self, state: int, action: int, arrivals: IntArray) -> Shown:
        return (Unobserved() if self.states[state] else self.signal).shown(state, action, arrivals)

    def likelihood(self, state: int, action: int, reward: float, next_state: int) -> FloatArray:
        return (Unobserved() if self.states[state] else self.signal).likelihood(state, action, reward, next_state)

    def select(self, models: IntArray) -> Signal:
        return SilentStates(self.signal.select(models), self.states)

    @property
    def heard(self) -> Signal:
        return self.signal


def check_range(reward_range: Any, *, apart: bool = True) -> tuple[float, float]:
    """Two finite numbers, the first below the second; where they need not be `apart`, not above it."""
    ends = as_floats(reward_range, "reward_range", BeliefError)
    if ends.shape != (2,) or not np.isfinite(ends).all() or ends[0] > ends[1] or (apart and ends[0] == ends[1]):
        raise BeliefError(f"the reward range is {shown(reward_range)}; low must be below high, both finite")
    return float(ends[0]), float(ends[1])


def named_signal(
    name: str, models: ModelSet, on_arrival: FloatArray | None, reward_range: tuple[float, float] | None
) -> Signal:
    """A standard signal for models of expected rewards `rewards[m,s,a]`, or of rewards `on_arrival[m,s,a,t]`."""
    if not isinstance(name, str) or name not in get_args(RewardSignal):
        raise BeliefError(f"reward_signal is {shown(name)}; choose one of {', '.join(get_args(RewardSignal))}")
    paid = models.rewards if on_arrival is None else frozen(on_arrival)
    if name == "unobserved":
        return Unobserved()
    if name == "continuous":
        return Continuous()
    if name == "deterministic":
        return Deterministic(paid)
    possible = np.ones(paid.shape, dtype=np.bool_) if on_arrival is None else models.dense() > 0.0
    if name == "known":
        return _known(paid, possible, arrival=on_arrival is not None)
    range_ = (0.0, 1.0) if reward_range is None else check_range(reward_range)
    possible &= models.available[(..., None)[: paid.ndim - 2]]
    low, high = float(paid[possible].min()), float(paid[possible].max())
    if low < range_[0] or high > range_[1]:
        raise BeliefError(
            f"expected rewards span {low:g} to {high:g}, outside the Bernoulli range {range_}; "
            f"pass reward_range=(low, high)"
        )
    return Bernoulli(paid, low=range_[0], high=range_[1])


def _known(paid: FloatArray, possible: BoolArray, *, arrival: bool) -> Known:
    """The same in every model that can get there; one alone is not compared."""
    if len(paid) == 1:
        return Known(frozen(paid[0]) if arrival else None)
    first = possible.argmax(axis=0)[None]
    common = np.take_along_axis(paid, first, axis=0)
    differ = possible & ~alike(paid, common, paid)
    if differ.any():
        m, s, a, *_ = index = tuple(int(i) for i in np.argwhere(differ)[0])
        other = int(first[(0, *index[1:])])
        raise BeliefError(
            f"rewards[model {m}, state {s}, action {a}] is {paid[index]} but model {other} has "
            f"{common[(0, *index[1:])]}, so rewards are not known; pass reward_signal='deterministic', "
            f"'bernoulli' or 'unobserved'"
        )
    return Known(frozen(common[0]) if arrival else None)
