"""`Decision`: what each first action is worth, whether one is proven optimal, and how far weights may move before not.

For one start state `s` and the actions `a` available there, `Q*(a)` is the value of taking `a` first and acting
Bayes-optimally afterwards; `lower[a] ≤ Q*(a) ≤ upper[a]`, exactly. An action is *proven optimal* when its lower bound
is above the upper bounds of all others. That often happens long before the value itself is known well.

*Stability.* Let `w` be the weights of the models, and let the weight of model `m` move to `t` while the others keep
their proportions, `w(t) = t e_m + (1 − t) w_{−m}`. With `α[m]` the exact value of one policy that begins with the
proven action, `Q*(best; w(t)) ≥ α·w(t)`, a straight line. `Q*(b; ·)` of any other action is convex in the weights, so
along `t` it lies below the straight lines through upper bounds at three places: at `w`, at `t = 1` (where the model is
known) and at `t = 0` (told which of two models). For `t` strictly inside `stability[m]` the line from below is above
all of those from above: the same action is proven optimal there. Beyond, nothing is said. One model's weight moves at
a time. Several policies give several intervals around the weight, each of them proven, so their union is. A policy that
is not worth more than the upper bounds at `w` itself proves nothing, and where there is no other nothing is reported.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np

from beliefbound.base.errors import ParameterError
from beliefbound.base.validation import FloatArray, frozen
from beliefbound.policy.naming import Names, printable
from beliefbound.policy.results import Entries, array_of, axis, html_table, literal

_NO_NAMES = Names()
_ROUNDED = 1.0 - 1e-12  # of a share: what rounding leaves of it


class DecisionEntries(Entries):
    """A `Decision` in a file."""

    state: int
    actions: list[int]
    lower: list[float]
    upper: list[float]
    best: int | None
    stability: list[tuple[float, float]] | None


def _nothing() -> None:
    return None


def _same(found: FloatArray | None) -> FloatArray | None:
    return found


@dataclass(frozen=True, eq=False, repr=False)
class Decision:
    """Brackets for the first actions at one start state; all of them hold with certainty.

    Attributes:
      state: where it starts.
      actions: those that are available there.
      lower, upper: `[i]`, of the value of taking `actions[i]` first and acting Bayes-optimally afterwards.
      best: the action that is proven optimal, or `None`.
      find: how to find `stability`.
      names: of states, actions and models, where the belief has any.
    """

    state: int
    actions: tuple[int, ...]
    lower: FloatArray
    upper: FloatArray
    best: int | None = None
    find: Callable[[], FloatArray | None] = field(default=_nothing, repr=False)
    names: Names = field(default=Names(), repr=False)

    def __repr__(self) -> str:
        ends = zip(self.actions, self.lower, self.upper, strict=True)
        told = ", ".join(f"{self.names.action(a)} in [{low:.6g}, {high:.6g}]" for a, low, high in ends)
        best = "none proven optimal" if self.best is None else f"{self.names.action(self.best)} proven optimal"
        return f"Decision(at {self.names.state(self.state)}: {told}; {best})"

    @cached_property
    def stability(self) -> FloatArray | None:
        """`[m,2]`, in which interval the weight of each model may move alone, the others keeping their proportions,
        with `best` still proven optimal; `None` where none is, or where it was not computed: it would take long, or
        the policies that were tried prove nothing. Found when first asked for."""
        return None if self.best is None or len(self.actions) == 1 else self.find()

    def __reduce__(self) -> tuple[Any, ...]:
        known = partial(_same, self.stability)
        return Decision, (self.state, self.actions, self.lower, self.upper, self.best, known, self.names)

    def describe(self) -> str:
        """One sentence, with the actions' names where they have any."""

        def called(action: int) -> str:
            return printable(self.names.action(action))

        if self.best is not None:
            i = self.actions.index(self.best)
            if len(self.actions) == 1:
                return f"the only action at the start is {called(self.best)}"
            others = max(upper for k, upper in enumerate(self.upper) if k != i)
            return (
                f"at the start {called(self.best)} is proven optimal: it is worth at least {self.lower[i]:.6g}, "
                f"any other action at most {others:.6g}"
            )
        possible = [a for a, upper in zip(self.actions, self.upper, strict=True) if upper >= self.lower.max()]
        return f"no action is proven optimal at the start; still possible: {', '.join(map(called, possible))}"

    def summary(self) -> str:
        """What each first action is worth, and which is proven optimal, in lines."""
        return "\n".join([self.describe(), *(f"  {printable(name)}  {text}" for name, text in self._rows())])

    def _repr_html_(self) -> str:
        return html_table(self.describe(), self._rows())

    def _rows(self) -> list[tuple[str, str]]:
        ends = zip(self.actions, self.lower, self.upper, strict=True)
        return [(self.names.action(a), f"between {low:.6g} and {high:.6g}") for a, low, high in ends]

    def plot(self, ax: Any = None) -> Any:
        """From the lower to the upper bound of each first action, the proven one in another colour; on a matplotlib
        axis, returned."""
        ax = axis(ax, figsize=(6.0, 1.2 + 0.4 * len(self.actions)))
        for k, (a, low, high) in enumerate(zip(self.actions, self.lower, self.upper, strict=True)):
            colour = "tab:blue" if a == self.best else "tab:red"
            ax.plot([low, high], [k, k], color=colour, linewidth=8, solid_capstyle="butt")
            ax.plot([low, high], [k, k], "|", color=colour, markersize=14)
        ax.axvline(float(self.lower.max()), color="black", linewidth=0.8, linestyle=":")
        ax.set_yticks(range(len(self.actions)), [literal(self.names.action(a)) for a in self.actions])
        ax.set_ylim(len(self.actions) - 0.5, -0.5)
        ax.set_xlabel("value of taking the action first, then acting Bayes-optimally")
        return ax

    def to_dict(self) -> dict[str, object]:
        """The numbers, ready for JSON."""
        return {
            "state": self.state,
            "actions": list(self.actions),
            "lower": self.lower.tolist(),
            "upper": self.upper.tolist(),
            "best": self.best,
            "stability": None if self.stability is None else self.stability.tolist(),
        }

    @classmethod
    def from_entries(cls, entries: DecisionEntries, names: Names = _NO_NAMES) -> "Decision":
        """What `to_dict` gave."""
        n = len(entries.actions)
        lower, upper = (array_of(values, (n,), name) for name, values in _ends(entries))
        if entries.best is not None and entries.best not in entries.actions:
            raise ParameterError(f"its best action, {entries.best}, is none of those available")
        stability = None if entries.stability is None else array_of(entries.stability, (None, 2), "stability")
        return cls(entries.state, tuple(entries.actions), lower, upper, entries.best, partial(_same, stability), names)


def _ends(entries: DecisionEntries) -> list[tuple[str, list[float]]]:
    return [("lower", entries.lower), ("upper", entries.upper)]


class Contest:
    """The bounds of first actions while they close; `state` is the one start state, `available[a]` its actions."""

    def __init__(self, state: int, available: FloatArray) -> None:
        self.state, self.actions = state, np.flatnonzero(available)
        self.lower, self.upper = np.full(len(self.actions), -np.inf), np.full(len(self.actions), np.inf)
        self.stability: Callable[[], FloatArray | None] = _nothing  # how to find it

    def note(self, lower: FloatArray, upper: FloatArray) -> None:
        """Better bounds `[a]` of some of them."""
        self.lower = np.maximum(self.lower, lower[self.actions])
        self.upper = np.minimum(self.upper, upper[self.actions])

    @property
    def best(self) -> int | None:
        """The action that is proven optimal."""
        i = int(np.argmax(self.lower))
        others = np.delete(self.upper, i)
        return int(self.actions[i]) if (others < self.lower[i]).all() else None

    def rivals(self) -> tuple[int, int]:
        """The action of the largest lower bound, and the other one of the largest upper bound (itself, if alone)."""
        i = int(np.argmax(self.lower))
        upper = self.upper.copy()
        upper[i] = -np.inf
        return int(self.actions[i]), int(self.actions[int(np.argmax(upper)) if len(upper) > 1 else i])

    def decision(self, names: Names = _NO_NAMES) -> Decision:
        """What is known in the end. How to find its stability is handed over: who finds it holds the searches, and
        these hold the contest."""
        actions, stability = tuple(int(a) for a in self.actions), self.stability
        self.stability = _nothing
        return Decision(self.state, actions, frozen(self.lower), frozen(self.upper), self.best, stability, names)


def stability_of(
    weights: FloatArray, alpha: FloatArray, at: FloatArray, known: FloatArray, without: FloatArray
) -> FloatArray | None:
    """`[m,2]`: where the weight of each model may move; see the module's text. `None` where that proves nothing.

    Args:
      weights: `[m]`.
      alpha: `[m]`, the value on each model of a policy that begins with the action.
      at: `[b]`, upper bounds of the other actions at `weights`.
      known: `[m,b]`, the same where the model is known.
      without: `[m,b]`, the same where it has no weight; not read for a model that has all of it.
    """
    here = float(weights @ alpha) - at
    found = np.repeat(weights[:, None], 2, axis=1)
    if len(at) and here.min() <= 0.0:
        return None
    for m, w in enumerate(weights):
        above = _crossing(here, alpha[m] - known[m])
        found[m, 1] = w + above * (1.0 - w)
        if 0.0 < w < 1.0:
            rest = (float(weights @ alpha) - w * alpha[m]) / (1.0 - w)
            found[m, 0] = w - _crossing(here, rest - without[m]) * w
    return found


def widest(found: Sequence[FloatArray | None]) -> FloatArray | None:
    """The union of intervals `[m,2]` around the same weights; `None` where there are none."""
    proven = [each for each in found if each is not None]
    if not proven:
        return None
    low, high = np.min([each[:, 0] for each in proven], axis=0), np.max([each[:, 1] for each in proven], axis=0)
    return np.column_stack([low, high])


def _crossing(here: FloatArray, there: FloatArray) -> float:
    """Which share of the way from `here` to `there` all lines between them are above 0, rounded down; they are
    `here`."""
    falling = there < 0.0
    return float((_ROUNDED * here[falling] / (here[falling] - there[falling])).min(initial=1.0))
