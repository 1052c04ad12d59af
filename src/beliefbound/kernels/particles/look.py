"""What to do at a hyperstate, in one call: particles of the posterior, solved; a pool of policies; one step ahead.

One call, because a step of a trajectory on a small problem takes less time than handing arrays to a kernel ten times.
"""

import numpy as np
from numba import njit

from beliefbound.kernels.options import FAST
from beliefbound.kernels.particles.hyperstate import look_ahead, step
from beliefbound.kernels.particles.rows import clear, expected_rows, next_state, particles_at
from beliefbound.kernels.particles.solving import compiled_scratch, follow_held, solve_held


@njit(**FAST)
def expected_policy(problem, counts, first, left, mean):
    """The optimal actions `[s]` of the expected MDP after `counts[pair,column]`, found from `first[s]`; with `left`
    decisions to go those of the first step, below 0 for ever. `mean[pair,t + 1 + K,1]` is scratch."""
    n_states, n_actions = problem.n_states, problem.posterior.n_actions
    expected_rows(problem, counts, mean)
    policy = np.empty((n_states, 1), np.int64)
    for s in range(n_states):
        policy[s, 0] = first[s]
    q = np.empty((1, counts.shape[0], 1))
    scratch = compiled_scratch(counts.shape[0], n_states, 1)
    solve_held(problem.discount, mean, np.arange(counts.shape[0]), left, policy, q, scratch)
    if left >= 0:
        for s in range(n_states):
            policy[s, 0] = np.argmax(q[0, s * n_actions : (s + 1) * n_actions, 0])
    return policy[:, 0]


@njit(**FAST)
def look(problem, rows, slots, weights, likely, counts, s, left, first, mean, n_pool, mix, guide):
    """`(action, gap)` of `hyperstate.look_ahead` after `counts[pair,column]` in state `s`, which writes `guide`.

    The pool are the expected MDP's policy and particles' own. `slots[pair]`, `likely[m]` and `mean` are scratch; there
    must be space for a row of every pair.
    """
    n_states, n_actions, n = problem.n_states, problem.posterior.n_actions, weights.size
    particles_at(problem, rows, 0, counts, slots)
    expected = expected_policy(problem, counts, first, left, mean)
    own = np.empty((n_states, n), np.int64)
    for t in range(n_states):
        own[t] = expected[t]
    q = np.empty((1 if left < 0 else 2, slots.size, n))
    scratch = compiled_scratch(slots.size, n_states, n)
    solve_held(problem.discount, rows.draws, slots, left, own, q, scratch)
    pool = np.empty((n_pool, n_states), np.int64)
    values = np.empty((n_pool, n_states, n))
    for i in range(n_pool):
        for t in range(n_states):
            if i == 0:
                pool[i, t] = expected[t]
            elif left < 0:
                pool[i, t] = own[t, i - 1]
            else:
                pool[i, t] = np.argmax(q[0, t * n_actions : (t + 1) * n_actions, i - 1])
        later = max(0, left - 1) if left >= 0 else -1
        follow_held(problem.discount, rows.draws, slots, later, pool[i], values[i], scratch)
    return look_ahead(problem, rows.draws, slots, q, pool, values, s, mix, weights, likely, guide)


@njit(**FAST)
def walk(problem, rows, slots, weights, likely, first, mean, pool, lows, floor, counts, u, stages, limits, sums):
    """Follow the policy under the belief from stage `stages[0]` up to `stages[1]`; true where it stops to learn before.

    `stages` are the stage, the last one, the state, the horizon or −1, and the first number of decisions left, or −1,
    that is planned for as for ever; `limits` are the tolerance below which it stops and the share of what is above in
    its look-ahead; `sums` the value so far, the factor of what follows, and the steps taken. All but the limits are
    advanced, and so are `counts`. `lows[stage,s]`, or one row for all stages, is the least that can follow, `floor` the
    least sum of all. The rest is as for `look`; `pool` is the number of policies in it.
    """
    n_actions = problem.posterior.n_actions
    guide = np.empty((n_actions, counts.shape[1]))
    while stages[0] < stages[1]:
        stage, s = stages[0], stages[2]
        left = -1 if stages[3] < 0 or stages[3] - stage >= stages[4] else stages[3] - stage
        if rows.size[0] + slots.size > rows.draws.shape[0]:
            clear(rows)
        a, gap = look(problem, rows, slots, weights, likely, counts, s, left, first, mean, pool, limits[1], guide)
        if problem.discount**stage * gap <= limits[0]:
            return True
        now, low = lows[min(stage, lows.shape[0] - 1), s], lows[min(stage + 1, lows.shape[0] - 1)]
        slack = max(0.0, (sums[0] - floor) / sums[1] + now)
        column, value = step(problem, counts, s, a, guide, u[stage], now, low, slack)
        pair = s * n_actions + a
        sums[0] += sums[1] * value
        sums[1] *= problem.discount * problem.keep[pair]
        sums[2] += 1.0
        stages[0], stages[2] = stage + 1, next_state(problem.posterior, pair, column)
    return False
