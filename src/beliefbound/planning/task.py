"""`Task`: what is to be solved. A belief, where it starts, how rewards are discounted, and for how many decisions.

Made once at the door (`of` checks everything), then handed on whole. Internal: public functions take the pieces by
name. `FiniteTask` is that of a finite belief; every planner but MSBI needs one, and it says what to do with anything
else.

*Parts.* What is made of a task – models solved, plans, outcome rows, a posterior compiled – is made when it is first
asked for, and once: `@made_once` keeps what a function of a task gives with the task, `@made_once_for_models` with all
tasks that differ in the weights of their models alone (`FiniteTask.reweighted`). Nobody changes what is kept.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from functools import update_wrapper
from typing import Any, Generic, Self, TypeVar

import numpy as np

from beliefbound.base.errors import BeliefError, ParameterError
from beliefbound.base.limits import check_horizon
from beliefbound.base.validation import FloatArray, check_discount, check_initial, frozen
from beliefbound.beliefs import Belief, FiniteBelief
from beliefbound.beliefs.capabilities import NEEDED, enumerated
from beliefbound.models import ModelSet
from beliefbound.models.enclosing import rounding_of
from beliefbound.models.evaluation import evaluate
from beliefbound.models.mdp import MDP
from beliefbound.policy import TablePolicy

_ROUNDING = 1e-12  # of the largest value: differences below are rounding, wherever policies or values are compared


R = TypeVar("R")
T = TypeVar("T", bound="Task")


class Parts:
    """What was made of a task: of itself, and of its models whatever their weights."""

    def __init__(self) -> None:
        self.own: dict[Hashable, Any] = {}
        self.of_models: dict[Hashable, Any] = {}


class KeptResult(Generic[T, R]):
    """A function of a task whose result is kept, with the task or with its models."""

    def __init__(self, make: Callable[[T], R], *, of_models: bool) -> None:
        self._make, self._of_models = make, of_models
        update_wrapper(self, make)

    def __call__(self, task: T) -> R:
        return self.keep(task, self._held(task)[self] if self.made(task) else self._make(task))

    def made(self, task: T) -> bool:
        """Whether it has been."""
        return self in self._held(task)

    def keep(self, task: T, found: R) -> R:
        """Keep it where it came along with something else; what was kept before stays."""
        kept: R = self._held(task).setdefault(self, found)
        return kept

    def _held(self, task: T) -> dict[Hashable, Any]:
        return task.parts.of_models if self._of_models else task.parts.own


def made_once(make: Callable[[T], R]) -> KeptResult[T, R]:
    """A function of a task whose result is kept with the task."""
    return KeptResult(make, of_models=False)


def made_once_for_models(make: Callable[["FiniteTask"], R]) -> KeptResult["FiniteTask", R]:
    """A function of a task that does not read its weights: the result is kept for all weights of the same models."""
    return KeptResult(make, of_models=True)


def effective_horizon(discount: float, horizon: int | None) -> float:
    """`Σ_k γ^k` over the decisions: what one unit of reward a step is worth.

    >>> effective_horizon(0.5, None), effective_horizon(0.5, 2), effective_horizon(1.0, 3)
    (2.0, 1.5, 3.0)
    """
    if horizon is None:
        return 1.0 / (1.0 - discount)
    return float(horizon) if discount == 1.0 else (1.0 - discount**horizon) / (1.0 - discount)


def start_of(belief: Belief, initial: Any) -> FloatArray:
    """A start distribution `[s]`: `initial` (also one state, or its name), else the belief's own, else uniform."""
    start = check_initial(initial, belief.n_states, ParameterError, getattr(belief, "states", None))
    start = belief.initial if start is None else start
    return frozen(np.full(belief.n_states, 1.0 / belief.n_states)) if start is None else start


@dataclass(frozen=True, eq=False)
class Task:
    """A belief, a start distribution `[s]`, a discount, and a number of decisions (`None`: for ever)."""

    belief: Belief
    start: FloatArray
    discount: float
    horizon: int | None
    parts: Parts = field(default_factory=Parts, init=False, repr=False)

    @classmethod
    def of(
        cls,
        belief: Any,
        *,
        discount: float,
        horizon: int | None = None,
        initial: Any = None,
        policy: TablePolicy | None = None,
    ) -> Self:
        """Check and complete: `initial` is a distribution or a state; default: the belief's own, else uniform.

        Where the task is to value a time-indexed `policy`, that brings its own horizon.

        >>> from beliefbound.beliefs import DirichletBelief
        >>> Task.of(DirichletBelief(2, 1), discount=0.5).start.tolist()
        [0.5, 0.5]
        """
        belief = cls._checked(belief)
        if horizon is None and policy is not None:
            horizon = getattr(policy, "horizon", None)  # what is no policy is refused when it is valued
        discount = check_discount(discount, horizon)
        finite = enumerated(belief)
        models = None if finite is None else finite.models
        if horizon is not None:
            work = belief.n_states**2 * belief.n_actions if models is None else models.n_entries
            horizon = check_horizon(horizon, work, 8 * belief.n_states)
        if models is not None and not np.isfinite(models.largest_reward * effective_horizon(discount, horizon)):
            raise ParameterError(
                f"rewards as large as {models.largest_reward:.3g} overflow; use a larger unit for them"
            )
        return cls(belief, start_of(belief, initial), discount, horizon)

    @classmethod
    def _checked(cls, belief: Any) -> Any:
        if not all(hasattr(belief, name) for name in NEEDED):
            raise BeliefError(f"expected a belief, got {_described(belief)}")
        return belief

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.belief, self.start, self.discount, self.horizon)  # parts are made again

    @property
    def effective_horizon(self) -> float:
        """`Σ_k γ^k` over the decisions."""
        return effective_horizon(self.discount, self.horizon)

    def stages_of(self, policy: TablePolicy) -> int | None:
        """Decisions a policy is valued for: a time-indexed policy has its own horizon, any other the task's."""
        return self.horizon if policy.horizon is None else policy.horizon

    def lasting(self, horizon: int | None) -> Self:
        """The same for another number of decisions."""
        return replace(self, horizon=horizon)


@dataclass(frozen=True, eq=False)
class FiniteTask(Task):
    """A task on a finite belief."""

    belief: FiniteBelief

    @classmethod
    def _checked(cls, belief: Any) -> Any:
        finite = enumerated(belief)
        if finite is None:
            raise BeliefError(f"expected a FiniteBelief, got {_described(belief)}")
        return finite

    def reweighted(self, weights: FloatArray) -> Self:
        """The same under other weights `[m]`: what was made of the models, and will be, is had by both."""
        task = replace(self, belief=self.belief.reweight(weights))
        task.parts.of_models = self.parts.of_models
        return task

    @property
    def models(self) -> ModelSet:
        """The belief's models."""
        return self.belief.models

    @property
    def weights(self) -> FloatArray:
        """Their probabilities `[m]`."""
        return self.belief.weights

    @property
    def largest_value(self) -> float:
        """No value is larger in absolute terms: `max |r| · Σ_k γ^k`, the unit of every tolerance."""
        return self.models.largest_reward * self.effective_horizon

    @property
    def rounding(self) -> float:
        """Differences of values below this are taken for rounding."""
        return _ROUNDING * self.largest_value

    def value(self, model_values: FloatArray) -> float:
        """`Σ_m w_m p0·V_m` of values `[m,s]`."""
        return float(self.weights @ model_values @ self.start)

    def above(self, model_values: FloatArray) -> float:
        """The same, rounded up."""
        return self.value(model_values) + self._rounded(model_values)

    def below(self, model_values: FloatArray) -> float:
        """The same, rounded down."""
        return self.value(model_values) - self._rounded(model_values)

    def _rounded(self, model_values: FloatArray) -> float:
        return rounding_of(self.models.n_models + self.models.n_states) * self.value(np.abs(model_values))

    def policy_value(self, policy: TablePolicy) -> float:
        """The exact expected value of a policy."""
        return self.value(self.policy_values(policy))

    def policy_values(self, policy: TablePolicy) -> FloatArray:
        """The exact values `[m,s]` of a policy on each model."""
        return evaluate(policy, self.belief, discount=self.discount, horizon=self.stages_of(policy))


def finite_task(task: Task) -> FiniteTask | None:
    """The task where its belief is finite, so that expectations are sums; else nothing. The one place that asks."""
    if isinstance(task, FiniteTask):
        return task
    finite = enumerated(task.belief)
    return None if finite is None else FiniteTask(finite, task.start, task.discount, task.horizon)


def _described(thing: Any) -> str:
    """What was given instead, and what to do about it."""
    name = type(thing).__name__
    if isinstance(thing, MDP):
        return f"{name}, which is known: use policy_iteration or backward_induction, or FiniteBelief.from_mdps([mdp])"
    if enumerated(getattr(thing, "training", None)) is not None:
        return f"{name}; pass its belief, .training"
    if all(hasattr(thing, each) for each in NEEDED):
        return f"{name}; sample it first: belief.sample(n, rng)"
    missing = next(each for each in NEEDED if not hasattr(thing, each))
    return f"{name}, which has no {missing}"
