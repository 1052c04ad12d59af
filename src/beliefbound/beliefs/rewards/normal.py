"""Normal rewards of unknown mean and variance."""

from typing import Any

import numpy as np

from beliefbound.base.errors import ObservationError
from beliefbound.base.validation import FloatArray, Frozen, IntArray, check_probability, frozen
from beliefbound.beliefs.rewards.belief import RewardSample, StreamArray, numbers, per_pair
from beliefbound.beliefs.signals import Continuous
from beliefbound.kernels.draws import normal_models


class NormalRewards(Frozen):
    """Normal rewards of unknown mean and precision: a Normal-Gamma belief per (state, action).

    Precision `τ ~ Gamma(shape, rate)`, mean given `τ` is `Normal(mean, 1/(strength·τ))`; each parameter one number or
    `[s,a]`. Sampled models carry the signal `continuous`.

    >>> NormalRewards(0.0).expand(1, 1).update(np.array([0]), np.array([0]), np.array([2.0])).mean().tolist()
    [[1.0]]
    """

    __slots__ = ("location", "rate", "shape", "strength")
    location: FloatArray
    strength: FloatArray
    shape: FloatArray
    rate: FloatArray
    learns = True
    _called = "a reward belief"
    range = None

    def __init__(self, mean: Any = 0.0, *, strength: Any = 1.0, shape: Any = 2.0, rate: Any = 1.0) -> None:
        self._set(
            location=numbers(mean, "NormalRewards mean", positive=False),
            strength=numbers(strength, "NormalRewards strength", positive=True),
            shape=numbers(shape, "NormalRewards shape", positive=True),
            rate=numbers(rate, "NormalRewards rate", positive=True),
        )

    def expand(self, n_states: int, n_actions: int) -> "NormalRewards":
        return NormalRewards(
            per_pair(self.location, n_states, n_actions, "NormalRewards mean", positive=False),
            strength=per_pair(self.strength, n_states, n_actions, "NormalRewards strength", positive=True),
            shape=per_pair(self.shape, n_states, n_actions, "NormalRewards shape", positive=True),
            rate=per_pair(self.rate, n_states, n_actions, "NormalRewards rate", positive=True),
        )

    def columns(self) -> None:
        return None

    def mean(self) -> FloatArray:
        return self.location

    def update(
        self,
        states: IntArray,
        actions: IntArray,
        rewards: FloatArray,
        *,
        times: IntArray | None = None,
        scatter: FloatArray | None = None,
    ) -> "NormalRewards":
        """The posterior. With `times`, a reward may be the mean of so many, whose squared distances from it sum to
        `scatter`."""
        if not np.isfinite(rewards).all():
            i = int(np.argmax(~np.isfinite(rewards)))
            raise ObservationError(f"reward {i} is {rewards[i]}; rewards must be finite numbers")
        often = np.ones(len(rewards)) if times is None else times.astype(np.float64)
        count, total, squares = (np.zeros(self.location.shape) for _ in range(3))
        np.add.at(count, (states, actions), often)
        np.add.at(total, (states, actions), often * rewards)
        average = np.divide(total, count, out=np.zeros_like(total), where=count > 0)
        apart = often * (rewards - average[states, actions]) ** 2
        np.add.at(squares, (states, actions), apart if scatter is None else apart + scatter)
        strength = self.strength + count
        gap = average - self.location
        return NormalRewards(
            frozen((self.strength * self.location + total) / strength),
            strength=frozen(strength),
            shape=frozen(self.shape + count / 2),
            rate=frozen(self.rate + squares / 2 + self.strength * count * gap**2 / (2 * strength)),
        )

    def sample(self, n: int, stream: StreamArray) -> RewardSample:
        out = np.empty((n, *self.location.shape))
        normal_models(stream, self.location, self.strength, self.shape, self.rate, out)
        return RewardSample(out, Continuous())

    def log_marginal_likelihood(self, states: IntArray, actions: IntArray, rewards: FloatArray) -> float:
        import scipy.special as special

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
        import scipy.stats as stats  # takes half a second, which most programs need not spend

        tail = (1.0 - check_probability(mass, "mass")) / 2
        scale = np.sqrt(self.rate / (self.shape * self.strength))
        reach = stats.t(2 * self.shape).ppf(1.0 - tail) * scale
        return self.location - reach, self.location + reach
