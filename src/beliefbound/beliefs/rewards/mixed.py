"""Rewards that are known for some pairs and to be learnt for others.

A known pair pays one amount, or one per next state. Any other pair pays value `k` of a finite set with probability
`ρ_k`, `ρ ~ Dirichlet(counts)`, whatever the next state.

For kernels both are columns of values (`RewardColumns`): a known pair has all its weight on the first column. Its other
columns have weight 0, and amounts that differ from the first, so that what is seen is never counted for them.
"""

from typing import Any

import numpy as np

from beliefbound.base.errors import BeliefError, ObservationError
from beliefbound.base.limits import check_size
from beliefbound.base.validation import BoolArray, FloatArray, Frozen, IntArray, as_floats, frozen
from beliefbound.beliefs.amounts import alike
from beliefbound.beliefs.rewards.belief import RewardColumns, RewardSample, StreamArray
from beliefbound.beliefs.rewards.multinomial import DirichletRewards
from beliefbound.beliefs.signals import FiniteValues
from beliefbound.kernels.draws import dirichlet_models


class MixedRewards(Frozen):
    """Known rewards where `known` has a number, a Dirichlet belief about finitely many values elsewhere.

    Args:
      known: `[s,a]`, or on arrival `[s,a,t]`; NaN for pairs whose rewards are to be learnt. On arrival, a pair is known
        for all next states or for none.
      learnt: a `DirichletRewards` for the other pairs.

    >>> mixed = MixedRewards([[5.0, np.nan]], DirichletRewards([0.0, 1.0])).expand(1, 2)
    >>> mixed.mean()[0, :, 0].tolist(), mixed.range
    ([5.0, 0.5], (0.0, 5.0))
    >>> mixed.update(np.array([0]), np.array([1]), np.array([1.0])).mean()[0, :, 0].round(3).tolist()
    [5.0, 0.667]
    """

    __slots__ = ("known", "learnt")
    known: FloatArray  # [s,a,t] once expanded; NaN where learnt
    learnt: DirichletRewards
    learns = True
    _called = "a reward belief"

    def __init__(self, known: Any, learnt: DirichletRewards) -> None:
        amounts = as_floats(known, "MixedRewards known", BeliefError)
        if amounts.ndim not in (2, 3) or np.isinf(amounts).any():
            raise BeliefError(
                f"MixedRewards known has shape {amounts.shape}; expected finite numbers [s,a] or [s,a,t], NaN where a "
                f"reward is to be learnt"
            )
        if not isinstance(learnt, DirichletRewards):
            raise BeliefError("MixedRewards learns finitely many values: pass DirichletRewards(values)")
        self._set(known=frozen(amounts), learnt=learnt)

    @property
    def _open(self) -> BoolArray:
        """Pairs `[s,a]` to learn about."""
        return np.asarray(np.isnan(self.known).any(axis=-1))

    @property
    def range(self) -> tuple[float, float]:
        ends = [self.known[~np.isnan(self.known)]]
        if self._open.any():
            ends.append(self.learnt.values[self._open].ravel())
        amounts = np.concatenate(ends)
        return float(amounts.min()), float(amounts.max())

    def expand(self, n_states: int, n_actions: int) -> "MixedRewards":
        known = self.known
        if known.shape not in ((n_states, n_actions), (n_states, n_actions, n_states)):
            raise BeliefError(
                f"MixedRewards known has shape {known.shape}; expected {(n_states, n_actions)} or "
                f"{(n_states, n_actions, n_states)}"
            )
        full = np.array(
            np.broadcast_to(known if known.ndim == 3 else known[..., None], (n_states, n_actions, n_states))
        )
        some = np.isnan(full).any(axis=-1) & ~np.isnan(full).all(axis=-1)
        if some.any():
            s, a = (int(i) for i in np.argwhere(some)[0])
            raise BeliefError(f"MixedRewards knows state {s}, action {a} for some next states only; give all, or NaN")
        learnt = self.learnt.expand(n_states, n_actions)
        check_size((*full.shape, learnt.values.shape[-1]), "rewards on arrival", BeliefError, fix="give fewer values")
        return MixedRewards(full, learnt)

    def _weights(self) -> FloatArray:
        """Counts `[s,a,k]`, all on the first column where a pair is known."""
        first = np.zeros(self.learnt.counts.shape[-1])
        first[0] = 1.0
        return np.where(self._open[..., None], self.learnt.counts, first)

    def _amounts(self) -> FloatArray:
        """What each column pays, `[s,a,t,k]`."""
        values = self.learnt.values[:, :, None, :]
        n_values = values.shape[-1]
        low, high = self.range
        apart = np.arange(n_values) * max(high - low, 1.0) / n_values
        known = self.known[..., None] + apart
        return np.where(self._open[:, :, None, None], values, known)

    def columns(self) -> RewardColumns:
        counts, paid = np.moveaxis(self._weights(), -1, 0), np.moveaxis(self._amounts(), -1, 0)
        return RewardColumns(np.ascontiguousarray(counts), np.ascontiguousarray(paid), False)

    def mean(self) -> FloatArray:
        return np.where(self._open[..., None], self.learnt.mean()[..., None], self.known)

    def update(
        self, states: IntArray, actions: IntArray, rewards: FloatArray, *, times: IntArray | None = None
    ) -> "MixedRewards":
        open_ = self._open[states, actions]
        amounts = self.known[states, actions]
        right = alike(amounts, rewards[:, None], self.known).any(axis=1) | open_
        if not right.all():
            i = int(np.argmin(right))
            raise ObservationError(
                f"reward {i}, seen in state {states[i]} after action {actions[i]}, is {rewards[i]}, but the rewards of "
                f"this pair are known to be {np.unique(amounts[i])[:4].tolist()}; mark them NaN to learn them"
            )
        often = None if times is None else times[open_]
        return MixedRewards(self.known, self.learnt.update(states[open_], actions[open_], rewards[open_], times=often))

    def sample(self, n: int, stream: StreamArray) -> RewardSample:
        weights = self._weights()
        chances = np.empty((n, *weights.shape))
        dirichlet_models(stream, weights, chances)
        signal = FiniteValues(self._amounts(), frozen(chances))
        return RewardSample(signal.rewards, signal)

    def log_marginal_likelihood(self, states: IntArray, actions: IntArray, rewards: FloatArray) -> float:
        import scipy.special as special

        before, after = self.learnt, self.update(states, actions, rewards).learnt
        rows = special.gammaln(before.counts.sum(axis=-1)) - special.gammaln(after.counts.sum(axis=-1))
        return float((special.gammaln(after.counts) - special.gammaln(before.counts)).sum() + rows.sum())

    def credible_intervals(self, mass: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """For the expected reward, on arrival `[s,a,t]`."""
        low, high = (x[..., None] for x in self.learnt.credible_intervals(mass))
        return np.where(self._open[..., None], low, self.known), np.where(self._open[..., None], high, self.known)
