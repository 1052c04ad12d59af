"""The L1 distance between two beliefs, `∫ |ξ(μ) − ζ(μ)| dμ`, between 0 and 2: what Theorem 1 asks for.

Finite beliefs over the same models: exact, `Σ_m |w_m − v_m|`. Product-Dirichlet beliefs (with the same kind of
reward belief): models are drawn half from each and `2 |ξ − ζ| / (ξ + ζ)`, which lies between 0 and 2, is averaged;
unbiased, with an interval.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.special as special

from beliefbound.beliefs import Belief, BetaRewards, DirichletBelief, FiniteBelief, KnownRewards
from beliefbound.bounds.basic import require
from beliefbound.bounds.statistics.intervals import margin
from beliefbound.errors import BeliefError
from beliefbound.validation import FloatArray, check_count


class Distance(NamedTuple):
    """An L1 distance: `estimate`, and an interval `low`–`high` that holds with probability `confidence` (1: exact)."""

    estimate: float
    low: float
    high: float
    confidence: float


def belief_distance(
    first: Belief,
    second: Belief,
    *,
    confidence: float = 0.95,
    n_models: int = 10_000,
    rng: np.random.Generator | None = None,
) -> Distance:
    """The L1 distance between two beliefs over the same models, or between two Dirichlet beliefs.

    >>> belief = FiniteBelief([[[[1.0]]], [[[1.0]]]], [[[1.0]], [[2.0]]], reward_signal="deterministic")
    >>> belief_distance(belief, belief.update(0, 0, 1.0, 0)).estimate
    1.0
    """
    if isinstance(first, FiniteBelief) and isinstance(second, FiniteBelief):
        if first.models is not second.models:
            raise BeliefError("the beliefs are over different sets of models; reweight() or update() one of them")
        exact = float(np.abs(first.weights - second.weights).sum())
        return Distance(exact, exact, exact, 1.0)
    if not (isinstance(first, DirichletBelief) and isinstance(second, DirichletBelief)):
        raise BeliefError("the distance between a finite and a Dirichlet belief is 2: they share no densities")
    half = check_count(n_models, "n_models", least=4) // 2
    rng = require(rng)
    samples = []
    for origin in (first, second):
        sample = origin.sample(half, rng)
        log_ratio = _log_density_ratio(first, second, sample)
        samples.append(2.0 * np.abs(np.tanh(log_ratio / 2.0)))
    # Half of the draws come from each belief: the mean of the two halves' means, so intervals at half the error each.
    each = 1.0 - (1.0 - confidence) / 4.0
    gap = sum(margin(x, confidence=each, width=2.0, interval="bernstein") for x in samples) / 2.0
    mean = float(np.mean([x.mean() for x in samples]))
    return Distance(mean, max(0.0, mean - gap), min(2.0, mean + gap), confidence)


def _log_density_ratio(first: DirichletBelief, second: DirichletBelief, sample: FiniteBelief) -> FloatArray:
    """`log ξ(μ) − log ζ(μ)` for each sampled model, `[m]`."""
    a, b = first.concentration, second.concentration
    if not np.array_equal(a > 0, b > 0):
        raise BeliefError("the beliefs allow different transitions; their supports must agree")
    norm = (special.gammaln(a.sum(-1)) - special.gammaln(b.sum(-1))).sum()
    norm += (special.gammaln(b[a > 0]) - special.gammaln(a[a > 0])).sum()
    total: FloatArray = norm + _weighted_logs(a - b, sample.transitions)
    if type(first.rewards) is not type(second.rewards):
        raise BeliefError("the beliefs have different kinds of reward beliefs; they cannot be compared")
    if isinstance(first.rewards, BetaRewards) and isinstance(second.rewards, BetaRewards):
        x, y = first.rewards, second.rewards
        if x.range != y.range:
            raise BeliefError(f"the reward ranges {x.range} and {y.range} differ; they must agree")
        fractions = (sample.rewards - x.low) / (x.high - x.low)
        total += (special.betaln(y.alpha, y.beta) - special.betaln(x.alpha, x.beta)).sum()
        total += _weighted_logs(x.alpha - y.alpha, fractions)
        total += _weighted_logs(x.beta - y.beta, 1.0 - fractions)
    elif not isinstance(first.rewards, KnownRewards):
        raise BeliefError("the distance is implemented for known and Beta reward beliefs")
    return total


def _weighted_logs(exponents: FloatArray, values: FloatArray) -> Any:
    """`Σ exponents · log(values)` over all axes but the first; a zero exponent ignores its value, even 0."""
    used = exponents != 0.0
    with np.errstate(divide="ignore"):
        logs = np.log(values[:, used])
    return np.clip(logs, -1e300, None) @ exponents[used]
