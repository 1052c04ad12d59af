"""Figure 1: how the bounds change as a belief over 8 MDPs goes from uniform to certain.

The paper does not say which MDPs. Here they are drawn from the prior it uses elsewhere: product-Dirichlet with
concentration `1/|S|`, Beta(1, 1) rewards. The belief gives `(1 − c)/8` to every model and the rest, `c`, to the
first; `c` runs from 0 to 1. Every curve is a value averaged over states, for the infinite horizon truncated where the
tail is worth at most `epsilon`:

* `E max`: `E_ξ max_π V^π_μ`, above;
* `MMBI`: below;
* `expected MDP`: the policy that is optimal for the expected MDP, valued under the belief; below.

And what the paper asks for in its last sentence: at some of the beliefs, `certified lower` and `certified upper`, the
bracket that `beliefbound.bracket` proves, both sides together with 95% confidence at each belief.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from beliefbound.base.io.atomic import write_aside
from beliefbound.base.io.paths import as_path
from beliefbound.base.progress import point_display
from beliefbound.base.tables import pl
from beliefbound.base.validation import FloatArray, check_count
from beliefbound.beliefs import DirichletBelief
from beliefbound.bounds.basic import e_max_of
from beliefbound.bounds.bracket import bracket_of, limits_of, seed_of
from beliefbound.bounds.finite.pool import mmbi_of
from beliefbound.planning.expected import expected_plan
from beliefbound.planning.lemmas import truncation_stages
from beliefbound.planning.task import FiniteTask
from beliefbound.report.figures import COLOURS, figure, save


@dataclass(frozen=True, eq=False)
class Figure1:
    """The curves behind Figure 1: `certainty[k]`, and `curves[name][k]`, values averaged over states."""

    certainty: FloatArray
    curves: dict[str, FloatArray]  # NaN where a belief was not certified

    def frame(self) -> pl.DataFrame:
        """The numbers as a table: one row per belief."""
        return pl.DataFrame({"certainty": self.certainty, **self.curves}).fill_nan(None)

    def save(self, out: Path | str) -> list[Path]:
        """Write `figure1.csv`, `figure1.png` and `figure1.svg` into a folder."""
        folder = as_path(out)
        table = folder / "figure1.csv"
        write_aside(table, self.frame().write_csv)
        with figure() as (drawn, axes):
            looks = {
                "E max": (COLOURS["upper"], "--", r"$E_\xi\,\max_\pi V^\pi_\mu$  (E max)"),
                "MMBI": (COLOURS["mmbi"], "-", "MMBI"),
                "expected MDP": (COLOURS["expected"], ":", "optimal policy of the expected MDP"),
            }
            for name, (colour, line, label) in looks.items():
                axes.plot(self.certainty, self.curves[name], line, color=colour, label=label, linewidth=1.8)
            if "certified lower" in self.curves:
                at = np.isfinite(self.curves["certified lower"])
                low, high = self.curves["certified lower"][at], self.curves["certified upper"][at]
                axes.fill_between(self.certainty[at], low, high, color=COLOURS["ours"], alpha=0.25, linewidth=0)
                axes.plot(self.certainty[at], low, "^-", color=COLOURS["ours"], markersize=4, label="certified bracket")
                axes.plot(self.certainty[at], high, "v-", color=COLOURS["ours"], markersize=4)
                self._zoom(axes, self.certainty[at], low, high)
            axes.set_xlabel(r"uncertain  $\Leftarrow$  belief  $\Rightarrow$  certain")
            axes.set_ylabel("expected utility, mean over states")
            axes.set_xlim(0, 1)
            axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)  # no curve leaves room below
            return [table, *save(drawn, folder / "figure1")]

    @staticmethod
    def _zoom(axes: Any, certainty: FloatArray, low: FloatArray, high: FloatArray) -> None:
        """The bracket where it is widest, enlarged: to the eye it is a line."""
        k = int(np.argmax(high - low))
        width, step = float(high[k] - low[k]), 0.25 * float(np.diff(certainty).min(initial=1.0))
        inset = axes.inset_axes((0.1, 0.48, 0.34, 0.27))
        inset.fill_between(certainty, low, high, color=COLOURS["ours"], alpha=0.25, linewidth=0)
        for end, mark in ((low, "^-"), (high, "v-")):
            inset.plot(certainty, end, mark, color=COLOURS["ours"], markersize=4)
        inset.set_xlim(certainty[k] - step, certainty[k] + step)
        inset.set_ylim(low[k] - width, high[k] + width)
        inset.tick_params(labelsize=7)
        inset.set_xlabel(f"at its widest: {100 * width / abs(high[k]):.2g}%", fontsize=8)
        axes.indicate_inset_zoom(inset, edgecolor="black", linewidth=0.6)


def figure1(
    out: Path | str | None = None,
    *,
    n_models: int = 8,
    n_states: int = 16,
    n_actions: int = 4,
    discount: float = 0.95,
    points: int = 41,
    epsilon: float = 1e-3,
    seed: int = 1,
    certify_every: int | None = None,
    effort: int = 40,
    progress: bool | Callable[[int, int], object] = False,
) -> Figure1:
    """Compute Figure 1, and with `out` write it there as PNG, SVG and CSV (`.save(folder)` does so later).

    With `certify_every`, every so many beliefs are bracketed too, with at most so much `effort` each (`bracket`): the
    same band on every run, a few seconds a belief. `progress`:
    a bar on standard error, or a function that is called with `(beliefs done, points)`.

    >>> result = figure1(points=2, n_states=3)
    >>> bool((result.curves["MMBI"] <= result.curves["E max"] + 1e-9).all())
    True
    """
    points = check_count(points, "points", least=2)
    models = DirichletBelief(n_states, n_actions).sample(n_models, seed)
    horizon = truncation_stages(epsilon, discount=discount, r_max=1.0)
    certainty = np.linspace(0.0, 1.0, points)
    curves: dict[str, list[float]] = {"E max": [], "MMBI": [], "expected MDP": []}
    task = FiniteTask.of(models, discount=discount, horizon=horizon)
    every = None if certify_every is None else check_count(certify_every, "certify_every")
    limits = limits_of(target_gap=1e-3, time_limit=None, effort=effort, stop=None)
    with point_display("Figure 1", progress) as tell:
        for k, c in enumerate(certainty):
            weights = np.full(models.n_models, (1.0 - c) / models.n_models)
            weights[0] += c
            here = task.reweighted(weights)
            if every is not None:
                low, high = np.nan, np.nan
                if k % every == 0:
                    found = bracket_of(here, limits, seed=seed_of(seed)).bracket
                    low, high = found.lower.value, found.upper.value
                curves.setdefault("certified lower", []).append(low)
                curves.setdefault("certified upper", []).append(high)
            curves["E max"].append(e_max_of(here).value)
            curves["MMBI"].append(mmbi_of(here).value(here.start))
            curves["expected MDP"].append(expected_plan(here).value(here.start))
            tell(k + 1, points)
    result = Figure1(certainty, {name: np.array(values) for name, values in curves.items()})
    if out is not None:
        result.save(out)
    return result
