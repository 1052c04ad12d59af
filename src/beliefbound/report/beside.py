"""First actions by start state, and which policy to choose as weights move: words, tables, pictures."""

from pathlib import Path
from typing import Any

from beliefbound.base.validation import FloatArray
from beliefbound.bounds.bracket import Bracket
from beliefbound.bounds.sensitivity import Sensitivity
from beliefbound.policy.naming import Names, printable
from beliefbound.report.figures import figure, save
from beliefbound.report.page import Picture, Section, Table

_SHOWN = 60  # start states that the page lists


def start_columns(starts: dict[int, Bracket], initial: FloatArray, names: Names) -> dict[str, list[Any]]:
    """Columns of a table: the state and its probability; the action that is proven to be optimal first, empty where
    none is; what it is worth at least, or the best known; what any other is worth at most; and what is still
    possible."""
    rows: list[tuple[Any, ...]] = []
    for s, bracket in starts.items():
        decision = bracket.decision
        assert decision is not None
        i = int(decision.lower.argmax())
        others = [float(upper) for k, upper in enumerate(decision.upper) if k != i]
        possible = [a for a, upper in zip(decision.actions, decision.upper, strict=True) if upper >= decision.lower[i]]
        proven = "" if decision.best is None else names.action(decision.best)
        called = ", ".join(names.action(a) for a in possible)
        at_most = max(others) if others else ""
        rows.append((names.state(s), float(initial[s]), proven, float(decision.lower[i]), at_most, called))
    header = ("state", "probability", "action", "at_least", "others_at_most", "still_possible")
    return {name: [row[k] for row in rows] for k, name in enumerate(header)}


def start_words(starts: dict[int, Bracket], names: Names) -> list[str]:
    """Where a first action is proven, and which."""
    words = []
    for s, bracket in starts.items():
        assert bracket.decision is not None
        words.append(f"Starting in {printable(names.state(s))}: {bracket.decision.describe()}.")
    return words


def start_sections(starts: dict[int, Bracket] | None, initial: FloatArray, names: Names) -> list[Section]:
    """The part of the page about each start state; none where it was not asked for."""
    if starts is None:
        return []
    columns = start_columns(starts, initial, names)
    cells = [[x if isinstance(x, str) else f"{x:.6g}" for x in row] for row in zip(*columns.values(), strict=True)]
    more = f" The first {_SHOWN} of {len(cells)}; all are in decisions.csv." if len(cells) > _SHOWN else ""
    header = ["start", "probability", "proven optimal first", "worth at least", "others at most", "still possible"]
    table = Table(header, cells[:_SHOWN], "All of these bounds are proven." + more)
    return [Section("What to do first, by where it starts", tables=[table])]


def sensitivity_words(found: Sensitivity) -> list[str]:
    """Which policy is best now, and how probably it is the best in the true model."""
    k = int(found.best())
    return [
        f"Of {len(found.policies)} policies {printable(found.policies[k])} has the highest expected value, "
        f"{found.expected()[k]:.6g}; it is the best of them in the true model with probability "
        f"{found.acceptability()[k]:.3g}."
    ]


def sensitivity_sections(found: Sensitivity | None, moving: list[int] | None, place: Path) -> list[Section]:
    """Acceptability curves and, where two weights move, the map; the pictures are written to `place`."""
    if found is None or not moving:
        return []
    with figure() as (drawn, axes):
        found.plot(moving[0], axes)
        curve = save(drawn, place / "acceptability")[1]
    pictures = [Picture(curve, "How probably each policy is the best of these in the true model.")]
    if len(moving) == 2:
        with figure(figsize=(5.4, 5.4)) as (drawn, axes):
            found.plot_two_way(moving[0], moving[1], axes)
            pictures.append(Picture(save(drawn, place / "sensitivity")[1], "The policy of the highest expected value."))
    rows = [
        [name, f"{value:.6g}", f"{chance:.3g}"]
        for name, value, chance in zip(found.policies, found.expected(), found.acceptability(), strict=True)
    ]
    table = Table(["policy", "expected value", "probably the best"], rows, "With the weights as they are; exact.")
    words = [
        *sensitivity_words(found),
        "A policy for all models is seldom the best in any one of them. As weights move, the others keep their "
        "proportions.",
    ]
    return [Section("Which policy, as weights move", words, [table], pictures)]
