"""The one compiled posterior: Dirichlet counts of what a step shows, to `forget`, `learn`, take `expected` models from
and `draw` models from. Agents nest it in their state; bounds read its arrays.

A *pair* is `s·A + a`. Nature answers a pair with an *outcome* `j`, of probability `θ[row, j]` where `row` is the pair's
row of parameters and `θ[row] ~ Dirichlet(alpha[row])`, rows independent; outcome `j` of a pair leads to one state. A
belief is *tied* when several pairs name the same row: `row[pair]`, `arrive[pair, j]` and `outcome[pair, t]` then say
who shares what. When it is not, row and pair are the same, outcome and next state are the same, and these three arrays
are empty.

The reward is value `k` of `K`, of probability `ρ[pair, k]` with `ρ[pair] ~ Dirichlet(reward[:, pair])`, independent of
the outcome; value `k` with outcome `j` pays `paid[k, pair, j]`. `K = 1` are known rewards, perhaps on arrival. `K = 2`
are Bernoulli rewards: value 0 is success, value 1 failure, and where `fractional` a reward a share `x` of the way from
failure to success counts as `x` of one and `1 − x` of the other. What a step shows is the *column* `k·J + j`.

Rewards are on the scale `(r − low) / width`, and `paid` is on that scale: agents see [0, 1], bounds see `r` itself.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from beliefbound.kernels.draws import beta_lanes, dirichlet_lanes, draw_rows
from beliefbound.kernels.options import EXACT

inlined = njit(inline="always", **EXACT)  # by numba itself: as an argument, so many arrays take long to compile


class Posterior(NamedTuple):
    """Counts, what they started from, and what they are counts of."""

    alpha: np.ndarray  # [row,j]; 0 marks what cannot happen
    reward: np.ndarray  # [k,pair]; unused where K = 1
    prior_alpha: np.ndarray  # [row,j]: what `forget` goes back to
    prior_reward: np.ndarray  # [k,pair]
    row: np.ndarray  # int64 [pair] where tied, else empty
    arrive: np.ndarray  # int64 [pair,j] where tied, else empty: the next state; −1 where the pair has no such outcome
    outcome: np.ndarray  # int64 [pair,t] where tied, else empty: the outcome that leads to t, −1 if none does
    paid: np.ndarray  # [k,pair,j], or [k,pair,1] where rewards do not depend on the arrival
    tied: bool
    fractional: bool
    n_actions: int
    low: float
    width: float


@inlined
def forget(posterior):
    """Back to the prior."""
    copy_into(posterior.alpha, posterior.prior_alpha)
    copy_into(posterior.reward, posterior.prior_reward)


@inlined
def copy_into(out, x):
    """`out[:] = x` for contiguous arrays: the statement itself takes seconds to compile."""
    flat, source = out.reshape(out.size), x.reshape(x.size)
    for i in range(x.size):
        flat[i] = source[i]


@inlined
def row_of(posterior, pair):
    """The row of parameters that a pair has."""
    return posterior.row[pair] if posterior.tied else pair


@inlined
def outcome_of(posterior, pair, t):
    """The outcome of a pair that leads to `t`; −1 if none does."""
    return posterior.outcome[pair, t] if posterior.tied else t


@inlined
def arrival_of(posterior, pair, j):
    """The state that outcome `j` of a pair leads to; −1 if the pair has no such outcome."""
    return posterior.arrive[pair, j] if posterior.tied else j


@inlined
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
    n_values = posterior.reward.shape[0]
    if n_values == 1:
        return
    x = (r - posterior.low) / posterior.width
    if posterior.fractional:
        success, failure = paid_for(posterior, 0, pair, j), paid_for(posterior, 1, pair, j)
        if success == failure:  # pays the same whatever happens: an absorbing state
            return
        if failure != 0.0 or success != 1.0:
            x = (x - failure) / (success - failure)
        posterior.reward[0, pair] += x
        posterior.reward[1, pair] += 1.0 - x
    else:
        nearest = 0
        for k in range(1, n_values):
            if abs(paid_for(posterior, k, pair, j) - x) < abs(paid_for(posterior, nearest, pair, j) - x):
                nearest = k
        posterior.reward[nearest, pair] += 1.0


@inlined
def expected(posterior, pair, p):
    """The expected row of a pair to `p[t]`; returns the expected reward."""
    row = row_of(posterior, pair)
    n_outcomes = posterior.alpha.shape[1]
    total = 0.0
    for j in range(n_outcomes):
        total += posterior.alpha[row, j]
    if posterior.tied:
        for t in range(p.size):
            p[t] = 0.0
        for j in range(n_outcomes):
            t = posterior.arrive[pair, j]
            if t >= 0:
                p[t] = posterior.alpha[row, j] / total
    else:
        for t in range(n_outcomes):
            p[t] = posterior.alpha[row, t] / total
    return mean_reward(posterior, pair, p)


@inlined
def mean_reward(posterior, pair, p):
    """The expected reward of a pair whose next states have the chances `p[t]`."""
    n_values = posterior.reward.shape[0]
    if n_values == 1:
        return paid_on(posterior, 0, pair, p)
    total, reward = 0.0, 0.0
    for k in range(n_values):
        total += posterior.reward[k, pair]
        reward += posterior.reward[k, pair] * paid_on(posterior, k, pair, p)
    return reward / total


@inlined
def paid_on(posterior, k, pair, p):
    """What value `k` pays on average over next states of chances `p[t]`."""
    if posterior.paid.shape[2] == 1:
        return posterior.paid[k, pair, 0]
    total = 0.0
    for j in range(posterior.alpha.shape[1]):
        t = arrival_of(posterior, pair, j)
        if t >= 0:
            total += p[t] * posterior.paid[k, pair, j]
    return total


@inlined
def draw(posterior, stream, p, r):
    """Independent models, models last: transitions `p[s,a,t,m]` and expected rewards `r[s,a,m]`."""
    n_states, n_actions = p.shape[:2]
    if posterior.tied:
        draw_tied(stream, posterior.alpha, posterior.row, posterior.arrive, p)
    else:
        dirichlet_lanes(stream, posterior.alpha.reshape((n_states, n_actions, n_states)), p)
    draw_rewards(posterior, stream, p, r)


@inlined
def draw_tied(stream, alpha, row, arrive, p):
    """Transitions `p[s,a,t,m]` of models whose pairs share the rows of `alpha`."""
    n_states, n_actions, _, n = p.shape
    n_rows, n_outcomes = alpha.shape
    theta = np.empty((n_rows, n_outcomes, n))
    draw_rows(stream, alpha, theta.reshape(theta.size), n_outcomes * n, n, 1)
    p.fill(0.0)
    for pair in range(n_states * n_actions):
        for j in range(n_outcomes):
            t = arrive[pair, j]
            if t >= 0:
                for m in range(n):
                    p[pair // n_actions, pair % n_actions, t, m] = theta[row[pair], j, m]


@inlined
def draw_rewards(posterior, stream, p, r):
    """Expected rewards `r[s,a,m]` of models with transitions `p[s,a,t,m]`."""
    counts, paid = posterior.reward, posterior.paid
    if counts.shape[0] == 2 and paid.shape[2] == 1:
        shape = (p.shape[0], p.shape[1])
        beta_lanes(stream, counts[0].reshape(shape), counts[1].reshape(shape), 0.0, 1.0, r)
        stretch(paid, r)
    else:
        draw_values(stream, counts, paid, posterior.arrive, posterior.tied, p, r)


@inlined
def stretch(paid, r):
    """From the chance of success `r[s,a,m]` to the expected reward: success pays `paid[0]`, failure `paid[1]`."""
    n_states, n_actions, n = r.shape
    for pair in range(n_states * n_actions):
        success, failure = paid[0, pair, 0], paid[1, pair, 0]
        if success != 1.0 or failure != 0.0:
            for m in range(n):
                x = r[pair // n_actions, pair % n_actions, m]
                r[pair // n_actions, pair % n_actions, m] = failure + (success - failure) * x


@inlined
def draw_values(stream, counts, paid, arrive, tied, p, r):
    """Expected rewards `r[s,a,m]` where there are any number of values, perhaps paid on arrival."""
    n_states, n_actions, _, n = p.shape
    n_values, n_pairs, n_outcomes = paid.shape
    chance = np.ones((n_values, n))
    one = np.empty((1, n_values))
    for pair in range(n_pairs):
        s, a = pair // n_actions, pair % n_actions
        if n_values > 1:
            for k in range(n_values):
                one[0, k] = counts[k, pair]
            draw_rows(stream, one, chance.reshape(chance.size), n_values * n, n, 1)
        for m in range(n):
            r[s, a, m] = 0.0
        for k in range(n_values):
            for j in range(n_outcomes):
                t = arrive[pair, j] if tied and n_outcomes > 1 else j
                if t >= 0:
                    for m in range(n):
                        share = p[s, a, t, m] if n_outcomes > 1 else 1.0
                        r[s, a, m] += chance[k, m] * paid[k, pair, j] * share
