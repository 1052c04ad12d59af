"""Who may be the best within a bound on the time of a step.

For each bound, those who need more time are put aside, and each of the others is compared with every rival over the
runs that both played. An agent is ruled out if some rival is ahead of it by more than the t quantile at
`1 − 0.05/(k − 1)`, k being how many there are. Whoever is the best is ahead of k − 1 rivals or level with them, so that
it is ruled out with a probability of 5% at most: those who are left hold the best with 95% (Gupta 1965), whoever had
the highest mean. Agents that were told different things are ranked apart.
"""

import numpy as np

from beliefbound.base.tables import pl
from beliefbound.base.validation import BoolArray, FloatArray
from beliefbound.lab.league.comparison import ERROR, lead

_FACTOR = 10.0
_SCHEMA = {
    "told": pl.String,
    "bound": pl.Float64,
    "rivals": pl.Int64,
    "place": pl.Int64,
    "agent": pl.String,
    "level": pl.Float64,
    "behind": pl.String,
    "t": pl.Float64,
}


def ranking(frame: pl.DataFrame, table: pl.DataFrame, *, score: str) -> pl.DataFrame:
    """One row per bound and agent that may be the best: what it was `told`, the `bound` (seconds), the number of
    `rivals`, its `place` by `level`, the rival that it is most `behind`, and how many standard errors `t`, if any.

    `table` is that of `standings`. Bounds grow by factors of ten from the fastest agent's time to the slowest's.
    """
    rows = []
    ranked = table.filter("ranked")
    for told in ranked["told"].unique(maintain_order=True):
        those = ranked.filter(told=told).sort("level", descending=True, maintain_order=True)
        names, times = those["agent"].to_list(), those["step_seconds"].to_numpy()
        ahead, runs = _leads(frame, names, score)
        bound, last = 10.0 ** np.ceil(np.log10(times.min())), times.max()
        while True:
            within = np.flatnonzero(times <= bound)
            behind, t, best = may_be_best(ahead[np.ix_(within, within)], runs[np.ix_(within, within)])
            for place, i in enumerate(np.flatnonzero(best), start=1):
                agent = names[within[i]]
                rival = names[within[behind[i]]] if t[i] > 0.0 else None
                level = those["level"][int(within[i])]
                rows.append((told, bound, len(within), place, agent, level, rival, max(t[i], 0.0)))
            if bound >= last:
                break
            bound *= _FACTOR
    return pl.DataFrame(rows, schema=_SCHEMA, orient="row")


def may_be_best(ahead: FloatArray, runs: FloatArray) -> tuple[FloatArray, FloatArray, BoolArray]:
    """`(behind, t, best)`, each `[i]`: the rival that i is most behind, by so many standard errors, and whether it may
    still be the best. `ahead[i,j]` is how far i is ahead of j, over `runs[i,j]` common runs.

    >>> ahead = np.array([[0.0, 1.0, 5.0], [-1.0, 0.0, 4.0], [-5.0, -4.0, 0.0]])
    >>> may_be_best(ahead, np.full((3, 3), 100.0))[2].tolist()
    [True, True, False]
    """
    from scipy.special import stdtrit

    behind = np.argmax(ahead, axis=0)
    k = len(ahead)
    most = stdtrit(np.maximum(runs - 1.0, 1.0), 1.0 - ERROR / max(k - 1, 1))
    return behind, ahead.max(axis=0), ~np.any(ahead > most, axis=0)


def _leads(frame: pl.DataFrame, names: list[str], score: str) -> tuple[FloatArray, FloatArray]:
    """How far each is ahead of each other in standard errors, and over how many common runs."""
    numbers = frame["run"].unique().sort()
    scores = np.full((len(names), len(numbers)), np.nan)
    for i, name in enumerate(names):
        own = frame.filter(agent=name)
        scores[i, numbers.search_sorted(own["run"]).to_numpy()] = own[score].to_numpy()
    k = len(names)
    ahead, runs = np.zeros((k, k)), np.zeros((k, k))
    for i in range(k):
        for j in range(i):
            difference = scores[i] - scores[j]
            difference = difference[~np.isnan(difference)]
            ahead[i, j], runs[i, j] = lead(difference), len(difference)
    return ahead - ahead.T, runs + runs.T
