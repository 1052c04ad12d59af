"""`Information`: what measuring each (state, action) is worth."""

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from beliefbound.bounds.bound import Regret, RegretEntries
from beliefbound.policy import Policy
from beliefbound.results import Entries, Result, array_of, axis
from beliefbound.validation import FloatArray

_SHOWN = 5  # pairs that a summary names


class InformationEntries(Entries):
    """An `Information` in a file."""

    evpi: RegretEntries
    gain: list[list[float]]
    low: list[list[float]]
    high: list[list[float]]
    confidence: float
    value: float
    n_policies: int


@dataclass(frozen=True, eq=False)
class Information(Result):
    """What measuring is worth, in units of value.

    Attributes:
      evpi: at most so much is perfect information worth.
      gain: `[s,a]`, expected rise of the best plan's value after measuring the pair, plans being those of a pool of
        `n_policies`: a plan outside the pool may rise by more.
      low, high: `[s,a]`, interval for that rise; equal to it where nothing was sampled. Betting intervals for finite
        beliefs, Student t (asymptotic) for Dirichlet beliefs.
      confidence: with which all intervals hold together; 1 where nothing was sampled.
      value: of the best plan of the pool now. `value + gain` is a lower bound on planning after the measurement.
      n_policies: how many policies are in the pool.
    """

    evpi: Regret
    gain: FloatArray = field(repr=False)
    low: FloatArray = field(repr=False)
    high: FloatArray = field(repr=False)
    confidence: float
    value: float
    n_policies: int

    _kind, _entries = "information", InformationEntries

    def best(self) -> tuple[int, int]:
        """The pair whose measurement raises the best plan of the pool most (ties: lowest)."""
        s, a = np.unravel_index(int(self.gain.argmax()), self.gain.shape)
        return int(s), int(a)

    def __repr__(self) -> str:
        s, a = self.best()
        return (
            f"Information(perfect: at most {self.evpi.value:.6g}, measuring state {s}, action {a}: "
            f"{self.gain[s, a]:.6g}, plan now: {self.value:.6g})"
        )

    def to_dict(self) -> dict[str, Any]:
        """The numbers, ready for JSON."""
        return {
            "evpi": self.evpi.to_dict(),
            "gain": self.gain.tolist(),
            "low": self.low.tolist(),
            "high": self.high.tolist(),
            "confidence": float(self.confidence),
            "value": float(self.value),
            "n_policies": int(self.n_policies),
        }

    def _rows(self) -> list[tuple[str, str]]:
        rows = [
            (f"value of the best of {self.n_policies} plans now", f"{self.value:.6g}"),
            ("perfect information", f"at most {self.evpi.value:.6g}, {self.evpi.method}"),
        ]
        for k in np.argsort(-self.gain, axis=None, kind="stable")[:_SHOWN]:
            s, a = (int(i) for i in np.unravel_index(int(k), self.gain.shape))
            if self.gain[s, a] > 0.0:
                text = f"{self.gain[s, a]:.6g}"
                if self.confidence < 1.0:
                    text += f"  [{self.low[s, a]:.6g}, {self.high[s, a]:.6g}]"
                rows.append((f"measuring state {s}, action {a}", text))
        return rows

    @classmethod
    def _from_entries(cls, entries: InformationEntries, policy: Policy | None) -> Self:
        gain = array_of(entries.gain, (None, None), "gain")
        low, high = (array_of(getattr(entries, name), gain.shape, name) for name in ("low", "high"))
        evpi = Regret._from_entries(entries.evpi, None)
        return cls(evpi, gain, low, high, entries.confidence, entries.value, entries.n_policies)

    def plot(self, ax: Any = None) -> Any:
        """`gain` as a map of states and actions, on a matplotlib axis; returns the axis."""
        ax = axis(ax)
        image = ax.imshow(self.gain, aspect="auto", cmap="viridis", vmin=0.0)
        ax.figure.colorbar(image, ax=ax, label="expected rise in value")
        ax.set_xlabel("action")
        ax.set_ylabel("state")
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.yaxis.get_major_locator().set_params(integer=True)
        return ax
