"""The tables of a league and what is said of them, for the page, a text file and the screen."""

from collections.abc import Callable
from typing import Any

from beliefbound.base.tables import pl
from beliefbound.lab.league.comparison import FEWEST
from beliefbound.lab.league.entries import EVERYTHING, NOTHING, without_prior
from beliefbound.lab.league.season import League
from beliefbound.report.page import Picture

_CAPTION = (
    "Mean total reward of a run, and mean utility, which is discounted by {gamma:g}, with which all agents plan that "
    "discount. Agents are compared by their {score}: − MCBRL is what they earned more than {reference} in the runs "
    "that both played, and rows stand in its order. Intervals, where there are {fewest} runs or more that are not all "
    "alike: those of a column hold all together with 95% (Student's t, Bonferroni). Times are of one core. "
    "Highlighted: no mean of anybody who was told the same and is as fast is as high, of those with a rank; which says "
    "nothing of certainty."
)
_PRIOR = "All agents that can be told a prior were told “{}”, which is left out of their names."
_TOLD = "Agents that were told something else than the others, in the column “told”, are ranked among themselves."
_NOTHING = "Who was told “nothing” learns without a prior."
_FEW = "Rows with fewer than {} runs in common with MCBRL come after, without a rank."
_SHORTER = (
    "Rows with fewer steps are of agents of which two full runs do not fit the budget: they earned so much in so many "
    "steps, the difference is to MCBRL after as many, and they have no part in the front, the ranking and the curves."
)
RANKING = (
    "Who may be the best of those with a rank within a bound on the time of a step: all whom no rival is ahead of, "
    "over common runs, beyond what chance allows. Of each bound by itself the best is among them with 95% confidence. "
    "The highest mean comes first."
)


def about_table(found: League) -> str:
    """What the columns are, and which rows stand apart."""
    table = found.table
    reference = without_prior(found.spec.agents[0], found.prior)
    said = [_CAPTION.format(gamma=found.discount, score=found.score, reference=reference, fewest=FEWEST)]
    if found.prior is not None:
        said.append(_PRIOR.format(found.prior))
    if (~table["told"].is_in(["", EVERYTHING])).any():
        said.append(_TOLD)
    if (table["told"] == NOTHING).any():
        said.append(_NOTHING)
    if (~table["ranked"] & (table["told"] != EVERYTHING) & (table["steps"] == found.spec.steps)).any():
        said.append(_FEW.format(FEWEST))
    return " ".join([*said, *about_shorter(found)])


def about_shorter(found: League) -> list[str]:
    """The sentence about rows with fewer steps, where there are any."""
    return [_SHORTER] if (found.table["steps"] < found.spec.steps).any() else []


def shown(found: League) -> tuple[list[str], list[list[str]]]:
    """Header and formatted cells of the standings; what agents were told, their steps and what was published only where
    that differs from row to row."""
    columns: dict[str, list[str]] = {"": [], "agent": []}
    rows = list(found.table.iter_rows(named=True))
    columns[""] = [str(number) for number, _ in enumerate(rows, start=1)]
    columns["agent"] = [without_prior(row["agent"], found.prior) for row in rows]
    if any(row["told"] not in ("", EVERYTHING) for row in rows):
        columns["told"] = [row["told"] for row in rows]
    if about_shorter(found):
        columns["steps"] = [f"{row['steps']:,}" for row in rows]
    columns["runs"] = [str(row["runs"]) for row in rows]
    for name, form in (("total", _number), ("utility", "{:.2f}".format)):
        columns[name] = [form(row[name]) for row in rows]
        columns[f"{name}, 95%"] = [_span(row, name, row["runs"], form) for row in rows]
    columns["− MCBRL"] = ["" if row["difference"] is None else f"{row['difference']:+.4g}" for row in rows]
    columns["− MCBRL, 95%"] = [_span(row, "difference", row["pairs"], "{:+.4g}".format) for row in rows]
    columns["a step"] = [_time(row["step_seconds"]) for row in rows]
    if any(row["published"] is not None for row in rows):
        columns["published"] = ["" if row["published"] is None else f"{row['published']:g}" for row in rows]
    return list(columns), [list(row) for row in zip(*columns.values(), strict=True)]


def _span(row: dict[str, Any], name: str, runs: int, form: Callable[[float], str]) -> str:
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    return f"{form(low)} – {form(high)}" if runs >= FEWEST and low < high else ""


def ranked(found: League) -> tuple[list[str], list[list[str]]]:
    """Header and cells of the ranking: a row for each bound, and for each group that was told the same."""
    ranks = found.ranking
    groups = ranks.group_by("told", "bound", "rivals", maintain_order=True).agg("agent")
    rows = [
        [
            row["told"],
            _time(row["bound"]),
            str(row["rivals"]),
            ", ".join(without_prior(agent, found.prior) for agent in row["agent"]),
        ]
        for row in groups.iter_rows(named=True)
    ]
    if (ranks["told"] == "").all():
        return ["at most a step", "agents", "may be the best"], [row[1:] for row in rows]
    return ["told", "at most a step", "agents", "may be the best"], rows


def cannot_play(found: League) -> tuple[list[str], list[list[str]]]:
    """Header and cells: who refused, and why."""
    return ["agent", "why"], [[without_prior(agent, found.prior), why] for agent, why in found.left_out.items()]


def markdown(header: list[str], rows: list[list[str]]) -> str:
    """A table for a text file."""
    left = {"agent", "told", "may be the best", "why"}
    lines = [header, ["---" if name in left else "---:" for name in header], *rows]
    return "".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |\n" for line in lines)


def _number(value: float) -> str:
    return f"{value:.1f}" if abs(value) < 1e5 else f"{value:,.0f}"


def _time(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def words(found: League) -> list[str]:
    """What was found, in sentences."""
    table = found.table.filter("ranked", told="")
    said = []
    if table.is_empty():
        said.append(f"Nobody has {FEWEST} runs of {found.spec.steps:,} steps in common with MCBRL: nobody is ranked.")
    else:
        beside = table.filter(pl.col("pairs") > 0)
        better, worse = beside.filter(pl.col("difference_low") > 0.0), beside.filter(pl.col("difference_high") < 0.0)
        leader, reference = (without_prior(agent, found.prior) for agent in (table["agent"][0], found.spec.agents[0]))
        said.append(
            f"The highest mean {found.score}, over common runs, is that of {leader}. Of {len(beside)} others with "
            f"{FEWEST} runs or more in common with {reference}, {len(better)} earned more than it, {len(worse)} "
            f"less, and {len(beside) - len(better) - len(worse)} cannot be told apart from it."
        )
    if found.band is not None:
        band, by = found.band, without_prior(found.band.by, found.prior)
        said.append(
            f"The best possible agent earns between {band.low:.4g} and {band.high:.4g} on average over the prior that "
            f"MDPs are drawn from (a width of {100 * band.width:.1f}% of the larger end, {100 * band.confidence:.4g}% "
            f"confidence): discount {found.discount:g}, {found.spec.steps} steps; best possible of those who know of "
            f"the MDP what the prior says and what they see. The lower end is what {by} earns at least. That bounds "
            "expectations; what was earned is a mean over the MDPs drawn, with the interval that stands beside it."
        )
    if found.table["published"].is_not_null().any():
        said.append("Published figures were mostly recalled, not read.")
    return said


def title(found: League) -> str:
    """The environment, and what agents were told where that is not what the environment's own prior says."""
    told = "" if found.prior in (None, "environment") else f", told {found.prior}"
    return f"League: {found.spec.environments[0]}{told}"


def text(found: League, picture: Picture, command: str) -> str:
    """A page for a text file: the command that made it, the picture of the same folder, what was found, all tables."""
    header, rows = shown(found)
    for row, on_front in zip(rows, found.table["front"], strict=True):
        row[1] = f"**{row[1]}**" if on_front else row[1]
    parts = [
        f"# {title(found)}",
        f"```text\n{command}\n```",
        f"![{picture.caption}]({picture.path.with_suffix('.png').name})",
        *words(found),
        about_table(found),
        markdown(header, rows).strip(),
        RANKING,
        markdown(*ranked(found)).strip(),
    ]
    if found.left_out:
        parts += ["Who cannot play:", markdown(*cannot_play(found)).strip()]
    return "\n\n".join(parts) + "\n"
