"""Simulating under a posterior without drawing a model: outcomes from the predictive, counted as they fall.

To draw a row `θ ~ Dirichlet(α)` once and then outcomes from `θ` has the same law as to draw each outcome from the
predictive `α_j / Σα` and add one to `α_j` (Pólya's urn; Blackwell & MacQueen 1973): the outcomes of a row are
exchangeable, and de Finetti's mixture of theirs is that Dirichlet. So a simulation that counts what it draws is a
simulation in one model of the posterior, at the cost of a walk along a row where Gamma draws would cost as many
logarithms. The same holds for reward values.

The same holds where rows have unknown supports (`kernels.sparse_rows`), with their predictive and what they learn.

Counts are changed in place, in the posterior itself. What they were is kept in a journal, and `rewind` puts it back,
bit for bit. The expected reward of a pair needs no draw: it is a martingale of the counts.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from beliefbound.kernels.options import EXACT
from beliefbound.kernels.posterior import Posterior, SparsePosterior, arrival_of, on_arrival, paid_for, row_of
from beliefbound.kernels.random import uniform
from beliefbound.kernels.reference import by_class, by_reference
from beliefbound.kernels.sparse_rows import (
    draw_size_sparse,
    forget_sizes_sparse,
    note_sparse,
    take_back_sparse,
    with_fields,
)

inlined = njit(inline="always", **EXACT)  # by numba itself, as in `kernels.posterior`


BLOCK = 8  # outcomes of a row that are looked at together


@by_reference
class Urn(NamedTuple):
    """Sums of the counts, expected rewards, and a journal of what was changed."""

    total: np.ndarray  # [row]: Σ_j α
    mean: np.ndarray  # [pair]: the expected reward, where rewards do not depend on the arrival
    size: np.ndarray  # int64 [2]: entries of the two journals
    row: np.ndarray  # int64 [entry]: whose outcome was counted
    place: np.ndarray  # int64 [entry]: where in the flat α
    before: np.ndarray  # [entry]: α there, before
    summed: np.ndarray  # [entry]: the total of the row, before
    valued: np.ndarray  # int64 [entry]: where in the flat reward counts one was counted
    worth: np.ndarray  # [entry]: the count there, before


MORE = (
    "sizes",  # [entry,k−1]: what they were
    "unseen",  # [entry]: what it was
    "drawn",  # int64 [row]: the size of the support that this simulation drew, 0 where it drew none
    "met",  # int64 [row]: rows whose sizes it drew, as many as `met_size`
    "met_size",  # int64 [1]
    "root_unseen",  # [row]: of those rows, `unseen` and `total` before
    "root_total",
)
SparseUrn = with_fields("SparseUrn", Urn._fields, MORE)


@by_class({Urn: None, SparseUrn: note_sparse}, 1)
def note(posterior, urn, i, row, j):
    """What else is kept, as entry `i`, and follows where an outcome of a row that is no Dirichlet one is counted."""


@by_class({Urn: None, SparseUrn: take_back_sparse}, 1)
def take_back(posterior, urn, i):
    """Put back what `note` kept as entry `i`."""


@by_class({Urn: njit(lambda posterior, urn, row, u: u, **EXACT), SparseUrn: draw_size_sparse}, 1)
def within_support(posterior, urn, row, u):
    """For a simulation that begins with nothing counted and takes all back: before an outcome is drawn at `u`, the size
    of the row's support is, where that is unknown. What is left of the quantile. (`outcome_at` alone learns about sizes
    instead: the same law, at the cost of a pass over all sizes for every outcome.)"""


@by_class({Urn: None, SparseUrn: forget_sizes_sparse}, 1)
def forget_sizes(posterior, urn):
    """Undo `within_support` everywhere."""


def new_urn(posterior: Posterior, steps: int) -> Urn:
    """For simulations of at most `steps` steps."""
    n_rows, pairs = len(posterior.alpha), posterior.reward.shape[1]
    urn = Urn(
        total=np.zeros(n_rows),
        mean=np.zeros(pairs),
        size=np.zeros(2, np.int64),
        row=np.zeros(steps, np.int64),
        place=np.zeros(steps, np.int64),
        before=np.zeros(steps),
        summed=np.zeros(steps),
        valued=np.zeros(steps, np.int64),
        worth=np.zeros(steps),
    )
    if isinstance(posterior, SparsePosterior):
        before = np.zeros((steps, posterior.sizes.shape[1])), np.zeros(steps)
        whole, one = np.zeros(n_rows, np.int64), np.zeros(1, np.int64)
        urn = SparseUrn(*urn, *before, whole, whole.copy(), one, np.zeros(n_rows), np.zeros(n_rows))
    return urn


def decisions_that_matter(discount: float, share: float = 0.01) -> int:
    """`floor(ln share / ln γ)`, at least one: what follows so many decisions weighs no more than about `share`.

    >>> decisions_that_matter(0.95)
    89
    """
    return max(1, math.floor(math.log(share) / math.log(discount))) if discount > 0.0 else 1


@inlined
def mean_of(posterior, pair):
    """The expected reward of a pair where rewards do not depend on the arrival."""
    n_values = posterior.reward.shape[0]
    if n_values == 1:
        return paid_for(posterior, 0, pair, 0)
    total, reward = 0.0, 0.0
    for k in range(n_values):
        total += posterior.reward[k, pair]
        reward += posterior.reward[k, pair] * paid_for(posterior, k, pair, 0)
    return reward / total


@inlined
def prepare(posterior, urn):
    """Sums and means of the counts as they are; nothing in the journals."""
    urn.size[0] = 0
    urn.size[1] = 0
    for row in range(urn.total.size):
        total = 0.0
        for j in range(posterior.alpha.shape[1]):
            total += posterior.alpha[row, j]
        urn.total[row] = total
    if not on_arrival(posterior):
        for pair in range(urn.mean.size):
            urn.mean[pair] = mean_of(posterior, pair)


@inlined
def outcome_at(posterior, urn, row, u):
    """The outcome of a row at quantile `u` of its predictive. Long rows are passed in blocks; within the block where
    the outcome lies, as in a short row, no branch depends on `u`."""
    alpha, n_outcomes = posterior.alpha, posterior.alpha.shape[1]
    place = np.uint64(row)  # a signed index is first tested for its sign
    left = u * urn.total[place]
    if n_outcomes <= BLOCK:
        j, last = 0, n_outcomes - 1
        reached = alpha[place, np.uint64(0)]
        for i in range(BLOCK - 1):  # a fixed range is unrolled
            if i == last:
                break
            j += reached <= left
            reached += alpha[place, np.uint64(i + 1)]
    else:
        first = 0
        while first + BLOCK < n_outcomes:
            block = sum_of_block(alpha, place, np.uint64(first))
            if block > left:
                break
            left -= block
            first += BLOCK
        j, last = first, min(first + BLOCK, n_outcomes) - 1
        reached = alpha[place, np.uint64(first)]
        for i in range(1, BLOCK):
            if first + i > last:
                break
            j += reached <= left
            reached += alpha[place, np.uint64(first + i)]
    if j == last:  # where sums are rounded, it may be impossible
        while alpha[place, np.uint64(j)] <= 0.0:
            j -= 1
    return j


@inlined
def sum_of_block(alpha, row, j):
    """The sum of `BLOCK` counts of a row from `j` on, in pairs: each addition waits for few others."""
    one, two, four = np.uint64(1), np.uint64(2), np.uint64(4)
    a = alpha[row, j] + alpha[row, j + one], alpha[row, j + two] + alpha[row, j + two + one]
    j += four
    b = alpha[row, j] + alpha[row, j + one], alpha[row, j + two] + alpha[row, j + two + one]
    return (a[0] + a[1]) + (b[0] + b[1])


@inlined
def count_outcome(posterior, urn, row, j):
    """Add one to outcome `j` of a row."""
    write_outcome(posterior, urn, urn.size[0], row, j)
    urn.size[0] += 1


@inlined
def write_outcome(posterior, urn, i, row, j):
    """`count_outcome` with entry `i` of the journal, for a loop that keeps its size itself."""
    alpha, total = posterior.alpha, urn.total
    place, outcome, entry = np.uint64(row), np.uint64(j), np.uint64(i)
    here, sum_here = alpha[place, outcome], total[place]
    urn.row[entry] = row
    urn.place[entry] = row * alpha.shape[1] + j
    urn.before[entry] = here
    urn.summed[entry] = sum_here
    alpha[place, outcome] = here + 1.0
    total[place] = sum_here + 1.0
    note(posterior, urn, i, row, j)


@inlined
def value_at(posterior, pair, u):
    """The reward value of a pair at quantile `u` of its predictive."""
    total = 0.0
    for k in range(posterior.reward.shape[0]):
        total += posterior.reward[k, pair]
    left = u * total
    for k in range(posterior.reward.shape[0] - 1):
        left -= posterior.reward[k, pair]
        if left < 0.0:
            return k
    return posterior.reward.shape[0] - 1


@inlined
def count_value(posterior, urn, pair, k):
    """Add one to reward value `k` of a pair."""
    i = urn.size[1]
    urn.valued[i] = k * posterior.reward.shape[1] + pair
    urn.worth[i] = posterior.reward[k, pair]
    urn.size[1] = i + 1
    posterior.reward[k, pair] += 1.0
    if not on_arrival(posterior):
        urn.mean[pair] = mean_of(posterior, pair)


@inlined
def rewind(posterior, urn, outcomes, values):
    """Take back what was counted since the journals had so many entries."""
    alpha, reward = posterior.alpha.reshape(posterior.alpha.size), posterior.reward.reshape(posterior.reward.size)
    for i in range(urn.size[0] - 1, outcomes - 1, -1):
        alpha[urn.place[i]] = urn.before[i]
        urn.total[urn.row[i]] = urn.summed[i]
        take_back(posterior, urn, i)
    urn.size[0] = outcomes
    if outcomes == 0:
        forget_sizes(posterior, urn)
    for i in range(urn.size[1] - 1, values - 1, -1):
        reward[urn.valued[i]] = urn.worth[i]
        if not on_arrival(posterior):
            pair = urn.valued[i] % posterior.reward.shape[1]
            urn.mean[pair] = mean_of(posterior, pair)
    urn.size[1] = values


@inlined
def reward_after(posterior, urn, pair, j):
    """The expected reward of a pair whose outcome was `j`."""
    if not on_arrival(posterior):
        return urn.mean[pair]
    total, reward = 0.0, 0.0
    for k in range(posterior.reward.shape[0]):
        total += posterior.reward[k, pair]
        reward += posterior.reward[k, pair] * paid_for(posterior, k, pair, j)
    return reward / total


@inlined
def expected_reward(posterior, urn, pair):
    """The expected reward of a pair under the counts as they are."""
    if not on_arrival(posterior):
        return urn.mean[pair]
    row = row_of(posterior, pair)
    total, reward = 0.0, 0.0
    for j in range(posterior.alpha.shape[1]):
        if posterior.alpha[row, j] > 0.0 and arrival_of(posterior, pair, j) >= 0:
            total += posterior.alpha[row, j]
            reward += posterior.alpha[row, j] * reward_after(posterior, urn, pair, j)
    return reward / total


@inlined
def count_column(posterior, urn, pair, column):
    """Condition on a column `k·J + j` of a pair; returns the next state."""
    n_outcomes = posterior.alpha.shape[1]
    k, j = column // n_outcomes, column % n_outcomes
    count_outcome(posterior, urn, row_of(posterior, pair), j)
    if posterior.reward.shape[0] > 1:
        count_value(posterior, urn, pair, k)
    return arrival_of(posterior, pair, j)


@inlined
def column_at(posterior, urn, pair, stream):
    """A column `k·J + j` of a pair drawn from its predictive; nothing is counted."""
    j = outcome_at(posterior, urn, row_of(posterior, pair), uniform(stream))
    if posterior.reward.shape[0] == 1:
        return j
    return value_at(posterior, pair, uniform(stream)) * posterior.alpha.shape[1] + j


@inlined
def column_chance(posterior, urn, pair, column):
    """The predictive chance of a column of a pair."""
    n_outcomes, row = posterior.alpha.shape[1], row_of(posterior, pair)
    k, j = column // n_outcomes, column % n_outcomes
    if arrival_of(posterior, pair, j) < 0:
        return 0.0
    chance = posterior.alpha[row, j] / urn.total[row]
    if posterior.reward.shape[0] > 1:
        total = 0.0
        for i in range(posterior.reward.shape[0]):
            total += posterior.reward[i, pair]
        chance *= posterior.reward[k, pair] / total
    return chance
