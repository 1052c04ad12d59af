"""A bound by the mean of independent samples: its conservative end, and what an interval of its kind proves."""

from collections.abc import Sequence

import numpy as np

from beliefbound.base.validation import BoolArray, FloatArray
from beliefbound.bounds.bound import BAYES, Bound, Kind, Side
from beliefbound.bounds.statistics.intervals import Interval, asymptotic, describe, mean_bound
from beliefbound.policy import Policy


def interval_for(range_: tuple[float, float] | None, asked: Interval | None = None) -> Interval:
    """The interval that was asked for; else `betting`, which is proven, where samples have a range."""
    return asked or ("t" if range_ is None else "betting")


def bound_of_mean(
    samples: FloatArray,
    side: Side,
    kind: Kind,
    what: str,
    *,
    alpha: float,
    range_: tuple[float, float] | None,
    interval: Interval,
    policy: Policy | None = None,
    of: str = BAYES,
) -> Bound:
    """The bound by a mean over `samples[i]` in `range_`, which fails with probability `alpha`; its method is `what`.

    >>> bound_of_mean(np.tile([0.0, 1.0], 500), "upper", Kind.E_MAX, "E max", alpha=0.1, range_=None, interval="t")
    Bound(upper 0.520287, 90% confidence, 1000 samples, E max, Student t (asymptotic) interval)
    """
    return Bound(
        mean_bound(samples, side, confidence=1.0 - alpha, range_=range_, interval=interval),
        side,
        f"{what}, {describe(interval)} interval",
        exact=False,
        confidence=1.0 - alpha,
        estimate=float(samples.mean()),
        n_samples=len(samples),
        policy=policy,
        of=of,
        kind=kind,
        asymptotic=asymptotic(interval),
    )


def qmdp_of_samples(
    q: FloatArray,
    start: FloatArray,
    available: BoolArray,
    what: str,
    *,
    alpha: float,
    range_: tuple[float, float] | None,
    interval: Interval,
) -> Bound:
    """QMDP, `max_a E Q*(s,a)`, by samples `q[i,k,a]` at start states `k` of weights `start[k]`: an interval for every
    start state and action at once, by splitting the error among them."""
    each = 1.0 - alpha / (q.shape[1] * q.shape[2])
    high: Sequence[float] = [
        max(
            mean_bound(q[:, k, a], "upper", confidence=each, range_=range_, interval=interval)
            for a in np.flatnonzero(offered)
        )
        for k, offered in enumerate(available)
    ]
    return Bound(
        float(start @ high),
        "upper",
        f"{what}, {describe(interval)} interval",
        exact=False,
        confidence=1.0 - alpha,
        estimate=float(start @ q.mean(axis=0).max(axis=-1)),
        n_samples=len(q),
        kind=Kind.QMDP,
        asymptotic=asymptotic(interval),
    )
