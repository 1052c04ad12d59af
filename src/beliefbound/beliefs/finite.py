"""A belief over finitely many models: weights, and exact Bayes updates.

After seeing `(s, a, r, t)` the weight of model `m` is multiplied by `P_m(t|s,a)` and by the likelihood of the reward,
which depends on what the agent can see of it:

* `known`: rewards are the same in every model, so they carry no information beyond the next state;
* `deterministic`: model `m` pays exactly `r_m(s,a)` – or `r_m(s,a,t)`, where rewards were given on arrival – so models
  that pay otherwise are ruled out;
* `bernoulli`: model `m` pays `high` with probability `(r_m − low)/(high − low)` and `low` otherwise. A reward between
  the two, a fraction `x` of the way, counts as `x` successes and `1 − x` failures;
* `unobserved`: the agent never sees rewards;
* `continuous`: rewards are seen but have no finite set of outcomes (samples of Gaussian reward beliefs). Such a belief
  has valid lower bounds, `E max` and QMDP, but no exact update.
"""

from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
import scipy.sparse as sp

from beliefbound.errors import BeliefError, ObservationError, ParameterError
from beliefbound.mdp import MDP
from beliefbound.models import Csr, Dense, ModelSet, build
from beliefbound.validation import (
    FloatArray,
    Frozen,
    as_floats,
    check_count,
    check_distributions,
    check_ids,
    check_initial,
    frozen,
)

RewardSignal = Literal["known", "deterministic", "bernoulli", "unobserved", "continuous"]


class FiniteBelief(Frozen):
    """Weighted models that share states and actions.

    Args:
      transitions: `[model, state, action, next_state]`, or a sequence of scipy sparse matrices, one per model, with
        rows over `(state, action)`.
      rewards: expected rewards `[model, state, action]`, or `[state, action]` when all models agree; or rewards paid on
        arrival, `[model, state, action, next_state]`, of which the expectation is taken.
      weights: probability of each model `[model]`; default: equal.
      reward_signal: what the agent sees of rewards: `known`, `deterministic`, `bernoulli`, `unobserved`
        or `continuous`; see the module's text.
      reward_range: `(low, high)`, the two values of a Bernoulli reward; default `(0, 1)`.
      initial: start distribution `[state]`, or one start state; optional.
      available: booleans `[state, action]`; default: every action everywhere.
      normalize: rescale rows that do not sum to one instead of refusing them.

    Arrays are not copied when they already are float64, never modified, and read-only from here on.

    >>> stay, move = [[[1.0, 0.0]], [[0.0, 1.0]]], [[[0.0, 1.0]], [[1.0, 0.0]]]
    >>> belief = FiniteBelief([stay, move], [[0.0], [1.0]])
    >>> belief.weights.tolist()
    [0.5, 0.5]
    >>> belief.update(0, 0, 0.0, 1).weights.tolist()
    [0.0, 1.0]
    """

    __slots__ = ("arrival_rewards", "initial", "models", "reward_range", "reward_signal", "weights")
    _called = "a belief"

    models: ModelSet  # without their weights
    weights: FloatArray
    reward_signal: RewardSignal
    reward_range: tuple[float, float]
    initial: FloatArray | None
    arrival_rewards: FloatArray | None

    def __init__(
        self,
        transitions: Any,
        rewards: Any,
        weights: Any = None,
        *,
        reward_signal: RewardSignal = "known",
        reward_range: tuple[float, float] | None = None,
        initial: Any = None,
        available: Any = None,
        normalize: bool = False,
    ) -> None:
        if isinstance(transitions, Sequence) and transitions and all(sp.issparse(x) for x in transitions):
            n_models = len(transitions)
            stacked: Any = sp.vstack([sp.csr_array(x) for x in transitions], format="csr")
        elif sp.issparse(transitions):
            raise BeliefError("pass a list of sparse matrices, one per model")
        else:
            stacked = as_floats(transitions, "transitions", BeliefError)
            n_models = len(stacked) if stacked.ndim else 0
        models = build(
            stacked,
            rewards,
            n_models=n_models,
            n_actions=None,
            available=available,
            normalize=normalize,
            error=BeliefError,
        )
        start = check_initial(initial, models.n_states, BeliefError)
        arrival = None
        if np.ndim(rewards) == 4 and reward_signal in ("known", "deterministic"):
            arrival = frozen(as_floats(rewards, "rewards", BeliefError))
        self._fill(models, weights, reward_signal, reward_range, start, arrival)

    def _fill(
        self,
        models: ModelSet,
        weights: Any,
        reward_signal: RewardSignal,
        reward_range: tuple[float, float] | None,
        initial: FloatArray | None,
        arrival: FloatArray | None,
    ) -> None:
        if reward_signal not in get_args(RewardSignal):
            options = ", ".join(get_args(RewardSignal))
            raise BeliefError(f"reward_signal is {reward_signal!r}; choose one of {options}")
        if weights is None:
            w = np.full(models.n_models, 1.0 / models.n_models)
        else:
            w = as_floats(weights, "weights", BeliefError)
            if w.shape != (models.n_models,):
                raise BeliefError(f"weights have shape {w.shape}; expected ({models.n_models},), one per model")
            check_distributions(w, "weights", ("model",), BeliefError, fix="divide the weights by their sum")
        if reward_signal == "known":
            shown = models.rewards if arrival is None else arrival
            differ = shown != shown[0]
            if differ.any():
                m, s, a, *_ = index = tuple(int(i) for i in np.argwhere(differ)[0])
                raise BeliefError(
                    f"rewards[model {m}, state {s}, action {a}] is {shown[index]} but model 0 has "
                    f"{shown[(0, *index[1:])]}, so rewards are not known; pass reward_signal='deterministic', "
                    f"'bernoulli' or 'unobserved'"
                )
            arrival = None
        low, high = models.reward_range
        if reward_signal == "bernoulli":
            range_ = (0.0, 1.0) if reward_range is None else (float(reward_range[0]), float(reward_range[1]))
            if not range_[0] < range_[1]:
                raise BeliefError(f"reward_range is {range_}; the first value must be below the second")
            if low < range_[0] or high > range_[1]:
                raise BeliefError(
                    f"expected rewards span {low:g} to {high:g}, outside the Bernoulli range {range_}; "
                    f"pass reward_range=(low, high)"
                )
        else:
            range_ = (low, high) if reward_range is None else (float(reward_range[0]), float(reward_range[1]))
        self._set(
            models=models,
            weights=frozen(w),
            reward_signal=reward_signal,
            reward_range=range_,
            initial=initial,
            arrival_rewards=arrival,
        )

    @classmethod
    def of(
        cls,
        models: ModelSet,
        weights: Any = None,
        *,
        reward_signal: RewardSignal = "known",
        reward_range: tuple[float, float] | None = None,
        initial: FloatArray | None = None,
        arrival_rewards: FloatArray | None = None,
    ) -> "FiniteBelief":
        """A belief over an already validated `ModelSet`; `arrival_rewards` as in the attribute."""
        belief = cls.__new__(cls)
        belief._fill(models, weights, reward_signal, reward_range, initial, arrival_rewards)
        return belief

    @classmethod
    def from_mdps(
        cls, mdps: Sequence[MDP], weights: Any = None, *, reward_signal: RewardSignal = "known", initial: Any = None
    ) -> "FiniteBelief":
        """A belief over MDPs that share states, actions and action sets; dense.

        >>> mdp = MDP([[[1.0]]], [[1.0]])
        >>> FiniteBelief.from_mdps([mdp, mdp]).n_models
        2
        """
        if not mdps:
            raise BeliefError("no MDPs were given; a belief needs at least one")
        for i, mdp in enumerate(mdps):
            if (mdp.n_states, mdp.n_actions) != (mdps[0].n_states, mdps[0].n_actions):
                raise BeliefError(f"model {i} is {mdp} but model 0 is {mdps[0]}; all must share states and actions")
            if not np.array_equal(mdp.available, mdps[0].available):
                raise BeliefError(f"model {i} offers other actions than model 0; all must share action sets")
        return cls(
            np.concatenate([mdp.models.dense() for mdp in mdps]),
            np.stack([mdp.rewards for mdp in mdps]),
            weights,
            reward_signal=reward_signal,
            initial=mdps[0].initial if initial is None else initial,
            available=mdps[0].available,
        )

    def __repr__(self) -> str:
        return (
            f"FiniteBelief({self.n_models} models, {self.n_states} states, {self.n_actions} actions, "
            f"rewards {self.reward_signal})"
        )

    @property
    def n_models(self) -> int:
        return self.models.n_models

    @property
    def n_states(self) -> int:
        return self.models.n_states

    @property
    def n_actions(self) -> int:
        return self.models.n_actions

    @property
    def transitions(self) -> Any:
        """`[m,s,a,t]` when dense; a CSR matrix with rows over `(m,s,a)` when sparse."""
        kept = self.models.transitions
        return kept.array if isinstance(kept, Dense) else kept.matrix

    @property
    def rewards(self) -> FloatArray:
        """Expected rewards `[m,s,a]`; `arrival_rewards` has `[m,s,a,t]` where what is seen depends on the arrival."""
        return self.models.rewards

    def reweight(self, weights: Any) -> "FiniteBelief":
        """The same models under other weights `[m]`."""
        return FiniteBelief.of(
            self.models,
            weights,
            reward_signal=self.reward_signal,
            reward_range=self.reward_range,
            initial=self.initial,
            arrival_rewards=self.arrival_rewards,
        )

    def mean(self) -> MDP:
        """The expected MDP: expected transitions and expected rewards under the weights."""
        mean = self.models.mean(self.weights)
        kept = mean.transitions
        return MDP(
            kept.matrix if isinstance(kept, Csr) else kept.array[0],
            mean.rewards[0],
            initial=self.initial,
            available=mean.available,
            normalize=True,
        )

    def sample(self, n: int, rng: np.random.Generator) -> "FiniteBelief":
        """`n` models drawn with the belief's probabilities, equally weighted."""
        chosen = rng.choice(self.n_models, size=check_count(n, "number of sampled models"), p=self.weights)
        return FiniteBelief.of(
            self.models.select(chosen),
            reward_signal=self.reward_signal,
            reward_range=self.reward_range,
            initial=self.initial,
            arrival_rewards=None if self.arrival_rewards is None else self.arrival_rewards[chosen],
        )

    def update(self, state: Any, action: Any, reward: Any, next_state: Any) -> "FiniteBelief":
        """The posterior after one transition, or after several given as arrays of equal length.

        `reward` may be `None` when the signal is `known` or `unobserved`.
        """
        states = np.atleast_1d(check_ids(state, self.n_states, "state", ObservationError))
        actions = np.atleast_1d(check_ids(action, self.n_actions, "action", ObservationError))
        arrivals = np.atleast_1d(check_ids(next_state, self.n_states, "next_state", ObservationError))
        needs_reward = self.reward_signal not in ("known", "unobserved")
        rewards = (
            np.atleast_1d(as_floats(reward, "reward", ObservationError)) if needs_reward else np.zeros(len(states))
        )
        if not len(states) == len(actions) == len(arrivals) == len(rewards):
            raise ObservationError(
                f"states, actions, rewards and next states have lengths {len(states)}, {len(actions)}, "
                f"{len(rewards)}, {len(arrivals)}; they must be equal"
            )
        with np.errstate(divide="ignore"):
            log_weights = np.log(self.weights)
            for i, (s, a, r, t) in enumerate(zip(states, actions, rewards, arrivals, strict=True)):
                likelihood = self.models.transitions.likelihood(s, a, t) * self.reward_likelihood(s, a, r, t)
                log_weights = log_weights + np.log(likelihood)
                if not np.isfinite(log_weights.max()):
                    seen = f", reward {r:g}" if needs_reward else ""
                    which = f"observation {i}: " if len(states) > 1 else ""
                    raise ObservationError(
                        f"{which}state {s}, action {a}{seen}, next state {t} has probability 0 under every model that "
                        f"still has weight; add a model that allows it"
                    )
        weights = np.exp(log_weights - log_weights.max())
        return self.reweight(weights / weights.sum())

    def reward_likelihood(self, state: int, action: int, reward: float, next_state: int) -> FloatArray:
        """Likelihood `[m]` of seeing `reward` on the way from `state` to `next_state` by `action`, in each model."""
        means: FloatArray = self.models.rewards[:, state, action]
        if self.reward_signal in ("known", "unobserved"):
            return np.ones_like(means)
        if self.reward_signal == "deterministic":
            if self.arrival_rewards is not None:
                means = self.arrival_rewards[:, state, action, next_state]
            return np.isclose(means, reward, rtol=1e-9, atol=1e-12).astype(np.float64)
        if self.reward_signal == "bernoulli":
            low, high = self.reward_range
            if not low <= reward <= high:
                raise ObservationError(f"reward is {reward}; a Bernoulli reward lies between {low:g} and {high:g}")
            x = (reward - low) / (high - low)
            p = (means - low) / (high - low)
            likelihood: FloatArray = np.power(p, x) * np.power(1.0 - p, 1.0 - x)
            return likelihood
        raise ParameterError(
            "continuous rewards have no exact update on a finite belief; update the belief it was sampled from"
        )
