"""Particles at any posterior of a product-Dirichlet belief, models in lanes.

Rows of parameters are independent under the belief, and what is counted at one says nothing of another. So the `n`
particles at a posterior are put together from draws for each pair (state, action): a function of an address, a
*generation* and what has been counted of the pair's row and of its rewards, kept in `Rows`. Equal counts give equal
particles by whatever way they were reached; particles of different generations are independent; after one more
observation only what depends on it is new. All particles weigh the same: none is ever used up.

Pairs, outcomes and columns are those of `kernels.posterior`. Where pairs share a row, its draws have a stream of their
own, addressed by the row and the counts of all its pairs, so that all of them get the same probabilities. Arrays over
models have them last, so that loops over models are SIMD.

Where rare outcomes were cut off (`bounds.dirichlet.rare`) the rows of models sum to `keep`, and `credit` is part of the
reward.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from beliefbound.kernels.draws import beta_lanes, draw_rows
from beliefbound.kernels.options import FAST
from beliefbound.kernels.posterior import Posterior, arrival_of, row_of
from beliefbound.kernels.random import seed_stream

NEVER = -1e300  # the reward of an action that is not available


class Problem(NamedTuple):
    """A belief as counts, and the problem it is for."""

    posterior: Posterior
    available: np.ndarray  # bool [pair]
    n_states: int
    discount: float
    horizon: int  # decisions; −1 for ever
    address: np.ndarray  # uint64 [any]: where the particles come from
    keep: np.ndarray  # [pair]: the chance of outcomes that were not cut; 1 where none were
    credit: np.ndarray  # [pair]: what the others are worth, their chance included; 0 where none were cut
    unit: float  # of rewards: they are so many times larger than the arrays say


class Rows(NamedTuple):
    """Draws for pairs, by generation, pair and counts."""

    size: np.ndarray  # int64 [1]: slots in use
    key: np.ndarray  # uint64 [slot,2]
    table: np.ndarray  # int32 [2^j]: open addressing by key
    draws: np.ndarray  # [slot,t + 1 + K,m]: chances of the next states, expected reward, chances of K > 1 values


def n_columns(problem: Problem) -> int:
    """What a step of a pair may show: reward value and outcome."""
    return int(problem.posterior.reward.shape[0] * problem.posterior.alpha.shape[1])


def width_of(problem: Problem) -> int:
    """Numbers that are drawn for a pair and a model."""
    n_values = problem.posterior.reward.shape[0]
    return int(problem.n_states + 1 + (n_values if n_values > 1 else 0))


def new_rows(problem: Problem, slots: int, n: int) -> Rows:
    """For draws of `n` models in `slots` slots."""
    bits = max(4, int(np.ceil(np.log2(2 * slots))))
    return Rows(
        size=np.zeros(1, dtype=np.int64),
        key=np.empty((slots, 2), dtype=np.uint64),
        table=np.full(1 << bits, -1, dtype=np.int32),
        draws=np.empty((slots, width_of(problem), n)),
    )


@njit(**FAST)
def clear(rows):
    """Forget all rows."""
    rows.size[0] = 0
    rows.table[:] = -1


@njit(**FAST)
def tally(posterior, counts, pair, outcomes, rewards):
    """What `counts[pair,column]` say of a pair: `outcomes[j]` of its row, counted wherever that is shared, and its own
    `rewards[k]`."""
    outcomes[:] = 0
    rewards[:] = 0
    for c in range(counts.shape[1]):
        rewards[c // outcomes.size] += counts[pair, c]
        if not posterior.tied:
            outcomes[c % outcomes.size] += counts[pair, c]
    if posterior.tied:
        for other in range(counts.shape[0]):
            if posterior.row[other] == posterior.row[pair]:
                for c in range(counts.shape[1]):
                    outcomes[c % outcomes.size] += counts[other, c]


@njit(**FAST)
def tallied(posterior, counts, pair):
    """`tally` in arrays of its own."""
    n_outcomes = posterior.alpha.shape[1]
    both = np.empty(n_outcomes + posterior.reward.shape[0], np.int64)
    tally(posterior, counts, pair, both[:n_outcomes], both[n_outcomes:])
    return both[:n_outcomes], both[n_outcomes:]


@njit(**FAST)
def next_state(posterior, pair, column):
    """Where a column of a pair leads; −1 where it cannot happen."""
    j = column % posterior.alpha.shape[1]
    if posterior.alpha[row_of(posterior, pair), j] <= 0.0:
        return -1
    return arrival_of(posterior, pair, j)


@njit(**FAST)
def address_of(problem, generation, what, *parts):
    """A stream of its own for `what` after the counts in `parts`."""
    size = problem.address.size + 2
    for part in parts:
        size += part.size
    words = np.empty(size, dtype=np.uint64)
    words[: problem.address.size] = problem.address
    words[problem.address.size] = np.uint64(generation)
    words[problem.address.size + 1] = np.uint64(what)
    i = problem.address.size + 2
    for part in parts:
        for x in part:
            words[i] = np.uint64(x)
            i += 1
    return seed_stream(words)


@njit(**FAST)
def slot_of(problem, rows, generation, pair, counts):
    """The draws of a pair after `counts[pair,column]`: their slot, −1 when there is no space."""
    posterior = problem.posterior
    if posterior.tied:
        outcomes, rewards = tallied(posterior, counts, pair)
        told = rewards if rewards.size > 1 else rewards[:0]  # known rewards tell nothing
        stream = address_of(problem, generation, pair, outcomes, told)
    else:
        stream = address_of(problem, generation, pair, counts[pair])
    mask = np.uint64(rows.table.size - 1)
    place = stream[0] & mask
    while rows.table[place] >= 0:
        slot = rows.table[place]
        if rows.key[slot, 0] == stream[0] and rows.key[slot, 1] == stream[1]:
            return np.int64(slot)
        place = (place + np.uint64(1)) & mask
    slot = rows.size[0]
    if slot == rows.draws.shape[0]:
        return np.int64(-1)
    rows.size[0] = slot + 1
    rows.table[place] = slot
    rows.key[slot, 0], rows.key[slot, 1] = stream[0], stream[1]
    out = rows.draws[slot]
    outcomes, rewards = tallied(posterior, counts, pair)
    theta = np.empty((outcomes.size, out.shape[1]))
    if posterior.tied:
        row = posterior.row[pair]
        own = address_of(problem, generation, posterior.row.size + row, outcomes)
        draw_outcomes(posterior, row, outcomes, own, theta)
    else:
        draw_outcomes(posterior, pair, outcomes, stream, theta)
    draw_pair(problem, pair, rewards, theta, stream, out)
    return slot


@njit(**FAST)
def draw_outcomes(posterior, row, outcomes, stream, theta):
    """Chances `theta[j,m]` from the posterior of a row after `outcomes[j]`."""
    alpha = posterior.alpha[row : row + 1].copy()
    for j in range(outcomes.size):
        alpha[0, j] += outcomes[j]
    draw_rows(stream, alpha, theta.reshape(theta.size), theta.size, theta.shape[1], 1)


@njit(**FAST)
def draw_pair(problem, pair, rewards, theta, stream, out):
    """`out[t + 1 + K,m]` of a pair whose outcomes have the chances `theta[j,m]`: next states, the expected reward, and
    where there is more than one reward value their chances, drawn after `rewards[k]`."""
    posterior, n_states = problem.posterior, problem.n_states
    n_outcomes, n = theta.shape
    out[:n_states] = 0.0
    keep = problem.keep[pair]
    for j in range(n_outcomes):
        t = arrival_of(posterior, pair, j)
        if t >= 0:
            for m in range(n):
                out[t, m] = keep * theta[j, m]
    n_values, expected = rewards.size, out[n_states]
    chances = out[n_states + 1 :]
    if n_values == 2:
        won, lost = posterior.reward[0, pair] + rewards[0], posterior.reward[1, pair] + rewards[1]
        first = chances[:1].reshape((1, 1, n))
        beta_lanes(stream, np.full((1, 1), won), np.full((1, 1), lost), 0.0, 1.0, first)
        for m in range(n):
            chances[1, m] = 1.0 - chances[0, m]
    elif n_values > 2:
        alpha = np.empty((1, n_values))
        for k in range(n_values):
            alpha[0, k] = posterior.reward[k, pair] + rewards[k]
        draw_rows(stream, alpha, chances.reshape(chances.size), chances.size, n, 1)
    if not problem.available[pair]:
        expected[:] = NEVER
        return
    expected[:] = problem.credit[pair]
    for k in range(n_values):
        for j in range(posterior.paid.shape[2]):
            paid = posterior.paid[k, pair, j]
            if n_values == 1 and posterior.paid.shape[2] == 1:
                expected[:] = paid + problem.credit[pair]
            elif n_values == 1:
                for m in range(n):
                    expected[m] += keep * paid * theta[j, m]
            elif posterior.paid.shape[2] == 1:
                for m in range(n):
                    expected[m] += paid * chances[k, m]
            else:
                for m in range(n):
                    expected[m] += keep * paid * chances[k, m] * theta[j, m]


@njit(**FAST)
def particles_at(problem, rows, generation, counts, slots):
    """Slots `slots[pair]` of the particles after `counts[pair,column]`; false when there is no space."""
    for pair in range(slots.size):
        slots[pair] = slot_of(problem, rows, generation, pair, counts)
        if slots[pair] < 0:
            return False
    return True


@njit(**FAST)
def draw_models(problem, counts, stream, out):
    """Fresh models `out[pair,t + 1 + K,m]` after `counts[pair,column]`, all from one stream."""
    posterior = problem.posterior
    n_rows, n_outcomes = posterior.alpha.shape
    theta = np.empty((n_rows if posterior.tied else 1, n_outcomes, out.shape[2]))
    drawn = np.zeros(theta.shape[0], np.bool_)
    for pair in range(out.shape[0]):
        outcomes, rewards = tallied(posterior, counts, pair)
        row = row_of(posterior, pair)
        i = row if posterior.tied else 0
        if not (posterior.tied and drawn[i]):
            draw_outcomes(posterior, row, outcomes, stream, theta[i])
            drawn[i] = True
        draw_pair(problem, pair, rewards, theta[i], stream, out[pair])


@njit(**FAST)
def chances(problem, draws, slots, weights, pair, column, out):
    """`out[m] = weights[m] · Pr_m(column | pair)` of a column that can happen; returns the sum."""
    posterior = problem.posterior
    n_outcomes = posterior.alpha.shape[1]
    row = draws[slots[pair]]
    p = row[arrival_of(posterior, pair, column % n_outcomes)]
    total = 0.0
    if posterior.reward.shape[0] == 1:
        for m in range(out.size):
            out[m] = weights[m] * p[m]
            total += out[m]
        return total
    shown = row[problem.n_states + 1 + column // n_outcomes]
    for m in range(out.size):
        out[m] = weights[m] * p[m] * shown[m]
        total += out[m]
    return total


@njit(**FAST)
def dot(x, y):
    """`Σ_m x[m] y[m]`."""
    total = 0.0
    for m in range(x.size):
        total += x[m] * y[m]
    return total


@njit(**FAST)
def predictive(problem, counts, pair, p):
    """Chances `p[column]` of what a pair shows next, after `counts[pair,column]`, if it is no outcome that was cut;
    returns the expected reward, with the credit for those."""
    posterior = problem.posterior
    n_values, n_outcomes = posterior.reward.shape[0], posterior.alpha.shape[1]
    outcomes, rewards = tallied(posterior, counts, pair)
    row, total = row_of(posterior, pair), 0.0
    for k in range(n_values):
        for j in range(n_outcomes):
            x = posterior.alpha[row, j] + outcomes[j]
            if n_values > 1:
                x *= posterior.reward[k, pair] + rewards[k]
            p[k * n_outcomes + j] = x
            total += x
    p /= total
    if n_values == 1 and posterior.paid.shape[2] == 1:
        return posterior.paid[0, pair, 0] + problem.credit[pair]
    reward = 0.0
    for c in range(p.size):
        reward += p[c] * posterior.paid[c // n_outcomes, pair, c % n_outcomes if posterior.paid.shape[2] > 1 else 0]
    if posterior.paid.shape[2] > 1:
        reward *= problem.keep[pair]
    return reward + problem.credit[pair]


@njit(**FAST)
def expected_rows(problem, counts, mean):
    """The posterior mean of all rows as one model, `mean[pair,t + 1,0]`."""
    p = np.empty(counts.shape[1])
    mean[:] = 0.0
    for pair in range(counts.shape[0]):
        reward = predictive(problem, counts, pair, p)
        for c in range(p.size):
            t = next_state(problem.posterior, pair, c)
            if t >= 0:
                mean[pair, t, 0] += problem.keep[pair] * p[c]
        mean[pair, problem.n_states, 0] = reward if problem.available[pair] else NEVER
