"""`Runs`: what many runs of one agent on one environment earned."""

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from beliefbound.base.errors import ParameterError
from beliefbound.base.validation import FloatArray, IntArray
from beliefbound.policy import Policy
from beliefbound.policy.results import Entries, Result, array_of, axis


class RunsEntries(Entries):
    """`Runs` in a file."""

    total: list[float]
    utility: list[float]
    curve: list[list[float]] | None
    visits: list[list[int]] | None
    curve_every: int | None


@dataclass(frozen=True, eq=False)
class Runs(Result):
    """Results of n runs.

    Attributes:
      total: `[n]`, sum of rewards.
      utility: `[n]`, discounted sum.
      curve: `[n, steps // curve_every]`, sum of the first `curve_every`, `2·curve_every`, … rewards; or `None`.
      visits: `[n, s]`, actions taken in each state; or `None`.
      curve_every: rewards between two points of `curve`.
    """

    total: FloatArray = field(repr=False)
    utility: FloatArray = field(repr=False)
    curve: FloatArray | None = field(default=None, repr=False)
    visits: IntArray | None = field(default=None, repr=False)
    curve_every: int | None = None

    _kind, _entries = "runs", RunsEntries

    def __len__(self) -> int:
        return len(self.total)

    def __repr__(self) -> str:
        return f"Runs({len(self)} runs, mean total {_mean(self.total)}, mean utility {_mean(self.utility)})"

    def to_dict(self) -> dict[str, Any]:
        """The numbers, ready for JSON."""
        return {
            "total": self.total.tolist(),
            "utility": self.utility.tolist(),
            "curve": None if self.curve is None else self.curve.tolist(),
            "visits": None if self.visits is None else self.visits.tolist(),
            "curve_every": self.curve_every,
        }

    def _rows(self) -> list[tuple[str, str]]:
        rows = [("runs", str(len(self)))]
        for name, values in (("total", self.total), ("utility", self.utility)):
            rows.append((f"mean {name}", f"{_mean(values)} (± standard error)"))
            if len(self):
                low, middle, high = np.quantile(values, (0.1, 0.5, 0.9))
                rows.append((f"{name}, 10%, half and 90% of runs below", f"{low:.6g}, {middle:.6g}, {high:.6g}"))
        return rows

    @classmethod
    def _from_entries(cls, entries: RunsEntries, policy: Policy | None) -> Self:
        total = array_of(entries.total, (None,), "total")
        utility = array_of(entries.utility, total.shape, "utility")
        curve, visits = entries.curve, entries.visits
        if (curve is None) != (entries.curve_every is None):
            raise ParameterError("its curve and curve_every do not go together")
        return cls(
            total,
            utility,
            None if curve is None else array_of(curve, (len(total), None), "curve"),
            None if visits is None else array_of(visits, (len(total), None), "visits", np.int64),
            entries.curve_every,
        )

    def plot(self, ax: Any = None) -> Any:
        """The learning curve, where one was recorded, else how totals are distributed; returns the matplotlib axis.

        The curve is the mean reward a step so far, with a band that holds 80% of the runs.
        """
        ax = axis(ax)
        if self.curve is None or self.curve_every is None or self.curve.size == 0:
            ax.hist(self.total, bins="auto" if np.ptp(self.total) > 0.0 else 1, color="tab:blue", alpha=0.7)
            ax.axvline(float(self.total.mean()), color="black", linewidth=1, label="mean")
            ax.set_xlabel("total reward of a run")
            ax.set_ylabel("runs")
            ax.legend(frameon=False)
            return ax
        steps = self.curve_every * np.arange(1, self.curve.shape[1] + 1)
        rate = self.curve / steps
        ax.fill_between(steps, *np.quantile(rate, (0.1, 0.9), axis=0), color="tab:blue", alpha=0.2, linewidth=0)
        ax.plot(steps, rate.mean(axis=0), color="tab:blue", marker="." if len(steps) < 3 else None)
        ax.set_xlabel("steps")
        ax.set_ylabel("mean reward a step so far")
        return ax


def _mean(values: FloatArray) -> str:
    if len(values) < 2:
        return f"{values.mean():.6g}" if len(values) else "none"
    return f"{values.mean():.6g} ± {values.std(ddof=1) / np.sqrt(len(values)):.2g}"
