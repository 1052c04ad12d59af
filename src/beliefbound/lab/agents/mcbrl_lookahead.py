"""MCBRL that looks ahead: what a step would teach is part of what it is worth.

As `mcbrl`, n models are drawn when a plan is due and MMBI sweeps over them at every step. In place of MMBI's own
action, which values no information, the agent asks what each action would show. With weights `w_m` of the models, the
posterior after next state t is `w_m P_m(t|s,a)`, up to scale, and there

    lower(t) = max_b Σ_m w_m P_m(t|s,a) Q_m(t,b),    upper(t) = max_b Σ_m w_m P_m(t|s,a) Q*_m(t,b),

`Q_m` by MMBI's values (an action of its own choice, then MMBI's policy), `Q*_m` the model's own optimum (told the model
after one more step: QMDP). It maximises `Σ_m w_m r_m(s,a) + γ Σ_t ((1 − mix) lower(t) + mix upper(t))`, ties to the
lowest action: the policy behind the brackets of this package, on MCBRL's models. Rewards are not part of what is shown.
With `depth=d` this is what stands at the leaves of the tree of all that d steps may show, maximised at every node: what
is learnt now and used after d steps has its value; the work grows as `(actions · next states)^d`, of those next states
that some model held allows.

Between plans the weights follow the transitions seen. A plan is due by the schedule, and *also* when the posterior has
moved away from the models held: when their effective number `1 / Σ w²` falls below `renew · n`. With `schedule=moved`
there is no clock, and only that makes a plan due.

With `schedule=bracket` it is the bracket of the present state's value that has to move, at whatever weights:
`[max_b Σ_m w_m Q_m(s,b), max_b Σ_m w_m Q*_m(s,b)]`. A plan is due at the step after one at which an end of it differs
from where equal weights put it, as they are at a plan, by `shift` times the bracket's width there or more: what was
seen matters to what the agent is about to do. So it is when no model explains what was seen. Ours, as is `moved`; the
bracket is that of the models held, no certificate.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from beliefbound.base.errors import ParameterError
from beliefbound.base.grammar import Choice, Number
from beliefbound.base.validation import FloatArray
from beliefbound.kernels.options import EXACT, EXACT_INLINE
from beliefbound.kernels.planning.held_bounds import Optimum, new_optimum
from beliefbound.kernels.planning.held_models import held_models
from beliefbound.kernels.planning.reached import (
    Reached,
    find_reached,
    mmbi_sweeps_reached,
    new_reached,
    optimum_reached,
)
from beliefbound.kernels.planning.urn import decisions_that_matter
from beliefbound.lab.agents import mcbrl
from beliefbound.lab.agents.mcbrl import DUE, NEVER, PLANNING, PRESETS, SCHEDULES, STEP, SWEEPS
from beliefbound.lab.engine.offline import MOST_A_STEP
from beliefbound.lab.engine.protocol import Machine, Setting
from beliefbound.lab.engine.registry import agent

NARROW = 1e-6  # width below which movements count by themselves


class State(NamedTuple):
    """MCBRL, each model's optimum, weights and parameters."""

    core: mcbrl.State
    alone: Optimum  # of each model by itself
    weights: FloatArray  # [m]
    reached: Reached  # next states that some model allows
    likely: FloatArray  # [left,m]: weights, not normalised, after what steps ahead have shown, by how many are left
    ahead: int  # steps
    depth: int  # decisions that matter
    mix: float
    renew: float  # 0 under `schedule=bracket`
    shift: float  # infinite under any other
    by_clock: bool


@njit(**EXACT)
def reset(state, stream):
    """Back to the prior."""
    mcbrl.reset(state.core, stream)


@njit(**EXACT)
def leaf(models, alone, likely, mix, t):
    """Between what MMBI earns from `t` on and what knowing the model would, at weights that are not normalised."""
    n_actions, n = models.r.shape[1:]
    lower, upper = -np.inf, -np.inf
    for b in range(n_actions):
        if models.available[t, b]:
            below, above = 0.0, 0.0
            for m in range(n):
                below += likely[m] * models.q[t, b, m]
                above += likely[m] * alone.q[t, b, m]
            lower, upper = max(lower, below), max(upper, above)
    return lower + mix * (upper - lower)


@njit(**EXACT)
def look_ahead(models, alone, reached, likely, mix, s, left):
    """`(value, action)` of the largest value, with weights `likely[left]`, `left ≥ 1` steps ahead. (A number that a
    caller writes out would be a type of its own, and of functions that call themselves numba keeps only one on
    disk.)"""
    n_actions, n = models.r.shape[1:]
    chosen, best = -1, -np.inf
    for a in range(n_actions):
        if not models.available[s, a]:
            continue
        total = 0.0
        for m in range(n):
            total += likely[left, m] * models.r[s, a, m]
        for k in range(reached.many[s, a]):
            t, chance = reached.states[s, a, k], 0.0
            for m in range(n):
                likely[left - 1, m] = likely[left, m] * models.p[s, a, t, m]
                chance += likely[left - 1, m]
            if chance > 0.0 and left == 1:
                total += models.discount * leaf(models, alone, likely[0], mix, t)
            elif chance > 0.0:
                total += models.discount * look_ahead(models, alone, reached, likely, mix, t, left - 1)[0]
        if total > best:
            chosen, best = a, total
    return best, chosen


@njit(**EXACT)
def bracket_moved(models, alone, weights, s):
    """How far an end of the bracket at `s` is from where equal weights put it, in widths of that."""
    n_actions, n = models.r.shape[1:]
    lower = upper = first_lower = first_upper = -np.inf
    for b in range(n_actions):
        if models.available[s, b]:
            below = above = first_below = first_above = 0.0
            for m in range(n):
                below += weights[m] * models.q[s, b, m]
                above += weights[m] * alone.q[s, b, m]
                first_below += models.q[s, b, m] / n
                first_above += alone.q[s, b, m] / n
            lower, first_lower = max(lower, below), max(first_lower, first_below)
            upper, first_upper = max(upper, above), max(first_upper, first_above)
    moved = max(abs(lower - first_lower), abs(upper - first_upper))
    return moved / max(first_upper - first_lower, NARROW)


@njit(**EXACT_INLINE)
def act(state, s):
    """Plan if it is due, sweep, and look ahead."""
    core, weights = state.core, state.weights
    clock = core.clock
    clock[STEP] += 1
    if clock[STEP] >= clock[DUE]:
        mcbrl.plan(core)
        find_reached(core.models.p, state.reached)
        optimum_reached(core.models, state.reached, state.alone, state.depth, core.tolerance)
        for m in range(weights.size):
            weights[m] = 1.0 / weights.size
        if not state.by_clock:
            clock[DUE] = NEVER
    clock[SWEEPS] += mmbi_sweeps_reached(core.models, state.reached, core.sweeps, core.tolerance)
    if state.shift < np.inf and bracket_moved(core.models, state.alone, weights, s) >= state.shift:
        clock[DUE] = clock[STEP] + 1
    for m in range(weights.size):
        state.likely[state.ahead, m] = weights[m]
    return look_ahead(core.models, state.alone, state.reached, state.likely, state.mix, s, state.ahead)[1]


@njit(**EXACT)
def reweigh(p, weights, s, a, t):
    """Weights after a transition, alike where no model explains it; returns their effective number, then 0."""
    total, squares = 0.0, 0.0
    for m in range(weights.size):
        weights[m] *= p[s, a, t, m]
        total += weights[m]
    for m in range(weights.size):
        weights[m] = weights[m] / total if total > 0.0 else 1.0 / weights.size
        squares += weights[m] * weights[m]
    return 1.0 / squares if total > 0.0 else 0.0


@njit(**EXACT_INLINE)
def observe(state, s, a, r, t):
    """Condition the belief, and the weights of the models held, on one transition."""
    core = state.core
    mcbrl.observe(core, s, a, r, t)
    effective = reweigh(core.models.p, state.weights, s, a, t)
    if effective < state.renew * state.weights.size or effective == 0.0:
        core.clock[DUE] = core.clock[STEP] + 1


@agent(
    "mcbrl-lookahead",
    summary="MCBRL that looks one step ahead, between MMBI and knowing the model; new models when few fit",
    parameters=(
        Number("n", 16, 1, 2**20, "models drawn at a plan", whole=True, always=True),
        Number("depth", 1, 1, 12, "steps looked ahead", whole=True),
        Number("mix", 0.6, 0.0, 1.0, "of knowing the model after the next step"),
        Number(
            "renew",
            0.5,
            0.0,
            1.0,
            "share of effective models below which a plan is due",
            needs=("schedule", (*SCHEDULES, "moved")),
        ),
        Number(
            "shift",
            0.25,
            0.0,
            1e6,
            "movement of the bracket, in its widths, that makes a plan due",
            above=True,
            needs=("schedule", ("bracket",)),
        ),
        Choice("schedule", "linear", (*SCHEDULES, "moved", "bracket"), "when to draw new models"),
        *(parameter for parameter in PLANNING if parameter.name != "schedule"),
    ),
    presets=PRESETS,
)
def mcbrl_lookahead(
    setting: Setting, *, n: int, depth: int, mix: float, renew: float, shift: float, schedule: str, **values: Any
) -> Machine:
    """The machine; memory is that of n models."""
    by_clock, watched = schedule in SCHEDULES, schedule == "bracket"
    if not by_clock and n == 1:
        raise ParameterError(f"schedule={schedule} with n=1: one model always fits as well as itself; take n=2 or more")
    core = mcbrl.mcbrl(setting, n=n, schedule=schedule if by_clock else "linear", **values).state
    successors = core.posterior.alpha.shape[1]
    work = n * setting.n_actions * (setting.n_actions * successors) ** float(depth)
    if work > MOST_A_STEP:
        raise ParameterError(
            f"depth is {depth}, n {n}: looking so far among {successors} next states may take {work:.1g} operations at "
            "every step; take less of either, or a smaller environment"
        )
    core = core._replace(models=held_models(n, setting.available, setting.discount))  # dense, whatever the size
    state = State(
        core=core,
        alone=new_optimum(setting.n_states, setting.n_actions, n),
        weights=np.full(n, 1.0 / n),
        reached=new_reached(setting.n_states, setting.n_actions),
        likely=np.zeros((depth + 1, n)),
        ahead=depth,
        depth=decisions_that_matter(setting.discount),
        mix=float(mix),
        renew=0.0 if watched else float(renew),
        shift=float(shift) if watched else np.inf,
        by_clock=by_clock,
    )
    return Machine(state, reset, act, observe)
