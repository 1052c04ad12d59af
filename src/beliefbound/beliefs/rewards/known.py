"""Rewards that are not in doubt."""

from typing import Any

import numpy as np

from beliefbound.base.errors import BeliefError
from beliefbound.base.validation import FloatArray, Frozen, IntArray, frozen
from beliefbound.beliefs.rewards.belief import RewardColumns, RewardSample, StreamArray, numbers, per_pair
from beliefbound.beliefs.signals import Known


class KnownRewards(Frozen):
    """Rewards that are not in doubt: `[s,a]`, `[s]` per state, one number, or on arrival `[s,a,t]`.

    >>> KnownRewards([[0.0, 1.0]]).expand(1, 2).mean().tolist()
    [[0.0, 1.0]]
    """

    __slots__ = ("rewards",)
    rewards: FloatArray
    learns = False
    _called = "a reward belief"

    def __init__(self, rewards: Any) -> None:
        self._set(rewards=numbers(rewards, "KnownRewards", positive=False))

    @property
    def range(self) -> tuple[float, float]:
        return float(self.rewards.min()), float(self.rewards.max())

    def expand(self, n_states: int, n_actions: int) -> "KnownRewards":
        rewards = self.rewards
        if rewards.ndim == 3:
            shape = (n_states, n_actions, n_states)
            if rewards.shape != shape:
                raise BeliefError(f"KnownRewards has shape {rewards.shape}; on arrival, expected {shape}")
            return KnownRewards(frozen(rewards))
        if rewards.shape == (n_states,):
            rewards = rewards[:, None]
        return KnownRewards(per_pair(rewards, n_states, n_actions, "KnownRewards", positive=False))

    def columns(self) -> RewardColumns:
        paid = self.rewards if self.rewards.ndim == 3 else self.rewards[..., None]
        return RewardColumns(np.ones((1, *paid.shape[:2])), paid[None], False)

    def mean(self) -> FloatArray:
        return self.rewards

    def update(
        self, states: IntArray, actions: IntArray, rewards: FloatArray, *, times: IntArray | None = None
    ) -> "KnownRewards":
        return self

    def sample(self, n: int, stream: StreamArray) -> RewardSample:
        signal = Known(self.rewards if self.rewards.ndim == 3 else None)
        return RewardSample(np.broadcast_to(self.rewards, (n, *self.rewards.shape)), signal)

    def log_marginal_likelihood(self, states: IntArray, actions: IntArray, rewards: FloatArray) -> float:
        return 0.0

    def credible_intervals(self, mass: float = 0.95) -> tuple[FloatArray, FloatArray]:
        return self.rewards, self.rewards
