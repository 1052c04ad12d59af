"""The pictures of a league: score against time with the Pareto front, and learning curves."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np

from beliefbound.base.tables import pl
from beliefbound.base.validation import FloatArray
from beliefbound.lab.league.comparison import FEWEST
from beliefbound.lab.league.entries import ORACLE, without_prior
from beliefbound.lab.league.season import League
from beliefbound.policy.results import literal
from beliefbound.report.figures import figure, save
from beliefbound.report.page import Picture

_CURVES = 10  # drawn: the best
_ONE_COLUMN = 20  # names beside the figure, before there is a second column
_CLEAR = 3.0  # printer's points between a number and the middle of what it must not cover
_LONGEST = 38  # letters of a name beside the figure


def shortened(name: str) -> str:
    """A name that is too long without its middle: settings of one agent differ at the end.

    >>> shortened("mcbrl:models=8,horizon=100,prior=tied-dirichlet")
    'mcbrl:models=8,hori…ior=tied-dirichlet'
    """
    half = _LONGEST // 2
    return name if len(name) <= _LONGEST else f"{name[:half]}…{name[1 - _LONGEST + half :]}"


def beside(points: FloatArray, widths: FloatArray, height: float, *, floor: float = -np.inf) -> FloatArray:
    """`[n,2]`: centres of labels of `widths[n]` by `height`, each near its point and clear of all points and of the
    labels before it, and above the `floor`, as far as there is room: rings around a point are tried from its upper
    right.

    >>> beside(np.array([[0.0, 0.0], [1.0, 0.0]]), np.array([4.0, 4.0]), 6.0).round(1).tolist()
    [[5.2, 6.1], [-4.2, 6.1]]
    """
    centres = np.full(points.shape, np.inf)
    for i, (point, width) in enumerate(zip(points, widths, strict=True)):
        half = np.array([width, height]) / 2
        rooms = (widths[:i, None] * [1.0, 0.0] + [0.0, height]) / 2 + half
        for ring, angle in itertools.product(range(9), np.pi * np.array([1, 3, 7, 5, 2, 6, 0, 4]) / 4):
            way = np.array([np.cos(angle), np.sin(angle)])
            centre = point + way * (half * 1.2 + _CLEAR + 2.0 + ring * height * 0.75)
            free = centre[1] - half[1] >= floor and (np.abs(points - centre) >= half + _CLEAR).any(axis=1).all()
            if free and (np.abs(centres[:i] - centre) >= rooms).any(axis=1).all():
                break
        else:
            centre = point + half + _CLEAR
        centres[i] = centre
    return centres


def front(found: League, stem: Path) -> Picture:
    """Points are numbered as in the table: forty names would cover one another."""
    from matplotlib.ticker import EngFormatter, NullFormatter

    score = found.score
    table = found.table.with_row_index("number", offset=1)
    knows = pl.col("agent").str.starts_with(ORACLE)
    above, table = table.filter(knows, steps=found.spec.steps), table.filter(~knows)
    whole, shorter = table.filter(steps=found.spec.steps), table.filter(pl.col("steps") < found.spec.steps)
    best = whole.filter("front").sort("step_seconds")
    told = pl.col("told") != ""
    lines = max(_ONE_COLUMN, (len(table) + 1) // 2)
    with figure(figsize=(9.6, max(4.0, 0.15 * lines + 1.0)), layout="none") as (drawn, axes):
        drawn.subplots_adjust(left=0.08, right=0.55, bottom=0.12, top=0.92)
        for row in above.iter_rows(named=True):
            axes.axhline(row["level"], color="tab:green", linewidth=1.0, linestyle="--", label="knows the MDP")
        if found.band is not None:
            axes.axhspan(
                found.band.low,
                found.band.high,
                color="tab:orange",
                alpha=0.25,
                linewidth=0,
                label="the best possible, on average",
            )
        for those, marker, label in ((~told, "o", None), (told, "^", "told something else")):
            some = whole.filter(those)
            if some.is_empty():
                continue
            colours = np.array(["tab:blue" if on else "tab:gray" for on in some["front"]])
            faces = np.where(some["ranked"].to_numpy(), colours, "white")
            looks = {"s": 20, "c": faces, "edgecolors": colours, "marker": marker, "zorder": 3, "label": label}
            axes.scatter(some["step_seconds"], some["level"], **looks)
        sure = whole.filter(pl.col("pairs") >= FEWEST)
        reach = (sure["difference_high"] - sure["difference_low"]).to_numpy() / 2
        axes.errorbar(sure["step_seconds"], sure["level"], reach, fmt="none", ecolor="silver", elinewidth=0.8, zorder=1)
        if len(best):
            axes.step(best["step_seconds"], best["level"], where="post", linewidth=1.4, zorder=2, label="Pareto front")
        if whole.is_empty():
            axes.set_yticks([])
        bottom = axes.get_xaxis_transform()  # times, and heights from 0 to 1
        if len(shorter):
            on_axis = {"transform": bottom, "clip_on": False, "label": "time only: fewer steps"}
            axes.scatter(shorter["step_seconds"], np.zeros(len(shorter)), s=60, c="tab:red", marker="|", **on_axis)
        times = table["step_seconds"].to_numpy()
        axes.set_xscale("log")
        axes.set_xlim(10.0 ** np.floor(np.log10(0.8 * times.min())), 10.0 ** np.ceil(np.log10(1.25 * times.max())))
        axes.xaxis.set_major_formatter(EngFormatter(unit="s"))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_xlabel("time a step, one core")
        axes.set_ylabel(f"mean {score}" + (" reward" if score == "total" else ""))
        if axes.get_legend_handles_labels()[0]:
            axes.legend(loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncols=3, fontsize=6.5, borderaxespad=0.2)
        axes.set_ylim(*axes.get_ylim())
        at = [(axes.transData, time, level) for time, level in whole.select("step_seconds", "level").iter_rows()]
        at += [(bottom, time, 0.0) for time in shorter["step_seconds"]]
        points = np.array([scale.transform(point) for scale, *point in at]) * 72.0 / drawn.dpi
        ground = float(axes.transAxes.transform((0.0, 0.0))[1]) * 72.0 / drawn.dpi
        numbers = [str(number) for number in (*whole["number"], *shorter["number"])]
        centres = beside(points, np.array([3.9 * len(number) + 2.0 for number in numbers]), 6.0, floor=ground)
        colour = {str(row["number"]): _colour(row, found.spec.steps) for row in table.iter_rows(named=True)}
        written = {
            "textcoords": "offset points",
            "ha": "center",
            "va": "center",
            "fontsize": 6,
            "annotation_clip": False,
        }
        far = {"arrowstyle": "-", "color": "silver", "linewidth": 0.5, "shrinkA": 0, "shrinkB": 2}
        for number, (scale, *point), offset in zip(numbers, at, centres - points, strict=True):
            line = far if np.abs(offset).max() > 9.0 else None
            axes.annotate(number, point, offset, scale, arrowprops=line, color=colour[number], **written)
        for i, (number, agent) in enumerate(table.select("number", "agent").iter_rows()):
            place = (1.02 + 0.48 * (i // lines), 1.0 - (i % lines + 0.5) / lines)
            name = f"{number}  {literal(shortened(without_prior(agent, found.prior)), _LONGEST)}"
            axes.text(*place, name, transform=axes.transAxes, fontsize=6, va="center", color=colour[str(number)])
        path = save(drawn, stem)[1]
    caption = (
        "Score against time per step, numbered as in the table; the line is the Pareto front. Whiskers: the difference "
        "to MCBRL over common runs, all with 95%."
    )
    hollow = f" Hollow: fewer than {FEWEST} common runs."
    marks = " Marks on the time axis are agents that played fewer steps: their time, without a score."
    few = bool((~whole["ranked"]).any())
    return Picture(path, caption + hollow * few + marks * bool(len(shorter)), wide=True)


def _colour(row: dict[str, Any], steps: int) -> str:
    return "tab:red" if row["steps"] < steps else "tab:blue" if row["front"] else "dimgray"


def _curves_said(agents: int) -> str:
    return f"Learning curves of the {_CURVES} with the highest means." if agents > _CURVES else "Learning curves."


def curves(found: League, stem: Path) -> list[Picture]:
    """Of those who played all steps; none, where nobody did."""
    every, agents = found.spec.curve_every, found.table.filter(steps=found.spec.steps)["agent"]
    if agents.is_empty():
        return []
    with figure() as (drawn, axes):
        for agent in agents.head(_CURVES):
            curves = np.array(found.frame.filter(agent=agent)["curve"].to_list())
            steps = every * np.arange(1, curves.shape[1] + 1)
            axes.plot(steps, curves.mean(axis=0) / steps, label=without_prior(agent, found.prior), linewidth=1.2)
        axes.set_xlabel("step")
        axes.set_ylabel("mean reward a step so far")
        axes.legend(fontsize=7, ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1.0))
        path = save(drawn, stem)[1]
    return [Picture(path, _curves_said(len(agents)))]
