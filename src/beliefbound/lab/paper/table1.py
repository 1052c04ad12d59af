"""Table 1: total reward and utility on Chain, beside the published figures."""

import numpy as np

from beliefbound.base.tables import pl
from beliefbound.lab.experiments.statistics import bootstrap_mean
from beliefbound.lab.paper.published import TABLE1

COLUMNS = (
    "model",
    "total_reward",
    "utility",
    "p10",
    "p90",
    "ci_low",
    "ci_high",
    "paper_total",
    "paper_ci_low",
    "paper_ci_high",
    "paper_utility",
)


def table1(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows of Table 1 from the runs of an experiment; systems that did not run keep only the published columns.

    Extra columns behind the documented ones: `total_error`, `utility_error` (standard errors), `z_total`, the
    distance from the published mean in joint standard errors (the paper's from its 95% interval), for rows that
    reproduce the paper's own, and `runs`.
    """
    rows = []
    for published in TABLE1:
        row: dict[str, object] = dict.fromkeys((*COLUMNS, "total_error", "utility_error", "z_total", "runs"))
        row |= {
            "model": published.model,
            "paper_total": published.total,
            "paper_ci_low": published.ci_low,
            "paper_ci_high": published.ci_high,
            "paper_utility": published.utility,
        }
        names = (published.agent,) if published.agent else published.here
        runs = frame.filter(pl.col("agent").is_in(names))
        if len(runs):
            totals = runs["total"].to_numpy()
            total, utility = bootstrap_mean(totals), bootstrap_mean(runs["utility"].to_numpy())
            p10, p90 = np.percentile(totals, [10, 90])
            published_error = (published.ci_high - published.ci_low) / (2 * 1.96)
            row |= {
                "total_reward": total.mean,
                "utility": utility.mean,
                "p10": float(p10),
                "p90": float(p90),
                "ci_low": total.low,
                "ci_high": total.high,
                "total_error": total.error,
                "utility_error": utility.error,
                "runs": float(len(runs)),
            }
            if published.agent:
                row["z_total"] = (total.mean - published.total) / float(np.hypot(total.error, published_error))
        rows.append(row)
    numbers = (name for name in rows[0] if name != "model")
    return pl.DataFrame(rows, schema={"model": pl.String} | dict.fromkeys(numbers, pl.Float64))


def table1_rows(table: pl.DataFrame) -> tuple[list[str], list[list[str]]]:
    """Header and formatted cells, ours beside the paper's; `U` is utility, `z` joint standard errors apart."""

    def number(value: float | None, digits: int = 0) -> str:
        return "" if value is None else f"{value:.{digits}f}"

    def interval(low: float | None, high: float | None) -> str:
        return "" if low is None or high is None else f"{low:.0f}–{high:.0f}"

    header = ["model", "total", "paper", "95% CI", "paper", "U", "paper", "80% runs", "z", "runs"]
    rows = [
        [
            row["model"],
            number(row["total_reward"], 1),
            number(row["paper_total"]),
            interval(row["ci_low"], row["ci_high"]),
            interval(row["paper_ci_low"], row["paper_ci_high"]),
            number(row["utility"], 2),
            number(row["paper_utility"], 2),
            interval(row["p10"], row["p90"]),
            number(row["z_total"], 1),
            number(row["runs"]),
        ]
        for row in table.iter_rows(named=True)
    ]
    return header, rows
