"""`MixtureBelief`: one of several beliefs, and it is not known which: `Σ_i w_i ξ_i`.

Two experts disagree; a treatment does nothing or something; the prior's strength is not known. Parts are beliefs of any
kind about the same states and actions, whose rewards show the same.

    draw       a part, then a model of it
    predict    parts mixed
    condition  every part is, and w_i ∝ w_i p_i(what was seen): weights are kept as logarithms

A part that rules out what was seen keeps no weight. `V*` is convex in the belief, so `Σ w_i U(ξ_i)` with upper bounds
of the parts is one of the mixture: that of an agent who is told which part is true.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from beliefbound.base.errors import BeliefError, ObservationError
from beliefbound.base.limits import check_size
from beliefbound.base.validation import (
    BoolArray,
    FloatArray,
    Rng,
    as_floats,
    as_rng,
    check_count,
    check_distributions,
    check_sequence,
    frozen,
)
from beliefbound.beliefs import capabilities as can
from beliefbound.beliefs.belief import Allowed
from beliefbound.beliefs.files import belief_kind, belief_of, entries_of
from beliefbound.beliefs.finite import FiniteBelief
from beliefbound.beliefs.signals import Signal, SilentStates
from beliefbound.models import Dense, ModelSet
from beliefbound.models.mdp import MDP


@belief_kind("mixture", summary="one of several beliefs, and it is not known which")
class MixtureBelief:
    """Beliefs about the same states and actions, each with its probability.

    Args:
      parts: beliefs, with `update` and `log_marginal_likelihood` where the mixture is to be conditioned.
      weights: their probabilities, `[i]`; default: equal.

    >>> from beliefbound import DirichletBelief
    >>> sure = DirichletBelief(2, 1, concentration=[[[8.0, 1.0]], [[1.0, 8.0]]])
    >>> belief = MixtureBelief([sure, DirichletBelief(2, 1)]).update(0, 0, 1.0, 1)
    >>> belief.weights.round(3).tolist(), belief.predictive(0, 0).round(3).tolist()
    ([0.182, 0.818], [0.35, 0.65])
    """

    def __init__(self, parts: Sequence[Any], weights: Any = None) -> None:
        self.parts = tuple(check_sequence(parts, "parts", BeliefError, fix="give a list of beliefs"))
        if not self.parts:
            raise BeliefError("a mixture needs a part; give beliefs")
        for i, part in enumerate(self.parts):
            can.check_is_belief(part, f"part {i}")
        w = (
            np.full(len(self.parts), 1.0 / len(self.parts))
            if weights is None
            else as_floats(weights, "weights", BeliefError)
        )
        if w.shape != (len(self.parts),):
            raise BeliefError(f"weights have shape {w.shape}; expected ({len(self.parts)},), one per part")
        check_distributions(w, "weights", ("part",), BeliefError, fix="divide the weights by their sum")
        with np.errstate(divide="ignore"):
            self.log_weights = frozen(np.log(w))
        first = self.parts[0]
        self.n_states, self.n_actions, self.available = first.n_states, first.n_actions, first.available
        self.initial, self.terminal = first.initial, can.terminal(first)
        for i, part in enumerate(self.parts[1:], 1):
            self._check_alike(i, part)
        ranges = [part.reward_range for part in self.parts]
        known = [range_ for range_ in ranges if range_ is not None]
        self.reward_range = (
            (min(low for low, _ in known), max(high for _, high in known)) if len(known) == len(ranges) else None
        )
        _joined([part.sample(1, 0) for part in self.parts])

    def _check_alike(self, i: int, part: Any) -> None:
        first = self.parts[0]
        if (part.n_states, part.n_actions) != (self.n_states, self.n_actions):
            raise BeliefError(
                f"part {i} has {part.n_states} states and {part.n_actions} actions, part 0 {self.n_states} and "
                f"{self.n_actions}; give beliefs about the same states and actions"
            )
        for what, mine, own in (
            ("offers other actions", part.available, first.available),
            ("has other terminal states", can.terminal(part), self.terminal),
            ("starts elsewhere", part.initial, self.initial),
        ):
            if (mine is None) != (own is None) or (mine is not None and not np.array_equal(mine, own)):
                raise BeliefError(f"part {i} {what} than part 0; parts are about the same problem")

    @property
    def weights(self) -> FloatArray:
        """Probabilities of the parts, `[i]`."""
        return np.asarray(np.exp(self.log_weights))

    def __repr__(self) -> str:
        return f"MixtureBelief({len(self.parts)} parts, {self.n_states} states, {self.n_actions} actions)"

    def sample(self, n: int, rng: Rng = None) -> FiniteBelief:
        """`n` independent models, equally weighted: of each a part, and a model of it."""
        n, source = check_count(n, "number of sampled models"), as_rng(rng)
        shape = (n, self.n_states, self.n_actions, self.n_states)
        check_size(shape, "a sample of models", BeliefError, fix="draw fewer models")
        chosen = source.choice(len(self.parts), size=n, p=self.weights / self.weights.sum())
        drawn = [self.parts[i].sample(int((chosen == i).sum()), source) for i in np.unique(chosen)]
        place = np.argsort(np.argsort(chosen, kind="stable"))  # draws stand part by part; each goes where it was chosen
        models = ModelSet(
            Dense(frozen(np.concatenate([each.models.dense() for each in drawn])[place])),
            frozen(np.concatenate([each.rewards for each in drawn])[place]),
            self.available,
        )
        signal = _joined(drawn).select(place)
        return FiniteBelief.of(models, reward_signal=signal, reward_range=self.reward_range, initial=self.initial)

    def predictive(self, state: int, action: int) -> FloatArray:
        """Chances `[t]` of the next state."""
        rows = [can.predictive(part, state, action) for part in self.parts]
        return np.asarray(self.weights @ np.stack(rows))

    def mean(self) -> MDP:
        """The expected MDP."""
        means = [can.expected(part) for part in self.parts]
        chances = np.tensordot(self.weights, np.stack([mean.models.dense()[0] for mean in means]), 1)
        rewards = np.tensordot(self.weights, np.stack([mean.rewards for mean in means]), 1)
        return MDP(chances, rewards, initial=self.initial, available=self.available, normalize=True)

    def _evidence(self, step: tuple[Any, ...]) -> FloatArray:
        """Log weights `[i]` of the parts after steps, not normalised; −∞ where a part rules them out; an error where
        all do."""
        logs, fault = np.full(len(self.parts), -np.inf), None
        for i, part in enumerate(self.parts):
            if not callable(getattr(part, "log_marginal_likelihood", None)):
                raise BeliefError(f"part {i}, {part!r}, has no log_marginal_likelihood, by which parts are weighed")
            if np.isfinite(self.log_weights[i]):
                try:
                    logs[i] = self.log_weights[i] + part.log_marginal_likelihood(*step)
                except ObservationError as cause:
                    fault = fault or cause
        if not np.isfinite(logs).any():
            raise fault or ObservationError("no part of the mixture allows this")
        return logs

    def update(self, state: Any, action: Any, reward: Any, next_state: Any) -> "MixtureBelief":
        """The posterior after one transition, or after several given as arrays."""
        step = (state, action, reward, next_state)
        logs = self._evidence(step)
        after = [
            can.conditioned(part, *step, what="a mixture") if kept else part
            for part, kept in zip(self.parts, np.isfinite(logs), strict=True)
        ]
        other = MixtureBelief.__new__(MixtureBelief)
        vars(other).update(vars(self), parts=tuple(after), log_weights=frozen(logs - np.logaddexp.reduce(logs)))
        return other

    def log_marginal_likelihood(self, state: Any, action: Any, reward: Any, next_state: Any) -> float:
        """Log probability (density, for Normal rewards) this belief gives to transitions seen in this order."""
        return float(np.logaddexp.reduce(self._evidence((state, action, reward, next_state))))

    def allowed(self) -> Allowed | None:
        """Outcomes that a model of any part allows, and what they pay, where all parts know."""
        found = [can.allowed(part) for part in self.parts]
        known = [each for each in found if each is not None]
        if len(known) < len(found):
            return None
        possible = np.any([each.possible for each in known], axis=0)
        low, high = (np.stack(np.broadcast_arrays(*[each[k] for each in known])) for k in (1, 2))
        return Allowed(possible, low.min(axis=0), high.max(axis=0))

    def offering(self, available: BoolArray) -> "MixtureBelief":
        """The same belief where states offer only these actions, `[s,a]`."""
        return MixtureBelief([can.offering(part, available) for part in self.parts], self.weights)

    def to_entries(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays by name, for files."""
        own: dict[str, npt.NDArray[Any]] = {"log_weights": self.log_weights}
        for i, part in enumerate(self.parts):
            own |= entries_of(part, prefix=f"part{i}_")
        return own

    @classmethod
    def from_entries(cls, entries: Mapping[str, npt.NDArray[Any]]) -> "MixtureBelief":
        """What `to_entries` gave."""
        logs = as_floats(entries["log_weights"], "log_weights", BeliefError)
        belief = cls([belief_of(entries, prefix=f"part{i}_") for i in range(logs.size)], np.exp(logs))
        belief.log_weights = frozen(logs)
        return belief


def _joined(drawn: Sequence[FiniteBelief]) -> Signal:
    """What a step shows of rewards, for the models of several sets one after another. Sets that show different things
    are refused: they would tell parts apart, and no part's evidence says so."""
    outer, signals = drawn[0].signal, [each.signal.heard for each in drawn]
    first = signals[0]
    if len({type(each) for each in signals}) > 1:
        names = sorted({each.name for each in signals})
        raise BeliefError(
            f"rewards of the parts show different things, {' and '.join(names)}; give rewards of one kind"
        )
    if first.common:
        paid = [_paid(signal, each) for signal, each in zip(signals, drawn, strict=True)]
        if not all(np.array_equal(each, paid[0]) for each in paid):
            raise BeliefError("parts know different rewards; give rewards that are to be learnt, or the same ones")
    joined = first.joined(signals[1:])
    return SilentStates(joined, outer.states) if isinstance(outer, SilentStates) else joined


def _paid(signal: Signal, drawn: FiniteBelief) -> FloatArray:
    """Rewards that are known, `[s,a,t]` or `[s,a]`."""
    return np.asarray(drawn.rewards[0] if signal.on_arrival is None else signal.on_arrival[0])
