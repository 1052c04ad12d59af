"""The table of a league: what each agent earned, with what certainty, against the reference, at what cost."""

from collections.abc import Mapping

import numpy as np

from beliefbound.base.tables import pl
from beliefbound.base.validation import BoolArray, FloatArray
from beliefbound.lab.league.comparison import FEWEST, paired_difference, simultaneous
from beliefbound.lab.league.entries import EVERYTHING, told
from beliefbound.lab.league.published import published
from beliefbound.lab.league.timing import Timing

_ABOVE, _RIVAL, _TOLD, _FEW, _SHORT = range(5)  # in this order


def standings(
    frame: pl.DataFrame,
    times: Mapping[str, Timing],
    environment: str | None,
    *,
    prior: str | None,
    steps: int,
    reference: str,
    compared: pl.DataFrame,
    score: str,
) -> pl.DataFrame:
    """One row per agent, by `level`: first the oracle, then who had the league's `prior`, who was told something else,
    who has fewer than `FEWEST` runs in common with the reference, and who played fewer than `steps` steps.

    `compared` has the runs of the `reference`, for each number of steps that it played.

    Columns: `agent, told, steps, runs, total, total_low, total_high, utility, utility_low, utility_high`: means, with
    intervals that hold for all agents at once (`comparison`); `pairs`: runs that the reference played too, in as many
    steps; `difference, difference_low, difference_high`: the agent's `score` less the reference's in these, run by run;
    `level`: what the reference earned in all its runs, and that difference, so that lucky runs count for nobody;
    `ranked`: whether all steps, and enough common runs, were played, by another than the oracle; `step_seconds,
    build_seconds`: time of a step and of planning before the first; `published`: a total that a paper reports of this
    setting, if the environment is given; `front`: nobody with the same prior is both better and faster.
    """
    rows = []
    k = frame["agent"].n_unique()
    for (agent,), group in frame.group_by("agent", maintain_order=True):
        timing, knows, own = times[str(agent)], told(str(agent), prior), group[score].to_numpy()
        total, utility = (simultaneous(group[name].to_numpy(), k) for name in ("total", "utility"))
        beside = compared.filter(steps=timing.steps)
        paired = paired_difference(pl.concat([group, beside]), str(agent), reference, score)
        paired = paired[:0] if agent == reference else paired
        gap = simultaneous(paired, k - 1) if len(paired) > 1 else None
        whole = timing.steps == steps
        enough = whole and (len(own) if agent == reference else len(paired)) >= FEWEST
        place = (_TOLD if knows else _RIVAL) if enough else _FEW if whole else _SHORT
        place = _ABOVE if knows == EVERYTHING and whole else place
        rows.append(
            {
                "agent": agent,
                "told": knows,
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
                "level": float(own.mean() if gap is None else beside[score].to_numpy().mean() + gap.mean),
                "ranked": place in (_RIVAL, _TOLD),
                "step_seconds": timing.step,
                "build_seconds": timing.build,
                "published": published(environment, str(agent)) if whole and environment is not None else None,
                "order": place,
            }
        )
    order = ["order", "steps", "told", "level"]
    table = pl.DataFrame(rows, infer_schema_length=None)
    table = table.sort(order, descending=[False, True, False, True], maintain_order=True).drop("order")
    rivals = table.filter("ranked", told="")
    front = rivals.filter(pl.Series(pareto(rivals["step_seconds"].to_numpy(), rivals["level"].to_numpy())))
    return table.with_columns(front=pl.col("agent").is_in(front["agent"].implode()))


def pareto(cost: FloatArray, score: FloatArray) -> BoolArray:
    """`[n]`: whether nobody costs at most as much and scores at least as much, one of them strictly.

    >>> pareto(np.array([1.0, 2.0, 3.0, 3.0]), np.array([5.0, 4.0, 6.0, 6.0])).tolist()
    [True, False, True, True]
    """
    better = (cost[None] <= cost[:, None]) & (score[None] >= score[:, None])
    strictly = (cost[None] < cost[:, None]) | (score[None] > score[:, None])
    beaten: BoolArray = np.any(better & strictly, axis=1)
    return ~beaten
