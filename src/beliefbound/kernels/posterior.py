"""The one compiled posterior: Dirichlet counts of what a step shows, to `forget`, `learn`, take `expected` models from
and `draw` models from. Agents nest it in their state; bounds read its arrays.

A *pair* is `s·A + a`. Nature answers a pair with an *outcome* `j`, of probability `θ[row, j]` where `row` is the pair's
row of parameters and `θ[row] ~ Dirichlet(alpha[row])`, rows independent; outcome `j` of a pair leads to one state. A
belief is *tied* when several pairs name the same row: `row[pair]`, `arrive[pair, j]` and `outcome[pair, t]` then say
who shares what. When it is not, row and pair are the same, outcome and next state are the same, and these three arrays
are empty.

The reward is value `k` of `K`, of probability `ρ[pair, k]` with `ρ[pair] ~ Dirichlet(reward[:, pair])`, independent of
the outcome; value `k` with outcome `j` pays `paid[k, pair, j]`, or `paid[k, pair, 0]` where the outcome does not matter
and there is one column only. `K = 1` are known rewards. `K = 2` are Bernoulli rewards: value 0 is success, value 1
failure, and where `fractional` a reward a share `x` of the way from failure to success counts as `x` of one and `1 − x`
of the other. What a step shows is the *column* `k·J + j`.

Rewards are on the scale `(r − low) / width`, and `paid` is on that scale: agents see [0, 1], bounds see `r` itself.

Compiled code has the same types whatever the belief is, so that all of it is compiled once. Rows that are no Dirichlet
ones are another class with the same fields and more, `SparsePosterior` (`kernels.sparse_rows`): what differs is chosen
by class.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from beliefbound.kernels.draws import dirichlet_row, draw_betas, draw_lanes
from beliefbound.kernels.options import EXACT
from beliefbound.kernels.out_of_line import out_of_line
from beliefbound.kernels.reference import by_class, by_reference
from beliefbound.kernels.sparse_rows import (
    MORE,
    draw_row_sparse,
    draw_transitions_sparse,
    restart_sparse,
    settle_sparse,
    with_fields,
)

kernel = njit(**EXACT)
inlined = njit(inline="always", **EXACT)  # by numba itself: compiled with its callers only, which are all exact
accessor = inlined  # nothing is computed, so that callers may be fast as well


@by_reference
class Posterior(NamedTuple):
    """Counts, what they started from, and what they are counts of."""

    alpha: np.ndarray  # [row,j]; 0 marks what cannot happen
    reward: np.ndarray  # [k,pair]; unused where K = 1
    prior_alpha: np.ndarray  # [row,j]: what `forget` goes back to
    prior_reward: np.ndarray  # [k,pair]
    row: np.ndarray  # int64 [pair] where tied, else empty
    arrive: np.ndarray  # int64 [pair,j] where tied, else empty: the next state; −1 where the pair has no such outcome
    outcome: np.ndarray  # int64 [pair,t] where tied, else empty: the outcome that leads to t, −1 if none does
    paid: np.ndarray  # [k,pair,j], or [k,pair,1] where the outcome does not matter
    scratch: np.ndarray  # [max(J, 2K)], for one draw
    tied: bool
    fractional: bool
    n_actions: int
    low: float
    width: float


def smallest() -> Posterior:
    """One pair, one outcome, one reward: what is compiled for it is compiled for all."""
    one, none = np.ones((1, 1)), np.zeros((0, 0), np.int64)
    return Posterior(
        alpha=one,
        reward=one,
        prior_alpha=one,
        prior_reward=one,
        row=np.zeros(0, np.int64),
        arrive=none,
        outcome=none,
        paid=np.ones((1, 1, 1)),
        scratch=np.zeros(2),
        tied=False,
        fractional=False,
        n_actions=1,
        low=0.0,
        width=1.0,
    )


SparsePosterior = with_fields("SparsePosterior", Posterior._fields, MORE)


@by_class({Posterior: None, SparsePosterior: restart_sparse}, 0)
def restart(posterior):
    """Of a row that is no Dirichlet one, what is more than counts: back to the prior."""


@by_class({Posterior: None, SparsePosterior: settle_sparse}, 0)
def settle(posterior, row, j):
    """What else follows where one has been added to outcome `j` of a row that is no Dirichlet one."""


@out_of_line
@kernel
def forget(posterior):
    """Back to the prior."""
    copy_into(posterior.alpha, posterior.prior_alpha)
    copy_into(posterior.reward, posterior.prior_reward)
    restart(posterior)


@kernel
def copy_into(out, x):
    """`out[:] = x` for arrays `[i]` or `[i,j]`: the statement itself takes seconds to compile."""
    if x.ndim == 1:
        for i in range(x.shape[0]):
            out[i] = x[i]
    else:
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                out[i, j] = x[i, j]


@accessor
def row_of(posterior, pair):
    """The row of parameters that a pair has."""
    return posterior.row[pair] if posterior.tied else pair


@accessor
def outcome_of(posterior, pair, t):
    """The outcome of a pair that leads to `t`; −1 if none does."""
    return posterior.outcome[pair, t] if posterior.tied else t


@accessor
def arrival_of(posterior, pair, j):
    """The state that outcome `j` of a pair leads to; −1 if the pair has no such outcome."""
    return posterior.arrive[pair, j] if posterior.tied else j


@accessor
def on_arrival(posterior):
    """Whether rewards depend on the outcome."""
    return posterior.paid.shape[2] > 1


@accessor
def paid_for(posterior, k, pair, j):
    """The reward of value `k` with outcome `j`, scaled."""
    return posterior.paid[k, pair, max(j, 0) if posterior.paid.shape[2] > 1 else 0]


@inlined
def learn(posterior, s, a, r, t):
    """Condition on one transition. What the belief rules out teaches nothing."""
    pair = s * posterior.n_actions + a
    j = outcome_of(posterior, pair, t)
    row = row_of(posterior, pair)
    if j >= 0 and posterior.alpha[row, j] > 0.0:
        posterior.alpha[row, j] += 1.0
        settle(posterior, row, j)
    if posterior.reward.shape[0] > 1:
        x = (r - posterior.low) / posterior.width
        if posterior.fractional:
            learn_share(posterior, pair, j, x)
        else:
            posterior.reward[nearest_value(posterior, pair, j, x), pair] += 1.0


@inlined
def learn_share(posterior, pair, j, x):
    """Count a scaled reward `x` between failure and success as a share of each."""
    success, failure = paid_for(posterior, 0, pair, j), paid_for(posterior, 1, pair, j)
    if success == failure:  # pays the same whatever happens: an absorbing state
        return
    if failure != 0.0 or success != 1.0:
        x = (x - failure) / (success - failure)
    posterior.reward[0, pair] += x
    posterior.reward[1, pair] += 1.0 - x


@out_of_line
@kernel
def nearest_value(posterior, pair, j, x):
    """The value that pays what is nearest to a scaled reward `x`."""
    nearest, least = 0, np.inf
    for k in range(posterior.paid.shape[0]):
        distance = abs(paid_for(posterior, k, pair, j) - x)
        if distance < least:
            nearest, least = k, distance
    return nearest


@inlined
def expected(posterior, pair, p):
    """The expected row of a pair to `p[t]`; returns the expected reward."""
    expected_row(posterior, pair, p)
    return mean_reward(posterior, pair, p)


def expected_rows(posterior: Posterior, n_states: int) -> tuple[np.ndarray, np.ndarray]:
    """`expected` of all pairs, `p[pair,t]` and `r[pair]`, without compiled code; the same numbers, bit for bit."""
    alpha, counts, paid = posterior.alpha, posterior.reward, posterior.paid
    shares, pairs = alpha / np.add.accumulate(alpha, axis=1)[:, -1:], np.arange(counts.shape[1])
    row, arrive = pairs, np.tile(np.arange(alpha.shape[1]), (len(pairs), 1))
    if posterior.tied:
        row, arrive = posterior.row, posterior.arrive
    p = np.zeros((len(pairs), n_states))
    for j in range(alpha.shape[1]):
        here = arrive[:, j] >= 0
        p[pairs[here], arrive[here, j]] = shares[row[here], j]
    total, reward = np.zeros(len(pairs)), np.zeros(len(pairs))
    for k in range(len(counts)):
        value = np.zeros(len(pairs)) if paid.shape[2] > 1 else paid[k, :, 0]
        for j in range(paid.shape[2] if paid.shape[2] > 1 else 0):
            value = np.where(arrive[:, j] >= 0, value + p[pairs, arrive[:, j]] * paid[k, :, j], value)
        share = counts[k] if len(counts) > 1 else np.ones(len(pairs))
        total, reward = total + share, reward + share * value
    return p, reward / total


@inlined
def expected_row(posterior, pair, p):
    """The expected row of a pair to `p[t]`."""
    alpha, row = posterior.alpha, row_of(posterior, pair)
    total = 0.0
    for j in range(alpha.shape[1]):
        total += alpha[row, j]
    if not posterior.tied:
        for t in range(alpha.shape[1]):
            p[t] = alpha[row, t] / total
    else:
        for t in range(p.size):
            p[t] = 0.0
        for j in range(alpha.shape[1]):
            t = posterior.arrive[pair, j]
            if t >= 0:
                p[t] = alpha[row, j] / total


@inlined
def mean_reward(posterior, pair, p):
    """The expected reward of a pair whose next states have the chances `p[t]`."""
    counts, paid, n_values = posterior.reward, posterior.paid, posterior.reward.shape[0]
    if n_values == 2 and not on_arrival(posterior):
        won, lost = counts[0, pair], counts[1, pair]
        return (won * paid[0, pair, 0] + lost * paid[1, pair, 0]) / (won + lost)
    total, reward = 0.0, 0.0
    for k in range(n_values):
        share = counts[k, pair] if n_values > 1 else 1.0
        total += share
        reward += share * paid_on(posterior, k, pair, p)
    return reward / total


@inlined
def paid_on(posterior, k, pair, p):
    """What value `k` pays on average over next states of chances `p[t]`."""
    paid = posterior.paid
    if not on_arrival(posterior):
        return paid[k, pair, 0]
    total = 0.0
    for j in range(paid.shape[2]):
        t = arrival_of(posterior, pair, j)
        if t >= 0:
            total += p[t] * paid[k, pair, j]
    return total


@inlined
def draw(posterior, stream, p, r):
    """Independent models, models last: transitions `p[s,a,t,m]` and expected rewards `r[s,a,m]`."""
    draw_transitions(posterior, stream, p, r)
    draw_rewards(posterior, stream, p, r)


@out_of_line
@kernel
def draw_dirichlet(posterior, stream, p, scratch):
    """`draw_transitions`, of Dirichlet rows."""
    space = scratch.reshape(scratch.size)
    if posterior.tied:
        draw_tied(posterior, stream, p, space)
    else:
        draw_lanes(stream, posterior.alpha, p.reshape(p.size), space[: p.shape[3]])


@out_of_line
@kernel
def draw_tied(posterior, stream, p, space):
    """Transitions `p[s,a,t,m]` of models whose pairs share rows of parameters. All models at once in `space[any]` or,
    where there are more outcomes than pairs, one after another in the posterior's scratch."""
    alpha, row, arrive = posterior.alpha, posterior.row, posterior.arrive
    n_states, n_actions, _, n = p.shape
    n_rows, n_outcomes = alpha.shape
    at_once = n if space.size >= (n_outcomes + 1) * n else 1
    each, theta = space[:at_once], posterior.scratch[:n_outcomes]
    if at_once > 1:
        theta = space[n : (n_outcomes + 1) * n]
    p.fill(0.0)
    for i in range(n_rows):
        for first in range(0, n, at_once):
            draw_lanes(stream, alpha[i : i + 1], theta, each)
            for pair in range(n_states * n_actions):
                if row[pair] == i:
                    for j in range(n_outcomes):
                        t = arrive[pair, j]
                        if t >= 0:
                            for m in range(at_once):
                                p[pair // n_actions, pair % n_actions, t, first + m] = theta[j * at_once + m]


@by_class({Posterior: draw_dirichlet, SparsePosterior: draw_transitions_sparse}, 0)
def draw_transitions(posterior, stream, p, scratch):
    """Transitions `p[s,a,t,m]` of independent models; `scratch[s,a,m]` is written over."""


@inlined
def draw_row_dirichlet(posterior, stream, row, theta):
    """`draw_row`, of a Dirichlet row."""
    dirichlet_row(stream, posterior.alpha[row], theta)


@by_class({Posterior: draw_row_dirichlet, SparsePosterior: draw_row_sparse}, 0)
def draw_row(posterior, stream, row, theta):
    """One draw of a row of parameters, to `theta[j]`."""


@out_of_line
@kernel
def draw_rewards(posterior, stream, p, r):
    """Expected rewards `r[s,a,m]` of models with transitions `p[s,a,t,m]`."""
    if on_arrival(posterior) or posterior.paid.shape[0] > 2:
        draw_values(posterior, stream, p, r)
    else:
        draw_success(posterior, stream, r)


@out_of_line
@kernel
def draw_success(posterior, stream, r):
    """Expected rewards `r[s,a,m]` where they are known, or success or failure, whatever the outcome is."""
    paid = posterior.paid
    n_states, n_actions, n = r.shape
    if paid.shape[0] == 2:
        draw_betas(stream, posterior.reward[0], posterior.reward[1], 0.0, 1.0, r.reshape(r.size), n, 1)
    for pair in range(n_states * n_actions):
        s, a = pair // n_actions, pair % n_actions
        if paid.shape[0] == 1:
            for m in range(n):
                r[s, a, m] = paid[0, pair, 0]
        elif paid[0, pair, 0] != 1.0 or paid[1, pair, 0] != 0.0:
            for m in range(n):
                r[s, a, m] = paid[1, pair, 0] + (paid[0, pair, 0] - paid[1, pair, 0]) * r[s, a, m]


@out_of_line
@kernel
def draw_values(posterior, stream, p, r):
    """Expected rewards `r[s,a,m]` where there are any number of values, perhaps paid on arrival. Chances of the values
    are drawn to the posterior's scratch; one value is known, and there is nothing to draw."""
    counts, paid = posterior.reward, posterior.paid
    n_actions, n = r.shape[1:]
    n_values, n_pairs, n_outcomes = paid.shape
    chance, known = posterior.scratch[:n_values], posterior.scratch[n_values : 2 * n_values]
    chance[0] = 1.0
    for pair in range(n_pairs):
        s, a = pair // n_actions, pair % n_actions
        at_once = n if n_values == 1 else 1
        for first in range(0, n, at_once):
            if n_values > 1:
                for k in range(n_values):
                    known[k] = counts[k, pair]
                dirichlet_row(stream, known, chance)
            for m in range(first, first + at_once):
                r[s, a, m] = 0.0
            for k in range(n_values):
                for j in range(n_outcomes):
                    t = arrival_of(posterior, pair, j)
                    if n_outcomes == 1:
                        for m in range(first, first + at_once):
                            r[s, a, m] += chance[k] * paid[k, pair, 0]
                    elif t >= 0:
                        for m in range(first, first + at_once):
                            r[s, a, m] += chance[k] * paid[k, pair, j] * p[s, a, t, m]
