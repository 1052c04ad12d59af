"""One-sided confidence intervals for the mean of independent samples.

* `bernstein`: empirical Bernstein (Maurer & Pontil 2009, Theorem 4), for samples in a known range of width `R`: with
  probability `1 − δ` the mean is within `sqrt(2 v ln(2/δ)/n) + 7 R ln(2/δ)/(3(n−1))` of the average on the side
  asked for, `v` the sample variance. Proven for every `n ≥ 2`.
* `hoeffding`: `R sqrt(ln(1/δ)/(2n))`. Proven; better only for few samples of high variance.
* `t`: Student's interval. Exact for Normal samples, otherwise only in the limit of many; labelled as such.
"""

import math
from typing import Literal, get_args

import scipy.stats as stats

from beliefbound.errors import ParameterError
from beliefbound.validation import FloatArray, check_probability, shown

Interval = Literal["bernstein", "hoeffding", "t"]


def margin(samples: FloatArray, *, confidence: float, width: float | None = None, interval: Interval) -> float:
    """How far the true mean may be from the average of `samples`, on one side, with probability `confidence`.

    `width` is the known range of a sample; only `t` does without.

    >>> import numpy as np
    >>> x = np.tile([0.0, 1.0], 500)
    >>> round(margin(x, confidence=0.95, width=1.0, interval="hoeffding"), 4)
    0.0387
    """
    if not isinstance(interval, str) or interval not in get_args(Interval):
        raise ParameterError(f"interval is {shown(interval)}; choose 'bernstein', 'hoeffding' or 't'")
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
