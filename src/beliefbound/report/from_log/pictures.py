"""The figures of the page: policy map, bars, distributions, the bracket, measurements and coverage."""

from pathlib import Path
from typing import Any

import numpy as np

from beliefbound.base.validation import FloatArray, IntArray
from beliefbound.policy.results import literal
from beliefbound.report.figures import COLOURS, figure, save
from beliefbound.report.from_log.result import LogPlan
from beliefbound.report.page import Picture

SHOWN = 60  # states that a figure has space for
_LABEL = 18
_LETTERS = 0x530  # Latin, Greek and Cyrillic, which the font has, come before


def pictures(found: LogPlan, folder: Path) -> dict[str, Picture]:
    """Every figure there is something to draw for, by name; written into `folder` too."""
    states = shown_states(found)
    open_ = int((~found.learnt.terminal).sum())
    some = "" if len(states) == open_ else f" The {len(states)} states that the policy meets most."
    drawn = {
        "policy": (_policy_map, f"Every action against the best of its state; circles: what the policy does.{some}"),
        "states": (_bars, f"Bounds on the mean value from each state (asymptotic): the bars' ends.{some}"),
        "values": (
            lambda found, states, axes: draw_values(found, axes),
            "How the value is distributed over models of the posterior.",
        ),
        "coverage": (_coverage, f"How often each pair was tried, and (crosses) which were never tried.{some}"),
    }
    if found.bracket is not None:
        drawn["bracket"] = (_closing, "Bounds on the Bayes-optimal value over time; dots are sampled bounds.")
    if found.information is not None:
        drawn["measuring"] = (_measuring, f"Expected rise in value from measuring a pair until it is known.{some}")
    made = {}
    for name, (draw, caption) in drawn.items():
        height = 4.0 if name in ("values", "bracket") else float(np.clip(1.2 + 0.24 * len(states), 3.0, 14.0))
        with figure(figsize=(6.4, height)) as (canvas, axes):
            draw(found, states, axes)
            made[name] = Picture(save(canvas, folder / name)[1], caption)
    return made


def shown_states(found: LogPlan) -> IntArray:
    """States to draw: all in which something is done, or those of them that the policy meets most."""
    order = np.argsort(-found.reliance.visits.sum(axis=1), kind="stable")
    order = order[~found.learnt.terminal[order]]
    return np.sort(order[:SHOWN])


def label(text: str, i: int) -> str:
    """A name as a figure shows it, cut where it is long; its number where the font may not have its letters."""
    return literal(text, _LABEL) if all(ord(letter) < _LETTERS for letter in text) else f"#{i}"


def _axes(found: LogPlan, states: IntArray, axes: Any) -> None:
    log = found.log
    axes.set_yticks(range(len(states)), [label(log.state_name(int(s)), int(s)) for s in states], fontsize=7)
    axes.set_ylabel("state")


def _actions(found: LogPlan, axes: Any) -> None:
    names = [label(found.log.action_name(a), a) for a in range(found.log.n_actions)]
    if len(names) <= 40:
        axes.set_xticks(range(len(names)), names, rotation=45 if max(map(len, names)) > 4 else 0, fontsize=7)
    axes.set_xlabel("action")
    axes.grid(visible=False)


def _heat(found: LogPlan, states: IntArray, axes: Any, values: FloatArray, what: str, colours: str) -> None:
    image = axes.imshow(values[states], aspect="auto", cmap=colours, interpolation="nearest")
    axes.figure.colorbar(image, ax=axes, label=what)
    _axes(found, states, axes)
    _actions(found, axes)


def _policy_map(found: LogPlan, states: IntArray, axes: Any) -> None:
    q = np.where(found.task.belief.available, found.fresh.q, np.nan)
    _heat(found, states, axes, q - np.nanmax(q, axis=1, keepdims=True), "value against the best action", "YlGn")
    chances = found.first_chances
    y, x = np.nonzero(chances[states] > 0.0)
    size = 60.0 * chances[states][y, x]
    axes.scatter(x, y, s=size, facecolors="none", edgecolors="#ff8c1a", linewidths=1.8)


def _bars(found: LogPlan, states: IntArray, axes: Any) -> None:
    low, high = found.state_lower[states], found.state_upper[states]
    y = np.arange(len(states))
    axes.barh(y, high - low, left=low, height=0.6, color=COLOURS["ours"], alpha=0.35, label="lower to upper")
    axes.plot(found.fresh.by_state[states], y, "|", color=COLOURS["ours"], markersize=8, label="the policy, on average")
    axes.invert_yaxis()
    axes.set_xlabel("value from the state")
    _axes(found, states, axes)
    axes.legend(fontsize=7, ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1.0))


def draw_values(found: LogPlan, axes: Any) -> None:
    """How values are distributed over models of the posterior, and the bounds on the mean."""
    names = ["this policy", *(c.other.name for c in found.comparisons), "knowing the model"]
    rows = [*found.fresh.values, found.fresh.best]
    others = [COLOURS[name] for name in ("other", "expected", "sharp")]
    colours = [COLOURS["ours"], *others[: len(found.comparisons)], COLOURS["upper"]]
    low, high = min(float(x.min()) for x in rows), max(float(x.max()) for x in rows)
    bins = np.linspace(low, high if high > low else low + 1.0, 50)
    for name, row, colour in zip(names, rows, colours, strict=True):
        axes.hist(row, bins=bins, histtype="step", color=colour, linewidth=1.4, label=name)
    for value, style in ((found.lower.value, "--"), (found.upper.value, ":")):
        axes.axvline(value, color="black", linewidth=1.0, linestyle=style)
    axes.set_xlabel("value from the start (dashed: lower, dotted: upper)")
    axes.set_ylabel("models")
    axes.legend(fontsize=7, ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1.0))


def _closing(found: LogPlan, states: IntArray, axes: Any) -> None:
    assert found.bracket is not None
    found.bracket.plot(axes)


def _measuring(found: LogPlan, states: IntArray, axes: Any) -> None:
    assert found.information is not None
    _heat(found, states, axes, found.information.high, "worth knowing, at most", "viridis")


def _coverage(found: LogPlan, states: IntArray, axes: Any) -> None:
    visits = found.log.visits
    _heat(found, states, axes, np.log10(1.0 + visits), "log10(1 + times tried)", "Blues")
    y, x = np.nonzero(found.log.unseen[states])
    axes.scatter(x, y, marker="x", s=18, color="#b2182b", linewidths=1.0)
