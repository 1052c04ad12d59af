"""What many runs say: means with intervals, percentiles, regret, paired differences, stuck runs.

Intervals for means are 95% percentile bootstrap intervals with 10⁴ resamples (`scipy.stats.bootstrap`). Agents in one
experiment face the same environment noise, so differences are taken run by run before averaging.
"""

import itertools
from typing import NamedTuple

import numpy as np

from beliefbound.base.errors import ParameterError
from beliefbound.base.tables import pl
from beliefbound.base.validation import FloatArray

RESAMPLES = 10_000


class Mean(NamedTuple):
    """A mean with its standard error and 95% bootstrap interval."""

    mean: float
    error: float
    low: float
    high: float


def bootstrap_mean(samples: FloatArray, *, seed: int = 0, resamples: int = RESAMPLES) -> Mean:
    """Mean, standard error and 95% percentile-bootstrap interval of independent samples.

    >>> bootstrap_mean(np.arange(100.0)).mean
    49.5
    """
    import scipy.stats as stats

    samples = np.asarray(samples, dtype=np.float64)
    if len(samples) == 0:
        raise ParameterError("no runs to average")
    mean = float(samples.mean())
    error = float(samples.std(ddof=1) / np.sqrt(len(samples))) if len(samples) > 1 else float("nan")
    if len(samples) < 2 or error == 0.0:
        return Mean(mean, error, mean, mean)
    found = stats.bootstrap(
        (samples,),
        np.mean,
        n_resamples=resamples,
        batch=max(1, 2_000_000 // len(samples)),
        method="percentile",
        confidence_level=0.95,
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return Mean(mean, error, float(found.low), float(found.high))


def summary(frame: pl.DataFrame, *, stuck_below: float | None = None) -> pl.DataFrame:
    """One row per environment and agent: runs, mean total with interval, 10th and 90th percentile, utility, regret.

    `regret` is against the agent called `oracle` on the same runs, and null without one. `stuck` is the share of runs
    with a total under `stuck_below`, null without a threshold.
    """
    rows = []
    for (environment, agent), group in frame.group_by("environment", "agent", maintain_order=True):
        total = bootstrap_mean(group["total"].to_numpy())
        utility = bootstrap_mean(group["utility"].to_numpy())
        low, high = np.percentile(group["total"].to_numpy(), [10, 90])
        regret = regret_of(frame, str(environment), str(agent))
        stuck = None if stuck_below is None else float((group["total"].to_numpy() < stuck_below).mean())
        rows.append(
            {
                "environment": environment,
                "agent": agent,
                "runs": len(group),
                "total": total.mean,
                "total_error": total.error,
                "ci_low": total.low,
                "ci_high": total.high,
                "p10": float(low),
                "p90": float(high),
                "utility": utility.mean,
                "utility_error": utility.error,
                "utility_low": utility.low,
                "utility_high": utility.high,
                "regret": None if regret is None else regret.mean,
                "regret_low": None if regret is None else regret.low,
                "regret_high": None if regret is None else regret.high,
                "stuck": stuck,
            }
        )
    return pl.DataFrame(rows, infer_schema_length=None)


def regret_of(frame: pl.DataFrame, environment: str, agent: str) -> Mean | None:
    """Mean total the oracle earned beyond the agent, run by run; `None` when there was no oracle."""
    here = frame.filter(environment=environment)
    if "oracle" not in here["agent"].to_list():
        return None
    return bootstrap_mean(_difference(here, "oracle", agent))


def differences(frame: pl.DataFrame) -> pl.DataFrame:
    """Paired differences of mean totals, first minus second, for every pair of agents on each environment."""
    rows = []
    for (environment,), here in frame.group_by("environment", maintain_order=True):
        agents = here["agent"].unique(maintain_order=True).to_list()
        for first, second in itertools.combinations(agents, 2):
            found = bootstrap_mean(_difference(here, first, second))
            rows.append(
                {
                    "environment": environment,
                    "first": first,
                    "second": second,
                    "difference": found.mean,
                    "ci_low": found.low,
                    "ci_high": found.high,
                }
            )
    return pl.DataFrame(rows)


def _difference(here: pl.DataFrame, first: str, second: str) -> FloatArray:
    keys = ["seed", "run"]
    pairs = here.filter(agent=first).join(here.filter(agent=second), on=keys, how="inner", suffix="_other")
    return (pairs["total"] - pairs["total_other"]).to_numpy()
