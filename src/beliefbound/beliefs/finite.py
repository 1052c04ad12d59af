"""A belief over finitely many models: weights, and exact Bayes updates.

After seeing `(s, a, r, t)` the weight of model `m` is multiplied by `P_m(t|s,a)` and by the likelihood of the reward,
which depends on what the agent can see of it: `beliefs.signals` has the possibilities, one class each.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from beliefbound.base.errors import BeliefError, ObservationError
from beliefbound.base.limits import check_size
from beliefbound.base.validation import (
    BoolArray,
    FloatArray,
    Frozen,
    Rng,
    as_floats,
    as_rng,
    check_count,
    check_distributions,
    check_finite,
    check_initial,
    check_kind,
    check_names,
    check_sequence,
    frozen,
    is_sparse,
)
from beliefbound.beliefs.observed import check_lengths, check_log
from beliefbound.beliefs.signals import RewardSignal, Signal, check_range, named_signal
from beliefbound.models import Csr, ModelSet, build
from beliefbound.models.mdp import MDP
from beliefbound.policy.protocol import check_id


class FiniteBelief(Frozen):
    """Weighted models that share states and actions.

    Args:
      transitions: `[model, state, action, next_state]`, or a sequence of scipy sparse matrices, one per model, with
        rows over `(state, action)`.
      rewards: expected rewards `[model, state, action]`, or `[state, action]` when all models agree; or rewards paid on
        arrival, `[model, state, action, next_state]`. `None` where they follow from a signal such as `FiniteValues`.
      weights: probability of each model `[model]`; default: equal.
      reward_signal: what the agent sees of rewards: `known`, `deterministic`, `bernoulli`, `unobserved`
        or `continuous`, or an object of your own; see `beliefs.signals`.
      reward_range: `(low, high)`, the two values of a Bernoulli reward; default `(0, 1)`.
      initial: start distribution `[state]`, or one start state, by number or name; optional.
      available: booleans `[state, action]`; default: every action everywhere.
      states, actions, model_names: names; optional.
      normalize: rescale rows that do not sum to one instead of refusing them.

    Arrays are not copied when they already are float64, never modified, and read-only from here on.

    >>> stay, move = [[[1.0, 0.0]], [[0.0, 1.0]]], [[[0.0, 1.0]], [[1.0, 0.0]]]
    >>> belief = FiniteBelief([stay, move], [[0.0], [1.0]])
    >>> belief.weights.tolist()
    [0.5, 0.5]
    >>> belief.update(0, 0, 0.0, 1).weights.tolist()
    [0.0, 1.0]
    """

    __slots__ = ("actions", "initial", "model_names", "models", "reward_range", "signal", "states", "weights")
    _called = "a belief"

    models: ModelSet  # without their weights
    weights: FloatArray
    signal: Signal  # what a step shows of the reward
    reward_range: tuple[float, float]
    initial: FloatArray | None
    states: tuple[str, ...] | None
    actions: tuple[str, ...] | None
    model_names: tuple[str, ...] | None

    def __init__(
        self,
        transitions: Any,
        rewards: Any,
        weights: Any = None,
        *,
        reward_signal: RewardSignal | Signal = "known",
        reward_range: tuple[float, float] | None = None,
        initial: Any = None,
        available: Any = None,
        states: Sequence[str] | None = None,
        actions: Sequence[str] | None = None,
        model_names: Sequence[str] | None = None,
        normalize: bool = False,
    ) -> None:
        if isinstance(transitions, list | tuple) and transitions and all(is_sparse(x) for x in transitions):
            n_models = len(transitions)
            stacked: Any = list(transitions)
        elif is_sparse(transitions):
            raise BeliefError("pass a list of sparse matrices, one per model")
        else:
            stacked = as_floats(transitions, "transitions", BeliefError)
            n_models = len(stacked) if stacked.ndim else 0
        if isinstance(reward_signal, Signal) and reward_signal.rewards is not None:
            if rewards is not None:
                raise BeliefError(f"rewards follow from the {reward_signal.name} signal; pass rewards=None")
            rewards = reward_signal.rewards
        models = build(
            stacked,
            rewards,
            n_models=n_models,
            n_actions=None,
            available=available,
            normalize=normalize,
            error=BeliefError,
        )
        start = check_initial(initial, models.n_states, BeliefError, states)
        arrival = as_floats(rewards, "rewards", BeliefError) if np.ndim(rewards) == 4 else None
        self._fill(models, weights, reward_signal, reward_range, start, arrival, states, actions, model_names)

    def _fill(
        self,
        models: ModelSet,
        weights: Any,
        signal: RewardSignal | Signal,
        reward_range: tuple[float, float] | None,
        initial: FloatArray | None,
        arrival: FloatArray | None,
        states: Sequence[str] | None,
        actions: Sequence[str] | None,
        model_names: Sequence[str] | None,
    ) -> None:
        if not isinstance(signal, Signal):
            signal = named_signal(signal, models, arrival, reward_range)
        if weights is None:
            w = np.full(models.n_models, 1.0 / models.n_models)
        else:
            w = as_floats(weights, "weights", BeliefError)
            if w.shape != (models.n_models,):
                raise BeliefError(f"weights have shape {w.shape}; expected ({models.n_models},), one per model")
            check_distributions(w, "weights", ("model",), BeliefError, fix="divide the weights by their sum")
        range_ = signal.range or models.reward_range
        if reward_range is not None and signal.range is None:
            range_ = check_range(reward_range, apart=False)
        self._set(
            models=models,
            weights=frozen(w),
            signal=signal,
            reward_range=range_,
            initial=initial,
            states=check_names(states, models.n_states, "state", BeliefError),
            actions=check_names(actions, models.n_actions, "action", BeliefError),
            model_names=check_names(model_names, models.n_models, "model", BeliefError),
        )

    @classmethod
    def of(
        cls,
        models: ModelSet,
        weights: Any = None,
        *,
        reward_signal: RewardSignal | Signal = "known",
        reward_range: tuple[float, float] | None = None,
        initial: FloatArray | None = None,
        states: Sequence[str] | None = None,
        actions: Sequence[str] | None = None,
        model_names: Sequence[str] | None = None,
    ) -> "FiniteBelief":
        """A belief over an already validated `ModelSet`."""
        belief = cls.__new__(cls)
        belief._fill(models, weights, reward_signal, reward_range, initial, None, states, actions, model_names)
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
        mdps = check_sequence(mdps, "mdps", BeliefError, fix="give a list of MDPs")
        if not mdps:
            raise BeliefError("no MDPs were given; a belief needs at least one")
        for i, mdp in enumerate(mdps):
            check_kind(mdp, MDP, f"mdps[{i}]", BeliefError, fix="give a list of MDPs")
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
            states=mdps[0].states,
            actions=mdps[0].actions,
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
    def available(self) -> BoolArray:
        """Which actions each state offers, `[s,a]`."""
        return self.models.available

    def enumerated(self) -> "FiniteBelief":
        """Itself: what is asked of it can be summed over models."""
        return self

    @property
    def reward_signal(self) -> str:
        """The name of what the agent sees of rewards."""
        return self.signal.name

    @property
    def transitions(self) -> Any:
        """`[m,s,a,t]` when dense; a CSR matrix with rows over `(m,s,a)` when sparse."""
        return self.models.transitions.stored

    @property
    def rewards(self) -> FloatArray:
        """Expected rewards `[m,s,a]`; `signal` knows what is seen of them."""
        return self.models.rewards

    def reweight(self, weights: Any) -> "FiniteBelief":
        """The same models under other weights `[m]`."""
        return self._with(self.models, weights, self.signal, self.model_names)

    def on(self, device: Any, dtype: str = "float64") -> "FiniteBelief":
        """The same belief with its models on an accelerator, where every planner then sweeps them: `cuda`, `cuda:1`
        and `cpu` by PyTorch, `cupy`, `jax`; `numpy` is the same without one. Models that do not fit are sent in blocks.

        >>> FiniteBelief([[[[1.0]]]], [[[1.0]]]).on("numpy").models.n_models
        1
        """
        return self._with(self.models.on(device, dtype), self.weights, self.signal, self.model_names)

    def starting(self, initial: Any) -> "FiniteBelief":
        """The same models with another start: a distribution `[s]`, or a state by number or name."""
        start = check_initial(initial, self.n_states, BeliefError, self.states)
        return self._with(self.models, self.weights, self.signal, self.model_names, start)

    def _with(
        self,
        models: ModelSet,
        weights: Any,
        signal: Signal,
        model_names: Sequence[str] | None = None,
        initial: FloatArray | None = None,
    ) -> "FiniteBelief":
        return FiniteBelief.of(
            models,
            weights,
            reward_signal=signal,
            reward_range=self.reward_range,
            initial=self.initial if initial is None else initial,
            states=self.states,
            actions=self.actions,
            model_names=model_names,
        )

    def mean(self) -> MDP:
        """The expected MDP: expected transitions and expected rewards under the weights."""
        mean = self.models.mean(self.weights)
        kept = mean.transitions
        return MDP(
            kept.matrix if isinstance(kept, Csr) else kept.array[0],
            mean.rewards[0],
            initial=self.initial,
            states=self.states,
            actions=self.actions,
            available=mean.available,
            normalize=True,
        )

    def sample(self, n: int, rng: Rng = None) -> "FiniteBelief":
        """`n` models drawn with the belief's probabilities, equally weighted; `rng`: a generator, a seed, or `None` for
        fresh randomness."""
        count = check_count(n, "number of sampled models")
        check_size((count, self.n_states, self.n_actions), "a sample of models", BeliefError, fix="draw fewer models")
        chosen = as_rng(rng).choice(self.n_models, size=count, p=self.weights)
        return self._with(self.models.select(chosen), None, self.signal.select(chosen))

    def step(self, model: int, state: int, action: int, rng: np.random.Generator) -> tuple[float | None, int]:
        """`(reward shown, next state)` of one step in one of the models; `None` where nothing is shown.

        >>> FiniteBelief([[[[0.0, 1.0]]] * 2], [[0.5], [0.0]]).step(0, 0, 0, np.random.default_rng(0))
        (None, 1)
        """
        arrivals, chances = self.models.transitions.entries(state, action)
        arrival = int(arrivals[_draw(chances[model], rng)])
        shown = self.signal.shown(state, action, np.array([arrival]))
        each = np.array([chance[model if len(chance) > 1 else 0, 0] for _, chance in shown])
        value = shown[_draw(each, rng) if len(shown) > 1 else 0][0]
        return None if np.isnan(value) else float(value), arrival

    def predictive(self, state: int, action: int) -> FloatArray:
        """Chances `[t]` of the next state.

        >>> FiniteBelief([[[[1.0, 0.0]]] * 2, [[[0.0, 1.0]]] * 2], [[0.0], [0.0]]).predictive(0, 0).tolist()
        [0.5, 0.5]
        """
        arrivals, chances = self.models.transitions.entries(
            check_id(state, self.n_states, "state"),
            check_id(action, self.n_actions, "action"),
        )
        row = np.zeros(self.n_states)
        row[arrivals] = self.weights @ chances
        return row

    def update(self, state: Any, action: Any, reward: Any, next_state: Any) -> "FiniteBelief":
        """The posterior after one transition, or after several given as arrays of equal length.

        `reward` may be `None` when the signal is `known` or `unobserved`.
        """
        needs_reward = self.signal.teaches
        states, actions, arrivals = check_log(state, action, next_state, self.n_states, self.n_actions)
        rewards = np.zeros(len(states))
        if needs_reward:
            if reward is None:
                raise ObservationError("no reward was given, but the belief learns from rewards; pass the reward seen")
            rewards = np.atleast_1d(as_floats(reward, "reward", ObservationError))
            check_finite(rewards, "reward", ("observation",), ObservationError)
        check_lengths(states, actions, rewards, arrivals)
        with np.errstate(divide="ignore"):
            log_weights = np.log(self.weights)
            for i, (s, a, r, t) in enumerate(zip(states, actions, rewards, arrivals, strict=True)):
                likelihood = self.models.transitions.likelihood(s, a, t) * self.signal.likelihood(s, a, r, t)
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


def _draw(chances: FloatArray, rng: np.random.Generator) -> int:
    """The place of one of several outcomes, which is possible."""
    sums = np.cumsum(chances)
    return int(np.searchsorted(sums, rng.random() * sums[-1], side="right"))
