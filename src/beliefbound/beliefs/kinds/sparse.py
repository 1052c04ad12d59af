"""`SparseDirichletBelief`: rows with few successors, nobody knows which (Friedman & Singer, NIPS 1998).

A row of n possible successors has a support of size k with probability `P(k)`, every support of that size is equally
likely, and on it the chances are `Dirichlet(α, …, α)`. Rows are independent. After counts N of a row, T in all, k₀ of
them positive,

    P(k | N) ∝ P(k) k! / (k − k₀)! Γ(kα) / Γ(kα + T)   for k ≥ k₀
    C = Σ_k P(k | N) (k₀α + T) / (kα + T)              the chance of a successor that was seen before
    P(next = i | N) = C (α + N_i) / (k₀α + T)          seen
                    = (1 − C) / (n − k₀)               not seen

in closed form, so learning is counting. A model is drawn row by row: k, then `k − k₀` of the unseen successors, then a
Dirichlet on all of them. It is the prior of published grids and mazes, where a Dirichlet on all states believes, of a
row that was seen ten times, that an eleventh try may lead anywhere.

Rewards, terminal states, actions and the start are those of a `DirichletBelief`, which it holds.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from beliefbound.base.errors import BeliefError
from beliefbound.base.limits import check_size
from beliefbound.base.validation import (
    BoolArray,
    FloatArray,
    IntArray,
    Rng,
    as_floats,
    as_rng,
    check_count,
    check_positive,
    frozen,
)
from beliefbound.beliefs.belief import Allowed
from beliefbound.beliefs.compiled import sparse_posterior_of
from beliefbound.beliefs.dirichlet import DirichletBelief
from beliefbound.beliefs.files import belief_kind, belief_of, entries_of
from beliefbound.beliefs.finite import FiniteBelief
from beliefbound.beliefs.rewards import RewardBelief
from beliefbound.kernels.posterior import Posterior
from beliefbound.kernels.random import stream_from
from beliefbound.models.mdp import MDP
from beliefbound.policy.protocol import check_id

HALVING = 0.5  # of the default prior of sizes: each is half as likely as the one before


@belief_kind("sparse", summary="rows with few successors, and it is not known which")
class SparseDirichletBelief:
    """Independent rows with unknown small supports, and a belief about rewards.

    Args:
      n_states, n_actions: sizes.
      concentration: α, of every successor in the support.
      sizes: what supports of 1, 2, … successors weigh, `[k]`, not necessarily normalised; a row with fewer possible
        successors uses the first of them. Default: each half as likely as the one before.
      support: `[s,a,t]`, which successors are possible at all; default: all.
      rewards, terminal, available, initial: as for `DirichletBelief`.

    >>> belief = SparseDirichletBelief(5, 1, concentration=0.5).update([0] * 4, [0] * 4, [0.0] * 4, [0, 0, 0, 2])
    >>> belief.predictive(0, 0).round(4).tolist()
    [0.653, 0.0224, 0.2799, 0.0224, 0.0224]
    >>> belief.sizes_of(0, 0).round(3).tolist()
    [0.0, 0.488, 0.298, 0.146, 0.068]
    """

    def __init__(
        self,
        n_states: int,
        n_actions: int,
        *,
        concentration: float = 0.5,
        sizes: Any = None,
        support: Any = None,
        rewards: RewardBelief | None = None,
        terminal: Any = None,
        available: Any = None,
        initial: Any = None,
    ) -> None:
        alpha = check_positive(concentration, "concentration")
        knobs: dict[str, Any] = {"support": support, "rewards": rewards, "terminal": terminal, "available": available}
        counts = DirichletBelief(n_states, n_actions, concentration=alpha, initial=initial, **knobs)
        weights = HALVING ** np.arange(1, n_states + 1) if sizes is None else as_floats(sizes, "sizes", BeliefError)
        if weights.shape != (n_states,):
            raise BeliefError(f"sizes has shape {weights.shape}; give one weight for 1, 2, … {n_states} successors")
        if not (np.isfinite(weights).all() and (weights >= 0.0).all() and weights[0] > 0.0):
            raise BeliefError("sizes are weights, none of them negative, the first above 0: a row has a successor")
        self._fill(counts, alpha, frozen(weights / weights.sum()))

    def _fill(self, counts: DirichletBelief, alpha: float, sizes: FloatArray) -> None:
        self.counts, self.concentration, self.sizes = counts, alpha, sizes
        self.n_states, self.n_actions = counts.n_states, counts.n_actions
        self.available, self.initial, self.reward_range = counts.available, counts.initial, counts.reward_range
        self.terminal, self.rewards = counts.terminal, counts.rewards

    def _with(self, counts: DirichletBelief) -> "SparseDirichletBelief":
        other = SparseDirichletBelief.__new__(SparseDirichletBelief)
        other._fill(counts, self.concentration, self.sizes)
        return other

    def __repr__(self) -> str:
        held = type(self.rewards).__name__
        return f"SparseDirichletBelief({self.n_states} states, {self.n_actions} actions, {held})"

    @cached_property
    def _seen(self) -> FloatArray:
        """Counts `[s,a,t]`; 0 where rows are no rows of chances."""
        alpha = self.counts.concentration
        return np.where((alpha > 0.0) & self._open[..., None], alpha - self.concentration, 0.0)

    @cached_property
    def _open(self) -> BoolArray:
        """`[s,a]`: pairs whose rows are learnt."""
        return self.available & ~self.terminal[:, None]

    @cached_property
    def _log_sizes(self) -> FloatArray:
        """`log P(k | N)` of every row, `[s,a,k − 1]`."""
        possible = (self.counts.concentration > 0.0).sum(axis=2)[..., None]
        k0, total = (self._seen > 0.0).sum(axis=2)[..., None], self._seen.sum(axis=2)[..., None]
        logs = _log_weights(self.sizes, self.concentration, possible, k0, total)
        return np.asarray(logs - np.logaddexp.reduce(logs, axis=2, keepdims=True))

    def sizes_of(self, state: int, action: int) -> FloatArray:
        """Chances `[k − 1]` that a row has k successors."""
        s, a = check_id(state, self.n_states, "state"), check_id(action, self.n_actions, "action")
        return np.asarray(np.exp(self._log_sizes[s, a]))

    @cached_property
    def _chances(self) -> FloatArray:
        """The expected row of every pair, `[s,a,t]`."""
        alpha, seen, k = self.concentration, self._seen, np.arange(1, self.n_states + 1)
        possible, total = self.counts.concentration > 0.0, seen.sum(axis=2)
        k0 = (seen > 0.0).sum(axis=2)
        weight = k0 * alpha + total
        known = (np.exp(self._log_sizes) * weight[..., None] / (k * alpha + total[..., None])).sum(axis=2)
        unseen = possible.sum(axis=2) - k0
        known = np.where(unseen == 0, 1.0, known)
        with np.errstate(invalid="ignore", divide="ignore"):
            old = (alpha + seen) / weight[..., None] * known[..., None]
            new = ((1.0 - known) / unseen)[..., None]
        rows = np.where(seen > 0.0, old, np.where(possible, new, 0.0))
        return np.where(self._open[..., None], rows, self.counts.mean().transitions)

    def predictive(self, state: int, action: int) -> FloatArray:
        """Chances `[t]` of the next state."""
        s, a = check_id(state, self.n_states, "state"), check_id(action, self.n_actions, "action")
        return np.asarray(self._chances[s, a] * self.available[s, a])

    def mean(self) -> MDP:
        """The expected MDP."""
        rewards = self.rewards.mean()
        ends = self.terminal.reshape(-1, *[1] * (rewards.ndim - 1))
        return MDP(
            self._chances,
            np.where(ends, 0.0, rewards),
            initial=self.initial,
            available=self.available,
            normalize=True,
        )

    def update(self, state: Any, action: Any, reward: Any, next_state: Any, **times: Any) -> "SparseDirichletBelief":
        """The posterior after one transition, or after several given as arrays; as `DirichletBelief.update`."""
        return self._with(self.counts.update(state, action, reward, next_state, **times))

    def log_marginal_likelihood(self, state: Any, action: Any, reward: Any, next_state: Any) -> float:
        """Log probability (density, for Normal rewards) this belief gives to transitions seen in this order."""
        after = self.update(state, action, reward, next_state)
        dense = self.counts.log_marginal_likelihood(state, action, reward, next_state)
        rewards = dense - _dense_evidence(self.counts, after.counts)
        return float(rewards + (after._evidence - self._evidence)[self._open].sum())

    @cached_property
    def _evidence(self) -> FloatArray:
        """The log probability of the counts of every row, in any one order, `[s,a]`."""
        import scipy.special as special

        alpha, seen = self.concentration, self._seen
        possible = (self.counts.concentration > 0.0).sum(axis=2)[..., None]
        k0, total = (seen > 0.0).sum(axis=2)[..., None], seen.sum(axis=2)[..., None]
        logs = _log_weights(self.sizes, alpha, possible, k0, total)
        start = np.logaddexp.reduce(_log_weights(self.sizes, alpha, possible, 0 * k0, 0.0 * total), axis=2)
        supports = special.gammaln(possible - k0 + 1.0) - special.gammaln(possible + 1.0)
        cells = np.where(seen > 0.0, special.gammaln(alpha + seen) - special.gammaln(alpha), 0.0).sum(axis=2)
        return np.asarray(np.logaddexp.reduce(logs, axis=2) - start + supports[..., 0] + cells)

    def sample(self, n: int, rng: Rng = None) -> FiniteBelief:
        """`n` independent models, equally weighted, with the reward signal that the reward belief implies."""
        n = check_count(n, "number of sampled models")
        shape = (n, self.n_states, self.n_actions, self.n_states)
        check_size(shape, "a sample of models", BeliefError, fix="draw fewer models")
        source = as_rng(rng)
        transitions = np.where(self._open[..., None], self._rows(n, source), self.counts.mean().transitions)
        return self.counts.drawn(transitions, stream_from(source))

    def _rows(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Rows of `n` models, `[m,s,a,t]`."""
        seen, possible = self._seen > 0.0, self.counts.concentration > 0.0
        below = np.cumsum(np.exp(self._log_sizes), axis=2)
        size = 1 + (rng.random((n, *seen.shape[:2], 1)) > below / below[..., -1:]).sum(axis=3)  # [m,s,a]
        # Everything that was seen, and of the rest as many as are left, in random order.
        held = np.array(np.broadcast_to(seen & possible, (n, *seen.shape)))
        left = size - seen.sum(axis=2)
        m, s, a = np.nonzero((left > 0) & self._open)
        often = left[m, s, a]
        key = np.where(seen | ~possible, 2.0, 0.0)[s, a] + rng.random((len(m), seen.shape[2]))
        order = np.argsort(key, axis=1)
        taken = order[np.arange(seen.shape[2]) < often[:, None]]
        held[np.repeat(m, often), np.repeat(s, often), np.repeat(a, often), taken] = True
        held &= possible
        # Gamma(a) is Gamma(a + 1) U^(1/a): logarithms do not vanish where a is small.
        shape = np.broadcast_to(self.concentration + self._seen, held.shape)[held]
        logs = np.full(held.shape, -np.inf)
        logs[held] = np.log(rng.standard_gamma(shape + 1.0)) + np.log1p(-rng.random(len(shape))) / shape
        weights = np.exp(logs - logs.max(axis=3, keepdims=True, initial=-1e300))
        with np.errstate(invalid="ignore"):
            return np.asarray(weights / weights.sum(axis=3, keepdims=True))

    def in_arrays(self, *, low: float = 0.0, width: float = 1.0, unavailable: bool = True) -> Posterior | None:
        """The belief as arrays that compiled agents learn in, as `DirichletBelief.counted`; not those of particles."""
        dense = self.counts.counted(low=low, width=width, unavailable=unavailable)
        if dense is None:
            return None
        sizes = np.where(self._open[..., None], np.exp(self._log_sizes), 0.0)
        return sparse_posterior_of(dense, self._seen, sizes, self.concentration)

    def allowed(self) -> Allowed | None:
        """Outcomes that some model allows, and what they pay, as `DirichletBelief.allowed`."""
        return self.counts.allowed()

    def offering(self, available: BoolArray) -> "SparseDirichletBelief":
        """The same belief where states offer only these actions, `[s,a]`."""
        return self._with(self.counts.offering(available))

    def tied_to(self, state: int, action: int) -> IntArray:
        """The pair itself, `[1,2]`: rows are independent."""
        return self.counts.tied_to(state, action)

    def to_entries(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays by name, for files."""
        own = {"sizes": self.sizes, "alpha": np.array(self.concentration)}
        return own | entries_of(self.counts, prefix="counts_")

    @classmethod
    def from_entries(cls, entries: Mapping[str, npt.NDArray[Any]]) -> "SparseDirichletBelief":
        """What `to_entries` gave."""
        counts = belief_of(entries, prefix="counts_")
        alpha, shape = float(entries["alpha"]), (counts.n_states, counts.n_actions)
        blank = cls(*shape, concentration=alpha, sizes=entries["sizes"], initial=counts.initial)
        return blank._with(counts)


def _log_weights(sizes: FloatArray, alpha: float, possible: IntArray, k0: IntArray, total: FloatArray) -> FloatArray:
    """`log P(k) k! / (k − k₀)! Γ(kα) / Γ(kα + T)` for k = 1, 2, …, on the last axis; −∞ for sizes that cannot be."""
    import scipy.special as special

    k = np.arange(1, len(sizes) + 1)
    with np.errstate(divide="ignore"):
        logs = np.log(sizes) + special.gammaln(k + 1.0) - special.gammaln(np.maximum(k - k0, 0) + 1.0)
    logs = logs + special.gammaln(k * alpha) - special.gammaln(k * alpha + total)
    return np.where((k >= k0) & (k <= np.maximum(possible, 1)), logs, -np.inf)


def _dense_evidence(before: DirichletBelief, after: DirichletBelief) -> float:
    """The log probability that Dirichlet rows give to the counts between two beliefs."""
    import scipy.special as special

    old, new = before.concentration, after.concentration
    cells = special.gammaln(new[new > old]) - special.gammaln(old[new > old])
    rows = special.gammaln(old.sum(axis=-1)) - special.gammaln(new.sum(axis=-1))
    return float(cells.sum() + rows.sum())
