"""What a belief can do: the one place that looks (`beliefs.belief` has the list).

Where something needs more than a belief can do, `lacking` is the error: it names the capability and how to have it.
"""

from enum import StrEnum
from typing import Any

import numpy as np

from beliefbound.base.errors import BeliefError
from beliefbound.base.validation import BoolArray, FloatArray, IntArray, Rng, frozen, shown
from beliefbound.beliefs.belief import Allowed, Belief
from beliefbound.beliefs.finite import FiniteBelief
from beliefbound.kernels.posterior import Posterior
from beliefbound.models import Dense, ModelSet
from beliefbound.models.mdp import MDP

NEEDED = ("n_states", "n_actions", "available", "initial", "reward_range", "sample")
_EXPECTED = 512  # models that stand for an expected MDP, where the belief does not know it


class Capability(StrEnum):
    """What a belief can do, and what bounds, agents and files ask for.

    >>> from beliefbound import DirichletBelief
    >>> Capability.ENUMERATE in capabilities_of(DirichletBelief(2, 1))
    False
    """

    DRAW = "draw"
    ENUMERATE = "enumerate"
    COUNT = "count"
    PREDICT = "predict"
    CONDITION = "condition"


_HOW = {
    Capability.DRAW: "draw models: sample(n, rng)",
    Capability.ENUMERATE: "enumerate its models: enumerated(); belief.sample(n, rng) draws some, which can",
    Capability.COUNT: "count: counted(), as a DirichletBelief has with Beta, known or finite rewards",
    Capability.PREDICT: "predict: predictive(state, action) and mean()",
    Capability.CONDITION: "be conditioned: update(state, action, reward, next_state)",
}


def capabilities_of(belief: Belief) -> frozenset[Capability]:
    """What a belief can do.

    >>> from beliefbound import DirichletBelief
    >>> sorted(map(str, capabilities_of(DirichletBelief(2, 1))))
    ['condition', 'count', 'draw', 'predict']
    >>> sorted(map(str, capabilities_of(DirichletBelief(2, 1).sample(3))))
    ['condition', 'draw', 'enumerate', 'predict']
    """
    check_is_belief(belief)
    can = {
        Capability.DRAW: True,
        Capability.ENUMERATE: enumerated(belief) is not None,
        Capability.COUNT: counted(belief) is not None,
        Capability.PREDICT: _has(belief, "predictive") and _has(belief, "mean"),
        Capability.CONDITION: _has(belief, "update"),
    }
    return frozenset(what for what, able in can.items() if able)


def lacking(belief: Any, capability: Capability, what: str) -> BeliefError:
    """The error where `what` needs more than the belief can do."""
    return BeliefError(f"{what} needs a belief that can {_HOW[capability]}; {belief!r} cannot")


def check_is_belief(thing: Any, name: str = "belief") -> None:
    """It has what every belief has."""
    missing = [each for each in NEEDED if not hasattr(thing, each)]
    if missing:
        raise BeliefError(f"{name} is {shown(thing)}, which has no {missing[0]}; give a belief")


def enumerated(belief: Any) -> FiniteBelief | None:
    """The belief as finitely many models, over which expectations are sums; `None` where it is not."""
    found: FiniteBelief | None = _ask(belief, "enumerated")
    return found


def counted(belief: Any, *, low: float = 0.0, width: float = 1.0, unavailable: bool = True) -> Posterior | None:
    """The belief as Dirichlet counts for kernels, rewards on the scale `(r − low) / width`; `None` where it has none.

    `unavailable`: whether the caller deals with actions that are not available; else such a belief is refused.
    """
    found: Posterior | None = _ask(belief, "counted", low=low, width=width, unavailable=unavailable)
    return found


def in_arrays(belief: Any, *, low: float = 0.0, width: float = 1.0, unavailable: bool = True) -> Posterior | None:
    """The belief as arrays that agents learn in: its counts, or rows that are no Dirichlet ones; `None` where it has
    neither. Arguments as those of `counted`."""
    knobs = {"low": low, "width": width, "unavailable": unavailable}
    found: Posterior | None = _ask(belief, "in_arrays", **knobs)
    return counted(belief, low=low, width=width, unavailable=unavailable) if found is None else found


def expected(belief: Belief) -> MDP:
    """The expected MDP: the belief's own; else that of models drawn, the same ones every time."""
    found: MDP | None = _ask(belief, "mean")
    return belief.sample(_EXPECTED, 0).mean() if found is None else found


def predictive(belief: Any, state: int, action: int) -> FloatArray:
    """Chances `[t]` of the next state: the belief's own; else those of the expected MDP."""
    found: FloatArray | None = _ask(belief, "predictive", state, action)
    return np.asarray(expected(belief).models.dense()[0, state, action] if found is None else found)


def conditioned(belief: Any, state: Any, action: Any, reward: Any, next_state: Any, *, what: str) -> Any:
    """The posterior after transitions; `what` is said to need it where the belief cannot."""
    if not _has(belief, "update"):
        raise lacking(belief, Capability.CONDITION, what)
    return belief.update(state, action, reward, next_state)


def learnt_together(belief: Any, state: int, action: int) -> IntArray | None:
    """Pairs `[i,2]` whose rows are learnt together with that of a pair, which others tell nothing of; `None` where
    anything may tell of anything."""
    found: IntArray | None = _ask(belief, "tied_to", state, action)
    return found


def allowed(belief: Any) -> Allowed | None:
    """What any model of the belief allows, where it knows."""
    found: Allowed | None = _ask(belief, "allowed")
    return found


def offering(belief: Any, available: BoolArray) -> Any:
    """The same belief where states offer only these actions, `[s,a]`; else the models that it draws do."""
    if (belief.available <= available).all():
        return belief
    found = _ask(belief, "offering", available)
    return Narrowed(belief, available) if found is None else found


class Narrowed:
    """A belief about fewer actions than its own: models are drawn as ever, and lose the others."""

    def __init__(self, belief: Belief, available: BoolArray) -> None:
        self.own, self.available = belief, frozen(belief.available & available)
        if not self.available.any(axis=1).all():
            raise BeliefError(f"state {int(np.argmin(self.available.any(axis=1)))} would have no action")
        self.n_states, self.n_actions, self.initial = belief.n_states, belief.n_actions, belief.initial
        self.reward_range, self.terminal = belief.reward_range, terminal(belief)

    def sample(self, n: int, rng: Rng = None) -> FiniteBelief:
        """`n` independent models, equally weighted."""
        drawn = self.own.sample(n, rng)
        chances, rewards = (np.where(self.available[(..., *[None] * k)], x, 0.0) for k, x in self._parts(drawn))
        models = ModelSet(Dense(frozen(chances)), frozen(rewards), self.available)
        range_ = drawn.reward_range
        return FiniteBelief.of(models, reward_signal=drawn.signal, reward_range=range_, initial=drawn.initial)

    @staticmethod
    def _parts(drawn: FiniteBelief) -> list[tuple[int, Any]]:
        return [(1, drawn.models.dense()), (0, drawn.rewards)]

    def update(self, state: Any, action: Any, reward: Any, next_state: Any) -> "Narrowed":
        """The posterior."""
        after = conditioned(self.own, state, action, reward, next_state, what="a belief of fewer actions")
        return Narrowed(after, self.available)


def terminal(belief: Any) -> BoolArray:
    """`[s]`: states that the belief knows to be absorbing, with reward 0."""
    ends = getattr(belief, "terminal", None)
    return frozen(np.zeros(belief.n_states, dtype=np.bool_)) if ends is None else np.asarray(ends, dtype=np.bool_)


def notes(belief: Any) -> tuple[str, ...]:
    """What a reader of its bounds should know."""
    return tuple(_ask(belief, "notes") or ())


def _has(belief: Any, name: str) -> bool:
    return callable(getattr(belief, name, None))


def _ask(belief: Any, name: str, *arguments: Any, **knobs: Any) -> Any:
    return getattr(belief, name)(*arguments, **knobs) if _has(belief, name) else None
