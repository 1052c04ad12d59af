"""A lower bound for the mean of samples that are at least 0 and may be huge, such as importance-weighted returns.

Whatever `c` is, `min(X, c)` has a mean not above that of `X`, and a range (Thomas, Theocharous & Ghavamzadeh 2015a). A
small `c` loses mean, a large one widens the interval; the best is found on other samples, the pilot, by Bernstein's
formula, and the interval is that of betting (`bounds.statistics.betting`).
"""

import math

import numpy as np

from beliefbound.base.validation import FloatArray
from beliefbound.bounds.statistics.betting import mean_at_least

_SHARES = (0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 1.0)  # of the pilot's samples that stay as they are


def foreseen(pilot: FloatArray, n: int, alpha: float) -> tuple[float, float]:
    """`(bound, c)`: about what the bound on `n` samples like the pilot's will be, and the best `c` for it.

    >>> bound, c = foreseen(np.array([0.0] * 50 + [1.0] * 49 + [1000.0]), 100, 0.05)
    >>> round(bound, 2), c
    (0.37, 1.0)
    """
    best, term = (0.0, 1.0), math.log(1.0 / alpha) / n
    for c in {float(x) for x in np.quantile(pilot, _SHARES, method="higher") if x > 0.0}:
        x = np.minimum(pilot, c)
        best = max(best, (float(x.mean()) - math.sqrt(2.0 * float(x.var()) * term) - c * term / 3.0, c))
    return best


def nonnegative_mean_at_least(samples: FloatArray, *, pilot: FloatArray, alpha: float) -> float:
    """A number that the mean of independent samples, each at least 0, exceeds with probability `1 − alpha`, at all `n`
    at once; `pilot`: samples of the same kind that are independent of these.

    >>> x = np.tile([0.0, 2.0], 500)
    >>> round(nonnegative_mean_at_least(x, pilot=x, alpha=0.05), 1)
    0.9
    """
    if len(samples) == 0:
        return 0.0
    _, c = foreseen(pilot, len(samples), alpha)
    return mean_at_least(np.minimum(samples, c), low=0.0, high=c, alpha=alpha, pilot=np.minimum(pilot, c))
