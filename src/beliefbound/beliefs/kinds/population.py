"""`PopulationBelief`: the next task of a population of which others were seen.

Each row of the task is `Dirichlet(κ β)`, with hyperparameters that are known as J draws (`beliefs.population` makes
them from logs): before anything is seen of the task a row is one of J Dirichlet rows, equally likely. Rows are
independent, so what is believed is a mixture row by row, of J parts each, and not of J tasks: after counts N of a row,

    w_i ∝ Γ(κ_i) / Γ(κ_i + T) Π_j Γ(κ_i β_ij + N_j) / Γ(κ_i β_ij)
    P(next = j | N) = Σ_i w_i (κ_i β_ij + N_j) / (κ_i + T)

Rewards are Bernoulli, of a mean that is Beta with its own J draws; a reward between the two counts as a share of each.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from beliefbound.base.errors import BeliefError, ObservationError
from beliefbound.base.limits import check_size
from beliefbound.base.validation import (
    BoolArray,
    FloatArray,
    IntArray,
    Rng,
    as_floats,
    as_rng,
    check_count,
    check_initial,
    frozen,
)
from beliefbound.beliefs.belief import Allowed
from beliefbound.beliefs.files import belief_kind
from beliefbound.beliefs.finite import FiniteBelief
from beliefbound.beliefs.masks import available_actions, terminal_states
from beliefbound.beliefs.observed import check_lengths, check_log
from beliefbound.beliefs.signals import Bernoulli, SilentStates, check_range
from beliefbound.models import Dense, ModelSet
from beliefbound.models.mdp import MDP
from beliefbound.policy.protocol import check_id


class Rows(NamedTuple):
    """Rows that are one of J Dirichlet rows each."""

    weight: FloatArray  # [s,a,i,j]: κ_i β_ij; 0 where an outcome cannot be
    counts: FloatArray  # [s,a,j]: seen of this task
    logs: FloatArray  # [s,a,i]: log w

    def chances(self) -> FloatArray:
        """Expected rows `[s,a,j]`."""
        after = self.weight + self.counts[:, :, None]
        rows = after / after.sum(axis=3, keepdims=True)
        return np.asarray(np.einsum("sai,saij->saj", np.exp(self.logs), rows))

    def after(self, states: IntArray, actions: IntArray, shares: FloatArray) -> tuple["Rows", float]:
        """Rows after outcomes, each with its `shares[step,j]`, and their log evidence."""
        import scipy.special as special

        counts, logs, evidence = np.array(self.counts), np.array(self.logs), 0.0
        for s, a in {(int(s), int(a)) for s, a in zip(states, actions, strict=True)}:
            seen = shares[(states == s) & (actions == a)].sum(axis=0)
            before = self.weight[s, a] + counts[s, a]
            new = seen > 0.0
            total = before.sum(axis=1)
            with np.errstate(divide="ignore"):
                gain = special.gammaln(before[:, new] + seen[new]) - special.gammaln(before[:, new])
            parts = logs[s, a] + np.where((before[:, new] > 0.0).all(axis=1), gain.sum(axis=1), -np.inf)
            parts += special.gammaln(total) - special.gammaln(total + seen.sum())
            all_of_it = np.logaddexp.reduce(parts)
            logs[s, a], evidence = parts - all_of_it, evidence + float(all_of_it)
            counts[s, a] += seen
        return Rows(self.weight, frozen(counts), frozen(logs)), evidence

    def draw(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Rows of `n` models, `[m,s,a,j]`."""
        below = np.cumsum(np.exp(self.logs), axis=2)
        part = (rng.random((n, *below.shape[:2], 1)) > below / below[..., -1:]).sum(axis=3)
        s, a = np.ogrid[: below.shape[0], : below.shape[1]]
        shape = self.weight[s, a, part] + self.counts
        with np.errstate(divide="ignore", invalid="ignore"):  # Gamma(a) is Gamma(a + 1) U^(1/a), also where a is small
            logs = np.log(rng.standard_gamma(shape + 1.0)) + np.log1p(-rng.random(shape.shape)) / shape
        logs = np.where(shape > 0.0, logs, -np.inf)
        drawn = np.exp(logs - logs.max(axis=3, keepdims=True))
        return np.asarray(drawn / drawn.sum(axis=3, keepdims=True))


@belief_kind("population", summary="the next task of a population of which others were seen")
class PopulationBelief:
    """Rows of which each is one of J Dirichlet rows, and Bernoulli rewards of which each is one of J Beta laws.

    Args:
      weight: `κ_i β_ij` of transitions, `[s,a,i,t]`; zeros mark what cannot happen.
      rewards: successes and failures of the Beta laws, `[s,a,i,2]`.
      reward_range: what success and failure pay, `(low, high)`.
      terminal, available, initial: as for `DirichletBelief`.

    >>> weight = [[[[8.0, 2.0], [2.0, 8.0]]], [[[1.0, 9.0], [1.0, 9.0]]]]
    >>> belief = PopulationBelief(weight, np.ones((2, 1, 2, 2)))
    >>> belief.predictive(0, 0).round(2).tolist(), belief.update(0, 0, 1.0, 1).predictive(0, 0).round(2).tolist()
    ([0.5, 0.5], [0.29, 0.71])
    """

    def __init__(
        self,
        weight: Any,
        rewards: Any,
        *,
        reward_range: tuple[float, float] = (0.0, 1.0),
        terminal: Any = None,
        available: Any = None,
        initial: Any = None,
    ) -> None:
        a, r = (as_floats(x, name, BeliefError) for x, name in ((weight, "weight"), (rewards, "rewards")))
        if a.ndim != 4 or 0 in a.shape or a.shape[0] != a.shape[3]:
            raise BeliefError(f"weight has shape {a.shape}; expected [state, action, draw, next state]")
        if r.ndim != 4 or r.shape[:2] != a.shape[:2] or r.shape[3] != 2 or r.shape[2] < 1:
            raise BeliefError(f"rewards have shape {r.shape}; expected {a.shape[:2]}, draws, and 2")
        if not (np.isfinite(a).all() and (a >= 0.0).all() and (a.sum(axis=3) > 0.0).all()):
            raise BeliefError("weight has a row without a positive entry, or an entry that is no weight; give κ β")
        if not (np.isfinite(r).all() and (r > 0.0).all()):
            raise BeliefError("rewards have an entry that is not positive; give successes and failures of Beta laws")
        self.n_states, self.n_actions = a.shape[:2]
        self.reward_range = check_range(reward_range)
        self.terminal = frozen(terminal_states(terminal, self.n_states))
        self.available = frozen(available_actions(available, self.n_states, self.n_actions))
        self.initial = check_initial(initial, self.n_states, BeliefError)
        self.rows, self.paid = (Rows(frozen(x), *(frozen(y) for y in _nothing_seen(x))) for x in (a, r))
        if self.terminal.any():
            self.reward_range = min(self.reward_range[0], 0.0), max(self.reward_range[1], 0.0)
        self._ends = check_range(reward_range)

    def _with(self, **changed: Any) -> "PopulationBelief":
        other = PopulationBelief.__new__(PopulationBelief)
        vars(other).update(vars(self) | changed)
        return other

    def __repr__(self) -> str:
        return f"PopulationBelief({self.n_states} states, {self.n_actions} actions, {self.rows.logs.shape[2]} draws)"

    def _fixed(self, rows: FloatArray) -> FloatArray:
        """Rows `[…,s,a,t]` where terminal states stay, and what is not available leads nowhere."""
        stay = np.eye(self.n_states)[:, None, :]
        return np.where(self.available[..., None], np.where(self.terminal[:, None, None], stay, rows), 0.0)

    def _amount(self, chances: FloatArray) -> FloatArray:
        """Mean rewards `[…,s,a]` of chances of success and failure."""
        low, high = self._ends
        paid = np.minimum(low + (high - low) * chances[..., 0], high)
        return np.where(self.available & ~self.terminal[:, None], paid, 0.0)

    def sample(self, n: int, rng: Rng = None) -> FiniteBelief:
        """`n` independent tasks, equally weighted."""
        n, source = check_count(n, "number of sampled models"), as_rng(rng)
        shape = (n, self.n_states, self.n_actions, self.n_states)
        check_size(shape, "a sample of models", BeliefError, fix="draw fewer models")
        models = ModelSet(
            Dense(frozen(self._fixed(self.rows.draw(n, source)))),
            frozen(self._amount(self.paid.draw(n, source))),
            self.available,
        )
        signal: Any = Bernoulli(models.rewards, low=self._ends[0], high=self._ends[1])
        if self.terminal.any():
            signal = SilentStates(signal, self.terminal)
        return FiniteBelief.of(models, reward_signal=signal, reward_range=self.reward_range, initial=self.initial)

    def predictive(self, state: int, action: int) -> FloatArray:
        """Chances `[t]` of the next state."""
        s, a = check_id(state, self.n_states, "state"), check_id(action, self.n_actions, "action")
        return np.asarray(self._fixed(self.rows.chances())[s, a])

    def mean(self) -> MDP:
        """The expected task."""
        rewards = self._amount(self.paid.chances())
        chances = self._fixed(self.rows.chances())
        return MDP(chances, rewards, initial=self.initial, available=self.available, normalize=True)

    def _learnt(self, state: Any, action: Any, reward: Any, next_state: Any) -> tuple[Rows, Rows, float]:
        states, actions, arrivals = check_log(state, action, next_state, self.n_states, self.n_actions)
        if reward is None:
            raise ObservationError("no reward was given, but the belief learns from rewards; pass the reward seen")
        paid = np.atleast_1d(as_floats(reward, "reward", ObservationError))
        check_lengths(states, actions, paid, arrivals)
        impossible = ~(self._fixed(self.rows.chances())[states, actions, arrivals] > 0.0)
        if impossible.any():
            i = int(np.argmax(impossible))
            raise ObservationError(
                f"observation {i}: state {states[i]}, action {actions[i]}, next state {arrivals[i]} cannot happen in "
                "any task of the population"
            )
        open_ = ~self.terminal[states]
        states, actions, arrivals, paid = (x[open_] for x in (states, actions, arrivals, paid))
        (low, high), slack = self._ends, 1e-9 * (self._ends[1] - self._ends[0])
        if ((paid < low - slack) | (paid > high + slack)).any():
            worst = paid[np.argmax(np.abs(paid - (low + high) / 2))]
            raise ObservationError(f"reward is {worst:g}; rewards of the population lie between {low:g} and {high:g}")
        x = np.clip((paid - low) / (high - low), 0.0, 1.0)
        rows, by_rows = self.rows.after(states, actions, np.eye(self.n_states)[arrivals])
        rewards, by_rewards = self.paid.after(states, actions, np.stack([x, 1.0 - x], axis=1))
        return rows, rewards, by_rows + by_rewards

    def update(self, state: Any, action: Any, reward: Any, next_state: Any) -> "PopulationBelief":
        """What is believed of the task after one transition in it, or after several given as arrays."""
        rows, rewards, _ = self._learnt(state, action, reward, next_state)
        return self._with(rows=rows, paid=rewards)

    def after_counts(
        self, counts: FloatArray, successes: FloatArray, failures: FloatArray | None = None
    ) -> "PopulationBelief":
        """The same after so many transitions `[s,a,t]` with rewards that sum, scaled to [0, 1], to `successes[s,a]`."""
        lost = counts.sum(axis=2) - successes if failures is None else failures
        parts = []
        for rows, seen in ((self.rows, counts), (self.paid, np.stack([successes, lost], axis=2))):
            if seen.shape != rows.counts.shape or not (np.isfinite(seen).all() and (seen >= 0.0).all()):
                raise BeliefError(f"counts have shape {seen.shape}; expected {rows.counts.shape}, none negative")
            s, a = np.nonzero(seen.sum(axis=2) > 0.0)
            parts.append(rows.after(s, a, seen[s, a])[0])
        return self._with(rows=parts[0], paid=parts[1])

    def log_marginal_likelihood(self, state: Any, action: Any, reward: Any, next_state: Any) -> float:
        """Log probability this belief gives to transitions seen in this order."""
        return self._learnt(state, action, reward, next_state)[2]

    def allowed(self) -> Allowed:
        """Outcomes that some task allows, and the least and largest rewards on the way."""
        possible = self._fixed(self.rows.chances()) > 0.0
        low, high = (np.where(self.terminal, 0.0, end)[:, None, None] for end in self._ends)
        shape = (self.n_states, self.n_actions, 1)
        return Allowed(possible, np.broadcast_to(low, shape), np.broadcast_to(high, shape))

    def offering(self, available: BoolArray) -> "PopulationBelief":
        """The same belief where states offer only these actions, `[s,a]`."""
        offered = available_actions(self.available & available, self.n_states, self.n_actions)
        return self._with(available=frozen(offered))

    def tied_to(self, state: int, action: int) -> IntArray:
        """The pair itself, `[1,2]`: rows are independent."""
        return np.array([[state, action]], dtype=np.int64)

    def to_entries(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays by name, for files."""
        own = {"weight": self.rows.weight, "rewards": self.paid.weight, "range": np.array(self._ends)}
        own |= {"counts": self.rows.counts, "paid": self.paid.counts}
        own |= {"terminal": self.terminal, "available": self.available}
        return own if self.initial is None else own | {"initial": self.initial}

    @classmethod
    def from_entries(cls, entries: Mapping[str, npt.NDArray[Any]]) -> "PopulationBelief":
        """What `to_entries` gave."""
        low, high = (float(x) for x in entries["range"])
        masks = {name: entries[name] for name in ("terminal", "available")}
        blank = cls(
            entries["weight"], entries["rewards"], reward_range=(low, high), initial=entries.get("initial"), **masks
        )
        seen, paid = (as_floats(entries[name], name, BeliefError) for name in ("counts", "paid"))
        return blank.after_counts(seen, paid[..., 0], paid[..., 1])


def _nothing_seen(weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Counts `[s,a,j]` and log weights `[s,a,i]` before anything is seen."""
    n_states, n_actions, n_draws, n_outcomes = weight.shape
    return np.zeros((n_states, n_actions, n_outcomes)), np.full((n_states, n_actions, n_draws), -np.log(n_draws))
