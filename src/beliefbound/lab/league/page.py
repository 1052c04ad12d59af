"""The report of a league: the table, score against time with the Pareto front, learning curves."""

from pathlib import Path

import numpy as np

from beliefbound.base.io.atomic import write_aside, write_text
from beliefbound.base.io.paths import as_path
from beliefbound.base.io.result_folder import one_result
from beliefbound.base.tables import pl
from beliefbound.lab.league.season import League
from beliefbound.lab.league.standings import APART
from beliefbound.policy.results import literal
from beliefbound.report.figures import figure, save
from beliefbound.report.page import REPORT, Page, Picture, Section, Table, write_page

_CURVES = 10  # drawn: the best
_ONE_COLUMN = 20  # names beside the figure, before there is a second column
_LONGEST = 38  # letters of a name beside the figure
_FEWEST = 10  # runs of which an interval is shown


def write_league(found: League, out: Path | str) -> Path:
    """Write `league.{csv,md,png,svg}`, `ranking.csv`, `curves.{png,svg}` and `report.html` into a folder; the report's
    path."""
    folder = as_path(out)
    with one_result(folder, "league", last=REPORT) as aside:
        write_aside(aside / "league.csv", found.table.write_csv)
        write_aside(aside / "ranking.csv", found.ranking.write_csv)
        write_text(aside / "league.md", markdown(*shown(found)))
        write_page(_page(found, aside), aside / REPORT)
    return folder / REPORT


def _page(found: League, folder: Path) -> Page:
    header, rows = shown(found)
    words = _words(found)
    pictures = [_front(found, folder / "league"), *_curves(found, folder / "curves")]
    caption = " ".join([_CAPTION.format(found.score), *about_shorter(found)])
    sections = [
        Section(
            "Standings",
            words,
            [Table(header, rows, caption, frozenset(np.flatnonzero(found.table["front"].to_numpy()).tolist()))],
            pictures,
        ),
        Section("Within a bound on the time of a step", [_RANKING], [_ranking(found.ranking)]),
    ]
    if found.left_out:
        left = [[agent, why] for agent, why in found.left_out.items()]
        sections.append(Section("Who cannot play", tables=[Table(["agent", "why"], left)]))
    if found.failed:
        failed = [[agent, why] for agent, why in found.failed.items()]
        words = ["These raised an error and are in no table; failures.txt has the tracebacks."]
        sections.append(Section("Who failed", words, [Table(["agent", "error"], failed)]))
    length = f"{found.spec.steps:,} steps a run{' or fewer' if about_shorter(found) else ''}"
    return Page(
        title=f"League: {found.spec.environments[0]}",
        lead=f"{len(found.table)} agents, {length}, the same environment noise for all.",
        sections=sections,
        facts=[("seed", str(found.spec.seeds[0])), ("runs", f"up to {found.spec.runs:,}")],
    )


_CAPTION = (
    "Mean total reward and discounted utility with 95% bootstrap intervals where there are ten runs; the difference is "
    "that of the {} to MCBRL's, over the runs that both played; times are of one core. Highlighted: nobody is both "
    "better and faster."
)
_RANKING = (
    "For each bound, each family of agents sends its best setting; those listed are the leader and all who follow it "
    "within 1.96 standard errors of the paired difference."
)


_SHORTER = (
    "Rows with fewer steps are of agents of which two full runs do not fit the budget: they earned so much in so many "
    "steps, the difference is to MCBRL after as many, and they have no part in the front, the ranking and the curves."
)


def about_shorter(found: League) -> list[str]:
    """The sentence about rows with fewer steps, where there are any."""
    return [_SHORTER] if (found.table["steps"] < found.spec.steps).any() else []


def shown(found: League) -> tuple[list[str], list[list[str]]]:
    """Header and formatted cells of the standings; the steps only where somebody played fewer."""
    table, some = found.table, bool(about_shorter(found))
    header = [
        "",
        "agent",
        *["steps"] * some,
        "runs",
        "total",
        "95%",
        "utility",
        "95%",
        "− MCBRL",
        "95%",
        "a step",
        "published",
    ]
    rows = [
        [
            str(number),
            row["agent"],
            *[f"{row['steps']:,}"] * some,
            str(row["runs"]),
            _number(row["total"]),
            f"{_number(row['total_low'])} – {_number(row['total_high'])}" if row["runs"] >= _FEWEST else "",
            f"{row['utility']:.2f}",
            f"{row['utility_low']:.2f} – {row['utility_high']:.2f}" if row["runs"] >= _FEWEST else "",
            "" if row["difference"] is None else f"{row['difference']:+.4g}",
            "" if row["pairs"] < _FEWEST else f"{row['difference_low']:+.4g} – {row['difference_high']:+.4g}",
            _time(row["step_seconds"]),
            "" if row["published"] is None else f"{row['published']:g}",
        ]
        for number, row in enumerate(table.iter_rows(named=True), start=1)
    ]
    return header, rows


def markdown(header: list[str], rows: list[list[str]]) -> str:
    """A table for a text file."""
    lines = [header, ["---:", "---", *["---:"] * (len(header) - 2)], *rows]
    return "".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |\n" for line in lines)


def _number(value: float) -> str:
    return f"{value:.1f}" if abs(value) < 1e5 else f"{value:,.0f}"


def _time(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def _words(found: League) -> list[str]:
    table = found.table.filter(~pl.col("agent").is_in(APART), steps=found.spec.steps)
    if table.is_empty():
        return [f"Of no agent two runs of {found.spec.steps:,} steps fit the budget."]
    best = table.row(0, named=True)
    table = table.filter(pl.col("pairs") >= _FEWEST)
    unclear = table.filter((pl.col("difference_low") <= 0.0) & (pl.col("difference_high") >= 0.0))
    better = table.filter(pl.col("difference_low") > 0.0)
    reference = found.spec.agents[0]
    words = [f"{best['agent']} has the highest mean {found.score}."]
    if len(table):
        words[0] += (
            f" Of {len(table)} with {_FEWEST} runs or more beside {reference}, {len(better)} earned more than it "
            f"beyond the 95% interval of the paired difference, and {len(unclear)} cannot be told apart from it."
        )
    if found.table["published"].is_not_null().any():
        words.append("Published figures were mostly recalled, not read, and their settings are their authors' own.")
    return words


def _ranking(ranks: pl.DataFrame) -> Table:
    rows = [
        [_time(row["bound"]), str(row["place"]), row["agent"], f"{row['mean']:.4g}", f"{row['z']:.2f}"]
        for row in ranks.iter_rows(named=True)
    ]
    return Table(["at most a step", "place", "agent", "mean", "z"], rows)


def shortened(name: str) -> str:
    """A name that is too long without its middle: settings of one agent differ at the end.

    >>> shortened("mcbrl:models=8,horizon=100,prior=tied-dirichlet")
    'mcbrl:models=8,hori…ior=tied-dirichlet'
    """
    half = _LONGEST // 2
    return name if len(name) <= _LONGEST else f"{name[:half]}…{name[1 - _LONGEST + half :]}"


def _front(found: League, stem: Path) -> Picture:
    """Points are numbered as in the table: forty names would cover one another."""
    from matplotlib.ticker import EngFormatter, NullFormatter

    score = found.score
    table = found.table.with_row_index("number", offset=1).filter(~pl.col("agent").is_in(APART))
    whole, shorter = table.filter(steps=found.spec.steps), table.filter(pl.col("steps") < found.spec.steps)
    front = whole.filter("front").sort("step_seconds")
    told = pl.col("agent").str.contains("tied")
    lines = max(_ONE_COLUMN, (len(table) + 1) // 2)
    with figure(figsize=(9.6, max(4.0, 0.15 * lines + 1.0)), layout="none") as (drawn, axes):
        drawn.subplots_adjust(left=0.08, right=0.55, bottom=0.12, top=0.97)
        for those, marker, label in ((~told, "o", None), (told, "^", "told which pairs behave alike")):
            some = whole.filter(those)
            if some.is_empty():
                continue
            colours = ["tab:blue" if on else "tab:gray" for on in some["front"]]
            axes.scatter(some["step_seconds"], some[score], s=20, c=colours, marker=marker, zorder=2, label=label)
        if len(front):
            axes.step(front["step_seconds"], front[score], where="post", linewidth=1.4, zorder=1, label="Pareto front")
        else:
            axes.set_yticks([])
        bottom = axes.get_xaxis_transform()  # times, and heights from 0 to 1
        if len(shorter):
            on_axis = {"transform": bottom, "clip_on": False, "label": "time only: fewer steps"}
            axes.scatter(shorter["step_seconds"], np.zeros(len(shorter)), s=60, c="tab:red", marker="|", **on_axis)
        for i, row in enumerate(table.iter_rows(named=True)):
            short = row["steps"] < found.spec.steps
            colour = "tab:red" if short else "tab:blue" if row["front"] else "dimgray"
            height, scale = (0.0, bottom) if short else (row[score], "data")
            at, number = (row["step_seconds"], height), str(row["number"])
            beside = (3, 3 + 7 * (i % 3) * short)  # marks on the axis may be close together
            axes.annotate(number, at, beside, scale, textcoords="offset points", fontsize=6, color=colour)
            place = (1.02 + 0.48 * (i // lines), 1.0 - (i % lines + 0.5) / lines)
            name = f"{row['number']}  {literal(shortened(row['agent']), _LONGEST)}"
            axes.text(*place, name, transform=axes.transAxes, fontsize=6, va="center", color=colour)
        times = table["step_seconds"].to_numpy()
        axes.set_xscale("log")
        axes.set_xlim(10.0 ** np.floor(np.log10(0.8 * times.min())), 10.0 ** np.ceil(np.log10(1.25 * times.max())))
        axes.xaxis.set_major_formatter(EngFormatter(unit="s"))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_xlabel("time a step, one core")
        axes.set_ylabel(f"mean {score}" + (" reward" if score == "total" else ""))
        axes.legend(loc="lower right", bbox_to_anchor=(1.0, 0.09 if len(shorter) else 0.0), fontsize=7)
        path = save(drawn, stem)[1]
    caption = "Score against time per step, numbered as in the table; the line is the Pareto front."
    marks = " Marks on the time axis are agents that played fewer steps: their time, without a score."
    return Picture(path, caption + marks * bool(len(shorter)))


def _curves_said(agents: int) -> str:
    return f"Learning curves of the {_CURVES} with the highest means." if agents > _CURVES else "Learning curves."


def _curves(found: League, stem: Path) -> list[Picture]:
    """Of those who played all steps; none, where nobody did."""
    every, agents = found.spec.curve_every, found.table.filter(steps=found.spec.steps)["agent"]
    if agents.is_empty():
        return []
    with figure() as (drawn, axes):
        for agent in agents.head(_CURVES):
            curves = np.array(found.frame.filter(agent=agent)["curve"].to_list())
            steps = every * np.arange(1, curves.shape[1] + 1)
            axes.plot(steps, curves.mean(axis=0) / steps, label=str(agent), linewidth=1.2)
        axes.set_xlabel("step")
        axes.set_ylabel("mean reward a step so far")
        axes.legend(fontsize=7, ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1.0))
        path = save(drawn, stem)[1]
    return [Picture(path, _curves_said(len(agents)))]
