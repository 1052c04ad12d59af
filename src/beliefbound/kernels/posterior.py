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
from beliefbound.kernels.options import EXACT, EXACT_INLINE


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


@njit(**EXACT_INLINE)
def forget(posterior):
    """Back to the prior."""
    posterior.alpha[:] = posterior.prior_alpha
    posterior.reward[:] = posterior.prior_reward


@njit(**EXACT_INLINE)
def row_of(posterior, pair):
    """The row of parameters that a pair has."""
    return posterior.row[pair] if posterior.tied else pair


@njit(**EXACT_INLINE)
def outcome_of(posterior, pair, t):
    """The outcome of a pair that leads to `t`; −1 if none does."""
    return posterior.outcome[pair, t] if posterior.tied else t


@njit(**EXACT_INLINE)
def arrival_of(posterior, pair, j):
    """The state that outcome `j` of a pair leads to; −1 if the pair has no such outcome."""
    return posterior.arrive[pair, j] if posterior.tied else j


@njit(**EXACT_INLINE)
def paid_for(posterior, k, pair, j):
    """The reward of value `k` with outcome `j`, scaled."""
    return posterior.paid[k, pair, max(j, 0) if posterior.paid.shape[2] > 1 else 0]


@njit(**EXACT_INLINE)
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
        x = (x - failure) / (success - failure)
        posterior.reward[0, pair] += x
        posterior.reward[1, pair] += 1.0 - x
    else:
        nearest = 0
        for k in range(1, n_values):
            if abs(paid_for(posterior, k, pair, j) - x) < abs(paid_for(posterior, nearest, pair, j) - x):
                nearest = k
        posterior.reward[nearest, pair] += 1.0


@njit(**EXACT)
def expected(posterior, pair, p):
    """The expected row of a pair to `p[t]`; returns the expected reward."""
    row = row_of(posterior, pair)
    n_outcomes = posterior.alpha.shape[1]
    total = 0.0
    for j in range(n_outcomes):
        total += posterior.alpha[row, j]
    if posterior.tied:
        p[:] = 0.0
    for j in range(n_outcomes):
        t = arrival_of(posterior, pair, j)
        if t >= 0:
            p[t] = posterior.alpha[row, j] / total
    return mean_reward(posterior, pair, p)


@njit(**EXACT)
def mean_reward(posterior, pair, p):
    """The expected reward of a pair whose next states have the chances `p[t]`."""
    n_values = posterior.reward.shape[0]
    total = 0.0
    for k in range(n_values):
        total += posterior.reward[k, pair]
    reward = 0.0
    for k in range(n_values):
        chance = posterior.reward[k, pair] / total if n_values > 1 else 1.0
        reward += chance * paid_on(posterior, k, pair, p)
    return reward


@njit(**EXACT)
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


@njit(**EXACT)
def draw(posterior, stream, p, r):
    """Independent models, models last: transitions `p[s,a,t,m]` and expected rewards `r[s,a,m]`."""
    n_states, n_actions, _, n = p.shape
    if posterior.tied:
        n_rows, n_outcomes = posterior.alpha.shape
        theta = np.empty((n_rows, n_outcomes, n))
        draw_rows(stream, posterior.alpha, theta.reshape(theta.size), n_outcomes * n, n, 1)
        p[:] = 0.0
        for pair in range(n_states * n_actions):
            for j in range(n_outcomes):
                t = posterior.arrive[pair, j]
                if t >= 0:
                    p[pair // n_actions, pair % n_actions, t] = theta[posterior.row[pair], j]
    else:
        dirichlet_lanes(stream, posterior.alpha.reshape((n_states, n_actions, n_states)), p)
    draw_rewards(posterior, stream, p, r)


@njit(**EXACT)
def draw_rewards(posterior, stream, p, r):
    """Expected rewards `r[s,a,m]` of models with transitions `p[s,a,t,m]`."""
    n_states, n_actions, _, n = p.shape
    n_values = posterior.reward.shape[0]
    if n_values == 2 and posterior.paid.shape[2] == 1:
        shape = (n_states, n_actions)
        beta_lanes(stream, posterior.reward[0].reshape(shape), posterior.reward[1].reshape(shape), 0.0, 1.0, r)
        for pair in range(n_states * n_actions):
            success, failure = posterior.paid[0, pair, 0], posterior.paid[1, pair, 0]
            if success != 1.0 or failure != 0.0:
                for m in range(n):
                    x = r[pair // n_actions, pair % n_actions, m]
                    r[pair // n_actions, pair % n_actions, m] = failure + (success - failure) * x
        return
    chance = np.ones((n_values, n))
    counts = np.empty((1, n_values))
    for pair in range(n_states * n_actions):
        s, a = pair // n_actions, pair % n_actions
        if n_values > 1:
            counts[0] = posterior.reward[:, pair]
            draw_rows(stream, counts, chance.reshape(chance.size), n_values * n, n, 1)
        for m in range(n):
            r[s, a, m] = 0.0
            for k in range(n_values):
                r[s, a, m] += chance[k, m] * paid_on(posterior, k, pair, p[s, a, :, m])
