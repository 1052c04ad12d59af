"""Agents compared run by run, with intervals that hold together.

All face the same noise, so what one earned less what another did is taken over the runs that both played, and an agent
that played a few lucky runs does not lead one that played all. Means are given with Student's t intervals at
`1 − 0.05/k`, k the number of means that are looked at together: by Bonferroni all k hold at once with a probability of
95%, as far as means of n runs are normal. Below `FEWEST` common runs no interval is given, and nobody is ranked.
"""

from typing import NamedTuple

import numpy as np

from beliefbound.base.tables import pl
from beliefbound.base.validation import FloatArray

FEWEST = 30  # common runs
ERROR = 0.05  # of all intervals together


class Interval(NamedTuple):
    """A mean, and an interval around it."""

    mean: float
    low: float
    high: float


def simultaneous(samples: FloatArray, together: int) -> Interval:
    """The mean of independent samples, one of `together` whose intervals hold at once with 95%.

    >>> one, many = simultaneous(np.arange(100.0), 1), simultaneous(np.arange(100.0), 45)
    >>> one.mean, round(float(one.high - one.low), 2), round(float(many.high - many.low), 2)
    (49.5, 11.51, 19.49)
    """
    from scipy.special import stdtrit

    mean, n = float(samples.mean()), len(samples)
    if n < 2:
        return Interval(mean, -np.inf, np.inf)
    reach = float(stdtrit(n - 1, 1.0 - ERROR / (2 * together))) * samples.std(ddof=1) / np.sqrt(n)
    return Interval(mean, mean - reach, mean + reach)


def paired_difference(frame: pl.DataFrame, first: str, second: str, score: str) -> FloatArray:
    """`[n]`: first less second on the runs that both played."""
    pairs = frame.filter(agent=first).join(frame.filter(agent=second), on=["seed", "run"], suffix="_other")
    return (pairs[score] - pairs[f"{score}_other"]).to_numpy()


def lead(difference: FloatArray) -> float:
    """A paired difference in standard errors; 0 where all are 0, infinite where all are the same other number.

    >>> lead(np.ones(3)), lead(np.zeros(3)), float(lead(np.array([1.0, 3.0])))
    (inf, 0.0, 2.0)
    """
    mean, n = float(difference.mean()), len(difference)
    error = float(difference.std(ddof=1)) / np.sqrt(n) if n > 1 else np.inf
    if error > 0.0:
        return mean / error
    return 0.0 if mean == 0.0 else float(np.copysign(np.inf, mean))
