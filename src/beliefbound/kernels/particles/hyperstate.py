"""One step of a policy under a Dirichlet belief: look ahead on particles, then draw the outcome from the belief itself.

The hyperstate (counts, state) has closed-form predictive probabilities: `α_j / Σα` for the outcome, times `n_k / Σn`
for the value of the reward. Particles at the hyperstate (`kernels.particles.rows`) say what to do and supply a control
variate: for any function `Φ` of history, action and outcome, `E[Φ | x,a] − Φ(outcome)` has mean zero under the exact
predictive. So what is summed up is unbiased for the value of the policy under the belief, however poor the particles
are. Shares of it, fixed before the outcome is drawn, keep the sum above a floor that no rewards alone fall below: what
is summed up has a known range.
"""

import numpy as np
from numba import njit

from beliefbound.kernels.options import FAST
from beliefbound.kernels.out_of_line import out_of_line
from beliefbound.kernels.particles.rows import chances, dot, next_state, predictive
from beliefbound.kernels.random import inverse_cdf


@out_of_line
@njit(**FAST)
def look_ahead(problem, space, s, last, mix):
    """`(action, gap)` in state `s`: the action that maximises `(1 − mix) · lower + mix · upper` one step ahead (ties:
    lowest), and how far the best policy of the pool is from QMDP.

    Of the space (`kernels.particles.look`), `models.q[i,pair,m]` are optimal values now and, for `i = last`, one step
    later; `pool[i,s]` are stationary policies and `values[i,s,m]` their values one step later; `weights[m]` are all
    equal. Writes `guide[a,column]`, the same mix of lower and upper value after each outcome.
    """
    draws, slots, q = space.models.draws, space.models.slots, space.models.q
    pool, values, guide = space.pool, space.values, space.guide
    weights, likely, held = space.weights, space.likely, space.held
    n_actions, later = problem.posterior.n_actions, q[last]
    held.fill(0.0)
    best, chosen, top = -np.inf, 0, -np.inf
    for a in range(n_actions):
        pair = s * n_actions + a
        guide[a].fill(0.0)
        if not problem.available[pair]:
            continue
        row = draws[slots[pair]]
        reward = dot(weights, row[problem.n_states])
        top = max(top, dot(weights, q[0, pair]))
        for i in range(pool.shape[0]):
            if pool[i, s] == a:
                held[i] += reward
        total = reward
        for column in range(guide.shape[1]):
            t = next_state(problem.posterior, pair, column)
            if t < 0:
                continue
            p = chances(problem, row, weights, pair, column, likely)
            if p <= 0.0:
                continue
            upper, lower = -np.inf, -np.inf
            for b in range(n_actions):
                upper = max(upper, dot(likely, later[t * n_actions + b]))
            for i in range(pool.shape[0]):
                value = dot(likely, values[i, t])
                lower = max(lower, value)
                if pool[i, s] == a:
                    held[i] += problem.discount * value
            mixed = lower + mix * (upper - lower)
            guide[a, column] = mixed / p
            total += problem.discount * mixed
        if total > best:
            best, chosen = total, a
    return chosen, top - held.max()


@out_of_line
@njit(**FAST)
def step(problem, counts, scratch, s, a, guide, u, now, low, slack):
    """`(column, value)`: the outcome at quantile `u` of the exact predictive after `counts[pair,column]`, which are
    advanced, and the expected reward plus a share of `γ (E[guide] − guide[column])`.

    The share is the largest up to 1 with which every outcome leaves the sum of values, and `low[t]` for what follows,
    at most `slack` below where it was with `now`: known before the outcome is, so the mean stays zero.
    """
    pair = s * problem.posterior.n_actions + a
    p = scratch.p
    reward = predictive(problem, counts, pair, scratch)
    factor, centre, share = problem.discount * problem.keep[pair], dot(p, guide[a]), 1.0
    for c in range(p.size):
        fall = factor * (guide[a, c] - centre)
        if p[c] > 0.0 and fall > 0.0:
            most = slack + reward + factor * low[next_state(problem.posterior, pair, c)] - now
            share = min(share, max(0.0, most) / fall)
    column = inverse_cdf(p, u)
    counts[pair, column] += 1
    return column, reward + share * factor * (centre - guide[a, column])
