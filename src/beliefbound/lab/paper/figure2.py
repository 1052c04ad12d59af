"""Figure 2: (a) regret of MCBRL against the number of sampled models; (b) distributions of total reward."""

from pathlib import Path

import numpy as np

from beliefbound.base.io.atomic import write_aside
from beliefbound.base.tables import pl
from beliefbound.lab.experiments.statistics import regret_of
from beliefbound.report.figures import COLOURS, figure, save


def regret_curve(frame: pl.DataFrame, samples: tuple[int, ...], stuck_below: float) -> pl.DataFrame:
    """One row per n, and one for Exploit (n = null): regret, its 95% bootstrap interval, the share of stuck runs."""
    rows = []
    for n in (*samples, None):
        agent = "exploit" if n is None else f"mcbrl:n={n}"
        regret = regret_of(frame, "chain", agent)
        assert regret is not None, "the experiment has an oracle"
        stuck = float((frame.filter(agent=agent)["total"].to_numpy() < stuck_below).mean())
        rows.append(
            {
                "agent": agent,
                "n": n,
                "regret": regret.mean,
                "ci_low": regret.low,
                "ci_high": regret.high,
                "stuck": stuck,
            }
        )
    return pl.DataFrame(rows)


def draw_regret(curve: pl.DataFrame, folder: Path) -> list[Path]:
    """Figure 2(a) as PNG and SVG, and its numbers as CSV."""
    table = folder / "figure2a.csv"
    write_aside(table, curve.write_csv)
    sampled = curve.filter(pl.col("n").is_not_null())
    exploit = curve.row(by_predicate=pl.col("n").is_null(), named=True)
    with figure() as (drawn, axes):
        n, regret = sampled["n"].to_numpy(), sampled["regret"].to_numpy()
        errors = np.stack([regret - sampled["ci_low"].to_numpy(), sampled["ci_high"].to_numpy() - regret])
        axes.errorbar(n, regret, yerr=errors, fmt="o-", color=COLOURS["mmbi"], capsize=3, label="MCBRL")
        axes.axhline(exploit["regret"], color=COLOURS["expected"], linestyle="--", label="Exploit")
        axes.axhspan(exploit["ci_low"], exploit["ci_high"], color=COLOURS["expected"], alpha=0.15, linewidth=0)
        axes.set_xscale("log", base=2)
        axes.set_xticks(n, [str(k) for k in n])
        axes.set_xlabel("sampled models n")
        axes.set_ylabel("regret: total reward short of the oracle's")
        axes.legend()
        return [table, *save(drawn, folder / "figure2a")]


def draw_distributions(frame: pl.DataFrame, agents: dict[str, str], folder: Path) -> list[Path]:
    """Figure 2(b) as PNG and SVG: histograms of total reward, `agents` giving the label of each agent shown."""
    colours = (COLOURS["expected"], COLOURS["sharp"], COLOURS["mmbi"])
    with figure() as (drawn, axes):
        totals = {label: frame.filter(agent=agent)["total"].to_numpy() / 1000 for agent, label in agents.items()}
        low, high = min(x.min() for x in totals.values()), max(x.max() for x in totals.values())
        bins = np.linspace(low, high, 81)
        for (label, values), colour in zip(totals.items(), colours, strict=False):
            axes.hist(values, bins=bins, histtype="step", linewidth=1.6, color=colour, label=label)
        axes.set_xlabel("total reward / 1000")
        axes.set_ylabel("number of runs")
        axes.legend(loc="upper left")
        return list(save(drawn, folder / "figure2b"))
