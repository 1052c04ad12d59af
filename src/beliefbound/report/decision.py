"""The first decision in a report: a bar per action, and how far weights may move before the proof fails."""

from pathlib import Path

from beliefbound.beliefs.finite import FiniteBelief
from beliefbound.bounds.bracket import Bracket
from beliefbound.policy.naming import names_of
from beliefbound.report.figures import figure, save
from beliefbound.report.page import Picture, Section, Table

_MODELS = 40  # whose intervals the page lists


def write_decision(found: Bracket, target: Path) -> Path | None:
    """`decision.{png,svg}`: from the lower to the upper bound of each first action; the picture's file, if there is a
    decision."""
    decision = found.decision
    if decision is None:
        return None
    with figure() as (drawn, axes):
        decision.plot(axes)
        return save(drawn, target / "decision")[1]


def decision_sections(found: Bracket, belief: FiniteBelief, words: list[str], picture: Path | None) -> list[Section]:
    """The part of the page about the first decision; none where there is none."""
    decision = found.decision
    if decision is None or picture is None:
        return []
    names = names_of(belief)
    rows = [
        [names.action(a), f"{low:.6g}", f"{high:.6g}", "proven optimal" if a == decision.best else ""]
        for a, low, high in zip(decision.actions, decision.lower, decision.upper, strict=True)
    ]
    marked = frozenset(i for i, a in enumerate(decision.actions) if a == decision.best)
    tables = [Table(["first action", "at least", "at most", ""], rows, "All of these bounds are proven.", marked)]
    if decision.stability is not None:
        weights = [
            [names.model(m), f"{belief.weights[m]:.4g}", f"{low:.4g}", f"{high:.4g}"]
            for m, (low, high) in enumerate(decision.stability[:_MODELS])
        ]
        more = f" The first {_MODELS} of {len(decision.stability)} models." if len(decision.stability) > _MODELS else ""
        note = (
            "The decision stays proven while the weight of one model moves between these, the others keeping their "
            "proportions. Beyond them nothing is said." + more
        )
        tables.append(Table(["model", "weight", "from", "to"], weights, note))
    caption = "From the lower to the upper bound of each first action; the dotted line is the largest lower bound."
    return [Section("What to do first", words, tables, [Picture(picture, caption)])]
