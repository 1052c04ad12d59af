"""A product-Dirichlet belief about transitions, with an independent reward belief.

`P(·|s,a) ~ Dirichlet(α[s,a,·])` independently per (state, action); observing `t` adds one to `α[s,a,t]`. Next states
with `α = 0` are known to be impossible. The marginal of one probability is `Beta(α_t, α_0 − α_t)`.
"""

from typing import Any

import numpy as np
import scipy.special as special
import scipy.stats as stats

from beliefbound.beliefs.finite import FiniteBelief
from beliefbound.beliefs.rewards import BetaRewards, RewardBelief
from beliefbound.errors import BeliefError, ObservationError
from beliefbound.kernels.draws import dirichlet_models
from beliefbound.kernels.random import stream_from
from beliefbound.mdp import MDP
from beliefbound.models import Dense, ModelSet
from beliefbound.validation import (
    FloatArray,
    Frozen,
    IntArray,
    as_floats,
    check_count,
    check_finite,
    check_ids,
    check_initial,
    check_probability,
    frozen,
)

Batch = tuple[IntArray, IntArray, FloatArray, IntArray]


class DirichletBelief(Frozen):
    """Independent Dirichlet beliefs about each row of transitions, and beliefs about rewards.

    Args:
      n_states, n_actions: sizes.
      concentration: one number, or `[s,a,t]`; default `1 / n_states`. Zeros mark impossible transitions.
      rewards: `BetaRewards`, `NormalRewards` or `KnownRewards`; default `BetaRewards(1, 1)`.
      support: booleans `[s,a,t]` or `[s,t]`: transitions that are possible at all; default: those with concentration.
      initial: start distribution `[state]`, or one start state; optional.

    >>> belief = DirichletBelief(2, 1, concentration=1.0)
    >>> posterior = belief.update(0, 0, 1.0, 1)
    >>> posterior.mean().transitions[0, 0].round(3).tolist()
    [0.333, 0.667]
    >>> posterior.sample(3, np.random.default_rng(0)).n_models
    3
    """

    __slots__ = ("concentration", "initial", "rewards")
    _called = "a belief"

    concentration: FloatArray
    rewards: RewardBelief
    initial: FloatArray | None

    def __init__(
        self,
        n_states: int,
        n_actions: int,
        *,
        concentration: Any = None,
        rewards: RewardBelief | None = None,
        support: Any = None,
        initial: Any = None,
    ) -> None:
        n_states, n_actions = check_count(n_states, "n_states"), check_count(n_actions, "n_actions")
        shape = (n_states, n_actions, n_states)
        given = as_floats(1.0 / n_states if concentration is None else concentration, "concentration", BeliefError)
        if given.shape not in ((), (1,), shape):
            raise BeliefError(f"concentration has shape {given.shape}; expected one number or {shape}")
        alpha = np.array(np.broadcast_to(given, shape))
        if support is not None:
            possible = np.asarray(support, dtype=np.bool_)
            if possible.shape == (n_states, n_states):
                possible = possible[:, None, :]
            try:
                alpha *= np.broadcast_to(possible, shape)
            except ValueError:
                raise BeliefError(f"support has shape {possible.shape}; expected {shape} or {shape[::2]}") from None
        check_finite(alpha, "concentration", ("state", "action", "next state"), BeliefError)
        if (alpha < 0).any():
            s, a, t = (int(i) for i in np.argwhere(alpha < 0)[0])
            raise BeliefError(
                f"concentration[state {s}, action {a}, next state {t}] is {alpha[s, a, t]}; it must be 0 or more"
            )
        none = ~(alpha > 0).any(axis=-1)
        if none.any():
            s, a = (int(i) for i in np.argwhere(none)[0])
            raise BeliefError(f"state {s}, action {a} has no possible next state; give one a positive concentration")
        self._set(
            concentration=frozen(alpha),
            rewards=(BetaRewards(1.0, 1.0) if rewards is None else rewards).expand(n_states, n_actions),
            initial=check_initial(initial, n_states, BeliefError),
        )

    def __repr__(self) -> str:
        return f"DirichletBelief({self.n_states} states, {self.n_actions} actions, {type(self.rewards).__name__})"

    @property
    def n_states(self) -> int:
        return int(self.concentration.shape[0])

    @property
    def n_actions(self) -> int:
        return int(self.concentration.shape[1])

    def mean(self) -> MDP:
        """The expected MDP."""
        total = self.concentration.sum(axis=-1, keepdims=True)
        return MDP(self.concentration / total, self.rewards.mean(), initial=self.initial, normalize=True)

    def update(self, state: Any, action: Any, reward: Any, next_state: Any) -> "DirichletBelief":
        """The posterior after one transition, or after several given as arrays of equal length (in any order).

        `reward` may be `None` when rewards are known.
        """
        states, actions, rewards, arrivals = self._batch(state, action, reward, next_state)
        alpha = self.concentration.copy()
        np.add.at(alpha, (states, actions, arrivals), 1.0)
        after = DirichletBelief.__new__(DirichletBelief)
        after._set(
            concentration=frozen(alpha),
            rewards=self.rewards.update(states, actions, rewards),
            initial=self.initial,
        )
        return after

    def _batch(self, state: Any, action: Any, reward: Any, next_state: Any) -> Batch:
        states = np.atleast_1d(check_ids(state, self.n_states, "state", ObservationError))
        actions = np.atleast_1d(check_ids(action, self.n_actions, "action", ObservationError))
        arrivals = np.atleast_1d(check_ids(next_state, self.n_states, "next_state", ObservationError))
        rewards = np.zeros(len(states))
        if reward is not None:
            rewards = np.atleast_1d(as_floats(reward, "reward", ObservationError))
        elif self.rewards.signal != "known":
            raise ObservationError("no reward was given, but the belief learns from rewards; pass the reward seen")
        if not len(states) == len(actions) == len(rewards) == len(arrivals):
            raise ObservationError(
                f"states, actions, rewards and next states have lengths {len(states)}, {len(actions)}, "
                f"{len(rewards)}, {len(arrivals)}; they must be equal"
            )
        impossible = self.concentration[states, actions, arrivals] == 0.0
        if impossible.any():
            i = int(np.argmax(impossible))
            raise ObservationError(
                f"observation {i}: state {states[i]}, action {actions[i]}, next state {arrivals[i]} is outside the "
                f"belief's support; give that transition a positive concentration"
            )
        return states, actions, rewards, arrivals

    def sample(self, n: int, rng: np.random.Generator) -> FiniteBelief:
        """`n` independent models, equally weighted, with the reward signal that the reward belief implies."""
        n = check_count(n, "number of sampled models")
        stream = stream_from(rng)
        transitions = np.empty((n, *self.concentration.shape))
        dirichlet_models(stream, self.concentration, transitions)
        rewards = self.rewards.sample(n, stream)
        available = np.ones(self.concentration.shape[:2], dtype=np.bool_)
        signal: Any = self.rewards.signal
        return FiniteBelief.of(
            ModelSet(Dense(frozen(transitions)), frozen(np.ascontiguousarray(rewards)), available),
            reward_signal=signal,
            reward_range=self.rewards.range,
            initial=self.initial,
        )

    def log_marginal_likelihood(self, state: Any, action: Any, reward: Any, next_state: Any) -> float:
        """Log probability (density, for Normal rewards) this belief gives to transitions seen in this order."""
        states, actions, rewards, arrivals = self._batch(state, action, reward, next_state)
        before = self.concentration
        counts = np.zeros_like(before)
        np.add.at(counts, (states, actions, arrivals), 1.0)
        seen = counts > 0
        rows = counts.sum(axis=-1)
        total = before.sum(axis=-1)
        log_rows = special.gammaln(total) - special.gammaln(total + rows)
        log_cells = special.gammaln(before[seen] + counts[seen]) - special.gammaln(before[seen])
        evidence = float(log_rows.sum() + log_cells.sum())
        return evidence + self.rewards.log_marginal_likelihood(states, actions, rewards)

    def credible_intervals(self, mass: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Equal-tailed intervals for each transition probability, as `(low, high)`, each `[s,a,t]`."""
        tail = (1.0 - check_probability(mass, "mass")) / 2
        alpha = self.concentration
        rest = alpha.sum(axis=-1, keepdims=True) - alpha
        low, high = np.zeros_like(alpha), np.zeros_like(alpha)
        certain = (alpha > 0) & (rest <= 0)
        low[certain] = high[certain] = 1.0
        open_ = (alpha > 0) & (rest > 0)
        law = stats.beta(alpha[open_], rest[open_])
        low[open_], high[open_] = law.ppf(tail), law.ppf(1.0 - tail)
        return low, high
