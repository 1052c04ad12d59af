"""The report of a league: the tables, score against time with the Pareto front, learning curves."""

from pathlib import Path

import numpy as np

from beliefbound.base.io.atomic import write_aside, write_text
from beliefbound.base.io.paths import as_path
from beliefbound.base.io.result_folder import one_result
from beliefbound.lab.league.pictures import curves, front
from beliefbound.lab.league.season import League
from beliefbound.lab.league.tables import RANKING, about_shorter, about_table, ranked, shown, text, words
from beliefbound.report.page import REPORT, Page, Section, Table, write_page


def write_league(found: League, out: Path | str) -> Path:
    """Write `league.{csv,md,png,svg}`, `ranking.csv`, `curves.{png,svg}` and `report.html` into a folder; the report's
    path."""
    folder = as_path(out)
    with one_result(folder, "league", last=REPORT) as aside:
        write_aside(aside / "league.csv", found.table.write_csv)
        write_aside(aside / "ranking.csv", found.ranking.write_csv)
        write_text(aside / "league.md", text(found))
        write_page(_page(found, aside), aside / REPORT)
    return folder / REPORT


def _page(found: League, folder: Path) -> Page:
    header, rows = shown(found)
    pictures = [front(found, folder / "league"), *curves(found, folder / "curves")]
    best = frozenset(np.flatnonzero(found.table["front"].to_numpy()).tolist())
    sections = [
        Section("Standings", words(found), [Table(header, rows, about_table(found), best)], pictures),
        Section("Within a bound on the time of a step", [RANKING], [Table(*ranked(found))]),
    ]
    if found.left_out:
        left = [[agent, why] for agent, why in found.left_out.items()]
        sections.append(Section("Who cannot play", tables=[Table(["agent", "why"], left)]))
    if found.failed:
        failed = [[agent, why] for agent, why in found.failed.items()]
        said = ["These raised an error and are in no table; failures.txt has the tracebacks."]
        sections.append(Section("Who failed", said, [Table(["agent", "error"], failed)]))
    length = f"{found.spec.steps:,} steps a run{' or fewer' if about_shorter(found) else ''}"
    return Page(
        title=f"League: {found.spec.environments[0]}",
        lead=f"{len(found.table)} agents, {length}, the same environment noise for all.",
        sections=sections,
        facts=[
            ("seed", str(found.spec.seeds[0])),
            ("runs", f"up to {found.spec.runs:,}"),
            ("discount", f"{found.discount:g}"),
        ],
    )
