"""Particles at any posterior of a product-Dirichlet belief, models in lanes.

Rows of parameters are independent under the belief, and what is counted at one says nothing of another. So the `n`
particles at a posterior are put together from draws for each pair (state, action): a function of an address and what
has been counted of the pair's row and of its rewards, kept in `Rows`. Equal counts give equal particles by whatever way
they were reached; after one more observation only what depends on it is new, and independent of what was there. All
particles weigh the same: none is ever used up.

Pairs, outcomes and columns are those of `kernels.posterior`. Where pairs share a row, its draws have a stream of their
own, addressed by the row and the counts of all its pairs, so that all of them get the same probabilities. Arrays over
models have them last, so that loops over models are SIMD.

Where rare outcomes were cut off (`bounds.dirichlet.rare`) the rows of models sum to `keep`, and `credit` is part of the
reward.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from beliefbound.kernels.draws import draw_betas, draw_lanes
from beliefbound.kernels.options import FAST
from beliefbound.kernels.out_of_line import out_of_line
from beliefbound.kernels.posterior import Posterior, accessor, arrival_of, on_arrival, paid_for, row_of
from beliefbound.kernels.random import add_word, begin_address, end_address
from beliefbound.kernels.reference import by_reference
from beliefbound.kernels.sums import sum_of

NEVER = -1e300  # the reward of an action that is not available


@by_reference
class BAMDP(NamedTuple):
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


@by_reference
class Scratch(NamedTuple):
    """Arrays to work in, for one pair and so many models."""

    outcomes: np.ndarray  # int64 [j]: counted of its row
    rewards: np.ndarray  # int64 [k]: counted of its rewards
    streams: np.ndarray  # uint64 [2,4]: of the pair, and of a row that it shares
    alpha: np.ndarray  # [1,j]: a posterior of the row
    ratio: np.ndarray  # [1,k]: a posterior of the rewards
    theta: np.ndarray  # [j,m]
    each: np.ndarray  # [m]
    p: np.ndarray  # [column]


@by_reference
class Rows(NamedTuple):
    """Draws for pairs, by pair and counts."""

    size: np.ndarray  # int64 [1]: slots in use
    key: np.ndarray  # uint64 [slot,2]
    table: np.ndarray  # int32 [2^j]: open addressing by key
    draws: np.ndarray  # [slot,t + 1 + K,m]: chances of the next states, expected reward, chances of K > 1 values
    scratch: Scratch


def n_columns(problem: BAMDP) -> int:
    """What a step of a pair may show: reward value and outcome."""
    return int(problem.posterior.reward.shape[0] * problem.posterior.alpha.shape[1])


def width_of(problem: BAMDP) -> int:
    """Numbers that are drawn for a pair and a model."""
    n_values = problem.posterior.reward.shape[0]
    return int(problem.n_states + 1 + (n_values if n_values > 1 else 0))


def new_scratch(problem: BAMDP, n: int) -> Scratch:
    """For `n` models."""
    n_values, n_outcomes = problem.posterior.reward.shape[0], problem.posterior.alpha.shape[1]
    return Scratch(
        outcomes=np.empty(n_outcomes, dtype=np.int64),
        rewards=np.empty(n_values, dtype=np.int64),
        streams=np.empty((2, 4), dtype=np.uint64),
        alpha=np.empty((1, n_outcomes)),
        ratio=np.empty((1, n_values)),
        theta=np.empty((n_outcomes, n)),
        each=np.empty(n),
        p=np.empty(n_values * n_outcomes),
    )


def new_rows(problem: BAMDP, slots: int, n: int) -> Rows:
    """For draws of `n` models in `slots` slots."""
    bits = max(4, int(np.ceil(np.log2(2 * slots))))
    return Rows(
        size=np.zeros(1, dtype=np.int64),
        key=np.empty((slots, 2), dtype=np.uint64),
        table=np.full(1 << bits, -1, dtype=np.int32),
        draws=np.empty((slots, width_of(problem), n)),
        scratch=new_scratch(problem, n),
    )


@njit(**FAST)
def clear(rows):
    """Forget all rows."""
    rows.size[0] = 0
    rows.table.fill(-1)


@out_of_line
@njit(**FAST)
def tally(posterior, counts, pair, outcomes, rewards):
    """What `counts[pair,column]` say of a pair: `outcomes[j]` of its row, counted wherever it is shared, and its own
    `rewards[k]`."""
    row = posterior.row
    outcomes.fill(0)
    rewards.fill(0)
    for c in range(counts.shape[1]):
        rewards[c // outcomes.size] += counts[pair, c]
        if not posterior.tied:
            outcomes[c % outcomes.size] += counts[pair, c]
    for other in range(row.size):
        if row[other] == row[pair]:
            for c in range(counts.shape[1]):
                outcomes[c % outcomes.size] += counts[other, c]


@accessor
def next_state(posterior, pair, column):
    """Where a column of a pair leads; −1 where it cannot happen."""
    j = column % posterior.alpha.shape[1]
    return arrival_of(posterior, pair, j) if posterior.alpha[row_of(posterior, pair), j] > 0.0 else -1


@out_of_line
@njit(**FAST)
def address_of(address, what, outcomes, rewards, stream):
    """A `stream` of its own for `what` after these counts."""
    begin_address(stream)
    for x in address:
        add_word(stream, x)
    add_word(stream, np.uint64(0))  # particles stay those of policies that were saved
    add_word(stream, np.uint64(what))
    for x in outcomes:
        add_word(stream, np.uint64(x))
    for x in rewards:
        add_word(stream, np.uint64(x))
    end_address(stream)


@njit(**FAST)
def find(table, key, stream):
    """`(slot of the draws with this stream or −1, place in the table)`."""
    mask = np.uint64(table.size - 1)
    place = stream[0] & mask
    while table[place] >= 0:
        slot = table[place]
        if key[slot, 0] == stream[0] and key[slot, 1] == stream[1]:
            return np.int64(slot), place
        place = (place + np.uint64(1)) & mask
    return np.int64(-1), place


@out_of_line
@njit(**FAST)
def slot_of(problem, rows, pair, counts):
    """The draws of a pair after `counts[pair,column]`: their slot, −1 when there is no space."""
    posterior, scratch = problem.posterior, rows.scratch
    outcomes, rewards, stream, own = scratch.outcomes, scratch.rewards, scratch.streams[0], scratch.streams[0]
    tally(posterior, counts, pair, outcomes, rewards)
    if posterior.tied:
        told = rewards if rewards.size > 1 else rewards[:0]  # known rewards tell nothing
        address_of(problem.address, pair, outcomes, told, stream)
    else:
        address_of(problem.address, pair, counts[pair], rewards[:0], stream)
    slot, place = find(rows.table, rows.key, stream)
    if slot < 0 and rows.size[0] < rows.draws.shape[0]:
        slot = rows.size[0]
        rows.size[0] = slot + 1
        rows.table[place] = slot
        rows.key[slot, 0], rows.key[slot, 1] = stream[0], stream[1]
        if posterior.tied:
            own = scratch.streams[1]
            what = posterior.row.size + posterior.row[pair]
            address_of(problem.address, what, outcomes, rewards[:0], own)
        draw_outcomes(posterior, pair, scratch, own, scratch.theta)
        draw_pair(problem, pair, scratch, scratch.theta, stream, rows.draws[slot])
    return slot


@out_of_line
@njit(**FAST)
def draw_outcomes(posterior, pair, scratch, stream, theta):
    """Chances `theta[j,m]` from the posterior of a pair's row after `scratch.outcomes[j]`."""
    after, row = scratch.alpha, row_of(posterior, pair)
    for j in range(scratch.outcomes.size):
        after[0, j] = posterior.alpha[row, j] + scratch.outcomes[j]
    draw_lanes(stream, after, theta.reshape(theta.size), scratch.each)


@out_of_line
@njit(**FAST)
def draw_pair(problem, pair, scratch, theta, stream, out):
    """`out[t + 1 + K,m]` of a pair whose outcomes have the chances `theta[j,m]`: next states, the expected reward, and
    where there is more than one reward value their chances, drawn after `scratch.rewards[k]`. Next states, and rewards
    paid on arrival, are times `keep`."""
    n_states, keep, posterior = problem.n_states, problem.keep[pair], problem.posterior
    paid, (n_outcomes, n) = posterior.paid, theta.shape
    chance, reward = out[n_states + 1 :], out[n_states]
    draw_chances(posterior.reward, pair, scratch, stream, chance)
    out[:n_states].fill(0.0)
    for j in range(n_outcomes):
        t = arrival_of(posterior, pair, j)
        if t >= 0:
            for m in range(n):
                out[t, m] = keep * theta[j, m]
    reward.fill(0.0)
    for k in range(paid.shape[0]):
        for j in range(paid.shape[2]):
            for m in range(n):
                share = chance[k, m] if paid.shape[0] > 1 else 1.0
                reward[m] += paid[k, pair, j] * share * (keep * theta[j, m] if paid.shape[2] > 1 else 1.0)
    for m in range(n):
        reward[m] = reward[m] + problem.credit[pair] if problem.available[pair] else NEVER


@out_of_line
@njit(**FAST)
def draw_chances(counts, pair, scratch, stream, out):
    """Chances `out[k,m]` of the reward values of a pair, after `scratch.rewards[k]`; nothing where there is one."""
    ratio, n_values, n = scratch.ratio, scratch.rewards.size, out.shape[1]
    for k in range(n_values):
        ratio[0, k] = counts[k, pair] + scratch.rewards[k]
    if n_values == 2:
        draw_betas(stream, ratio[0, :1], ratio[0, 1:], 0.0, 1.0, out[0], n, 1)
        for m in range(n):
            out[1, m] = 1.0 - out[0, m]
    elif n_values > 2:
        draw_lanes(stream, ratio, out.reshape(out.size), scratch.each)


@out_of_line
@njit(**FAST)
def particles_at(problem, rows, counts, slots):
    """Slots `slots[pair]` of the particles after `counts[pair,column]`; false when there is no space."""
    for pair in range(slots.size):
        slots[pair] = slot_of(problem, rows, pair, counts)
        if slots[pair] < 0:
            return False
    return True


def draw_models(problem: BAMDP, counts: np.ndarray, stream: np.ndarray, out: np.ndarray) -> None:
    """Fresh models `out[pair,t + 1 + K,m]` after `counts[pair,column]`, all from one stream."""
    posterior, n = problem.posterior, out.shape[2]
    theta = np.empty((len(posterior.alpha) if posterior.tied else 1, posterior.alpha.shape[1], n))
    draw_all(problem, new_scratch(problem, n), counts, stream, theta, np.zeros(len(theta), np.bool_), out)


@njit(**FAST)
def draw_all(problem, scratch, counts, stream, theta, drawn, out):
    """`draw_models`; chances of shared rows are kept in `theta[row,j,m]` once they are `drawn[row]`."""
    posterior = problem.posterior
    for pair in range(out.shape[0]):
        tally(posterior, counts, pair, scratch.outcomes, scratch.rewards)
        i = posterior.row[pair] if posterior.tied else 0
        if not (posterior.tied and drawn[i]):
            draw_outcomes(posterior, pair, scratch, stream, theta[i])
            drawn[i] = True
        draw_pair(problem, pair, scratch, theta[i], stream, out[pair])


@njit(**FAST)
def chances(problem, row, weights, pair, column, out):
    """`out[m] = weights[m] · Pr_m(column | pair)` of a column that can happen, by the pair's draws `row[t + 1 + K,m]`;
    returns the sum."""
    posterior = problem.posterior
    n_outcomes = posterior.alpha.shape[1]
    p = row[arrival_of(posterior, pair, column % n_outcomes)]
    if posterior.reward.shape[0] == 1:
        for m in range(out.size):
            out[m] = weights[m] * p[m]
    else:
        other = row[problem.n_states + 1 + column // n_outcomes]
        for m in range(out.size):
            out[m] = weights[m] * p[m] * other[m]
    return sum_of(out)


@njit(**FAST)
def dot(x, y):
    """`Σ_m x[m] y[m]`."""
    total = 0.0
    for m in range(x.size):
        total += x[m] * y[m]
    return total


@out_of_line
@njit(**FAST)
def predictive(problem, counts, pair, scratch):
    """Chances `scratch.p[column]` of what a pair shows next, after `counts[pair,column]`, if it is no outcome that was
    cut; returns the expected reward, with the credit for those."""
    posterior, p, outcomes, rewards = problem.posterior, scratch.p, scratch.outcomes, scratch.rewards
    n_values, n_outcomes = posterior.reward.shape[0], posterior.alpha.shape[1]
    tally(posterior, counts, pair, outcomes, rewards)
    row = row_of(posterior, pair)
    for k in range(n_values):
        for j in range(n_outcomes):
            x = posterior.alpha[row, j] + outcomes[j]
            if n_values > 1:
                x *= posterior.reward[k, pair] + rewards[k]
            p[k * n_outcomes + j] = x
    total, reward = sum_of(p), 0.0
    for c in range(p.size):
        p[c] /= total
    for c in range(p.size):
        reward += p[c] * paid_for(posterior, c // n_outcomes, pair, c % n_outcomes)
    if on_arrival(posterior):
        reward *= problem.keep[pair]
    elif n_values == 1:
        reward = paid_for(posterior, 0, pair, 0)
    return reward + problem.credit[pair]


@out_of_line
@njit(**FAST)
def expected_rows(problem, counts, scratch, mean):
    """The posterior mean of all rows as one model, `mean[pair,t + 1,0]`."""
    p = scratch.p
    mean.fill(0.0)
    for pair in range(counts.shape[0]):
        reward = predictive(problem, counts, pair, scratch)
        for c in range(p.size):
            t = next_state(problem.posterior, pair, c)
            if t >= 0:
                mean[pair, t, 0] += problem.keep[pair] * p[c]
        mean[pair, problem.n_states, 0] = reward if problem.available[pair] else NEVER
