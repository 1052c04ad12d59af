"""E³, explicit explore or exploit (Kearns & Singh, Machine Learning 2002).

A state is *known* once each of its actions has been tried m times. In a state that is not, the agent takes the action
it has tried least there (balanced wandering). In a known state it decides, for the next T steps or until it meets a
state that is not known, on the empirical model of the known states K:

* exploration maximises the probability of leaving K within T steps, `e_k(s) = max_a Σ_{t∈K} p̂ e_{k−1}(t) + Σ_{t∉K} p̂`;
* exploitation maximises T discounted rewards within K; what lies outside pays nothing.

It explores if `e_T(s) > threshold`, else it exploits. The threshold of the analysis is `ε / (2 Gmax)`, with
`Gmax = 1/(1 − γ)` the largest return, and `T = ln(1/(ε(1−γ))) / (1 − γ)`: the defaults, for `ε` = `epsilon`. The
analysis asks for m beyond reach; 16 is usual on RiverSwim. Both policies depend on the steps left. Counts of known
states go on growing, and are used at the next decision. Uses no prior.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from beliefbound.base.errors import ParameterError
from beliefbound.base.grammar import Number
from beliefbound.base.validation import BoolArray, IntArray
from beliefbound.kernels.actions import ActionLists, action_lists
from beliefbound.kernels.options import EXACT, EXACT_INLINE
from beliefbound.kernels.planning.empirical import Counts, count, estimate, forget_counts, no_counts, unknown
from beliefbound.kernels.planning.optimism import MEAN, OptimisticModel, sweep
from beliefbound.lab.agents.common.optimism import MAX_BYTES, model_for
from beliefbound.lab.engine.protocol import DISCOUNT, Machine, Setting
from beliefbound.lab.engine.registry import agent


class State(NamedTuple):
    """Counts, the two models of the known states, and the plan being followed."""

    counts: Counts
    explore: OptimisticModel  # pays the probability of leaving the known states
    exploit: OptimisticModel
    known: BoolArray  # [s]
    plan: IntArray  # [k,s]: the action with k + 1 steps left
    left: IntArray  # [1]: steps left of the plan
    lists: ActionLists
    needed: int
    threshold: float


@njit(**EXACT)
def reset(state, stream):
    """Nothing known. No random numbers are used."""
    forget_counts(state.counts)
    state.known.fill(False)
    state.left[0] = 0


@njit(**EXACT_INLINE)
def least_tried(lists, visits, s):
    """The offered action with the fewest visits, ties to the lowest."""
    best = lists.offered[s, 0]
    for i in range(1, lists.counts[s]):
        a = lists.offered[s, i]
        if visits[s, a] < visits[s, best]:
            best = a
    return best


@njit(inline="always", **EXACT)
def restrict(state):
    """The empirical model of the known states, for both purposes."""
    unknown(state.explore, 0.0)
    unknown(state.exploit, 0.0)
    n_states = state.known.size
    for s in range(n_states):
        if state.known[s]:
            for i in range(state.lists.counts[s]):
                a = state.lists.offered[s, i]
                estimate(state.counts, state.exploit, s, a)
                state.explore.blank[s, a] = False
                for t in range(n_states):
                    if state.known[t]:
                        state.explore.p[s, a, t] = state.exploit.p[s, a, t]
                    else:
                        state.explore.r[s, a] += state.exploit.p[s, a, t]
                        state.exploit.p[s, a, t] = 0.0


@njit(**EXACT)
def look_ahead(model, plan):
    """The policy for every number of steps left, by backward induction; `model.v` becomes the value of them all."""
    for k in range(plan.shape[0]):
        sweep(model)
        for s in range(plan.shape[1]):
            plan[k, s] = model.actions[s]


@njit(**EXACT)
def decide(state, s):
    """Explore or exploit, from a known state on."""
    restrict(state)
    look_ahead(state.explore, state.plan)
    if not state.explore.v[s] > state.threshold:
        look_ahead(state.exploit, state.plan)
    state.left[0] = state.plan.shape[0]


@njit(**EXACT_INLINE)
def act(state, s):
    """Wander, or follow a plan."""
    if not state.known[s]:
        state.left[0] = 0
        return least_tried(state.lists, state.counts.visits, s)
    if state.left[0] == 0:
        decide(state, s)
    state.left[0] -= 1
    return state.plan[state.left[0], s]


@njit(**EXACT_INLINE)
def observe(state, s, a, r, t):
    """Count, and see whether the state has become known."""
    if count(state.counts, s, a, r, t) >= state.needed and not state.known[s]:
        state.known[s] = state.counts.visits[s, least_tried(state.lists, state.counts.visits, s)] >= state.needed


@agent(
    "e3",
    summary="balanced wandering, then explicit explore or exploit (Kearns & Singh 2002)",
    parameters=(
        Number("m", 16, 1, 2**40, "tries of each action that make a state known", whole=True, always=True),
        Number("epsilon", 0.1, 0.0, 1.0, "accuracy that sets the defaults below", above=True),
        Number("threshold", None, 0.0, 1.0, "probability of escape worth exploring", auto="epsilon(1-discount)/2"),
        Number(
            "horizon", None, 1, 10**7, "steps of a plan", whole=True, auto="ln(1/(epsilon(1-discount)))/(1-discount)"
        ),
        DISCOUNT,
    ),
)
def e3(
    setting: Setting, *, m: int, epsilon: float, threshold: float | None, horizon: int | None, discount: float
) -> Machine:
    """The machine; memory is that of a policy for each of the steps of a plan, besides the model."""
    rest = 1.0 - discount
    if threshold is None:
        threshold = epsilon * rest / 2.0
    if horizon is None:
        horizon = max(1, math.ceil(-math.log(epsilon * rest) / rest))
    if 8 * horizon * setting.n_states > MAX_BYTES:
        raise ParameterError(
            f"horizon is {horizon}: plans of so many steps for {setting.n_states} states need "
            f"{8e-9 * horizon * setting.n_states:.0f} GB; give a shorter horizon, or a smaller discount"
        )
    state = State(
        counts=no_counts(setting.n_states, setting.n_actions, low=setting.low, width=setting.width),
        explore=model_for(setting, kind=MEAN, discount=1.0),
        exploit=model_for(setting, kind=MEAN, discount=discount),
        known=np.zeros(setting.n_states, np.bool_),
        plan=np.zeros((horizon, setting.n_states), np.int64),
        left=np.zeros(1, np.int64),
        lists=action_lists(setting.available),
        needed=m,
        threshold=float(threshold),
    )
    return Machine(state, reset, act, observe)
