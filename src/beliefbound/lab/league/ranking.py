"""Who leads within a bound on the time of a step: the ranking of Castronovo, Ernst, Couëtoux & Fonteneau (2016).

For each bound, settings of agents that need more time are put aside and each family sends its best mean. The leader
comes first; those who follow are as good as it while the paired difference to it is below 1.96 standard errors, up to
the first who is not.
"""

from collections.abc import Mapping

import numpy as np

from beliefbound.base.tables import pl
from beliefbound.lab.league.standings import APART, paired_difference

_FACTOR = 5.0
_DISTANCE = 1.96


def ranking(frame: pl.DataFrame, step_seconds: Mapping[str, float], *, score: str) -> pl.DataFrame:
    """One row per bound and agent that shares its lead: `bound` (seconds), `place`, `agent`, `mean`, `z`.

    Bounds grow by factors of five from the fastest agent's time to the slowest's.
    """
    times = {agent: seconds for agent, seconds in step_seconds.items() if agent not in APART}
    schema = {"bound": pl.Float64, "place": pl.Int64, "agent": pl.String, "mean": pl.Float64, "z": pl.Float64}
    rows = []
    means = {agent: float(frame.filter(agent=agent)[score].to_numpy().mean()) for agent in times}
    bound, last = min(times.values(), default=1.0), max(times.values(), default=0.0)
    bound = 10.0 ** np.ceil(np.log10(max(bound, 1e-9)))
    while times:
        within = [agent for agent, seconds in times.items() if seconds <= bound]
        best: dict[str, str] = {}
        for agent in sorted(within, key=lambda each: -means[each]):
            best.setdefault(agent.partition(":")[0], agent)
        order = list(best.values())
        for place, agent in enumerate(order, start=1):
            difference = paired_difference(frame, agent, order[0], score)
            error = difference.std(ddof=1) / np.sqrt(len(difference)) if len(difference) > 1 else np.inf
            z = 0.0 if place == 1 else float(abs(difference.mean()) / error) if error > 0.0 else np.inf
            if z >= _DISTANCE:
                break
            rows.append({"bound": bound, "place": place, "agent": agent, "mean": means[agent], "z": z})
        if bound >= last:
            break
        bound *= _FACTOR
    return pl.DataFrame(rows, schema=schema)
