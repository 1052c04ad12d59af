"""MCBRL: sample models from the posterior, sweep MMBI over them, act greedily (Algorithm 3 of the paper).

At every step: if a plan is due, draw n models; then at most `sweeps` sweeps of MMBI over the models, stopping after one
that changes the values by `Σ_s |ΔV_ξ(s)| < tolerance`; then the action that the last sweep chose in the present state.
With n = 1 this is Thompson sampling.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from beliefbound.kernels.agents.learning import expected_reward, forget, learn, settle, visits
from beliefbound.kernels.draws import beta_lanes, dirichlet_lanes
from beliefbound.kernels.options import EXACT, EXACT_INLINE
from beliefbound.kernels.play import play_runs
from beliefbound.kernels.random import load, save

Floats = npt.NDArray[np.float64]

STEP, DUE, INTERVAL, PLANS, SWEEPS, SIDE = range(6)  # the clock
CONSTANT, LINEAR, DOUBLING, POSTERIOR = range(4)  # schedules
NEVER = np.int64(2**62)


class State(NamedTuple):
    """What the agent believes, the models it holds, their values, and its parameters."""

    stream: npt.NDArray[np.uint64]
    alpha: Floats  # [s,a,t] Dirichlet concentrations
    successes: Floats  # [s,a] Beta parameters of the scaled rewards
    failures: Floats
    p: Floats  # [s,a,t,m] the models
    r: Floats  # [s,a,m]
    w: Floats  # [m] equal weights
    even: Floats  # [s,m] values, current when SIDE is 0
    odd: Floats  # [s,m] values, current when SIDE is 1
    q: Floats  # [s,a,m] scratch
    mixed: Floats  # [s,a] scratch
    vbar: Floats  # [s] mean value over the models
    actions: npt.NDArray[np.int64]  # [s] of the last sweep
    planned_p: Floats  # [s,a,t] expected transitions at the last plan (POSTERIOR only, else empty)
    planned_r: Floats  # [s,a]
    clock: npt.NDArray[np.int64]  # steps taken, step of the next plan, last interval, plans and sweeps made, side
    available: npt.NDArray[np.bool_]  # [s,a]
    concentration: float
    prior_successes: float
    prior_failures: float
    low: float  # rewards are seen as (r − low) / width
    width: float
    discount: float
    schedule: int
    interval: int
    increment: int
    threshold: float
    sweeps: int
    tolerance: float
    warm: bool


@njit(**EXACT)
def reset(state, stream):
    """Back to the prior."""
    save(state.stream, load(stream))
    forget(state)
    state.clock.fill(0)
    state.clock[DUE] = 1


@njit(**EXACT)
def plan(state):
    """Draw new models and set the date of the next plan."""
    dirichlet_lanes(state.stream, state.alpha, state.p)
    beta_lanes(state.stream, state.successes, state.failures, 0.0, 1.0, state.r)
    if not state.warm:
        state.even.fill(0.0)
        state.odd.fill(0.0)
        state.vbar.fill(0.0)
    clock = state.clock
    if state.schedule == POSTERIOR:
        n_states, n_actions, _ = state.alpha.shape
        for s in range(n_states):
            for a in range(n_actions):
                total = visits(state, s, a)
                for t in range(n_states):
                    state.planned_p[s, a, t] = state.alpha[s, a, t] / total
                state.planned_r[s, a] = expected_reward(state, s, a)
        clock[DUE] = NEVER
    else:
        if clock[PLANS] == 0 or state.schedule == CONSTANT:
            clock[INTERVAL] = state.interval
        elif state.schedule == LINEAR:
            clock[INTERVAL] += state.increment
        else:
            clock[INTERVAL] = min(2 * clock[INTERVAL], NEVER)
        clock[DUE] = clock[STEP] + clock[INTERVAL]
    clock[PLANS] += 1


@njit(**EXACT_INLINE)
def act(state, s):
    """Plan if it is due, sweep, and choose."""
    clock = state.clock
    clock[STEP] += 1
    if clock[STEP] >= clock[DUE]:
        plan(state)
    made = settle(state, clock[SIDE], state.tolerance)
    clock[SIDE] = (clock[SIDE] + made) % 2
    clock[SWEEPS] += made
    return state.actions[s]


@njit(**EXACT_INLINE)
def observe(state, s, a, r, t):
    """Condition the belief on one transition; under POSTERIOR, see whether it has moved enough."""
    learn(state, s, a, r, t)
    if state.schedule == POSTERIOR:
        total = visits(state, s, a)
        moved = abs(expected_reward(state, s, a) - state.planned_r[s, a])
        for u in range(state.alpha.shape[2]):
            moved += abs(state.alpha[s, a, u] / total - state.planned_p[s, a, u])
        if moved >= state.threshold:
            state.clock[DUE] = state.clock[STEP] + 1


@njit(**EXACT)
def play(state, outcomes, terminal, address, discount, skipped, every, results):
    """`play_runs` of this agent."""
    play_runs(reset, act, observe, state, outcomes, terminal, address, discount, skipped, every, results)
