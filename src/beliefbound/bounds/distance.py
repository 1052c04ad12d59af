"""The L1 distance between two beliefs, `∫ |ξ(μ) − ζ(μ)| dμ`, between 0 and 2: what Theorem 1 asks for.

Finite beliefs over the same models: exact, `Σ_m |w_m − v_m|`. Beliefs with counts (products of Dirichlet rows, of the
same shape): parameters are drawn half from each and `2 |ξ − ζ| / (ξ + ζ)`, which lies between 0 and 2, is averaged;
unbiased, with an interval. Where rewards are known and differ no model has density under both, and the distance is 2.
"""

from typing import NamedTuple

import numpy as np

from beliefbound.base.errors import BeliefError
from beliefbound.base.validation import FloatArray, Rng, as_rng, check_count, check_probability
from beliefbound.beliefs import Belief, FiniteBelief
from beliefbound.beliefs.capabilities import Capability, check_is_belief, counted, enumerated, lacking
from beliefbound.bounds.statistics.intervals import margin
from beliefbound.kernels.draws import dirichlet_models
from beliefbound.kernels.posterior import Posterior
from beliefbound.kernels.random import stream_from


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
    rng: Rng = None,
) -> Distance:
    """The L1 distance between two beliefs over the same models, or between two Dirichlet beliefs.

    The latter is estimated on `n_models` draws; `rng` is a generator, a seed, or `None` for fresh randomness.

    >>> belief = FiniteBelief([[[[1.0]]], [[[1.0]]]], [[[1.0]], [[2.0]]], reward_signal="deterministic")
    >>> belief_distance(belief, belief.update(0, 0, 1.0, 0)).estimate
    1.0
    """
    check_probability(confidence, "confidence")
    for name, belief in (("first", first), ("second", second)):
        check_is_belief(belief, name)
    listed, also = enumerated(first), enumerated(second)
    if listed is not None and also is not None:
        return _finite(listed, also)
    if listed is not None or also is not None:
        raise BeliefError("the distance between a finite belief and one that is not is 2: they share no densities")
    one, other = counted(first), counted(second)
    if one is None or other is None:
        raise lacking(first if one is None else second, Capability.COUNT, "the distance of beliefs that are not finite")
    if not np.array_equal(first.available, second.available):
        raise BeliefError("the beliefs offer different actions; they cannot be compared")
    if not _comparable(one, other):
        return Distance(2.0, 2.0, 2.0, 1.0)
    half = check_count(n_models, "n_models", least=4) // 2
    stream = stream_from(as_rng(rng))
    blocks = [(one.alpha, other.alpha)]
    if len(one.reward) > 1:
        blocks.append((np.ascontiguousarray(one.reward.T), np.ascontiguousarray(other.reward.T)))
    samples = []
    for origin in range(2):
        ratio = sum((_log_ratio(block, block[origin], half, stream) for block in blocks), start=np.zeros(half))
        samples.append(2.0 * np.abs(np.tanh(ratio / 2.0)))
    # Half of the draws come from each belief: the mean of the two halves' means, so intervals at half the error each.
    each = 1.0 - (1.0 - confidence) / 4.0
    gap = sum(margin(x, confidence=each, width=2.0, interval="bernstein") for x in samples) / 2.0
    mean = float(np.mean([x.mean() for x in samples]))
    return Distance(mean, max(0.0, mean - gap), min(2.0, mean + gap), confidence)


def _finite(first: FiniteBelief, second: FiniteBelief) -> Distance:
    if first.models is not second.models:
        raise BeliefError("the beliefs are over different sets of models; reweight() or update() one of them")
    exact = float(np.abs(first.weights - second.weights).sum())
    return Distance(exact, exact, exact, 1.0)


def _comparable(one: Posterior, other: Posterior) -> bool:
    """Whether both are densities of the same parameters; not, where known rewards differ."""
    same = all(np.array_equal(getattr(one, x), getattr(other, x)) for x in ("row", "arrive", "n_actions"))
    if not (same and one.alpha.shape == other.alpha.shape):
        raise BeliefError("the beliefs have different sizes or shared rows; they cannot be compared")
    if not np.array_equal(one.alpha > 0, other.alpha > 0):
        raise BeliefError("the beliefs allow different transitions; their supports must agree")
    if one.reward.shape != other.reward.shape:
        raise BeliefError("the beliefs have different kinds of reward beliefs; they cannot be compared")
    each, others = (x.paid.reshape(*x.reward.shape, -1) for x in (one, other))  # [k,pair,j], or [k,pair,1]
    paid = bool((each == others).all())
    if not paid and len(one.reward) > 1:
        raise BeliefError("the beliefs have different reward values; they must agree")
    return paid


def _log_ratio(block: tuple[FloatArray, FloatArray], origin: FloatArray, n: int, stream: FloatArray) -> FloatArray:
    """`log ξ − log ζ` of `n` draws from `origin`, one of the two: independent Dirichlet rows `[row,j]` each."""
    import scipy.special as special

    a, b = block
    drawn = np.empty((n, 1, *origin.shape))
    dirichlet_models(stream, origin[None], drawn)
    norm = (special.gammaln(a.sum(-1)) - special.gammaln(b.sum(-1))).sum()
    norm += (special.gammaln(b[a > 0]) - special.gammaln(a[a > 0])).sum()
    used = a != b  # a zero exponent ignores its value, even 0
    with np.errstate(divide="ignore"):
        logs = np.log(drawn[:, 0][:, used])
    ratio: FloatArray = norm + np.clip(logs, -1e300, None) @ (a - b)[used]
    return ratio
