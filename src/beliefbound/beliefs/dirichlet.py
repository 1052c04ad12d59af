"""A product-Dirichlet belief about transitions, with an independent reward belief.

`P(·|s,a) ~ Dirichlet(α[s,a,·])` independently per (state, action); observing `t` adds one to `α[s,a,t]`. Next states
with `α = 0` are known to be impossible. The marginal of one probability is `Beta(α_t, α_0 − α_t)`.

Where pairs share parameters (`DirichletBelief.tied`, `beliefs.ties`) the rows of `α` are rows of parameters, and what
is seen at one pair is learnt for all that share its row.
"""

from typing import Any

import numpy as np

from beliefbound.base.errors import BeliefError, ObservationError
from beliefbound.base.limits import check_size
from beliefbound.base.validation import (
    BoolArray,
    FloatArray,
    Frozen,
    IntArray,
    Rng,
    as_array,
    as_bools,
    as_floats,
    as_rng,
    check_count,
    check_finite,
    check_initial,
    check_probability,
    frozen,
    shown,
)
from beliefbound.beliefs.belief import Allowed
from beliefbound.beliefs.compiled import posterior_of
from beliefbound.beliefs.finite import FiniteBelief
from beliefbound.beliefs.masks import available_actions, terminal_states
from beliefbound.beliefs.observed import check_lengths, check_log, check_times, prior_notes
from beliefbound.beliefs.rewards import BetaRewards, RewardBelief
from beliefbound.beliefs.signals import Signal, SilentStates
from beliefbound.beliefs.ties import Ties, check_positive, tie
from beliefbound.kernels.draws import dirichlet_models
from beliefbound.kernels.posterior import Posterior
from beliefbound.kernels.random import stream_from
from beliefbound.models import Dense, ModelSet
from beliefbound.models.mdp import MDP
from beliefbound.policy.protocol import check_id

Batch = tuple[IntArray, IntArray, FloatArray, IntArray]
_FIX = "use fewer states, or a finite set of sparse models"


class DirichletBelief(Frozen):
    """Independent Dirichlet beliefs about each row of transitions, and beliefs about rewards.

    Args:
      n_states, n_actions: sizes.
      concentration: one number, or `[s,a,t]`; default `1 / n_states`. Zeros mark impossible transitions.
      rewards: a `RewardBelief`, such as `BetaRewards`, `DirichletRewards`, `NormalRewards` or `KnownRewards`; default
        `BetaRewards(1, 1)`.
      support: booleans `[s,a,t]` or `[s,t]`: transitions that are possible at all; default: those with concentration.
      terminal: states that are known to be absorbing, with reward 0: ids, or booleans `[s]`.
      available: booleans `[s,a]`; default: every action everywhere.
      initial: start distribution `[state]`, or one start state; optional.

    >>> belief = DirichletBelief(2, 1, concentration=1.0)
    >>> posterior = belief.update(0, 0, 1.0, 1)
    >>> posterior.mean().transitions[0, 0].round(3).tolist()
    [0.333, 0.667]
    >>> posterior.sample(3, np.random.default_rng(0)).n_models
    3
    """

    __slots__ = ("available", "concentration", "initial", "observed", "rewards", "terminal", "ties")
    _called = "a belief"

    concentration: FloatArray  # [s,a,t]; where parameters are shared, [row,outcome]
    rewards: RewardBelief
    initial: FloatArray | None
    available: BoolArray
    terminal: BoolArray  # [s]
    ties: Ties | None
    observed: IntArray  # [s,a], transitions since the belief was made that taught something about the pair

    def __init__(
        self,
        n_states: int,
        n_actions: int,
        *,
        concentration: Any = None,
        rewards: RewardBelief | None = None,
        support: Any = None,
        terminal: Any = None,
        available: Any = None,
        initial: Any = None,
    ) -> None:
        n_states, n_actions = check_count(n_states, "n_states"), check_count(n_actions, "n_actions")
        shape = (n_states, n_actions, n_states)
        check_size(shape, "a belief about transitions", BeliefError, fix=_FIX)
        given = as_floats(1.0 / n_states if concentration is None else concentration, "concentration", BeliefError)
        if given.shape not in ((), (1,), shape):
            raise BeliefError(f"concentration has shape {given.shape}; expected one number or {shape}")
        alpha = np.array(np.broadcast_to(given, shape))
        if support is not None:
            possible = as_bools(support, "support", BeliefError)
            if possible.shape == (n_states, n_states):
                possible = possible[:, None, :]
            try:
                alpha *= np.broadcast_to(possible, shape)
            except ValueError:
                raise BeliefError(f"support has shape {possible.shape}; expected {shape} or {shape[::2]}") from None
        check_finite(alpha, "concentration", ("state", "action", "next state"), BeliefError)
        ends, offered = terminal_states(terminal, n_states), available_actions(available, n_states, n_actions)
        fixed = ends[:, None] | ~offered
        alpha[fixed] = 0.0
        s, a = np.nonzero(fixed)
        alpha[s, a, s] = 1.0
        check_positive(alpha, ("state", "action", "next state"))
        self._fill(frozen(alpha), None, rewards, ends, offered, initial)

    @classmethod
    def tied(
        cls,
        row: Any,
        arrive: Any,
        concentration: Any,
        *,
        rewards: RewardBelief | None = None,
        terminal: Any = None,
        available: Any = None,
        initial: Any = None,
    ) -> "DirichletBelief":
        """A belief whose pairs share parameters.

        Args:
          row: `[s,a]`, the row of parameters that each pair has.
          arrive: `[s,a,outcome]`, the state that each outcome leads to; −1 where the row has no such outcome.
          concentration: `[row,outcome]`; zeros mark outcomes that a row does not have.
          rewards, terminal, available, initial: as above.

        Two states, one chance of slipping into the other, wherever one is:

        >>> from beliefbound.beliefs import KnownRewards
        >>> belief = DirichletBelief.tied([[0], [0]], [[[0, 1]], [[1, 0]]], [[1.0, 1.0]], rewards=KnownRewards(0.0))
        >>> belief.update(0, 0, None, 0).mean().transitions[1, 0].round(3).tolist()
        [0.333, 0.667]
        """
        shape = as_array(row, "row", BeliefError).shape
        if len(shape) != 2:
            raise BeliefError(f"row has shape {shape}; expected [state, action]")
        check_size((shape[0], shape[1], shape[0]), "a belief about transitions", BeliefError, fix=_FIX)
        ends, offered = terminal_states(terminal, shape[0]), available_actions(available, *shape)
        ties, alpha = tie(row, arrive, concentration, ends[:, None] | ~offered)
        belief = cls.__new__(cls)
        belief._fill(alpha, ties, rewards, ends, offered, initial)
        return belief

    @classmethod
    def restored(
        cls,
        concentration: FloatArray,
        ties: Ties | None,
        rewards: RewardBelief,
        terminal: BoolArray,
        available: BoolArray,
        initial: FloatArray | None,
        observed: IntArray,
    ) -> "DirichletBelief":
        """A belief from the arrays that it holds, those of pairs that stay where they are too: what a file has."""
        full = concentration if ties is None else ties.spread(concentration)
        check_positive(full, ("state", "action", "next state"))
        offered = available_actions(available, *available.shape)
        moves = (
            (full > 0.0) & ~np.eye(len(full), dtype=np.bool_)[:, None, :] & (terminal[:, None] | ~offered)[..., None]
        )
        if moves.any():
            s, a, t = (int(i) for i in np.argwhere(moves)[0])
            raise BeliefError(
                f"state {s}, action {a} leads to state {t}, but it stays where it is: the state is terminal, or does "
                f"not offer the action"
            )
        belief = cls.__new__(cls)
        belief._fill(frozen(concentration), ties, rewards, terminal, offered, initial)
        return belief._with(belief.concentration, belief.rewards, observed)

    @classmethod
    def from_log(
        cls,
        log: Any,
        *,
        prior: Any = "suggest",
        rewards: Any = "suggest",
        known: Any = None,
        terminal: Any = None,
        only_tried: bool = False,
        initial: Any = None,
    ) -> "DirichletBelief":
        """The posterior after a `Log`; `beliefs.from_log.learn` has what the arguments mean, and says what it chose.

        >>> from beliefbound.logs import log_of
        >>> log = log_of([0, 1, 0, 1], [0, 0, 0, 0], [0.0, 1.0, 0.0, 1.0], [1, 0, 1, 2], terminated=[0, 0, 0, 1])
        >>> DirichletBelief.from_log(log).mean().transitions[0, 0].round(3).tolist()
        [0.111, 0.778, 0.111]
        """
        from beliefbound.beliefs.from_log import learn  # which makes beliefs of this class

        chosen = {"known": known, "terminal": terminal, "only_tried": only_tried, "initial": initial}
        belief: DirichletBelief = learn(log, prior=prior, rewards=rewards, **chosen).belief
        return belief

    def _fill(
        self,
        alpha: FloatArray,
        ties: Ties | None,
        rewards: RewardBelief | None,
        terminal: BoolArray,
        available: BoolArray,
        initial: Any,
    ) -> None:
        n_states, n_actions = available.shape
        if rewards is not None and not all(
            hasattr(rewards, name) for name in ("expand", "update", "sample", "columns")
        ):
            raise BeliefError(f"rewards is {shown(rewards)}; give a reward belief, such as KnownRewards(...)")
        self._set(
            concentration=alpha,
            ties=ties,
            rewards=(BetaRewards(1.0, 1.0) if rewards is None else rewards).expand(n_states, n_actions),
            terminal=frozen(terminal),
            available=frozen(available),
            initial=check_initial(initial, n_states, BeliefError),
            observed=frozen(np.zeros(available.shape, dtype=np.int64)),
        )

    def _with(self, alpha: FloatArray, rewards: RewardBelief, observed: IntArray) -> "DirichletBelief":
        belief = DirichletBelief.__new__(DirichletBelief)
        belief._set(
            concentration=frozen(alpha),
            rewards=rewards,
            observed=frozen(observed),
            **{name: getattr(self, name) for name in ("ties", "terminal", "available", "initial")},
        )
        return belief

    def __repr__(self) -> str:
        shared = "" if self.ties is None else f"{len(self.concentration)} rows of shared parameters, "
        return (
            f"DirichletBelief({self.n_states} states, {self.n_actions} actions, {shared}{type(self.rewards).__name__})"
        )

    @property
    def n_states(self) -> int:
        return int(self.available.shape[0])

    @property
    def n_actions(self) -> int:
        return int(self.available.shape[1])

    @property
    def reward_range(self) -> tuple[float, float] | None:
        """Least and largest possible expected reward; `None` when unbounded."""
        range_ = self.rewards.range
        if range_ is None or not self.terminal.any():
            return range_
        return min(range_[0], 0.0), max(range_[1], 0.0)

    def counted(self, *, low: float = 0.0, width: float = 1.0, unavailable: bool = True) -> Posterior | None:
        """Counts as arrays for kernels, rewards on the scale `(r − low) / width`; `None` where rewards have none.

        `unavailable`: whether these kernels respect `available`; else actions that are not are refused.
        """
        if self.rewards.columns() is None:
            return None
        return posterior_of(self, low=low, width=width, unavailable=unavailable)

    def allowed(self) -> Allowed | None:
        """Outcomes that some model allows, and the least and largest rewards believed possible on the way; `None` where
        rewards have no counts."""
        columns = self.rewards.columns()
        if columns is None:
            return None
        possible = (self.concentration > 0.0) if self.ties is None else (self.ties.outcome >= 0)
        seen, ends = (columns.counts > 0.0)[..., None], self.terminal[:, None, None]
        high = np.where(ends, 0.0, np.where(seen, columns.paid, -np.inf).max(axis=0))
        low = np.where(ends, 0.0, np.where(seen, columns.paid, np.inf).min(axis=0))
        return Allowed(possible & self.available[..., None], low, high)

    def offering(self, available: BoolArray) -> "DirichletBelief":
        """The same belief where states offer only these actions, `[s,a]`."""
        offered = self.available & available
        if (offered == self.available).all():
            return self
        knobs: dict[str, Any] = {"rewards": self.rewards, "terminal": self.terminal, "initial": self.initial}
        if self.ties is not None:
            row, arrive = self.ties.row, self.ties.arrive
            narrow = DirichletBelief.tied(row, arrive, self.concentration, available=offered, **knobs)
        else:
            shape, alpha = self.available.shape, self.concentration
            narrow = DirichletBelief(*shape, concentration=alpha, available=offered, **knobs)
        return narrow._with(narrow.concentration, narrow.rewards, self.observed)

    def tied_to(self, state: int, action: int) -> IntArray:
        """Pairs `[i,2]` whose transitions are learnt together with those of a pair, itself among them."""
        if self.ties is None:
            return np.array([[state, action]], dtype=np.int64)
        return np.argwhere((self.ties.row == self.ties.row[state, action]) & self.available)

    def _spread(self, values: FloatArray) -> FloatArray:
        """`[…,s,a,t]` from numbers for each parameter; zero where an action is unavailable."""
        full = values if self.ties is None else self.ties.spread(values)
        if not self.available.all():
            full = np.where(self.available[..., None], full, 0.0)
        return full

    def mean(self) -> MDP:
        """The expected MDP."""
        total = self.concentration.sum(axis=-1, keepdims=True)
        rewards = self.rewards.mean()
        if self.terminal.any():
            rewards = np.where(self.terminal.reshape(-1, *[1] * (rewards.ndim - 1)), 0.0, rewards)
        chances = self._spread(self.concentration / total)
        return MDP(chances, rewards, initial=self.initial, available=self.available, normalize=True)

    def predictive(self, state: int, action: int) -> FloatArray:
        """Chances `[t]` of the next state."""
        s, a = check_id(state, self.n_states, "state"), check_id(action, self.n_actions, "action")
        if self.ties is None:
            alpha = self.concentration[s, a] * self.available[s, a]
            return np.asarray(alpha / self.concentration[s, a].sum(), dtype=np.float64)
        alpha, j = self.concentration[self.ties.row[s, a]], self.ties.outcome[s, a]
        chances: FloatArray = np.where((j >= 0) & self.available[s, a], alpha[j], 0.0) / alpha.sum()
        return chances

    def update(self, state: Any, action: Any, reward: Any, next_state: Any, *, times: Any = None) -> "DirichletBelief":
        """The posterior after one transition, or after several given as arrays of equal length (in any order).

        `reward` may be `None` when rewards are known. `times`: how often each transition was seen; default once.
        """
        states, actions, rewards, arrivals = self._batch(state, action, reward, next_state)
        often = check_times(times, len(states))
        alpha = self.concentration + self._counts(states, actions, arrivals, often)
        open_ = ~self.terminal[states]
        repeated = {} if times is None else {"times": often[open_]}
        rewarded = self.rewards.update(states[open_], actions[open_], rewards[open_], **repeated)
        return self._with(alpha, rewarded, self.observed + self._seen(states, actions, often))

    def _seen(self, states: IntArray, actions: IntArray, times: IntArray) -> IntArray:
        """How many transitions teach something about each pair, `[s,a]`."""
        if self.ties is None:
            seen = np.zeros(self.available.shape, dtype=np.int64)
            np.add.at(seen, (states, actions), times)
            return seen
        rows = np.zeros(len(self.concentration), dtype=np.int64)
        np.add.at(rows, self.ties.row[states, actions], times)
        return rows[self.ties.row]

    def notes(self) -> tuple[str, ...]:
        """What its value rests on where nothing was observed, in words.

        >>> DirichletBelief(2, 1).update(0, 0, 1.0, 1).notes()[0]
        '1 of 2 pairs of state and action were never observed: there the value rests on what was believed before'
        """
        return prior_notes(self.observed, self.available & ~self.terminal[:, None])

    def _counts(self, states: IntArray, actions: IntArray, arrivals: IntArray, times: Any = 1.0) -> FloatArray:
        counts = np.zeros_like(self.concentration)
        np.add.at(counts, self._cells(states, actions, arrivals), times)
        return counts

    def _cells(self, states: IntArray, actions: IntArray, arrivals: IntArray) -> tuple[IntArray, ...]:
        """Where in `concentration` transitions are counted."""
        if self.ties is None:
            return states, actions, arrivals
        return self.ties.row[states, actions], self.ties.outcome[states, actions, arrivals]

    def _batch(self, state: Any, action: Any, reward: Any, next_state: Any) -> Batch:
        states, actions, arrivals = check_log(state, action, next_state, self.n_states, self.n_actions)
        rewards = np.zeros(len(states))
        if reward is not None:
            rewards = np.atleast_1d(as_floats(reward, "reward", ObservationError))
        elif self.rewards.learns:
            raise ObservationError("no reward was given, but the belief learns from rewards; pass the reward seen")
        check_lengths(states, actions, rewards, arrivals)
        cells = self._cells(states, actions, arrivals)
        impossible = (cells[-1] < 0) | (self.concentration[cells] == 0.0) | ~self.available[states, actions]
        if impossible.any():
            i = int(np.argmax(impossible))
            raise ObservationError(
                f"observation {i}: state {states[i]}, action {actions[i]}, next state {arrivals[i]} is outside the "
                f"belief's support; give that transition a positive concentration"
            )
        return states, actions, rewards, arrivals

    def sample(self, n: int, rng: Rng = None) -> FiniteBelief:
        """`n` independent models, equally weighted, with the reward signal that the reward belief implies.

        `rng`: a generator, a seed, or `None` for fresh randomness.
        """
        n = check_count(n, "number of sampled models")
        shape = (n, self.n_states, self.n_actions, self.n_states)
        check_size(shape, "a sample of models", BeliefError, fix="draw fewer models")
        stream = stream_from(as_rng(rng))
        alpha = self.concentration if self.ties is None else self.concentration[None]
        drawn = np.empty((n, *alpha.shape))
        dirichlet_models(stream, alpha, drawn)
        return self.drawn(self._spread(drawn if self.ties is None else drawn[:, 0]), stream)

    def drawn(self, transitions: FloatArray, stream: np.ndarray[Any, np.dtype[np.uint64]]) -> FiniteBelief:
        """Models with these transitions `[m,s,a,t]` and rewards drawn from the belief: the second half of `sample`."""
        rewards, signal = self.rewards.sample(len(transitions), stream)
        if rewards.ndim == 4:
            rewards = np.einsum("msat,msat->msa", transitions, rewards)
        return self.of_models(Dense(frozen(transitions)), rewards, signal)

    def of_models(self, transitions: Any, rewards: FloatArray, signal: Signal) -> FiniteBelief:
        """Models drawn from the belief: `models.Dense` or alike, and `rewards [m,s,a]` before what is never paid."""
        if self.terminal.any():
            rewards, signal = np.where(self.terminal[:, None], 0.0, rewards), SilentStates(signal, self.terminal)
        if not self.available.all():
            rewards = np.where(self.available, rewards, 0.0)
        return FiniteBelief.of(
            ModelSet(transitions, frozen(np.ascontiguousarray(rewards)), self.available),
            reward_signal=signal,
            reward_range=self.reward_range,
            initial=self.initial,
        )

    def log_marginal_likelihood(self, state: Any, action: Any, reward: Any, next_state: Any) -> float:
        """Log probability (density, for Normal rewards) this belief gives to transitions seen in this order."""
        import scipy.special as special

        states, actions, rewards, arrivals = self._batch(state, action, reward, next_state)
        before, counts = self.concentration, self._counts(states, actions, arrivals)
        seen = counts > 0
        rows = counts.sum(axis=-1)
        total = before.sum(axis=-1)
        log_rows = special.gammaln(total) - special.gammaln(total + rows)
        log_cells = special.gammaln(before[seen] + counts[seen]) - special.gammaln(before[seen])
        evidence = float(log_rows.sum() + log_cells.sum())
        open_ = ~self.terminal[states]
        return evidence + self.rewards.log_marginal_likelihood(states[open_], actions[open_], rewards[open_])

    def credible_intervals(self, mass: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Equal-tailed intervals for each transition probability, as `(low, high)`, each `[s,a,t]`."""
        import scipy.stats as stats  # takes half a second, which most programs need not spend

        tail = (1.0 - check_probability(mass, "mass")) / 2
        alpha = self.concentration
        rest = alpha.sum(axis=-1, keepdims=True) - alpha
        low, high = np.zeros_like(alpha), np.zeros_like(alpha)
        certain = (alpha > 0) & (rest <= 0)
        low[certain] = high[certain] = 1.0
        open_ = (alpha > 0) & (rest > 0)
        law = stats.beta(alpha[open_], rest[open_])
        low[open_], high[open_] = law.ppf(tail), law.ppf(1.0 - tail)
        return self._spread(low), self._spread(high)
