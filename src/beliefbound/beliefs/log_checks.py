"""Does the log look like data of the posterior? Checks of a belief against the log it was learnt from.

* *Spread* (posterior predictive). Data of the same size, drawn from the posterior, hit `E Σ 1{n_sat > 0}` distinct
  transitions; for one of `n` steps of a pair, with `α` of `α_0` on a next state, the chance not to be hit is
  `B(α, α_0 − α + n)/B(α, α_0 − α)`. Hits of one row are negatively associated, so the sum of their variances bounds the
  variance of the count. Far fewer hits in the log than expected: the prior spreads transitions more than data do.
* *Constancy*. If chances do not change over time, the rows of a pair that led to `t` stand anywhere among its rows: the
  mean position of theirs is Normal around that of the pair's, with the variance of sampling without replacement. The
  largest deviation is judged by Bonferroni.
* *Arrival*. Where rewards are learnt per pair they are taken to be independent of the next state; the mean reward of
  the rows that led to `t` should be that of the pair's.

A small p-value is a reason to doubt, not a proof; with thousands of rows harmless deviations are found too.
"""

from typing import NamedTuple

import numpy as np

from beliefbound.base.validation import FloatArray, IntArray
from beliefbound.beliefs.from_log import Learnt
from beliefbound.logs.log import Log

_SMALL = 1e-3
_FEW = 5  # rows below which the Normal law of a mean is not used


class Check(NamedTuple):
    """One check: what was looked at, what was found, a p-value, and whether it is suspicious."""

    name: str
    found: str
    p: float

    @property
    def suspicious(self) -> bool:
        """Below one in a thousand."""
        return self.p < _SMALL


def check_learnt(log: Log, learnt: Learnt) -> list[Check]:
    """Every check that the log has the data for.

    >>> from beliefbound.beliefs.from_log import learn
    >>> from beliefbound.logs import log_of
    >>> rng = np.random.default_rng(0)
    >>> s, t = rng.integers(0, 3, 500), rng.integers(0, 3, 500)
    >>> log = log_of(s, np.zeros(500, int), 1.0 * s, t)
    >>> [check.suspicious for check in check_learnt(log, learn(log))]
    [False, False]
    """
    checks = [] if learnt.concentration is None else [_spread(log, learnt)]
    pair = log.cells.state * log.n_actions + log.cells.action
    triple = pair * log.n_states + log.cells.next_state
    place = _largest(triple, pair, log.cells.times, log.cells.place, log.cells.place_squares)
    if place is not None:
        checks.append(Check("chances are the same early and late", *_told(place, log)))
    if learnt.family in ("values", "beta", "normal"):
        squares = log.cells.squares / log.cells.times
        paid = _largest(triple, pair, log.cells.times, log.cells.reward, squares)
        if paid is not None:
            checks.append(Check("rewards do not depend on the next state", *_told(paid, log)))
    return checks


def _spread(log: Log, learnt: Learnt) -> Check:
    import scipy.special as special
    import scipy.stats as stats  # takes half a second, which most programs need not spend

    alpha = np.array(learnt.belief.concentration)
    total, n = alpha.sum(axis=-1, keepdims=True), log.visits[..., None]
    rest = total - alpha
    used = (alpha > 0.0) & (n > 0) & (rest > 0.0)
    a, b, k = alpha[used], rest[used], np.broadcast_to(n, alpha.shape)[used]
    missed = np.exp(special.betaln(a, b + k) - special.betaln(a, b))
    certain = int(((alpha > 0.0) & (n > 0) & (rest <= 0.0)).sum())
    expected, deviation = float((1.0 - missed).sum()) + certain, float(np.sqrt((missed * (1.0 - missed)).sum()))
    seen = int((log.transition_counts() > 0).sum())
    z = (seen - expected) / deviation if deviation > 0.0 else 0.0
    p = float(2.0 * stats.norm.sf(abs(z)))
    found = f"{seen} distinct transitions in the log, {expected:.1f} ± {deviation:.1f} expected of such data"
    if p < _SMALL and seen < expected:
        found += "; a prior that spreads less, sparse or empirical, fits better"
    return Check("transitions are as spread as the posterior says", found, p)


def _largest(
    triple: IntArray, pair: IntArray, times: IntArray, mean: FloatArray, squares: FloatArray
) -> tuple[float, int, int] | None:
    """`(z, triple, how many were looked at)` of the triple whose mean is farthest from its pair's."""
    t_keys, t_at = np.unique(triple, return_inverse=True)
    p_keys, p_at = np.unique(pair, return_inverse=True)
    pair_of = np.zeros(len(t_keys), dtype=np.int64)
    pair_of[t_at] = p_at
    n_t, n_p = np.bincount(t_at, weights=times), np.bincount(p_at, weights=times)
    m_t = np.bincount(t_at, weights=times * mean) / n_t
    m_p = np.bincount(p_at, weights=times * mean) / n_p
    centred = squares - 2.0 * mean * m_p[p_at] + m_p[p_at] ** 2
    variance = np.bincount(p_at, weights=times * centred) / np.maximum(n_p - 1.0, 1.0)
    rest = (n_p[pair_of] - n_t) / np.maximum(n_p[pair_of], 1.0)
    spread = np.sqrt(np.maximum(0.0, variance[pair_of] * rest / n_t))
    able = (n_t >= _FEW) & (n_p[pair_of] - n_t >= _FEW) & (spread > 1e-12 * np.abs(m_p).max())
    if not able.any():
        return None
    z = np.where(able, np.abs(m_t - m_p[pair_of]) / np.where(able, spread, 1.0), 0.0)
    i = int(z.argmax())
    return float(z[i]), int(t_keys[i]), int(able.sum())


def _told(found: tuple[float, int, int], log: Log) -> tuple[str, float]:
    import scipy.stats as stats  # takes half a second, which most programs need not spend

    z, key, count = found
    s, a, t = np.unravel_index(key, (log.n_states, log.n_actions, log.n_states))
    p = float(min(1.0, 2.0 * count * stats.norm.sf(z)))
    names = log.state_name(int(s))[:40], log.action_name(int(a))[:40], log.state_name(int(t))[:40]
    return f"farthest of {count}: state {names[0]}, action {names[1]}, next state {names[2]}, {z:.1f} deviations", p
