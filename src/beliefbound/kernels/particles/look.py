"""What to do at a hyperstate, in one call: particles of the posterior, solved; a pool of policies; one step ahead.

One call, because a step of a trajectory on a small problem takes less time than handing arrays to a kernel ten times.
All of it is done in the arrays of a `LookSpace`, and allocates nothing.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from beliefbound.kernels.options import FAST
from beliefbound.kernels.out_of_line import out_of_line
from beliefbound.kernels.particles.hyperstate import look_ahead, step
from beliefbound.kernels.particles.rows import (
    BAMDP,
    Rows,
    Scratch,
    clear,
    expected_rows,
    n_columns,
    new_rows,
    new_scratch,
    next_state,
    particles_at,
    width_of,
)
from beliefbound.kernels.particles.solving import Models, follow, models_in, solve
from beliefbound.kernels.reference import by_reference

STAGE, STATE = range(2)  # `Trajectory.place`
EARNED, FACTOR, STEPS = range(3)  # `Trajectory.sums`


@by_reference
class Expected(NamedTuple):
    """The expected MDP, as one model, and what it takes to solve it."""

    models: Models  # `draws[pair,t + 1 + K,0]` is the posterior mean
    scratch: Scratch


@by_reference
class LookSpace(NamedTuple):
    """Arrays of one thread that looks ahead with m particles and a pool of i policies."""

    rows: Rows
    models: Models  # the particles at a posterior: their optimal policies, and values now and one step later
    expected: Expected
    weights: np.ndarray  # [m], all equal
    likely: np.ndarray  # [m]
    pool: np.ndarray  # int64 [i,s]
    values: np.ndarray  # [i,s,m]
    held: np.ndarray  # [i]
    guide: np.ndarray  # [a,column]


@by_reference
class TrajectoryParameters(NamedTuple):
    """How long a trajectory learns, and how it looks ahead."""

    until: int  # the stage at which it ends at the latest
    horizon: int  # decisions; −1 for ever
    short: int  # so many decisions left, or more, are planned for as for ever
    tolerance: float  # it stops to learn where no more than this is left to gain
    mix: float  # the share of what is above in its look-ahead
    floor: float  # the least sum of all


@by_reference
class Trajectory(NamedTuple):
    """Where a trajectory is, and what it has earned."""

    counts: np.ndarray  # int64 [pair,column]
    place: np.ndarray  # int64 [STAGE, STATE]
    sums: np.ndarray  # [EARNED, FACTOR of what follows, STEPS taken]


def new_expected(problem: BAMDP) -> Expected:
    """For any posterior of a problem's belief."""
    pairs = len(problem.available)
    mean, q = np.empty((pairs, width_of(problem), 1)), np.empty((1, pairs, 1))
    models = models_in(mean, np.arange(pairs), np.empty((problem.n_states, 1), dtype=np.int64), q)
    return Expected(models, new_scratch(problem, 1))


def new_look_space(problem: BAMDP, n: int, n_pool: int, spare: int) -> LookSpace:
    """For `n` particles, a pool of `n_pool` policies, and draws of every pair and so many to `spare`."""
    pairs, n_states = len(problem.available), problem.n_states
    rows = new_rows(problem, pairs + spare, n)
    policy, q = np.empty((n_states, n), dtype=np.int64), np.empty((2, pairs, n))
    return LookSpace(
        rows=rows,
        models=models_in(rows.draws, np.empty(pairs, dtype=np.int64), policy, q),
        expected=new_expected(problem),
        weights=np.full(n, 1.0 / n),
        likely=np.empty(n),
        pool=np.empty((n_pool, n_states), dtype=np.int64),
        values=np.empty((n_pool, n_states, n)),
        held=np.empty(n_pool),
        guide=np.empty((problem.posterior.n_actions, n_columns(problem))),
    )


@out_of_line
@njit(**FAST)
def expected_policy(problem, expected, counts, first, left):
    """`expected.models.policy[s,0]`, the optimal actions of the expected MDP after `counts[pair,column]`, found from
    `first[s]`; with `left` decisions to go those of the first step, below 0 for ever. The MDP is left in its draws."""
    models = expected.models
    policy, q, n_actions = models.policy, models.q, problem.posterior.n_actions
    expected_rows(problem, counts, expected.scratch, models.draws)
    for s in range(problem.n_states):
        policy[s, 0] = first[s]
    solve(problem.discount, left, models)
    if left >= 0:
        for s in range(problem.n_states):
            policy[s, 0] = np.argmax(q[0, s * n_actions : (s + 1) * n_actions, 0])


@out_of_line
@njit(**FAST)
def look(problem, space, counts, s, left, first, mix):
    """`(action, gap)` of `hyperstate.look_ahead` after `counts[pair,column]` in state `s`, which writes
    `space.guide`.

    The pool are the expected MDP's policy and particles' own.
    """
    n_states, n_actions = problem.n_states, problem.posterior.n_actions
    rows, models, pool, values = space.rows, space.models, space.pool, space.values
    own, q, expected = models.policy, models.q, space.expected.models.policy
    while not particles_at(problem, rows, counts, models.slots):
        clear(rows)  # there is space for a row of every pair
    expected_policy(problem, space.expected, counts, first, left)
    for t in range(n_states):
        for m in range(own.shape[1]):
            own[t, m] = expected[t, 0]
    solve(problem.discount, left, models)
    for i in range(pool.shape[0]):
        for t in range(n_states):
            if i == 0:
                pool[i, t] = expected[t, 0]
            elif left < 0:
                pool[i, t] = own[t, i - 1]
            else:
                pool[i, t] = np.argmax(q[0, t * n_actions : (t + 1) * n_actions, i - 1])
        later = max(0, left - 1) if left >= 0 else -1
        follow(problem.discount, later, models, pool[i], values[i])
    return look_ahead(problem, space, s, 0 if left < 0 else 1, mix)


@njit(**FAST)
def walk(problem, space, parameters, trajectory, first, lows, u):
    """Follow the policy under the belief, by the uniforms `u[stage]`; true where it stops to learn before its end.

    `lows[stage,s]`, or one row for all stages, is the least that can follow; `first` is as for `look`.
    """
    counts, place, sums = trajectory.counts, trajectory.place, trajectory.sums
    while place[STAGE] < parameters.until:
        stage, s = place[STAGE], place[STATE]
        left = (
            parameters.horizon - stage
            if parameters.horizon >= 0 and parameters.horizon - stage < parameters.short
            else np.int64(-1)
        )
        a, gap = look(problem, space, counts, s, left, first, parameters.mix)
        if problem.discount**stage * gap <= parameters.tolerance:
            return True
        now, low = lows[min(stage, lows.shape[0] - 1), s], lows[min(stage + 1, lows.shape[0] - 1)]
        slack = max(0.0, (sums[EARNED] - parameters.floor) / sums[FACTOR] + now)
        column, value = step(problem, counts, space.rows.scratch, s, a, space.guide, u[stage], now, low, slack)
        pair = s * problem.posterior.n_actions + a
        sums[EARNED] += sums[FACTOR] * value
        sums[FACTOR] *= problem.discount * problem.keep[pair]
        sums[STEPS] += 1.0
        place[STAGE], place[STATE] = stage + 1, next_state(problem.posterior, pair, column)
    return False
