"""Outcome rows of a finite belief: everything that a step may show, and its probability in each model.

An outcome is the next state and what the belief's signal shows of the reward (`beliefs.signals`). Outcomes that no
model allows are left out. Only transitions that exist are read, so a sparse set of models stays sparse.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from beliefbound.base.errors import ParameterError
from beliefbound.base.limits import OUTCOME_BYTES
from beliefbound.base.validation import FloatArray, IntArray
from beliefbound.beliefs.finite import FiniteBelief
from beliefbound.bounds.steps import Meter, Stepwise, Tape, finish
from beliefbound.kernels.random import seed_stream
from beliefbound.planning.task import FiniteTask, made_once_for_models

_PAIR, _SPARSE_PAIR, _ENTRY = 30_000, 150_000, 40  # operations, in time, that a pair takes, and each of its entries
_COPY = 15.0  # operations, in time, of an entry that is put into place
_KEY = 2000  # operations, in time, that the key of a row takes
_MADE = "outcome rows"  # among the parts of a task


class Outcomes(NamedTuple):
    """Rows `k` of all pairs, one pair after the other."""

    like: FloatArray  # [m,k]
    arrive: IntArray  # [k]
    first: IntArray  # [s,a + 1]: pair (s,a) has the rows first[s,a] … first[s,a + 1] − 1
    reward: FloatArray  # [k]: what is seen of it; NaN where nothing is


def pair_outcomes(belief: FiniteBelief, state: int, action: int) -> tuple[FloatArray, IntArray, FloatArray]:
    """Probabilities `[m,k]`, next states `[k]` and rewards seen `[k]` of one pair."""
    arrivals, chances = belief.models.transitions.entries(state, action)
    like, arrive, reward = [], [], []
    for value, shown in belief.signal.shown(state, action, arrivals):
        joint = chances * shown
        kept = (joint > 0.0).any(axis=0)
        like.append(joint[:, kept])
        arrive.append(arrivals[kept])
        reward.append(np.full(int(kept.sum()), value))
    return np.concatenate(like, axis=1), np.concatenate(arrive), np.concatenate(reward)


def outcome_rows(belief: FiniteBelief) -> Outcomes:
    """All rows of a belief.

    >>> belief = FiniteBelief([[[[1.0]]]] * 2, [[[1.0]], [[2.0]]], reward_signal="deterministic")
    >>> outcome_rows(belief).like.tolist(), outcome_rows(belief).reward.tolist()
    ([[1.0, 0.0], [0.0, 1.0]], [1.0, 2.0])
    """
    return finish(_outcome_steps(belief, Meter()))


class Rows(NamedTuple):
    """The same as kernels take them (`kernels.graph.nodes.BeliefMDP`): `like` by state, then by model."""

    like: FloatArray  # [·]: of state s, [m,k] of its own rows
    arrive: IntArray  # [k]
    first: IntArray  # [s,a + 1]
    reward: FloatArray  # [k]: what is seen of it; NaN where nothing is
    keys: npt.NDArray[np.uint64]  # [k]: by which equal beliefs are found


def rows_of(task: FiniteTask) -> Rows:
    """The outcome rows of a task, made once for all weights."""
    return finish(row_steps(task, Meter()))


@made_once_for_models
def outcomes_of(task: FiniteTask) -> Outcomes:
    """The same, by model."""
    rows, n_models = rows_of(task), task.models.n_models
    blocks = [rows.like[n_models * own[0] : n_models * own[-1]].reshape(n_models, -1) for own in rows.first]
    return Outcomes(np.concatenate(blocks, axis=1), rows.arrive, rows.first, rows.reward)


def row_steps(task: FiniteTask, meter: Meter) -> Stepwise[Rows]:
    """The same, step by step; where they were made before, as many steps, which take no time."""
    if _MADE not in task.parts.of_models:
        tape = Tape(meter)
        rows = yield from _row_steps(task.belief, tape)
        task.parts.of_models[_MADE] = rows, tape
        return rows
    known: tuple[Rows, Tape] = task.parts.of_models[_MADE]
    yield from known[1].again(meter)
    return known[0]


def _row_steps(belief: FiniteBelief, meter: Meter) -> Stepwise[Rows]:
    like, arrive, first, reward = yield from _outcome_steps(belief, meter)
    flat, begin = np.empty(like.size), 0
    for rows in first:
        own = like[:, rows[0] : rows[-1]]
        flat[begin : begin + own.size] = own.ravel()
        begin += own.size
        meter.add(_COPY * own.size)
        if meter.full():
            yield
    del like
    words, keys, k = np.arange(len(arrive), dtype=np.uint64), np.empty(len(arrive), dtype=np.uint64), 0
    while k < len(words):
        end = min(len(words), k + max(1, math.ceil(meter.left / _KEY)))
        for i in range(k, end):
            keys[i] = seed_stream(words[i : i + 1])[0]
        meter.add(_KEY * (end - k))
        k = end
        if meter.full():
            yield
    return Rows(flat, arrive, first, reward, keys)


def _outcome_steps(belief: FiniteBelief, meter: Meter) -> Stepwise[Outcomes]:
    models = belief.models
    first = np.zeros((models.n_states, models.n_actions + 1), dtype=np.int64)
    parts, rows = [], 0
    each = (_SPARSE_PAIR if models.is_sparse else _PAIR) + _ENTRY * models.n_entries / models.available.size
    for s in range(models.n_states):
        first[s, 0] = rows
        for a in range(models.n_actions):
            if models.available[s, a]:
                parts.append(pair_outcomes(belief, s, a))
                rows += len(parts[-1][1])
                meter.add(each)
                if 8 * models.n_models * rows > OUTCOME_BYTES:
                    raise ParameterError(
                        f"{models.n_models} models need more than {OUTCOME_BYTES >> 30} GiB as outcome rows; "
                        f"use fewer models, or E max and QMDP (`upper_bound`)"
                    )
            first[s, a + 1] = rows
        if meter.full():
            yield
    like, arrive, reward = np.empty((models.n_models, rows)), np.empty(rows, dtype=np.int64), np.empty(rows)
    parts.reverse()
    k = 0
    while parts:  # each is let go as soon as it is copied: there is never more than one copy of everything
        chances, arrivals, shown = parts.pop()
        own = slice(k, k + len(arrivals))
        like[:, own], arrive[own], reward[own] = chances, arrivals, shown
        k = own.stop
        meter.add(_COPY * chances.size)
        if meter.full():
            yield
    return Outcomes(like, arrive, first, reward)
