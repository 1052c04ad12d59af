"""The game between policies and priors behind `robust_bracket`: policies found so far, and the best of each side."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from beliefbound.base.validation import FloatArray
from beliefbound.bounds.bound import Bound, Kind
from beliefbound.bounds.finite.controller import Controller
from beliefbound.bounds.finite.controller_value import completed, enclosed_values, start_value
from beliefbound.bounds.finite.mixed import MixedPolicy, join_controllers
from beliefbound.bounds.finite.vector_oracle import VectorOracle
from beliefbound.bounds.policies import AnyPolicy
from beliefbound.bounds.prior_sets import PriorSet
from beliefbound.bounds.record import TracePoint
from beliefbound.models.enclosing import rounding_of
from beliefbound.planning.task import FiniteTask
from beliefbound.policy import Policy

ROBUST = "value under the least favourable prior"
_LEANS = (0.05, 0.3)  # how far priors are moved towards one model, for policies beside the best one
_CHANCE = 1e-9  # parts of a mixture with less are left out


class FoundPolicy(NamedTuple):
    """A policy found so far: its value on every model, and how to have it as a controller."""

    values: FloatArray
    controller: Callable[[], Controller]


class Game:
    """Policies found so far, and the best of each side."""

    def __init__(self, task: FiniteTask, priors: PriorSet, watch: Any, clock: float) -> None:
        self.task, self.priors, self.watch, self.clock = task, priors, watch, clock
        # Value vectors must hold for models that a prior leaves out as well.
        self.every = task.reweighted(np.full(task.models.n_models, 1.0 / task.models.n_models))
        self.parts: list[FoundPolicy] = []
        self._known: set[bytes] = set()
        self.chances: FloatArray = np.empty(0)
        self.lower = -np.inf
        self._above: list[tuple[Bound, FloatArray]] = []
        self.trace: list[TracePoint] = []

    def add(self, policy: Policy) -> None:
        """A policy that is a finite-state controller; others are left out."""
        known = AnyPolicy(policy).as_controller(self.every)
        if known is not None:
            controller = completed(known)
            values, error = (start_value(x, controller, self.every) for x in enclosed_values(controller, self.every))
            self._keep(values - error, lambda: controller)

    def _keep(self, values: FloatArray, controller: Callable[[], Controller]) -> None:
        if values.tobytes() not in self._known:
            self._known.add(values.tobytes())
            self.parts.append(FoundPolicy(values, controller))

    def respond(self, oracle: VectorOracle, prior: FloatArray) -> None:
        """The best policies that an oracle knows at a prior, and at priors that lean from it towards each model."""
        corners = np.eye(len(prior))
        for lean in (0.0, *_LEANS):
            for corner in corners if lean else corners[:1]:
                numbers, values = oracle.best((1.0 - lean) * prior + lean * corner)
                self._keep(values, lambda own=numbers: oracle.controller(own))  # type: ignore[misc]

    def mix(self) -> FloatArray:
        """Mix the policies anew; returns the prior that is worst for them."""
        values = np.array([part.values for part in self.parts])
        chances, prior = self.priors.play(values)
        kept = np.where(chances > _CHANCE, chances, 0.0)
        kept /= kept.sum()
        mixed = kept @ values - rounding_of(len(kept)) * (kept @ np.abs(values))
        lower = self.priors.least(mixed)
        if lower > self.lower:
            self.lower, self.chances = lower, kept
        return prior

    def above(self, found: Bound, prior: FloatArray) -> None:
        """An upper bound at a prior of the set."""
        self._above.append((found, prior))

    @property
    def best_above(self) -> tuple[Bound, FloatArray]:
        """The least upper bound, and its prior. A sampled one below what is proven is false, and left out."""
        held = [pair for pair in self._above if pair[0].exact or pair[0].value >= self.lower]
        return min(held or self._above, key=lambda pair: pair[0].value)

    def note(self, seconds: float) -> None:
        """Tell whoever watches."""
        upper, method = self.best_above[0], f"mixture of {int((self.chances > 0.0).sum())} policies"
        lower = Bound(self.lower, "lower", method, of=ROBUST, kind=Kind.MIXTURE)
        if not self.trace or (lower.value, upper.value) != (self.trace[-1].lower.value, self.trace[-1].upper.value):
            self.trace.append(TracePoint(seconds, lower, upper))
            if self.watch is not None:
                self.watch(self.trace[-1])

    def policy(self) -> MixedPolicy:
        """The mixture of the lower bound."""
        used = np.flatnonzero(self.chances)
        return MixedPolicy(join_controllers([self.parts[i].controller() for i in used]), self.chances[used])

    def model_values(self) -> FloatArray:
        """Of the mixture."""
        used = np.flatnonzero(self.chances)
        values: FloatArray = self.chances[used] @ np.array([self.parts[i].values for i in used])
        return values
