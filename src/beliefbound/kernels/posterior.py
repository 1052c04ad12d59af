"""The one compiled posterior: Dirichlet counts of what a step shows, to `forget`, `learn`, take `expected` models from
and `draw` models from. Agents nest it in their state; bounds read its arrays.

A *pair* is `s·A + a`. Nature answers a pair with an *outcome* `j`, of probability `θ[row, j]` where `row` is the pair's
row of parameters and `θ[row] ~ Dirichlet(alpha[row])`, rows independent; outcome `j` of a pair leads to one state. A
belief is *tied* when several pairs name the same row: `row[pair]`, `arrive[pair, j]` and `outcome[pair, t]` then say
who shares what. When it is not, row and pair are the same, outcome and next state are the same, and these three arrays
are empty, with one axis each.

The reward is value `k` of `K`, of probability `ρ[pair, k]` with `ρ[pair] ~ Dirichlet(reward[:, pair])`, independent of
the outcome; value `k` with outcome `j` pays `paid[k, pair, j]`. `K = 1` are known rewards, perhaps on arrival. `K = 2`
are Bernoulli rewards: value 0 is success, value 1 failure, and where `fractional` a reward a share `x` of the way from
failure to success counts as `x` of one and `1 − x` of the other. Where `K ≤ 2` and the outcome does not matter, `paid`
has two axes, `[k, pair]`. What a step shows is the *column* `k·J + j`.

Rewards are on the scale `(r − low) / width`, and `paid` is on that scale: agents see [0, 1], bounds see `r` itself.

Compiled code knows how many axes an array has, and leaves the branches of the others out: `if arrive.ndim == 1` and
`if paid.ndim == 2` below cost nothing, and a belief without ties takes no time to compile what ties would need. numba
sees that of arguments only, so such functions take the arrays themselves, and are not inlined by numba.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from beliefbound.kernels.draws import dirichlet_row, draw_betas, draw_lanes
from beliefbound.kernels.options import EXACT, EXACT_INLINE

kernel = njit(**EXACT)
chosen = njit(**EXACT_INLINE)  # by the number of axes of its arguments
inlined = njit(inline="always", **EXACT)  # by numba itself: as an argument, so many arrays take long to compile


class Posterior(NamedTuple):
    """Counts, what they started from, and what they are counts of."""

    alpha: np.ndarray  # [row,j]; 0 marks what cannot happen
    reward: np.ndarray  # [k,pair]; unused where K = 1
    prior_alpha: np.ndarray  # [row,j]: what `forget` goes back to
    prior_reward: np.ndarray  # [k,pair]
    row: np.ndarray  # int64 [pair] where tied, else empty
    arrive: np.ndarray  # int64 [pair,j] where tied, else [0]: the next state; −1 where the pair has no such outcome
    outcome: np.ndarray  # int64 [pair,t] where tied, else [0]: the outcome that leads to t, −1 if none does
    paid: np.ndarray  # [k,pair] where K ≤ 2 and the outcome does not matter, else [k,pair,j], or [k,pair,1]
    room: np.ndarray  # [max(J, K)], for one draw
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


@inlined
def row_of(posterior, pair):
    """The row of parameters that a pair has."""
    return posterior.row[pair] if posterior.tied else pair


@inlined
def outcome_of(posterior, pair, t):
    """The outcome of a pair that leads to `t`; −1 if none does."""
    return looked_up(posterior.outcome, pair, t)


@inlined
def arrival_of(posterior, pair, j):
    """The state that outcome `j` of a pair leads to; −1 if the pair has no such outcome."""
    return looked_up(posterior.arrive, pair, j)


@chosen
def looked_up(table, pair, i):
    """`table[pair,i]` where the belief is tied, else `i`."""
    if table.ndim == 1:
        return i
    return table[pair, i]


@inlined
def on_arrival(posterior):
    """Whether rewards depend on the outcome."""
    return posterior.paid.size > posterior.reward.size


@inlined
def paid_for(posterior, k, pair, j):
    """The reward of value `k` with outcome `j`, scaled."""
    return payment(posterior.paid, k, pair, j)


@chosen
def payment(paid, k, pair, j):
    """`paid_for`."""
    if paid.ndim == 2:
        return paid[k, pair]
    return paid[k, pair, max(j, 0) if paid.shape[2] > 1 else 0]


@inlined
def learn(posterior, s, a, r, t):
    """Condition on one transition. What the belief rules out teaches nothing."""
    pair = s * posterior.n_actions + a
    j = outcome_of(posterior, pair, t)
    row = row_of(posterior, pair)
    if j >= 0 and posterior.alpha[row, j] > 0.0:
        posterior.alpha[row, j] += 1.0
    if posterior.reward.shape[0] > 1:
        x = (r - posterior.low) / posterior.width
        if posterior.fractional:
            learn_share(posterior.reward, posterior.paid, pair, j, x)
        else:
            learn_value(posterior.reward, posterior.paid, pair, j, x)


@chosen
def learn_share(counts, paid, pair, j, x):
    """Count a scaled reward `x` between failure and success as a share of each."""
    success, failure = payment(paid, 0, pair, j), payment(paid, 1, pair, j)
    if success == failure:  # pays the same whatever happens: an absorbing state
        return
    if failure != 0.0 or success != 1.0:
        x = (x - failure) / (success - failure)
    counts[0, pair] += x
    counts[1, pair] += 1.0 - x


@kernel
def learn_value(counts, paid, pair, j, x):
    """Count the value that pays what is nearest to a scaled reward `x`."""
    counts[nearest_value(paid, pair, j, x), pair] += 1.0


@chosen
def nearest_value(paid, pair, j, x):
    """The value that pays what is nearest to a scaled reward `x`."""
    nearest = 0
    for k in range(1, paid.shape[0]):
        if abs(payment(paid, k, pair, j) - x) < abs(payment(paid, nearest, pair, j) - x):
            nearest = k
    return nearest


@inlined
def expected(posterior, pair, p):
    """The expected row of a pair to `p[t]`; returns the expected reward."""
    expected_row(posterior.alpha, posterior.arrive, row_of(posterior, pair), pair, p)
    return mean_reward(posterior, pair, p)


@chosen
def expected_row(alpha, arrive, row, pair, p):
    """The expected row of a pair to `p[t]`."""
    total = 0.0
    for j in range(alpha.shape[1]):
        total += alpha[row, j]
    if arrive.ndim == 1:
        for t in range(alpha.shape[1]):
            p[t] = alpha[row, t] / total
    else:
        for t in range(p.size):
            p[t] = 0.0
        for j in range(alpha.shape[1]):
            t = arrive[pair, j]
            if t >= 0:
                p[t] = alpha[row, j] / total


@inlined
def mean_reward(posterior, pair, p):
    """The expected reward of a pair whose next states have the chances `p[t]`."""
    return mean_payment(posterior.reward, posterior.paid, posterior.arrive, pair, p)


@chosen
def mean_payment(counts, paid, arrive, pair, p):
    """`mean_reward`."""
    if counts.shape[0] == 1:
        return payment_on(paid, arrive, 0, pair, p)
    if paid.ndim == 2:
        won, lost = counts[0, pair], counts[1, pair]
        return (won * paid[0, pair] + lost * paid[1, pair]) / (won + lost)
    total, reward = 0.0, 0.0
    for k in range(counts.shape[0]):
        total += counts[k, pair]
        reward += counts[k, pair] * payment_on(paid, arrive, k, pair, p)
    return reward / total


@inlined
def paid_on(posterior, k, pair, p):
    """What value `k` pays on average over next states of chances `p[t]`."""
    return payment_on(posterior.paid, posterior.arrive, k, pair, p)


@chosen
def payment_on(paid, arrive, k, pair, p):
    """`paid_on`."""
    if paid.ndim == 2:
        return paid[k, pair]
    if paid.shape[2] == 1:
        return paid[k, pair, 0]
    total = 0.0
    for j in range(paid.shape[2]):
        t = looked_up(arrive, pair, j)
        if t >= 0:
            total += p[t] * paid[k, pair, j]
    return total


@inlined
def draw(posterior, stream, p, r):
    """Independent models, models last: transitions `p[s,a,t,m]` and expected rewards `r[s,a,m]`."""
    draw_transitions(stream, posterior.alpha, posterior.row, posterior.arrive, p, r, posterior.room)
    draw_rewards(stream, posterior.reward, posterior.paid, posterior.arrive, p, r, posterior.room)


@chosen
def draw_transitions(stream, alpha, row, arrive, p, scratch, room):
    """Transitions `p[s,a,t,m]` of independent models; `scratch[s,a,m]` and `room[j]` are written over."""
    space = scratch.reshape(scratch.size)
    if arrive.ndim == 1:
        draw_lanes(stream, alpha, p.reshape(p.size), space[: p.shape[3]])
    else:
        draw_tied(stream, alpha, row, arrive, p, space, room)


@kernel
def draw_tied(stream, alpha, row, arrive, p, space, room):
    """Transitions `p[s,a,t,m]` of models whose pairs share the rows of `alpha`. All models at once in `space[any]` or,
    where there are more outcomes than pairs, one after another in `room[j]`."""
    n_states, n_actions, _, n = p.shape
    n_rows, n_outcomes = alpha.shape
    at_once = n if space.size >= (n_outcomes + 1) * n else 1
    each, theta = space[:at_once], room[:n_outcomes]
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


@chosen
def draw_rewards(stream, counts, paid, arrive, p, r, room):
    """Expected rewards `r[s,a,m]` of models with transitions `p[s,a,t,m]`; `room[k]` is written over."""
    if paid.ndim == 3:
        draw_values(stream, counts, paid, arrive, p, r, room)
    else:
        n = r.shape[2]
        if counts.shape[0] == 2:
            draw_betas(stream, counts[0], counts[1], 0.0, 1.0, r.reshape(r.size), n, 1)
        stretch(paid, r)


@kernel
def stretch(paid, r):
    """From the chance of success `r[s,a,m]` to the expected reward: success pays `paid[0]`, failure `paid[1]`. Where
    rewards are known, `paid[0]` whatever `r`."""
    n_states, n_actions, n = r.shape
    for pair in range(n_states * n_actions):
        s, a = pair // n_actions, pair % n_actions
        if paid.shape[0] == 1:
            for m in range(n):
                r[s, a, m] = paid[0, pair]
        elif paid[0, pair] != 1.0 or paid[1, pair] != 0.0:
            for m in range(n):
                r[s, a, m] = paid[1, pair] + (paid[0, pair] - paid[1, pair]) * r[s, a, m]


@kernel
def draw_values(stream, counts, paid, arrive, p, r, room):
    """Expected rewards `r[s,a,m]` where there are any number of values, perhaps paid on arrival. Chances of the values
    are drawn to `room[k]`; one value is known, and there is nothing to draw."""
    n_actions, n = r.shape[1:]
    n_values, n_pairs, n_outcomes = paid.shape
    chance = room[:n_values]
    chance[0] = 1.0
    for pair in range(n_pairs):
        s, a = pair // n_actions, pair % n_actions
        at_once = n if n_values == 1 else 1
        for first in range(0, n, at_once):
            if n_values > 1:
                dirichlet_row(stream, counts[:, pair], chance)
            for m in range(first, first + at_once):
                r[s, a, m] = 0.0
            for k in range(n_values):
                for j in range(n_outcomes):
                    t = looked_up(arrive, pair, j)
                    if n_outcomes == 1:
                        for m in range(first, first + at_once):
                            r[s, a, m] += chance[k] * paid[k, pair, 0]
                    elif t >= 0:
                        for m in range(first, first + at_once):
                            r[s, a, m] += chance[k] * paid[k, pair, j] * p[s, a, t, m]
