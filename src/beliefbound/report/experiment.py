"""The report of an experiment: summary, paired differences, distributions and learning curves."""

from pathlib import Path

import numpy as np

from beliefbound.base.io.atomic import as_parquet, check_writable, write_aside, write_bytes
from beliefbound.base.io.paths import as_path
from beliefbound.base.io.result_folder import one_result
from beliefbound.base.tables import pl
from beliefbound.lab.experiments.statistics import differences, summary
from beliefbound.lab.experiments.store import Store
from beliefbound.report.figures import figure, save
from beliefbound.report.page import REPORT, Page, Picture, Section, Table, write_page


def write_report(folder: Path | str, *, runs: int | None = None) -> tuple[pl.DataFrame, Path]:
    """Summarise the finished runs in a folder, or the first `runs` of every cell: `(summary, path of report.html)`.

    Writes `summary.csv`, `differences.csv`, `runs.parquet`, figures and `report.html` beside the store.
    """
    out = as_path(folder)
    store = Store.existing(out, runs=runs)
    store.check()
    check_writable(out)
    frame = store.read()
    with one_result(out, "run", last=REPORT) as aside:
        write_bytes(aside / "runs.parquet", as_parquet(frame))
        table = summary(frame, stuck_below=store.spec.stuck_below)
        write_aside(aside / "summary.csv", table.write_csv)
        pairs = differences(frame)
        if len(pairs):
            write_aside(aside / "differences.csv", pairs.write_csv)
        sections = [
            _environment(aside, i, environment, table, pairs, frame, store)
            for i, environment in enumerate(store.spec.environments)
            if environment in frame["environment"].unique().to_list()
        ]
        page = Page(
            title=store.spec.title or f"{len(store.spec.agents)} agents on {', '.join(store.spec.environments)}",
            lead="Mean total rewards with 95% bootstrap intervals; agents faced the same environment noise run by run.",
            sections=sections,
            facts=_facts(store, frame),
        )
        write_page(page, aside / REPORT)
    return table, out / REPORT


def _facts(store: Store, frame: pl.DataFrame) -> list[tuple[str, str]]:
    spec = store.spec
    done, wanted = len(frame), spec.runs * len(spec.cells())
    facts = [("runs per cell", f"{spec.runs:,}"), ("steps", f"{spec.steps:,}"), ("accounting", spec.accounting)]
    facts.append(("seeds", ", ".join(map(str, spec.seeds))))
    facts.append(("played by", f"beliefbound {store.version}"))
    if done < wanted:
        facts.append(("unfinished", f"{done:,} of {wanted:,} runs"))
    return facts


def _environment(
    out: Path, i: int, environment: str, table: pl.DataFrame, pairs: pl.DataFrame, frame: pl.DataFrame, store: Store
) -> Section:
    here = frame.filter(environment=environment)
    pictures = [_distributions(out / f"totals-{i}", environment, here)]
    if store.spec.curve_every:
        pictures.append(_curves(out / f"curves-{i}", environment, store))
    tables = [_summary_table(table.filter(environment=environment))]
    if len(pairs):
        tables.append(_difference_table(pairs.filter(environment=environment)))
    return Section(environment, tables=tables, pictures=pictures)


def _summary_table(table: pl.DataFrame) -> Table:
    rows = [
        [
            row["agent"],
            f"{row['total']:.1f}",
            f"{row['ci_low']:.1f} – {row['ci_high']:.1f}",
            f"{row['p10']:.1f} – {row['p90']:.1f}",
            f"{row['utility']:.3f}",
            "" if row["regret"] is None else f"{row['regret']:.1f}",
            "" if row["stuck"] is None else f"{100 * row['stuck']:.1f}%",
        ]
        for row in table.sort("total", descending=True).iter_rows(named=True)
    ]
    header = ["agent", "total", "95% interval", "80% of runs", "utility", "regret", "stuck"]
    shown = [k for k in range(len(header)) if any(row[k] for row in rows)]
    return Table([header[k] for k in shown], [[row[k] for k in shown] for row in rows])


def _difference_table(pairs: pl.DataFrame) -> Table:
    rows = [
        [
            f"{row['first']} − {row['second']}",
            f"{row['difference']:+.1f}",
            f"{row['ci_low']:+.1f} to {row['ci_high']:+.1f}",
        ]
        for row in pairs.iter_rows(named=True)
    ]
    clear = frozenset(i for i, row in enumerate(pairs.iter_rows(named=True)) if row["ci_low"] * row["ci_high"] > 0)
    caption = "Paired differences of total reward; highlighted where the interval excludes zero."
    return Table(["pair", "difference", "95% interval"], rows, caption, clear)


def _distributions(stem: Path, environment: str, here: pl.DataFrame) -> Picture:
    with figure() as (drawn, axes):
        low, high = here.select(low=pl.col("total").min(), high=pl.col("total").max()).row(0)
        bins = np.linspace(low, high if high > low else low + 1.0, 61)
        for (agent,), group in here.group_by("agent", maintain_order=True):
            axes.hist(group["total"].to_numpy(), bins=bins, histtype="step", linewidth=1.6, label=str(agent))
        axes.set_xlabel("total reward")
        axes.set_ylabel("number of runs")
        axes.legend()
        path = save(drawn, stem)[1]
    return Picture(path, f"Total reward over runs on {environment}.")


def _curves(stem: Path, environment: str, store: Store) -> Picture:
    every = store.spec.curve_every
    frame = store.read(("curve",)).filter(environment=environment)
    with figure() as (drawn, axes):
        for (agent,), group in frame.group_by("agent", maintain_order=True):
            curves = np.array(group["curve"].to_list())
            steps = every * np.arange(1, curves.shape[1] + 1)
            mean, error = curves.mean(axis=0), curves.std(axis=0) / np.sqrt(len(curves))
            (line,) = axes.plot(steps, mean, label=str(agent))
            axes.fill_between(steps, mean - 1.96 * error, mean + 1.96 * error, color=line.get_color(), alpha=0.2)
        axes.set_xlabel("step")
        axes.set_ylabel("total reward so far")
        axes.legend()
        path = save(drawn, stem)[1]
    return Picture(path, f"Mean total reward so far on {environment}, with 95% bands.")
