"""Many certificates as one table and one page."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path

import msgspec

from beliefbound.base.io.atomic import write_text
from beliefbound.base.io.result_folder import one_result
from beliefbound.bounds.record import percent, relative
from beliefbound.policy.naming import printable
from beliefbound.report.certificate import Certificate
from beliefbound.report.from_log.result import LogPlan
from beliefbound.report.page import REPORT, Page, Section, Table, write_page

HEADER = ("problem", "lower bound", "upper bound", "gap", "what to do")
SUMMARY = "summary.csv"


class Row(msgspec.Struct):
    """One problem: bounds on the Bayes-optimal value, the gap as a share, the confidence (1: certain), and the first
    action – proven optimal, or the best so far; of a log, the chosen policy; or what is wrong with it."""

    problem: str
    lower: float | None = None
    upper: float | None = None
    gap: float | None = None
    confidence: float | None = None
    action: str | None = None
    proven: bool | None = None
    error: str | None = None

    def cells(self) -> list[str]:
        """As in the table."""
        if self.lower is None or self.upper is None or self.gap is None:
            return [self.problem, "", "", "", f"error: {self.error}"]
        known = {True: ", proven", False: ", not proven", None: ""}[self.proven]
        decision = "" if self.action is None else f"{self.action}{known}"
        return [self.problem, f"{self.lower:.6g}", f"{self.upper:.6g}", percent(self.gap), decision]


def row_of(name: str, found: Certificate) -> Row:
    """A certificate's row."""
    bracket, decision = found.bracket, found.bracket.decision
    action = None
    if decision is not None:
        best = decision.actions[int(decision.lower.argmax())] if decision.best is None else decision.best
        action = printable(decision.names.action(best))
    exact = bracket.lower.exact and bracket.upper.exact
    return Row(
        problem=name,
        lower=bracket.lower.value,
        upper=bracket.upper.value,
        gap=bracket.relative_gap,
        confidence=1.0 if exact else bracket.confidence,
        action=action,
        proven=None if decision is None else decision.best is not None,
    )


def row_of_plan(name: str, found: LogPlan) -> Row:
    """The row of a log's plan."""
    lower, upper = found.lower.value, found.upper.value
    return Row(
        problem=name,
        lower=lower,
        upper=upper,
        gap=relative(lower, upper),
        confidence=found.confidence,
        action=printable(found.choice.chosen.name),
    )


def write_batch(rows: Sequence[Row], asked: int, place: Path) -> Path:
    """Write `summary.csv` and the page of all problems beside their folders; returns the page's path."""
    found = [row for row in rows if row.error is None]
    certain = all(row.confidence == 1.0 for row in found)
    least = min((row.confidence or 1.0 for row in found), default=1.0)
    holds = (
        "Every bracket holds with certainty" if certain else f"Each bracket holds with confidence {least:g} at least"
    )
    asked_for = [row.proven for row in found if row.proven is not None]
    proven = f"; the first action is proven optimal in {sum(asked_for)} of {len(asked_for)}" if asked_for else ""
    wrong = frozenset(i for i, row in enumerate(rows) if row.error is not None)
    page = Page(
        title=f"{asked} problems",
        lead=f"{holds}{proven}.",
        sections=[
            Section(
                "Bounds on the Bayes-optimal values",
                ["The certificate, the policies and the page of a problem are in the folder of its name."],
                tables=[Table(HEADER, [row.cells() for row in rows], highlight=wrong)],
            )
        ],
        facts=[("certified", f"{len(found)} of {asked}")],
    )
    with one_result(place, "batch", last=REPORT) as aside:
        write_text(aside / SUMMARY, _csv(rows))
        write_page(page, aside / REPORT)
    return place / REPORT


def _csv(rows: Sequence[Row]) -> str:
    text, names = io.StringIO(), Row.__struct_fields__
    table = csv.writer(text, lineterminator="\n")
    table.writerows([names, *([getattr(row, name) for name in names] for row in rows)])
    return text.getvalue()
