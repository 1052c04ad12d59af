"""One-sided confidence intervals for the mean of independent samples.

* `betting`: `bounds.statistics.betting`, for samples in a known range. Proven for every number of samples, at all of
  them at once; the tightest here.
* `bernstein`: empirical Bernstein (Maurer & Pontil 2009, Theorem 4), for samples in a known range of width `R`: with
  probability `1 − δ` the mean is within `sqrt(2 v ln(2/δ)/n) + 7 R ln(2/δ)/(3(n−1))` of the average on the side
  asked for, `v` the sample variance. Proven for every `n ≥ 2` that is fixed beforehand.
* `hoeffding`: `R sqrt(ln(1/δ)/(2n))`. Proven; better only for few samples of high variance.
* `t`: Student's interval. Exact for Normal samples, otherwise only in the limit of many, and never for a number of
  samples that depends on them; labelled as asymptotic. What no sample has shown, it does not know of.
"""

import math
from typing import Literal, get_args

from beliefbound.base.errors import ParameterError
from beliefbound.base.validation import FloatArray, check_probability, shown
from beliefbound.bounds.statistics.betting import mean_at_least, mean_at_most

Interval = Literal["betting", "bernstein", "hoeffding", "t"]
_NAMES = {"betting": "betting", "bernstein": "empirical Bernstein", "hoeffding": "Hoeffding"}
STUDENT = "Student t (asymptotic)"


def margin(samples: FloatArray, *, confidence: float, width: float | None = None, interval: Interval) -> float:
    """How far the true mean may be from the average of `samples`, on one side, with probability `confidence`.

    `width` is the known range of a sample; only `t` does without. Not for `betting`, which needs the range itself.

    >>> import numpy as np
    >>> x = np.tile([0.0, 1.0], 500)
    >>> round(margin(x, confidence=0.95, width=1.0, interval="hoeffding"), 4)
    0.0387
    """
    import scipy.stats as stats  # takes half a second, which most programs need not spend

    check_interval(interval)
    if interval == "betting":
        raise ParameterError("a betting interval has no margin on both sides alike; use mean_bound")
    delta = 1.0 - check_probability(confidence, "confidence")
    n = len(samples)
    if n < 2:
        raise ParameterError(f"an interval needs at least 2 samples, got {n}")
    if interval == "t":
        return float(stats.t(n - 1).ppf(1.0 - delta) * samples.std(ddof=1) / math.sqrt(n))
    if width is None or not math.isfinite(width):
        raise ParameterError(f"the {interval} interval needs samples of known range; pass interval='t'")
    if interval == "hoeffding":
        return width * math.sqrt(math.log(1.0 / delta) / (2 * n))
    log_term = math.log(2.0 / delta)
    variance = float(samples.var(ddof=1))
    return math.sqrt(2.0 * variance * log_term / n) + 7.0 * width * log_term / (3.0 * (n - 1))


def mean_bound(
    samples: FloatArray,
    side: Literal["lower", "upper"],
    *,
    confidence: float,
    range_: tuple[float, float] | None,
    interval: Interval,
) -> float:
    """A number that the mean of independent samples in `range_` is not below (`lower`), or above, with probability
    `confidence`; never outside the range.

    >>> import numpy as np
    >>> x = np.tile([0.0, 1.0], 500)
    >>> round(mean_bound(x, "upper", confidence=0.95, range_=(0.0, 1.0), interval="betting"), 2)
    0.55
    """
    check_interval(interval)
    if interval == "betting":
        if range_ is None:
            raise ParameterError("the betting interval needs samples of known range; pass interval='t'")
        alpha = 1.0 - check_probability(confidence, "confidence")
        bound = mean_at_least if side == "lower" else mean_at_most
        return bound(samples, low=range_[0], high=range_[1], alpha=alpha)
    width = None if range_ is None else range_[1] - range_[0]
    reach = margin(samples, confidence=confidence, width=width, interval=interval)
    found = float(samples.mean()) + (reach if side == "upper" else -reach)
    if range_ is None:
        return found
    return max(range_[0], found) if side == "lower" else min(range_[1], found)


def check_interval(interval: Interval) -> None:
    """A kind of interval that there is."""
    if not isinstance(interval, str) or interval not in get_args(Interval):
        raise ParameterError(f"interval is {shown(interval)}; choose one of {', '.join(get_args(Interval))}")


def asymptotic(interval: Interval) -> bool:
    """Whether an interval is right only in the limit of many samples."""
    return interval == "t"


def describe(interval: Interval) -> str:
    """How an interval is named in a bound's method.

    >>> describe("t")
    'Student t (asymptotic)'
    """
    check_interval(interval)
    return STUDENT if interval == "t" else _NAMES[interval]
