"""Independent beliefs about the mean reward of each (state, action)."""

from typing import Any, NamedTuple, Protocol, Self

import numpy as np
import scipy.special as special
import scipy.stats as stats

from beliefbound.errors import BeliefError, ObservationError
from beliefbound.kernels.draws import beta_models, normal_models
from beliefbound.validation import FloatArray, Frozen, IntArray, as_floats, check_finite, check_probability, frozen

StreamArray = np.ndarray[Any, np.dtype[np.uint64]]


class RewardColumns(NamedTuple):
    """A reward belief as `kernels.posterior` takes it: Dirichlet counts of finitely many values per pair."""

    counts: FloatArray  # [k,s,a]
    paid: FloatArray  # [k,s,a,1], or [k,s,a,t] where the reward depends on the arrival
    fractional: bool  # whether a reward between the two values counts as a share of each


class RewardBelief(Protocol):
    """What a product belief asks of its reward part. Arrays are `[s,a]`; `signal` is a `FiniteBelief` reward signal."""

    @property
    def signal(self) -> str: ...
    @property
    def range(self) -> tuple[float, float] | None:
        """Least and largest possible mean reward; `None` when unbounded."""

    def expand(self, n_states: int, n_actions: int) -> Self: ...
    def columns(self) -> RewardColumns | None:
        """Counts of values; `None` where rewards are continuous."""

    def mean(self) -> FloatArray: ...
    def update(self, states: IntArray, actions: IntArray, rewards: FloatArray) -> Self: ...
    def sample(self, n: int, stream: StreamArray) -> FloatArray: ...
    def log_marginal_likelihood(self, states: IntArray, actions: IntArray, rewards: FloatArray) -> float: ...
    def credible_intervals(self, mass: float = 0.95) -> tuple[FloatArray, FloatArray]: ...


def _per_pair(value: Any, n_states: int, n_actions: int, name: str, *, positive: bool) -> FloatArray:
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


class BetaRewards(Frozen):
    """Beta belief about mean rewards in a declared range; Bernoulli observations.

    Args:
      alpha, beta: prior successes and failures, one number or `[s,a]`.
      low, high: the declared range. A reward a fraction `x` of the way updates `alpha += x`, `beta += 1 − x`.

    >>> BetaRewards(1, 1).expand(1, 1).update(np.array([0]), np.array([0]), np.array([1.0])).mean().round(3).tolist()
    [[0.667]]
    """

    __slots__ = ("alpha", "beta", "high", "low")
    alpha: FloatArray
    beta: FloatArray
    low: float
    high: float
    signal = "bernoulli"
    _called = "a reward belief"

    def __init__(self, alpha: Any = 1.0, beta: Any = 1.0, *, low: float = 0.0, high: float = 1.0) -> None:
        if not low < high:
            raise BeliefError(f"the reward range is ({low}, {high}); low must be below high")
        self._set(alpha=np.asarray(alpha, float), beta=np.asarray(beta, float), low=float(low), high=float(high))

    @property
    def range(self) -> tuple[float, float]:
        return self.low, self.high

    def expand(self, n_states: int, n_actions: int) -> "BetaRewards":
        return BetaRewards(
            _per_pair(self.alpha, n_states, n_actions, "BetaRewards alpha", positive=True),
            _per_pair(self.beta, n_states, n_actions, "BetaRewards beta", positive=True),
            low=self.low,
            high=self.high,
        )

    def columns(self) -> RewardColumns:
        paid = np.stack([np.full_like(self.alpha, self.high), np.full_like(self.alpha, self.low)])
        return RewardColumns(np.stack([self.alpha, self.beta]), paid[..., None], True)

    def mean(self) -> FloatArray:
        mean: FloatArray = self.low + (self.high - self.low) * self.alpha / (self.alpha + self.beta)
        return mean

    def _fractions(self, states: IntArray, actions: IntArray, rewards: FloatArray) -> FloatArray:
        bad = ~((rewards >= self.low) & (rewards <= self.high))
        if bad.any():
            i = int(np.argmax(bad))
            raise ObservationError(
                f"reward {i}, seen in state {states[i]} after action {actions[i]}, is {rewards[i]}, outside the "
                f"declared range {self.low:g} to {self.high:g}; pass BetaRewards(..., low=..., high=...)"
            )
        fractions: FloatArray = (rewards - self.low) / (self.high - self.low)
        return fractions

    def update(self, states: IntArray, actions: IntArray, rewards: FloatArray) -> "BetaRewards":
        x = self._fractions(states, actions, rewards)
        alpha, beta = self.alpha.copy(), self.beta.copy()
        np.add.at(alpha, (states, actions), x)
        np.add.at(beta, (states, actions), 1.0 - x)
        return BetaRewards(frozen(alpha), frozen(beta), low=self.low, high=self.high)

    def sample(self, n: int, stream: StreamArray) -> FloatArray:
        out = np.empty((n, *self.alpha.shape))
        beta_models(stream, self.alpha, self.beta, self.low, self.high, out)
        return out

    def log_marginal_likelihood(self, states: IntArray, actions: IntArray, rewards: FloatArray) -> float:
        """Log probability of the rewards as Bernoulli outcomes (a pseudo-value for fractional ones)."""
        after = self.update(states, actions, rewards)
        return float((special.betaln(after.alpha, after.beta) - special.betaln(self.alpha, self.beta)).sum())

    def credible_intervals(self, mass: float = 0.95) -> tuple[FloatArray, FloatArray]:
        tail = (1.0 - check_probability(mass, "mass")) / 2
        width = self.high - self.low
        law = stats.beta(self.alpha, self.beta)
        return self.low + width * law.ppf(tail), self.low + width * law.ppf(1.0 - tail)


class NormalRewards(Frozen):
    """Normal rewards of unknown mean and precision: a Normal-Gamma belief per (state, action).

    Precision `τ ~ Gamma(shape, rate)`, mean given `τ` is `Normal(mean, 1/(strength·τ))`; each parameter one number or
    `[s,a]`. Sampled models carry the signal `continuous`: see `FiniteBelief`.

    >>> NormalRewards(0.0).expand(1, 1).update(np.array([0]), np.array([0]), np.array([2.0])).mean().tolist()
    [[1.0]]
    """

    __slots__ = ("location", "rate", "shape", "strength")
    location: FloatArray
    strength: FloatArray
    shape: FloatArray
    rate: FloatArray
    signal = "continuous"
    _called = "a reward belief"
    range = None

    def __init__(self, mean: Any = 0.0, *, strength: Any = 1.0, shape: Any = 2.0, rate: Any = 1.0) -> None:
        self._set(
            location=np.asarray(mean, float),
            strength=np.asarray(strength, float),
            shape=np.asarray(shape, float),
            rate=np.asarray(rate, float),
        )

    def expand(self, n_states: int, n_actions: int) -> "NormalRewards":
        return NormalRewards(
            _per_pair(self.location, n_states, n_actions, "NormalRewards mean", positive=False),
            strength=_per_pair(self.strength, n_states, n_actions, "NormalRewards strength", positive=True),
            shape=_per_pair(self.shape, n_states, n_actions, "NormalRewards shape", positive=True),
            rate=_per_pair(self.rate, n_states, n_actions, "NormalRewards rate", positive=True),
        )

    def columns(self) -> None:
        return None

    def mean(self) -> FloatArray:
        return self.location

    def update(self, states: IntArray, actions: IntArray, rewards: FloatArray) -> "NormalRewards":
        if not np.isfinite(rewards).all():
            i = int(np.argmax(~np.isfinite(rewards)))
            raise ObservationError(f"reward {i} is {rewards[i]}; rewards must be finite numbers")
        count, total, squares = (np.zeros(self.location.shape) for _ in range(3))
        np.add.at(count, (states, actions), 1.0)
        np.add.at(total, (states, actions), rewards)
        average = np.divide(total, count, out=np.zeros_like(total), where=count > 0)
        np.add.at(squares, (states, actions), (rewards - average[states, actions]) ** 2)
        strength = self.strength + count
        gap = average - self.location
        return NormalRewards(
            frozen((self.strength * self.location + total) / strength),
            strength=frozen(strength),
            shape=frozen(self.shape + count / 2),
            rate=frozen(self.rate + squares / 2 + self.strength * count * gap**2 / (2 * strength)),
        )

    def sample(self, n: int, stream: StreamArray) -> FloatArray:
        out = np.empty((n, *self.location.shape))
        normal_models(stream, self.location, self.strength, self.shape, self.rate, out)
        return out

    def log_marginal_likelihood(self, states: IntArray, actions: IntArray, rewards: FloatArray) -> float:
        after = self.update(states, actions, rewards)
        terms = (
            special.gammaln(after.shape)
            - special.gammaln(self.shape)
            + self.shape * np.log(self.rate)
            - after.shape * np.log(after.rate)
            + 0.5 * (np.log(self.strength) - np.log(after.strength))
        )
        return float(terms.sum() - len(rewards) / 2 * np.log(2 * np.pi))

    def credible_intervals(self, mass: float = 0.95) -> tuple[FloatArray, FloatArray]:
        tail = (1.0 - check_probability(mass, "mass")) / 2
        scale = np.sqrt(self.rate / (self.shape * self.strength))
        reach = stats.t(2 * self.shape).ppf(1.0 - tail) * scale
        return self.location - reach, self.location + reach


class KnownRewards(Frozen):
    """Rewards that are not in doubt: `[s,a]`, `[s]` per state, or one number.

    >>> KnownRewards([[0.0, 1.0]]).expand(1, 2).mean().tolist()
    [[0.0, 1.0]]
    """

    __slots__ = ("rewards",)
    rewards: FloatArray
    signal = "known"
    _called = "a reward belief"

    def __init__(self, rewards: Any) -> None:
        self._set(rewards=as_floats(rewards, "KnownRewards", BeliefError))

    @property
    def range(self) -> tuple[float, float]:
        return float(self.rewards.min()), float(self.rewards.max())

    def expand(self, n_states: int, n_actions: int) -> "KnownRewards":
        rewards = self.rewards
        if rewards.shape == (n_states,):
            rewards = rewards[:, None]
        return KnownRewards(_per_pair(rewards, n_states, n_actions, "KnownRewards", positive=False))

    def columns(self) -> RewardColumns:
        return RewardColumns(np.ones((1, *self.rewards.shape)), self.rewards[None, ..., None], False)

    def mean(self) -> FloatArray:
        return self.rewards

    def update(self, states: IntArray, actions: IntArray, rewards: FloatArray) -> "KnownRewards":
        return self

    def sample(self, n: int, stream: StreamArray) -> FloatArray:
        return np.broadcast_to(self.rewards, (n, *self.rewards.shape))

    def log_marginal_likelihood(self, states: IntArray, actions: IntArray, rewards: FloatArray) -> float:
        return 0.0

    def credible_intervals(self, mass: float = 0.95) -> tuple[FloatArray, FloatArray]:
        return self.rewards, self.rewards
