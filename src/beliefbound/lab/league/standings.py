"""The table of a league: what each agent earned, with what certainty, against the reference, at what cost."""

from collections.abc import Mapping

import numpy as np

from beliefbound.base.tables import pl
from beliefbound.base.validation import BoolArray, FloatArray
from beliefbound.lab.experiments.statistics import bootstrap_mean
from beliefbound.lab.league.published import published
from beliefbound.lab.league.timing import Timing

APART = ("oracle",)  # it knows the MDP, and is no rival


def standings(
    frame: pl.DataFrame,
    times: Mapping[str, Timing],
    environment: str | None,
    *,
    steps: int,
    reference: str,
    compared: pl.DataFrame,
    score: str,
) -> pl.DataFrame:
    """One row per agent, the best `score` first; those who played fewer than `steps` steps come last, longest first.

    `compared` has the runs of the `reference`, for each number of steps that it played.

    Columns: `agent, steps, runs, total, total_low, total_high, utility, utility_low, utility_high`: means and 95%
    bootstrap intervals; `pairs`: runs that the reference played too, in as many steps; `difference, difference_low,
    difference_high`: the agent's `score` less the reference's in these, run by run; `step_seconds, build_seconds`: time
    of a step and of planning before the first; `published`: a total that a paper reports of the environment, if it is
    given; `front`: no agent, the oracle apart, is both better and faster. Who played fewer steps has no published
    figure, and is not on the front.
    """
    rows = []
    for (agent,), group in frame.group_by("agent", maintain_order=True):
        total, utility = (bootstrap_mean(group[name].to_numpy()) for name in ("total", "utility"))
        timing = times[str(agent)]
        both = pl.concat([group, compared.filter(steps=timing.steps)])
        paired = paired_difference(both, str(agent), reference, score)
        paired = paired[:0] if agent == reference else paired
        gap = bootstrap_mean(paired) if len(paired) > 1 else None
        papers = environment if timing.steps == steps else None
        rows.append(
            {
                "agent": agent,
                "steps": timing.steps,
                "runs": len(group),
                "total": total.mean,
                "total_low": total.low,
                "total_high": total.high,
                "utility": utility.mean,
                "utility_low": utility.low,
                "utility_high": utility.high,
                "pairs": len(paired),
                "difference": None if gap is None else gap.mean,
                "difference_low": None if gap is None else gap.low,
                "difference_high": None if gap is None else gap.high,
                "step_seconds": timing.step,
                "build_seconds": timing.build,
                "published": None if papers is None else published(papers, str(agent)),
            }
        )
    table = pl.DataFrame(rows, infer_schema_length=None).sort("steps", score, descending=True, maintain_order=True)
    rivals = table.filter(~pl.col("agent").is_in(APART), steps=steps)
    front = rivals.filter(pl.Series(pareto(rivals["step_seconds"].to_numpy(), rivals[score].to_numpy())))
    return table.with_columns(front=pl.col("agent").is_in(front["agent"].implode()))


def paired_difference(frame: pl.DataFrame, first: str, second: str, score: str) -> FloatArray:
    """`[n]`: first less second on the runs that both played."""
    pairs = frame.filter(agent=first).join(frame.filter(agent=second), on=["seed", "run"], suffix="_other")
    return (pairs[score] - pairs[f"{score}_other"]).to_numpy()


def pareto(cost: FloatArray, score: FloatArray) -> BoolArray:
    """`[n]`: whether nobody costs at most as much and scores at least as much, one of them strictly.

    >>> pareto(np.array([1.0, 2.0, 3.0, 3.0]), np.array([5.0, 4.0, 6.0, 6.0])).tolist()
    [True, False, True, True]
    """
    better = (cost[None] <= cost[:, None]) & (score[None] >= score[:, None])
    strictly = (cost[None] < cost[:, None]) | (score[None] > score[:, None])
    beaten: BoolArray = np.any(better & strictly, axis=1)
    return ~beaten
