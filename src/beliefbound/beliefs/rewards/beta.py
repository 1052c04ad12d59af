"""Bernoulli rewards of unknown probability: a Beta belief per (state, action)."""

from typing import Any

import numpy as np

from beliefbound.base.errors import ObservationError
from beliefbound.base.validation import FloatArray, Frozen, IntArray, check_probability, frozen
from beliefbound.beliefs.rewards.belief import RewardColumns, RewardSample, StreamArray, numbers, per_pair
from beliefbound.beliefs.signals import Bernoulli, check_range
from beliefbound.kernels.draws import beta_models


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
    learns = True
    _called = "a reward belief"

    def __init__(self, alpha: Any = 1.0, beta: Any = 1.0, *, low: float = 0.0, high: float = 1.0) -> None:
        low, high = check_range((low, high))
        self._set(
            alpha=numbers(alpha, "BetaRewards alpha", positive=True),
            beta=numbers(beta, "BetaRewards beta", positive=True),
            low=float(low),
            high=float(high),
        )

    @property
    def range(self) -> tuple[float, float]:
        return self.low, self.high

    def expand(self, n_states: int, n_actions: int) -> "BetaRewards":
        return BetaRewards(
            per_pair(self.alpha, n_states, n_actions, "BetaRewards alpha", positive=True),
            per_pair(self.beta, n_states, n_actions, "BetaRewards beta", positive=True),
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

    def update(
        self, states: IntArray, actions: IntArray, rewards: FloatArray, *, times: IntArray | None = None
    ) -> "BetaRewards":
        x = self._fractions(states, actions, rewards)
        often: Any = 1.0 if times is None else times
        alpha, beta = self.alpha.copy(), self.beta.copy()
        np.add.at(alpha, (states, actions), often * x)
        np.add.at(beta, (states, actions), often * (1.0 - x))
        return BetaRewards(frozen(alpha), frozen(beta), low=self.low, high=self.high)

    def sample(self, n: int, stream: StreamArray) -> RewardSample:
        out = np.empty((n, *self.alpha.shape))
        beta_models(stream, self.alpha, self.beta, self.low, self.high, out)
        return RewardSample(out, Bernoulli(frozen(out), low=self.low, high=self.high))

    def log_marginal_likelihood(self, states: IntArray, actions: IntArray, rewards: FloatArray) -> float:
        """Log probability of the rewards as Bernoulli outcomes (a pseudo-value for fractional ones)."""
        import scipy.special as special

        after = self.update(states, actions, rewards)
        return float((special.betaln(after.alpha, after.beta) - special.betaln(self.alpha, self.beta)).sum())

    def credible_intervals(self, mass: float = 0.95) -> tuple[FloatArray, FloatArray]:
        import scipy.stats as stats  # takes half a second, which most programs need not spend

        tail = (1.0 - check_probability(mass, "mass")) / 2
        width = self.high - self.low
        law = stats.beta(self.alpha, self.beta)
        return self.low + width * law.ppf(tail), self.low + width * law.ppf(1.0 - tail)
