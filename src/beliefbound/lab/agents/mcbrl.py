"""MCBRL, Monte Carlo Bayesian reinforcement learning (Algorithm 3 of the paper).

When a plan is due, n models are drawn from the posterior; at every step MMBI sweeps over the models held, at most
`sweeps` times, stopping after a sweep with `Σ_s |ΔV_ξ(s)| < tolerance`, and the agent plays the action that the last
sweep chose in the present state. Values start at 0 and are kept from step to step; they outlive a new draw of models
unless `warm=no`.

Plans are due at step 1 and then, by `schedule`,

* `constant`: every `interval` steps;
* `linear`: after intervals of `interval`, `interval + increment`, `interval + 2·increment`, …;
* `doubling`: after `interval`, `2·interval`, `4·interval`, …;
* `posterior`: at the step after an observation of some `(s,a)` whose expected row has moved by
  `‖E P(·|s,a) − E_plan P(·|s,a)‖₁ + |E x(s,a) − E_plan x(s,a)| ≥ threshold` since the last plan, x the scaled reward.

The defaults are the preset `paper`, the protocol behind the paper's Table 1: linear, 11, 1, so plans at steps
1, 12, 24, 37, 51, …; 10 sweeps, tolerance 1e-3. The preset `solve` sweeps until the values mmbi_sweeps (at most
1000 times: MMBI's values may cycle). With n = 1 the agent is Thompson sampling. Nothing is guaranteed about its regret.

Models of large problems, from some 90 states on under the default prior, are drawn and swept in compressed rows; what
that means to the law of the draws and to the sweeps is in `kernels.planning.compressed_models`.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from beliefbound.base.errors import ParameterError
from beliefbound.base.grammar import Choice, Number, Value
from beliefbound.base.limits import AGENT_BYTES
from beliefbound.base.validation import FloatArray, IntArray
from beliefbound.kernels.options import EXACT, EXACT_INLINE
from beliefbound.kernels.out_of_line import out_of_line
from beliefbound.kernels.planning.compressed_models import CompressedModels
from beliefbound.kernels.planning.held_models import HeldModels, clear, hold, mmbi_sweeps, renew
from beliefbound.kernels.posterior import Posterior, expected, forget, learn
from beliefbound.kernels.random import load, save
from beliefbound.kernels.reference import by_class
from beliefbound.lab.engine.drawn import DrawnMcbrl
from beliefbound.lab.engine.priors import PRIOR, posterior_for
from beliefbound.lab.engine.protocol import DISCOUNT, Machine, Setting
from beliefbound.lab.engine.registry import agent

STEP, DUE, INTERVAL, PLANS, SWEEPS = range(5)  # the clock
SCHEDULES = ("constant", "linear", "doubling", "posterior")
CONSTANT, LINEAR, DOUBLING, POSTERIOR = range(4)
NEVER = np.int64(2**62)

PLANNING = (
    Choice("schedule", "linear", SCHEDULES, "when to draw new models"),
    Number(
        "interval",
        11,
        1,
        2**40,
        "steps from the first plan to the second",
        whole=True,
        needs=("schedule", ("constant", "linear", "doubling")),
    ),
    Number(
        "increment",
        1,
        0,
        2**40,
        "growth of the interval at each plan",
        whole=True,
        needs=("schedule", ("linear",)),
    ),
    Number(
        "threshold",
        0.25,
        0.0,
        3.0,
        "movement of an expected row that makes a plan due",
        above=True,
        needs=("schedule", ("posterior",)),
    ),
    Number("sweeps", 10, 1, 10**6, "most MMBI sweeps a step", whole=True),
    Number("tolerance", 1e-3, 0.0, 1e6, "change of the values that ends a step's sweeps"),
    Choice("warm", "yes", ("yes", "no"), "keep values when new models are drawn"),
    *PRIOR,
    DISCOUNT,
)
PRESETS: Mapping[str, Mapping[str, Value]] = {"paper": {}, "solve": {"sweeps": 1000, "tolerance": 1e-6}}


class State(NamedTuple):
    """What the agent believes, the models it holds, its clock and its parameters."""

    posterior: Posterior
    models: HeldModels | CompressedModels
    stream: np.ndarray  # uint64 [4]
    clock: IntArray  # steps taken, step of the next plan, last interval, plans and sweeps made
    planned_p: FloatArray  # [pair,t] expected transitions at the last plan (POSTERIOR only, else empty)
    planned_r: FloatArray  # [pair]
    row: FloatArray  # [t] scratch
    schedule: int
    interval: int
    increment: int
    threshold: float
    sweeps: int
    tolerance: float
    warm: bool


class Watching(State):
    """The same under POSTERIOR, where rows are watched."""


@njit(**EXACT)
def reset(state, stream):
    """Back to the prior."""
    save(state.stream, load(stream))
    forget(state.posterior)
    clear(state.models)
    for k in range(state.clock.size):
        state.clock[k] = 0
    state.clock[DUE] = 1


@njit(**EXACT_INLINE)
def not_watched(state, pair, forget_it):
    """`moved_since_plan` where nobody asks."""
    return 0.0


@out_of_line
@njit(**EXACT)
def watched(state, pair, forget_it):
    """`moved_since_plan`, by the posterior."""
    reward = expected(state.posterior, pair, state.row)
    moved = abs(reward - state.planned_r[pair])
    for t in range(state.row.size):
        moved += abs(state.row[t] - state.planned_p[pair, t])
        if forget_it:
            state.planned_p[pair, t] = state.row[t]
    if forget_it:
        state.planned_r[pair] = reward
    return moved


@by_class({State: not_watched, Watching: watched}, 0)
def moved_since_plan(state, pair, forget_it):
    """How far the expected row of a pair, and its reward, have moved since the last plan; from now on, if asked."""


@njit(inline="always", **EXACT)
def plan(state):
    """Draw new models and set the date of the next plan."""
    renew(state.posterior, state.stream, state.models)
    if not state.warm:
        clear(state.models)
    clock = state.clock
    if state.schedule == POSTERIOR:
        for pair in range(state.planned_r.size):
            moved_since_plan(state, pair, True)
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
    clock[SWEEPS] += mmbi_sweeps(state.models, state.sweeps, state.tolerance)
    return state.models.actions[s]


@njit(**EXACT_INLINE)
def observe(state, s, a, r, t):
    """Condition the belief on one transition; under POSTERIOR, see whether it has moved enough."""
    learn(state.posterior, s, a, r, t)
    pair = s * state.posterior.n_actions + a
    if state.schedule == POSTERIOR and moved_since_plan(state, pair, False) >= state.threshold:
        state.clock[DUE] = state.clock[STEP] + 1


@agent(
    "mcbrl",
    summary="sample n models from the posterior, sweep MMBI over them, act greedily (the paper's Algorithm 3)",
    parameters=(Number("n", 16, 1, 2**20, "models drawn at a plan", whole=True, always=True), *PLANNING),
    presets=PRESETS,
    drawn=DrawnMcbrl,
)
def mcbrl(setting: Setting, *, n: int, **values: Any) -> Machine:
    """The machine; memory is that of n models."""
    S, A = setting.n_states, setting.n_actions
    if 8 * S * A * S * (n + 1) > AGENT_BYTES:
        gigabytes = 8e-9 * S * A * S * (n + 1)
        raise ParameterError(f"n is {n}: {n} models of {S} states and {A} actions need {gigabytes:.0f} GB; take fewer")
    watches = values["schedule"] == "posterior"
    posterior = posterior_for(setting, values)
    state = (Watching if watches else State)(
        posterior=posterior,
        models=hold(posterior, n, setting.available, setting.discount),
        stream=np.zeros(4, np.uint64),
        clock=np.zeros(5, np.int64),
        planned_p=np.zeros((S * A, S) if watches else (0, 0)),
        planned_r=np.zeros(S * A if watches else 0),
        row=np.zeros(S),
        schedule=SCHEDULES.index(values["schedule"]),
        interval=values["interval"],
        increment=values["increment"],
        threshold=values["threshold"],
        sweeps=values["sweeps"],
        tolerance=values["tolerance"],
        warm=values["warm"] == "yes",
    )
    return Machine(state, reset, act, observe)
