"""`Information`: what measuring each (state, action) is worth."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np

from beliefbound.base.validation import FloatArray
from beliefbound.bounds.information.worth import Worth, WorthEntries
from beliefbound.policy import Policy
from beliefbound.policy.naming import Names, NamesEntries
from beliefbound.policy.results import Entries, Result, array_of, axis, literal

_SHOWN = 5  # pairs that a summary names
_LABELLED = 40  # states, or actions, that a picture has space to name


class InformationEntries(Entries):
    """An `Information` in a file."""

    evpi: WorthEntries
    low: list[list[float]]
    high: list[list[float]]
    confidence: float
    tries: int | None
    names: NamesEntries = NamesEntries()
    rounding: float = 0.0


def observations(tries: int) -> str:
    """So many, in words.

    >>> observations(1), observations(3)
    ('one observation', '3 observations')
    """
    return "one observation" if tries == 1 else f"{tries} observations"


class Measurement(NamedTuple):
    """A line of the ranking: what measuring a pair is worth."""

    state: int
    action: int
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Information(Result):
    """What measuring is worth, in units of value.

    Attributes:
      evpi: what perfect information is worth.
      low, high: `[s,a]`, what measuring the pair before acting is worth: its EVPPI, or its EVSI. 0 where an action is
        not available.
      confidence: with which all intervals hold together; 1 where they are proven.
      tries: how many times a pair is tried; `None`: until it is known.
      names: of states and actions, where the belief has any.
      rounding: what is worth no more than this may be worth nothing: the ranking leaves it out.
    """

    evpi: Worth
    low: FloatArray = field(repr=False)
    high: FloatArray = field(repr=False)
    confidence: float
    tries: int | None = None
    names: Names = field(default=Names(), repr=False)
    rounding: float = field(default=0.0, repr=False)

    _kind, _entries, _version = "information", InformationEntries, 2

    def ranking(self) -> list[Measurement]:
        """All pairs that may be worth measuring, best first: by what is sure, then by what is possible, then lowest."""
        pairs = [(int(s), int(a)) for s, a in np.argwhere(self.high > self.rounding)]
        found = [Measurement(s, a, float(self.low[s, a]), float(self.high[s, a])) for s, a in pairs]
        return sorted(found, key=lambda x: (-x.low, -x.high))

    def best(self) -> tuple[int, int]:
        """The first pair of the ranking; the first of all where nothing is worth measuring."""
        ranking = self.ranking()
        return (ranking[0].state, ranking[0].action) if ranking else (0, 0)

    @property
    def _name(self) -> str:
        return "EVPPI" if self.tries is None else f"EVSI of {observations(self.tries)}"

    def __repr__(self) -> str:
        s, a = self.best()
        return (
            f"Information(EVPI in [{self.evpi.low:.6g}, {self.evpi.high:.6g}], measuring {self.names.pair(s, a)}: "
            f"[{self.low[s, a]:.6g}, {self.high[s, a]:.6g}])"
        )

    def to_dict(self) -> dict[str, Any]:
        """The numbers, ready for JSON."""
        return {
            "evpi": self.evpi.to_dict(),
            "low": self.low.tolist(),
            "high": self.high.tolist(),
            "confidence": float(self.confidence),
            "tries": self.tries,
            "names": self.names.to_dict(),
            "rounding": float(self.rounding),
        }

    def _rows(self) -> list[tuple[str, str]]:
        rows = [("EVPI", f"[{self.evpi.low:.6g}, {self.evpi.high:.6g}], {self.evpi.method}")]
        ranking = self.ranking()[:_SHOWN]
        lines = [(self.names.pair(x.state, x.action), f"[{x.low:.6g}, {x.high:.6g}]") for x in ranking]
        return rows + [(f"{self._name} of {pair}", interval) for pair, interval in lines]

    @classmethod
    def _from_entries(cls, entries: InformationEntries, policy: Policy | None) -> Self:
        low = array_of(entries.low, (None, None), "low")
        high = array_of(entries.high, low.shape, "high")
        states, actions = low.shape
        names = Names.from_entries(entries.names, states=states, actions=actions)
        known = Worth._from_entries(entries.evpi, None)
        return cls(known, low, high, entries.confidence, entries.tries, names, entries.rounding)

    def plot(self, ax: Any = None) -> Any:
        """`high` as a map of states and actions, on a matplotlib axis; returns the axis."""
        ax = axis(ax)
        image = ax.imshow(self.high, aspect="auto", cmap="viridis", vmin=0.0)
        ax.figure.colorbar(image, ax=ax, label=f"{self._name}, at most")
        ax.set_xlabel("action")
        ax.set_ylabel("state")
        for held, along in ((self.names.actions, ax.xaxis), (self.names.states, ax.yaxis)):
            if held is None or len(held) > _LABELLED:
                along.get_major_locator().set_params(integer=True)
            else:
                along.set_ticks(range(len(held)), [literal(name) for name in held])
        ax.tick_params(axis="x", rotation=0 if self.names.actions is None else 30)
        return ax
