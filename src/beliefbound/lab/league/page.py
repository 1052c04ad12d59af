"""The report of a league: the tables, score against time with the Pareto front, learning curves."""

from pathlib import Path

import numpy as np

from beliefbound.base.io.atomic import write_aside, write_text
from beliefbound.base.io.paths import as_path
from beliefbound.base.io.result_folder import one_result
from beliefbound.lab.league.pictures import curves, front
from beliefbound.lab.league.season import League
from beliefbound.lab.league.tables import (
    RANKING,
    about_shorter,
    about_table,
    cannot_play,
    ranked,
    shown,
    text,
    title,
    words,
)
from beliefbound.report.page import REPORT, Page, Picture, Section, Table, write_page


def write_league(found: League, out: Path | str, command: str = "beliefbound league") -> Path:
    """Write `league.{csv,md,png,svg}`, `ranking.csv`, `curves.{png,svg}` and `report.html` into a folder; the report's
    path. `command` is what a person would type to have the same, and stands on the pages."""
    folder = as_path(out)
    with one_result(folder, "league", last=REPORT) as aside:
        write_aside(aside / "league.csv", found.table.write_csv)
        write_aside(aside / "ranking.csv", found.ranking.write_csv)
        picture = front(found, aside / "league")
        write_text(aside / "league.md", text(found, picture, command))
        write_page(_page(found, [picture, *curves(found, aside / "curves")], command), aside / REPORT)
    return folder / REPORT


def _page(found: League, pictures: list[Picture], command: str) -> Page:
    header, rows = shown(found)
    best = frozenset(np.flatnonzero(found.table["front"].to_numpy()).tolist())
    sections = [
        Section("Standings", words(found), [Table(header, rows, about_table(found), best)], pictures),
        Section("Within a bound on the time of a step", [RANKING], [Table(*ranked(found))]),
    ]
    if found.left_out:
        sections.append(Section("Who cannot play", tables=[Table(*cannot_play(found))]))
    if found.failed:
        failed = [[agent, why] for agent, why in found.failed.items()]
        said = ["These raised an error and are in no table; failures.txt has the tracebacks."]
        sections.append(Section("Who failed", said, [Table(["agent", "error"], failed)]))
    sections.append(Section("The same again", code=[command]))
    length = f"{found.spec.steps:,} steps a run{' or fewer' if about_shorter(found) else ''}"
    return Page(
        title=title(found),
        lead=f"{len(found.table)} agents, {length}, the same environment noise for all.",
        sections=sections,
        facts=[
            ("seed", str(found.spec.seeds[0])),
            ("runs", f"up to {found.spec.runs:,}"),
            ("discount", f"{found.discount:g}"),
        ],
    )
