"""Priors about the transitions of a log.

Of one observation's weight, unless they say otherwise:

* `uniform`: `1/|S|` on every next state.
* `jeffreys`: `1/2` on every next state, the weight of `|S|/2` observations.
* `sparse`: equal parts on the next states that were seen after the same state, under any action; elsewhere it is
  believed *impossible*, which data not yet seen may refute. After states never acted in, every state is possible.
* `empirical`: equal parts on every next state, of a weight `w` fitted to the log.
* `local`: the share `1 − ε` in equal parts on the next states seen after the same state, `ε` in equal parts on every
  state, of a weight fitted to the log. `ε` is the share of distinct transitions whose next state was seen after their
  state by no other action: so often does an action lead to somewhere new (after Good 1953).
* a number: that concentration on every next state.

*Fitted*: with `m(t)` the shares that the *other* actions of a state suggest, pairs are foretold with `Σ_{s,a} log
Γ(w)/Γ(w + n_{sa}) + Σ_{s,a,t} log Γ(w m + n_{sat})/Γ(w m)`, each from all others. The weight `w` is Exponential(1)
beforehand, and its posterior mean under this likelihood is taken (empirical Bayes: the rest of what is unknown about it
is left out). So a log in which nothing ever varied gives a small weight, the smaller the more was repeated, and never
none.

So every prior has a leave-one-pair-out likelihood (`foretold`): one that does so a thousand times worse than
another is taken to be refuted.

`suggest`: `uniform`, unless that likelihood of `empirical` or `local` is more than a thousand times higher.
"""

import math
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from beliefbound.base.errors import BeliefError
from beliefbound.base.validation import BoolArray, FloatArray, IntArray, check_positive, shown
from beliefbound.logs.log import Log

Prior = Literal["suggest", "uniform", "jeffreys", "sparse", "empirical", "local"]
PRIORS: tuple[Prior, ...] = get_args(Prior)[1:]
_LOG_WEIGHTS = np.linspace(math.log(1e-8), math.log(1e5), 1000)
CLEAR = 1000.0  # how many times higher the likelihood of another prior must be


class Shares(NamedTuple):
    """Where a prior puts its weight."""

    cell: FloatArray  # [i]: of each distinct transition, `m(t)` as other actions suggest it
    table: Any  # [s,1,t], or one number


def concentration_of(log: Log, prior: Prior | float, ends: BoolArray) -> tuple[FloatArray, str, list[str]]:
    """Concentrations `[s,a,t]` of a prior, what it is in words, and what should be known about it."""
    S = log.n_states
    shape, notes = (S, log.n_actions, S), []
    if not isinstance(prior, str):
        value = check_positive(prior, "prior")
        return np.full(shape, value), f"concentration {value:g} on every next state", []
    if prior not in PRIORS:
        choices = f"suggest, {', '.join(PRIORS)}"
        raise BeliefError(f"prior is {shown(prior)}; choose one of {choices}, or a concentration above 0")
    if prior == "uniform":
        return np.full(shape, 1.0 / S), f"uniform: concentration 1/{S} on every next state", []
    if prior == "jeffreys":
        return np.full(shape, 0.5), "Jeffreys: concentration 1/2 on every next state", []
    if prior in ("empirical", "local"):
        shares = _shares(log, prior)
        weight = fitted_weight(log, ends, shares)
        where = {"empirical": "every next state", "local": "the next states seen after each state, and some on all"}
        words = f"{prior}: fitted to the log, weight {weight:.3g} in all on {where[prior]}"
        return np.array(np.broadcast_to(weight * shares.table, shape)), words, []
    possible = log.transition_counts().sum(axis=1, keepdims=True) > 0
    possible = np.where(possible.any(axis=-1, keepdims=True), possible, True)
    alpha = np.broadcast_to(possible / possible.sum(axis=-1, keepdims=True), shape)
    notes.append(
        "transitions to states that were never seen to follow a state are believed impossible (prior sparse): where "
        "data are few this is overconfident; compare the other priors"
    )
    return np.array(alpha), "sparse: equal parts, of weight 1, on the next states seen after each state", notes


def suggest_prior(log: Log, ends: BoolArray) -> tuple[Prior, str]:
    """A prior, and why where it is not `uniform`.

    >>> from beliefbound.logs import log_of
    >>> rng = np.random.default_rng(1)
    >>> walk, a = np.cumsum(rng.choice([1, 19], 600)) % 20, rng.integers(0, 2, 599)
    >>> suggest_prior(log_of(walk[:-1], a, 1.0 * walk[1:], walk[1:]), np.zeros(20, bool))[0]
    'local'
    """
    suggested: tuple[Prior, ...] = ("uniform", "empirical", "local")
    scores = {name: foretold(log, name, ends) for name in suggested}
    best = max(scores, key=lambda name: scores[name])
    gain = scores[best] - scores["uniform"]
    if gain <= math.log(CLEAR):
        return "uniform", ""
    return best, (
        f"prior '{best}' is taken: its leave-one-pair-out likelihood is "
        f"10^{gain / math.log(10.0):.0f} times that of the uniform prior; other priors are in the table of priors"
    )


def foretold(log: Log, prior: Prior | float, ends: BoolArray) -> float:
    """The log probability that a prior gives to the rows of every pair, each from all others.

    >>> from beliefbound.logs import log_of
    >>> log = log_of([0, 0], [0, 1], [0.0, 0.0], [1, 1], n_states=2)
    >>> [round(math.exp(foretold(log, prior, np.zeros(2, bool))), 3) for prior in ("uniform", "sparse")]
    [0.25, 1.0]
    """
    shares = _shares(log, prior if prior in ("local", "sparse") else "empirical")
    weight = {"uniform": 1.0, "jeffreys": 0.5 * log.n_states, "sparse": 1.0}.get(str(prior))
    if weight is None:
        weight = fitted_weight(log, ends, shares) if isinstance(prior, str) else prior * log.n_states
    return float(_foretold(log, ends, shares, np.array([weight]))[0])


def fitted_weight(log: Log, ends: BoolArray, shares: Shares) -> float:
    """The posterior mean of a prior's weight."""
    import scipy.special as special

    w = np.exp(_LOG_WEIGHTS)
    terms = _foretold(log, ends, shares, w) + _LOG_WEIGHTS - w  # Exponential(1), on a grid of logarithms
    return float(np.exp(terms - special.logsumexp(terms)) @ w)


def _foretold(log: Log, ends: BoolArray, shares: Shares, w: FloatArray) -> FloatArray:
    """The log probability of every pair's rows, given all others, for weights `w`."""
    import scipy.special as special

    cells = _cells(log, ends)
    pairs = np.bincount(cells.pair, weights=cells.times)
    totals, often = np.unique(pairs[pairs > 0], return_counts=True)
    kinds, times = np.unique(np.stack([shares.cell[cells.kept], cells.times]), axis=1, return_counts=True)
    total: FloatArray = often @ (special.gammaln(w) - special.gammaln(w + totals[:, None]))
    for (m, n), count in zip(kinds.T, times, strict=True):
        total += count * (special.gammaln(w * m + n) - special.gammaln(w * m))
    return total


class _Cells(NamedTuple):
    """Distinct transitions `[i]`, rewards aside, from states that are not terminal."""

    kept: IntArray  # which of all distinct transitions
    pair: IntArray
    times: FloatArray


def _distinct(log: Log) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
    """States, actions, next states and counts of distinct transitions."""
    c = log.cells
    keys, place = np.unique((c.state * log.n_actions + c.action) * log.n_states + c.next_state, return_inverse=True)
    pair, t = np.divmod(keys, log.n_states)
    return pair // log.n_actions, pair, t, np.bincount(place, weights=c.times).astype(np.float64)


def _cells(log: Log, ends: BoolArray) -> _Cells:
    s, pair, _, times = _distinct(log)
    kept = np.flatnonzero(~ends[s])
    return _Cells(kept, pair[kept], times[kept])


def _shares(log: Log, prior: str) -> Shares:
    s, pair, t, times = _distinct(log)
    S = log.n_states
    if prior == "empirical":
        return Shares(np.full(len(s), 1.0 / S), 1.0 / S)
    after = np.zeros((S, S))
    np.add.at(after, (s, t), times)
    alone = after[s, t] == times  # no other action led there
    new = 0.0 if prior == "sparse" else (alone.sum() + 1.0) / (len(s) + 1.0)
    known = (after > 0.0).sum(axis=1)
    local = np.where(after > 0.0, (1.0 - new) / np.maximum(known, 1)[:, None], 0.0) + new / S
    table = np.where(known[:, None] > 0, local, 1.0 / S)
    others = known[s] - np.bincount(pair, weights=alone)[pair]  # next states that other actions led to
    share = np.where(alone, 0.0, (1.0 - new) / np.maximum(others, 1.0)) + new / S
    return Shares(np.where(others > 0.0, share, 1.0 / S), table[:, None, :])
