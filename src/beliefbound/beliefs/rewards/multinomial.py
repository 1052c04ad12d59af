"""Rewards from a finite set of values, with unknown chances: a Dirichlet belief per (state, action).

Value `k` is paid with probability `ρ_k`, `ρ ~ Dirichlet(counts)`; seeing it adds one to its count. With two values this
is `BetaRewards`, save that rewards between the two are refused.
"""

from typing import Any

import numpy as np

from beliefbound.base.errors import BeliefError, ObservationError
from beliefbound.base.validation import FloatArray, Frozen, IntArray, as_floats, check_finite, check_probability, frozen
from beliefbound.beliefs.amounts import alike
from beliefbound.beliefs.rewards.belief import RewardColumns, RewardSample, StreamArray
from beliefbound.beliefs.signals import FiniteValues
from beliefbound.kernels.draws import dirichlet_models
from beliefbound.kernels.random import stream_from

_INTERVAL_DRAWS = 20_000


class DirichletRewards(Frozen):
    """Dirichlet belief about the chances of finitely many reward values.

    Args:
      values: `[k]`, all different, or `[s,a,k]`.
      counts: prior counts: one number, `[k]` or `[s,a,k]`; default 1. Above zero.

    >>> prior = DirichletRewards([0.0, 1.0, 5.0]).expand(1, 1)
    >>> prior.mean().tolist(), prior.update(np.array([0]), np.array([0]), np.array([5.0])).mean().tolist()
    ([[2.0]], [[2.75]])
    """

    __slots__ = ("counts", "values")
    values: FloatArray
    counts: FloatArray
    learns = True
    _called = "a reward belief"

    def __init__(self, values: Any, counts: Any = 1.0) -> None:
        v = as_floats(values, "DirichletRewards values", BeliefError)
        if v.ndim not in (1, 3) or v.shape[-1] < 2:
            raise BeliefError(f"DirichletRewards values have shape {v.shape}; expected two or more, [k] or [s,a,k]")
        check_finite(v, "DirichletRewards values", ("state", "action", "value")[-v.ndim :], BeliefError)
        ranked = np.sort(v, axis=-1)
        same = alike(ranked[..., 1:], ranked[..., :-1], v)
        if same.any():
            twice = ranked[..., 1:][same][0]
            raise BeliefError(f"DirichletRewards has the value {twice:g} twice; values must differ, add their counts")
        self._set(values=frozen(v), counts=frozen(as_floats(counts, "DirichletRewards counts", BeliefError)))

    @property
    def range(self) -> tuple[float, float]:
        return float(self.values.min()), float(self.values.max())

    def expand(self, n_states: int, n_actions: int) -> "DirichletRewards":
        shape = (n_states, n_actions, self.values.shape[-1])
        full = []
        for name in ("values", "counts"):
            given = getattr(self, name)
            if given.shape not in ((1,), shape[-1:], shape):
                raise BeliefError(f"DirichletRewards {name} have shape {given.shape}; expected {shape[-1:]} or {shape}")
            full.append(np.array(np.broadcast_to(given, shape)))
        values, counts = full
        check_finite(counts, "DirichletRewards counts", ("state", "action", "value"), BeliefError)
        if not (counts > 0.0).all():
            s, a, k = (int(i) for i in np.argwhere(~(counts > 0.0))[0])
            raise BeliefError(
                f"DirichletRewards counts[state {s}, action {a}, value {k}] is {counts[s, a, k]}; it must be above 0"
            )
        return DirichletRewards(values, counts)

    def columns(self) -> RewardColumns:
        counts, paid = (np.ascontiguousarray(np.moveaxis(x, -1, 0)) for x in (self.counts, self.values))
        return RewardColumns(counts, paid[..., None], False)

    def mean(self) -> FloatArray:
        mean: FloatArray = (self.counts * self.values).sum(axis=-1) / self.counts.sum(axis=-1)
        return mean

    def _seen(self, states: IntArray, actions: IntArray, rewards: FloatArray, times: Any = 1.0) -> FloatArray:
        """How often each value was seen, `[s,a,k]`."""
        options = self.values[states, actions]
        match = alike(options, rewards[:, None], self.values)
        none = ~match.any(axis=1)
        if none.any():
            i = int(np.argmax(none))
            raise ObservationError(
                f"reward {i}, seen in state {states[i]} after action {actions[i]}, is {rewards[i]}, none of the values "
                f"{options[i].tolist()}; add it to the values of DirichletRewards"
            )
        counts = np.zeros_like(self.counts)
        np.add.at(counts, (states, actions, np.abs(options - rewards[:, None]).argmin(axis=1)), times)
        return counts

    def update(
        self, states: IntArray, actions: IntArray, rewards: FloatArray, *, times: IntArray | None = None
    ) -> "DirichletRewards":
        seen = self._seen(states, actions, rewards, 1.0 if times is None else times)
        return DirichletRewards(self.values, self.counts + seen)

    def sample(self, n: int, stream: StreamArray) -> RewardSample:
        chances = np.empty((n, *self.counts.shape))
        dirichlet_models(stream, self.counts, chances)
        signal = FiniteValues(self.values, frozen(chances))
        return RewardSample(signal.rewards, signal)

    def log_marginal_likelihood(self, states: IntArray, actions: IntArray, rewards: FloatArray) -> float:
        import scipy.special as special

        after = self.counts + self._seen(states, actions, rewards)
        cells = special.gammaln(after) - special.gammaln(self.counts)
        rows = special.gammaln(self.counts.sum(axis=-1)) - special.gammaln(after.sum(axis=-1))
        return float(cells.sum() + rows.sum())

    def credible_intervals(self, mass: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """For the expected reward, from draws with a fixed seed: a weighted sum of Dirichlet parts has no quantiles in
        closed form."""
        tail = (1.0 - check_probability(mass, "mass")) / 2
        drawn = self.sample(_INTERVAL_DRAWS, stream_from(np.random.default_rng(0))).rewards
        low, high = np.quantile(drawn, [tail, 1.0 - tail], axis=0)
        return low, high
