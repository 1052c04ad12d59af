"""What to do at a hyperstate, in one call: particles of the posterior, solved; a pool of policies; one step ahead.

One call, because a step of a trajectory on a small problem takes less time than handing arrays to a kernel ten times.
All of it is done in the arrays of a `Desk`, and allocates nothing.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from beliefbound.kernels.options import FAST
from beliefbound.kernels.particles.hyperstate import look_ahead, step
from beliefbound.kernels.particles.rows import (
    Problem,
    Room,
    Rows,
    clear,
    expected_rows,
    n_columns,
    new_room,
    new_rows,
    next_state,
    particles_at,
    width_of,
)
from beliefbound.kernels.particles.solving import Scratch, follow_held, scratch_for, solve_held


class Expected(NamedTuple):
    """The expected MDP, as one model, and what it takes to solve it."""

    mean: np.ndarray  # [pair,t + 1 + K,1]
    slots: np.ndarray  # int64 [pair]: 0, 1, …
    policy: np.ndarray  # int64 [s,1]
    q: np.ndarray  # [1,pair,1]
    room: Room
    scratch: Scratch


class Desk(NamedTuple):
    """Arrays of one thread that looks ahead with m particles and a pool of i policies."""

    rows: Rows
    slots: np.ndarray  # int64 [pair]
    weights: np.ndarray  # [m], all equal
    likely: np.ndarray  # [m]
    own: np.ndarray  # int64 [s,m]: optimal policies
    q: np.ndarray  # [2,pair,m]
    pool: np.ndarray  # int64 [i,s]
    values: np.ndarray  # [i,s,m]
    held: np.ndarray  # [i]
    guide: np.ndarray  # [a,column]
    scratch: Scratch
    expected: Expected


def new_expected(problem: Problem) -> Expected:
    """For any posterior of a problem's belief."""
    pairs, n_states = len(problem.available), problem.n_states
    return Expected(
        mean=np.empty((pairs, width_of(problem), 1)),
        slots=np.arange(pairs),
        policy=np.empty((n_states, 1), dtype=np.int64),
        q=np.empty((1, pairs, 1)),
        room=new_room(problem, 1),
        scratch=scratch_for(pairs, n_states, 1),
    )


def new_desk(problem: Problem, n: int, n_pool: int, spare: int) -> Desk:
    """For `n` particles, a pool of `n_pool` policies, and draws of every pair and so many to `spare`."""
    pairs, n_states = len(problem.available), problem.n_states
    return Desk(
        rows=new_rows(problem, pairs + spare, n),
        slots=np.empty(pairs, dtype=np.int64),
        weights=np.full(n, 1.0 / n),
        likely=np.empty(n),
        own=np.empty((n_states, n), dtype=np.int64),
        q=np.empty((2, pairs, n)),
        pool=np.empty((n_pool, n_states), dtype=np.int64),
        values=np.empty((n_pool, n_states, n)),
        held=np.empty(n_pool),
        guide=np.empty((problem.posterior.n_actions, n_columns(problem))),
        scratch=scratch_for(pairs, n_states, n),
        expected=new_expected(problem),
    )


@njit(**FAST)
def expected_policy(problem, expected, counts, first, left):
    """`expected.policy[s,0]`, the optimal actions of the expected MDP after `counts[pair,column]`, found from
    `first[s]`; with `left` decisions to go those of the first step, below 0 for ever. The MDP is left in its `mean`."""
    n_states, n_actions = problem.n_states, problem.posterior.n_actions
    policy, q = expected.policy, expected.q
    expected_rows(problem, counts, expected.room, expected.mean)
    for s in range(n_states):
        policy[s, 0] = first[s]
    solve_held(problem.discount, expected.mean, expected.slots, left, policy, q, expected.scratch)
    if left >= 0:
        for s in range(n_states):
            policy[s, 0] = np.argmax(q[0, s * n_actions : (s + 1) * n_actions, 0])


@njit(**FAST)
def look(problem, desk, counts, s, left, first, mix):
    """`(action, gap)` of `hyperstate.look_ahead` after `counts[pair,column]` in state `s`, which writes `desk.guide`.

    The pool are the expected MDP's policy and particles' own.
    """
    n_states, n_actions = problem.n_states, problem.posterior.n_actions
    rows, slots, own, pool, values = desk.rows, desk.slots, desk.own, desk.pool, desk.values
    draws, expected = rows.draws, desk.expected.policy
    while not particles_at(problem, rows, 0, counts, slots):
        clear(rows)  # there is space for a row of every pair
    expected_policy(problem, desk.expected, counts, first, left)
    for t in range(n_states):
        for m in range(own.shape[1]):
            own[t, m] = expected[t, 0]
    q = desk.q[: 1 if left < 0 else 2]
    solve_held(problem.discount, draws, slots, left, own, q, desk.scratch)
    for i in range(pool.shape[0]):
        for t in range(n_states):
            if i == 0:
                pool[i, t] = expected[t, 0]
            elif left < 0:
                pool[i, t] = own[t, i - 1]
            else:
                pool[i, t] = np.argmax(q[0, t * n_actions : (t + 1) * n_actions, i - 1])
        later = max(0, left - 1) if left >= 0 else -1
        follow_held(problem.discount, draws, slots, later, pool[i], values[i], desk.scratch)
    return look_ahead(problem, draws, slots, q, pool, values, s, mix, desk.weights, desk.likely, desk.held, desk.guide)


@njit(**FAST)
def walk(problem, desk, first, lows, floor, counts, u, stages, limits, sums):
    """Follow the policy under the belief from stage `stages[0]` up to `stages[1]`; true where it stops to learn before.

    `stages` are the stage, the last one, the state, the horizon or −1, and the first number of decisions left, or −1,
    that is planned for as for ever; `limits` are the tolerance below which it stops and the share of what is above in
    its look-ahead; `sums` the value so far, the factor of what follows, and the steps taken. All but the limits are
    advanced, and so are `counts`. `lows[stage,s]`, or one row for all stages, is the least that can follow, `floor` the
    least sum of all. The rest is as for `look`.
    """
    n_actions = problem.posterior.n_actions
    while stages[0] < stages[1]:
        stage, s = stages[0], stages[2]
        left = -1 if stages[3] < 0 or stages[3] - stage >= stages[4] else stages[3] - stage
        a, gap = look(problem, desk, counts, s, left, first, limits[1])
        if problem.discount**stage * gap <= limits[0]:
            return True
        now, low = lows[min(stage, lows.shape[0] - 1), s], lows[min(stage + 1, lows.shape[0] - 1)]
        slack = max(0.0, (sums[0] - floor) / sums[1] + now)
        column, value = step(problem, counts, desk.rows.room, s, a, desk.guide, u[stage], now, low, slack)
        pair = s * n_actions + a
        sums[0] += sums[1] * value
        sums[1] *= problem.discount * problem.keep[pair]
        sums[2] += 1.0
        stages[0], stages[2] = stage + 1, next_state(problem.posterior, pair, column)
    return False
