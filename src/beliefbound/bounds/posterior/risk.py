"""What can be said of the distribution of a policy's value under the posterior, from values on independent models.

* *Mean*: betting intervals on the range of values, proven for every number of models; Student's, which is asymptotic,
  where there is no range, of fewer than a hundred models, and where somebody asks for it. A ruin that no sample has
  shows in the one and not in the other, so a wide proven interval is never replaced silently: `is_wide` tells.
* *Quantile* `q_p`: between order statistics. Of `n` values the number below `q_p` is Binomial(n, p), so the `k`-th
  smallest is at most `q_p` with probability `1 − P(Bin(n, p) < k)`: proven, whatever the distribution.
* *CVaR* of level `p`, the mean of the worst share `p`: `q_p − E(q_p − X)₊/p`, with the normal interval of that mean at
  the empirical quantile (asymptotic).
* *L1*: the mean under the worst prior within an L1 distance of equal weights on the models drawn: half of the distance
  goes from the best models to the worst one. It is about these models alone: of all that the posterior allows the worst
  is the worst that is possible at all.
* *Worst*: the least of `n` values `x₁`. With probability `1 − δ` at most a share `1 − δ^{1/n}` of the posterior is
  worth less. The worst model of a posterior that allows every model has no better bound than the range of values.
* *What the truth pays*, if the prior is right: it is exchangeable with the `n` values drawn, hence
  below the `k`-th smallest of them with a probability of at most `k/(n + 1)`, whatever the distribution. Proven, and
  the probability is that of everything: of the truth given the log, and of the models drawn.
* *Probability of being worse than another policy*: Clopper and Pearson's interval, proven.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from beliefbound.base.errors import ParameterError
from beliefbound.base.validation import FloatArray, shown
from beliefbound.bounds.statistics.betting import mean_at_least, mean_at_most
from beliefbound.bounds.statistics.intervals import describe, margin

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
_PILOT = 10
_ENOUGH = 100  # samples below which a proven interval would be nearly the whole range
_FORMS = "mean, safe:0.05, cvar:0.1, percentile:0.1, l1:0.2 or worst"
_LARGEST = {"safe": 1.0, "cvar": 1.0, "percentile": 1.0, "l1": 2.0}  # levels stay below


class Objective(NamedTuple):
    """What is to be large: the mean, the mean of policies that are hardly ever worse than behaviour, the mean of the
    worst share, a percentile, the mean under the worst prior nearby, or the worst model."""

    kind: str
    level: float

    @classmethod
    def parse(cls, text: str) -> "Objective":
        """From `mean`, `worst`, `safe:LEVEL`, `cvar:LEVEL`, `percentile:LEVEL` or `l1:DISTANCE`.

        >>> Objective.parse("cvar:0.1")
        Objective(kind='cvar', level=0.1)
        """
        if not isinstance(text, str):
            raise ParameterError(f"the objective is {shown(text)}; give {_FORMS}")
        kind, colon, level = text.partition(":")
        if kind in ("mean", "worst") and not colon:
            return cls(kind, 1.0 if kind == "mean" else 0.0)
        try:
            number = float(level)
        except ValueError:
            number = math.nan
        if kind not in _LARGEST or not 0.0 < number < _LARGEST[kind]:
            raise ParameterError(
                f"the objective is {shown(text)}; give {_FORMS}, with a level between 0 and 1, or a distance below 2"
            )
        return cls(kind, number)

    def __str__(self) -> str:
        return self.kind if self.kind in ("mean", "worst") else f"{self.kind}:{self.level:g}"

    @property
    def words(self) -> str:
        """What it is of a policy's values on models."""
        share = f"{100 * self.level:g}%"
        return {
            "mean": "the mean value",
            "safe": "the mean gain over behaviour",
            "worst": "the value on the worst model drawn",
            "cvar": f"the mean value on the worst {share} of models",
            "l1": f"the mean value if weights of the models drawn may be off by {self.level:g} in L1",
            "percentile": f"the value that {share} of models stay below",
        }[self.kind]

    @property
    def is_mean(self) -> bool:
        """Whether it is about the mean of a policy's values."""
        return self.kind in ("mean", "safe")

    def of(self, values: FloatArray) -> FloatArray:
        """The objective of values `[…,m]`."""
        if self.is_mean:
            return np.asarray(values.mean(axis=-1))
        if self.kind == "worst":
            return np.asarray(values.min(axis=-1))
        if self.kind == "percentile":
            return np.asarray(np.quantile(values, self.level, axis=-1, method="lower"))
        if self.kind == "l1":  # half of the distance is taken from the best models and given to the worst one
            moved = 0.5 * self.level
            return np.asarray((1.0 - moved) * cvar(values, 1.0 - moved) + moved * values.min(axis=-1))
        return cvar(values, self.level)


class Estimate(NamedTuple):
    """A number, an interval for it, and how the interval was made."""

    value: float
    low: float
    high: float
    method: str
    asymptotic: bool = False  # whether the interval is right only in the limit of many values


def cvar(values: FloatArray, level: float) -> FloatArray:
    """Mean of the worst share of values `[…,m]`.

    >>> cvar(np.arange(10.0), 0.25).tolist()
    0.8
    """
    ranked = np.sort(values, axis=-1)
    n = ranked.shape[-1]
    weights = np.clip(level * n - np.arange(n), 0.0, 1.0)
    return np.asarray(ranked @ weights / weights.sum())


def mean_interval(x: FloatArray, alpha: float, range_: tuple[float, float] | None) -> Estimate:
    """Both ends for the mean, each with error `alpha / 2`."""
    if range_ is None or len(x) < _ENOUGH:
        reach = margin(x, confidence=1.0 - alpha / 2.0, interval="t") if len(x) > 1 else math.inf
        mean = float(x.mean())
        return Estimate(mean, mean - reach, mean + reach, describe("t"), asymptotic=True)
    rounding = 1e-9 * max(map(abs, range_)) or 1e-9
    low, high = range_[0] - rounding, range_[1] + rounding
    few = len(x) // _PILOT  # the first samples tell the spread, the others, independent of them, make the bound
    ends: dict[str, Any] = {"low": low, "high": high, "alpha": alpha / 2.0, "pilot": x[:few]}
    return Estimate(float(x.mean()), mean_at_least(x[few:], **ends), mean_at_most(x[few:], **ends), "betting interval")


def is_wide(x: FloatArray, range_: tuple[float, float]) -> bool:
    """Whether what a proven interval pays for the range, `range/n`, is beyond what it pays for the spread, `1/√n`."""
    return len(x) >= _ENOUGH and 0.0 < float(x.std()) < _PILOT * (range_[1] - range_[0]) / len(x)


def quantile_interval(x: FloatArray, level: float, alpha: float) -> Estimate:
    """Both ends for a quantile, each with error `alpha / 2`."""
    import scipy.stats as stats  # takes half a second, which most programs need not spend

    ranked, n = np.sort(x), len(x)
    law = stats.binom(n, level)
    k = int(law.ppf(alpha / 2.0))  # P(Bin < k) ≤ alpha / 2
    j = int(law.ppf(1.0 - alpha / 2.0)) + 1
    low = float(ranked[k - 1]) if k >= 1 else -math.inf
    high = float(ranked[j - 1]) if j <= n else math.inf
    return Estimate(float(np.quantile(ranked, level)), low, high, "order statistics")


def credible_lower(x: FloatArray, probability: float, floor: float = -math.inf) -> Estimate:
    """What one more value exceeds with a probability, in `low`; `floor`, where there are too few values to say more.

    >>> credible_lower(np.arange(99.0), 0.95).low
    4.0
    """
    k = math.floor((1.0 - probability) * (len(x) + 1) + 1e-9)
    low = float(np.partition(x, k - 1)[k - 1]) if k >= 1 else floor
    method = f"rank {k} of {len(x)} models" if k >= 1 else f"the least possible: {len(x)} models are too few"
    return Estimate(float(np.median(x)), low, math.inf, method)


def cvar_interval(x: FloatArray, level: float, alpha: float) -> Estimate:
    """Both ends for CVaR, each with error `alpha / 2`; asymptotic."""
    import scipy.stats as stats  # takes half a second, which most programs need not spend

    value = float(cvar(x, level))
    below = np.maximum(0.0, np.quantile(x, level) - x) / level
    reach = float(stats.norm.ppf(1.0 - alpha / 2.0) * below.std(ddof=1) / math.sqrt(len(x)))
    return Estimate(value, value - reach, value + reach, "normal interval (asymptotic)", asymptotic=True)


def worse_interval(differences: FloatArray, alpha: float) -> Estimate:
    """How likely a difference is below zero."""
    import scipy.stats as stats  # takes half a second, which most programs need not spend

    count, n = int((differences < 0.0).sum()), len(differences)
    ends = stats.binomtest(count, n).proportion_ci(confidence_level=1.0 - alpha, method="exact")
    return Estimate(count / n, float(ends.low), float(ends.high), "Clopper-Pearson interval")


def objective_interval(
    x: FloatArray, objective: Objective, alpha: float, range_: tuple[float, float] | None
) -> Estimate:
    """The objective of a policy under the posterior, with its interval; for `worst`, the share that it leaves out."""
    if objective.is_mean:
        return mean_interval(x, alpha, range_)
    if objective.kind == "percentile":
        return quantile_interval(x, objective.level, alpha)
    if objective.kind == "cvar":
        return cvar_interval(x, objective.level, alpha)
    if objective.kind == "l1":
        value = float(objective.of(x))
        return Estimate(value, value, value, f"of the {len(x)} models drawn, and of no others")
    share = 1.0 - alpha ** (1.0 / len(x))
    least = float(x.min())
    method = f"least of {len(x)} models; at most {100 * share:.2g}% of the posterior is worth less"
    return Estimate(least, least, math.inf, method)
