"""What a log says about rewards, and which reward belief suits it.

* `known`: every time a transition `(s,a,t)` was seen it paid the same. Then rewards are taken as known: per pair where
  at least `_REPEATS` rows show that they do not depend on the next state; else per next state alone where as many rows
  show that the pair does not matter; else per transition. What was never seen is not known: a pair never tried is
  learnt from the values of the log (`MixedRewards`); per next state alone, a state never reached is taken to pay the
  least reward of the log; an unseen transition of a pair that was tried is taken to pay the pair's average, or that of
  the log where it is less: a reward seen once, on the way out, must not be earned for ever by staying.
* `values`: the finitely many values of the log, with unknown chances per pair.
* `beta`: a mean between the least and the largest reward of the log; rewards between count as shares of both.
* `normal`: Normal with unknown mean and variance per pair.

`suggest` takes `known` where every row pays the same, or at least `_REPEATS` rows repeat an earlier transition and none
contradicts it (after `n` repeats without contradiction, the share of contradictions is below `3/n` with 95%
confidence), else `values` where there are at most `_MOST_LEARNT` of them, else `normal`.

Before data a pair's rewards have the weight of one observation, spread as the rewards of the whole log are.
"""

from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from beliefbound.base.errors import BeliefError
from beliefbound.base.validation import BoolArray, FloatArray, IntArray, as_floats, shown
from beliefbound.beliefs.rewards import (
    BetaRewards,
    DirichletRewards,
    KnownRewards,
    MixedRewards,
    NormalRewards,
    RewardBelief,
)
from beliefbound.logs.log import Cells, Log

RewardChoice = Literal["suggest", "known", "values", "beta", "normal"]
_REPEATS, _MOST_LEARNT, _THINNED = 20, 32, 16


class Believed(NamedTuple):
    """A belief about rewards after a log."""

    belief: RewardBelief
    family: str
    words: str
    notes: list[str]


def reward_posterior(log: Log, choice: RewardChoice | RewardBelief, known: Any, ends: BoolArray) -> Believed:
    """The belief about rewards after the rewards of a log."""
    if not isinstance(choice, str):
        if not all(hasattr(choice, name) for name in ("expand", "update", "sample", "columns")):
            raise BeliefError(f"rewards is {shown(choice)}; choose one of {', '.join(get_args(RewardChoice))}")
        return _own(log, choice)
    if choice not in get_args(RewardChoice):
        raise BeliefError(f"rewards is {shown(choice)}; choose one of {', '.join(get_args(RewardChoice))}")
    if known is not None:
        return _given(log, known, ends)
    reason = "as asked"
    if choice == "suggest":
        choice, reason = suggest(log)
    return {"known": _known, "values": _values, "beta": _beta, "normal": _normal}[choice](log, ends, reason)


def suggest(log: Log) -> tuple[RewardChoice, str]:
    """The family that suits a log, and why.

    >>> from beliefbound.logs import log_of
    >>> suggest(log_of([0] * 40, [0] * 40, [1.0, 2.0] * 20, [0] * 40))
    ('values', 'one transition paid different rewards, of 2 values')
    """
    triple = _index(log, log.cells)
    least, most, seen = _ends(triple, log.cells)
    repeats = log.n_rows - len(seen)
    low, high = log.reward_range
    if low == high:
        return "known", f"every row pays {low:g}"
    if (least == most).all() and repeats >= _REPEATS:
        return "known", f"{repeats:,} rows repeat an earlier transition and none pays otherwise"
    if log.values is not None and len(log.values) <= _MOST_LEARNT:
        many = "one transition paid different rewards" if (least != most).any() else "few rows repeat a transition"
        return "values", f"{many}, of {len(log.values)} values"
    return "normal", "rewards take many values"


def _index(log: Log, cells: Cells) -> IntArray:
    return (cells.state * log.n_actions + cells.action) * log.n_states + cells.next_state


def _ends(keys: IntArray, cells: Cells) -> tuple[FloatArray, FloatArray, IntArray]:
    """Least and largest reward of each distinct key, and the keys."""
    distinct, place = np.unique(keys, return_inverse=True)
    least, most = np.full(len(distinct), np.inf), np.full(len(distinct), -np.inf)
    np.minimum.at(least, place, cells.least)
    np.maximum.at(most, place, cells.most)
    return least, most, distinct


def _evidence(group: IntArray, other: IntArray, times: IntArray) -> int:
    """Rows that are not of the commonest `other` of their `group`: what says that a reward of the group does not depend
    on the other."""
    both, at = np.unique(np.stack([group, other]), axis=1, return_inverse=True)
    rows = np.bincount(at.ravel(), weights=times)
    groups, where = np.unique(both[0], return_inverse=True)
    commonest = np.zeros(len(groups))
    np.maximum.at(commonest, where, rows)
    return int(rows.sum() - commonest.sum())


def _known(log: Log, ends: BoolArray, reason: str) -> Believed:
    cells = log.cells
    least, most, triples = _ends(_index(log, cells), cells)
    if (least != most).any():
        i = int(np.argmax(least != most))
        s, a, t = np.unravel_index(int(triples[i]), (log.n_states, log.n_actions, log.n_states))
        raise BeliefError(
            f"{log.source}, column 'reward': state {log.state_name(int(s))[:40]}, action "
            f"{log.action_name(int(a))[:40]}, next state {log.state_name(int(t))[:40]} paid {least[i]:g} and "
            f"{most[i]:g}, so rewards are not known; choose rewards='values' or 'normal'"
        )
    S, A = log.n_states, log.n_actions
    pair = cells.state * A + cells.action
    low, high, pairs = _ends(pair, cells)
    notes: list[str] = []
    if log.reward_range[0] == log.reward_range[1]:
        notes.append(
            f"every row of the log pays {log.reward_range[0]:g}: nothing in it tells a good policy from a bad one"
        )
    if (low == high).all() and _evidence(pair, cells.next_state, cells.times) >= _REPEATS:
        paid = np.full(S * A, np.nan)
        paid[pairs] = low
        words = f"known, one amount per pair: {reason}"
        return _completed(log, np.repeat(paid.reshape(S, A)[..., None], S, axis=2), ends, words, notes)
    low, high, arrivals = _ends(cells.next_state, cells)
    if (low == high).all() and _evidence(cells.next_state, pair, cells.times) >= _REPEATS:
        by_state = np.full(S, log.reward_range[0])
        by_state[arrivals] = low
        missing = S - len(arrivals)
        if missing:
            notes.append(
                f"{missing} states were never reached: reaching one is taken to pay the least reward of the log, "
                f"{log.reward_range[0]:g}"
            )
        words = f"known, one amount per state reached: {reason}"
        return Believed(KnownRewards(np.broadcast_to(by_state, (S, A, S)).copy()), "known", words, notes)
    amounts = np.full(S * A * S, np.nan)
    amounts[triples] = least
    table = amounts.reshape(S, A, S)
    overall = float((cells.reward * cells.times).sum() / log.n_rows)
    guess = np.minimum(_averages(log), overall)
    tried = log.visits > 0
    table = np.where(np.isnan(table) & tried[..., None], guess[..., None], table)
    notes.append(
        "a transition never seen, of a pair that was tried, is taken to pay the pair's average, or the log's where "
        "that is less"
    )
    return _completed(log, table, ends, f"known, one amount per transition: {reason}", notes)


def _completed(log: Log, table: FloatArray, ends: BoolArray, words: str, notes: list[str]) -> Believed:
    """Known rewards `[s,a,t]`; pairs that were never tried are learnt."""
    table = np.where(ends[:, None, None], 0.0, table)
    missing = np.isnan(table).any(axis=-1)
    if not missing.any():
        flat = (table == table[..., :1]).all()
        return Believed(KnownRewards(table[..., 0].copy() if flat else table), "known", words, notes)
    values, chances = _frequencies(log)
    count = int(missing.sum())
    words += f"; {count} pairs never tried are to be learnt"
    return Believed(MixedRewards(table, DirichletRewards(values, chances)), "mixed", words, notes)


def _averages(log: Log) -> FloatArray:
    """Average reward of each pair `[s,a]`; that of the log where nothing was tried."""
    cells, shape = log.cells, (log.n_states, log.n_actions)
    total, count = np.zeros(shape), np.zeros(shape)
    np.add.at(total, (cells.state, cells.action), cells.reward * cells.times)
    np.add.at(count, (cells.state, cells.action), cells.times)
    overall = float(total.sum() / count.sum())
    average: FloatArray = np.divide(total, count, out=np.full(shape, overall), where=count > 0)
    return average


def _frequencies(log: Log) -> tuple[FloatArray, FloatArray]:
    """At most `_THINNED` values, two at least, and the share of rows that each stands for."""
    order = np.argsort(log.cells.reward, kind="stable")
    value, weight = log.cells.reward[order], log.cells.times[order] / log.n_rows
    distinct, place = np.unique(value, return_inverse=True)
    share = np.bincount(place, weights=weight)
    if len(distinct) == 1:
        return np.array([distinct[0], distinct[0] + (abs(distinct[0]) or 1.0)]), np.array([1.0 - 1e-9, 1e-9])
    if len(distinct) > _THINNED:
        chosen = np.unique(np.linspace(0, len(distinct) - 1, _THINNED).round().astype(np.int64))
        nearest = np.abs(distinct[:, None] - distinct[chosen]).argmin(axis=1)
        distinct, share = distinct[chosen], np.bincount(nearest, weights=share, minlength=len(chosen))
    return distinct, np.maximum(share, 1e-9)


def _shares(log: Log, values: FloatArray) -> FloatArray:
    """The share of rows that each value has."""
    weights = log.cells.times / log.n_rows
    return np.asarray(np.bincount(np.searchsorted(values, log.cells.reward), weights=weights), dtype=np.float64)


def _values(log: Log, ends: BoolArray, reason: str) -> Believed:
    if log.values is None or len(log.values) < 2:
        many = "only one value" if log.values is not None else "too many values to count"
        raise BeliefError(f"{log.source}, column 'reward': rewards have {many}; choose rewards='known' or 'normal'")
    cells = log.cells
    prior = DirichletRewards(log.values, _shares(log, log.values)).expand(log.n_states, log.n_actions)
    after = prior.update(cells.state, cells.action, cells.reward, times=cells.times)
    return Believed(after, "values", f"{len(log.values)} values with unknown chances per pair: {reason}", [])


def _beta(log: Log, ends: BoolArray, reason: str) -> Believed:
    low, high = log.reward_range
    if low == high:
        raise BeliefError(f"{log.source}, column 'reward': every reward is {low:g}; choose rewards='known'")
    cells = log.cells
    mean = float((cells.reward * cells.times).sum() / log.n_rows)
    x = float(np.clip((mean - low) / (high - low), 1e-3, 1.0 - 1e-3))
    prior = BetaRewards(x, 1.0 - x, low=low, high=high).expand(log.n_states, log.n_actions)
    after = prior.update(cells.state, cells.action, np.clip(cells.reward, low, high), times=cells.times)
    note = f"no reward is believed to be outside those of the log, {low:g} to {high:g}"
    return Believed(after, "beta", f"a mean between {low:g} and {high:g} per pair: {reason}", [note])


def _normal(log: Log, ends: BoolArray, reason: str) -> Believed:
    cells = log.cells
    mean = float((cells.reward * cells.times).sum() / log.n_rows)
    spread = max(float(cells.squares.sum() / log.n_rows - mean**2), 1e-12 * mean**2 or 1e-12)
    prior = NormalRewards(mean, strength=1.0, shape=2.0, rate=spread).expand(log.n_states, log.n_actions)
    within = np.maximum(0.0, cells.squares - cells.times * cells.reward**2)
    after = prior.update(cells.state, cells.action, cells.reward, times=cells.times, scatter=within)
    return Believed(after, "normal", f"Normal, mean and variance unknown per pair: {reason}", [])


def _given(log: Log, known: Any, ends: BoolArray) -> Believed:
    """Rewards that somebody knows; the others are learnt from the log."""
    table = as_floats(known, "known", BeliefError)
    S, A = log.n_states, log.n_actions
    if table.shape not in ((S, A), (S, A, S)):
        raise BeliefError(f"known has shape {table.shape}; expected {(S, A)} or {(S, A, S)}")
    full = np.where(ends[:, None, None], 0.0, table if table.ndim == 3 else table[..., None])
    full = np.array(np.broadcast_to(full, (S, A, S)))
    missing: BoolArray = np.asarray(np.isnan(full).any(axis=-1))
    if not missing.any():
        return _completed(log, full, ends, "known, as given", [])
    if log.values is None or len(log.values) > _MOST_LEARNT or len(log.values) < 2:
        raise BeliefError(
            f"known leaves {int(missing.sum())} pairs to be learnt, for which the log must have 2 to {_MOST_LEARNT} "
            f"distinct rewards; give the others too, or no known rewards"
        )
    full[missing] = np.nan
    prior = MixedRewards(full, DirichletRewards(log.values, _shares(log, log.values))).expand(S, A)
    cells = log.cells
    open_ = missing[cells.state, cells.action]
    after = prior.update(cells.state[open_], cells.action[open_], cells.reward[open_], times=cells.times[open_])
    return Believed(after, "mixed", f"known as given; learnt for {int(missing.sum())} pairs", [])


def _own(log: Log, prior: RewardBelief) -> Believed:
    prior = prior.expand(log.n_states, log.n_actions)
    if not prior.learns:
        return Believed(prior, "known", "known, as given", [])
    if log.values is None:
        raise BeliefError("the log has too many different rewards to update a reward belief with; choose 'normal'")
    cells = log.cells
    after = prior.update(cells.state, cells.action, cells.reward, times=cells.times)
    return Believed(after, type(prior).__name__, f"{type(prior).__name__}, updated by the log", [])
