"""BOSS, best of sampled set (Asmuth, Li, Littman, Nouri & Wingate, UAI 2009).

When a plan is due, K models are drawn from the posterior and merged: the merged MDP has K·A actions, and action (a, k)
in state s follows row (s, a) of model k. It is solved exactly (`kernels.planning.merged_models`) and the agent plays
the a of its optimal actions, ties to the lowest. A plan is due at the first step and whenever a pair *becomes* known,
that is at its B-th visit: at most S·A + 1 times. Models are not averaged: the merged optimum is above that of every
model drawn, so with K large enough it is above the true one, and what is not known is tried. With K = 1 the agent is
Thompson sampling under another schedule.

The rows of one model come from one joint draw, so tied rows stay tied within a model. Visits are counted by pair, also
where pairs share parameters.

The defaults K = 5, B = 10 are what we remember of the paper's experiments; the preset `guez`, K = 20, B = 5, is the
public code of a rival, by the author of BAMCP. For suitable K and B the paper proves that, with high probability, all
but polynomially many steps are near-optimal.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from beliefbound.base.grammar import Number
from beliefbound.base.validation import IntArray
from beliefbound.kernels.options import EXACT, EXACT_INLINE
from beliefbound.kernels.planning.merged_models import MergedModels, merged_models, solve_merged
from beliefbound.kernels.posterior import Posterior, forget, learn
from beliefbound.kernels.random import load, save
from beliefbound.kernels.redraw import Scratch, redraw_all, scratch_for
from beliefbound.lab.agents.common.sampling import check_memory, no_stream
from beliefbound.lab.engine.priors import PRIOR, posterior_for
from beliefbound.lab.engine.protocol import DISCOUNT, Machine, Setting
from beliefbound.lab.engine.registry import agent

DUE, PLANS = range(2)  # the clock


class State(NamedTuple):
    """The belief, the merged models, visits, and parameters."""

    posterior: Posterior
    models: MergedModels
    scratch: Scratch
    stream: np.ndarray  # uint64 [4]
    visits: IntArray  # [s,a]
    clock: IntArray  # whether a plan is due, plans made
    known: int


@njit(**EXACT)
def reset(state, stream):
    """Back to the prior."""
    save(state.stream, load(stream))
    forget(state.posterior)
    state.visits.fill(0)
    state.clock[DUE], state.clock[PLANS] = 1, 0


@njit(**EXACT)
def plan(state):
    """Draw, merge and solve."""
    redraw_all(state.posterior, state.stream, state.models.p, state.models.r, state.scratch)
    solve_merged(state.models)
    state.clock[DUE] = 0
    state.clock[PLANS] += 1


@njit(**EXACT_INLINE)
def act(state, s):
    """Plan if it is due, and follow the plan."""
    if state.clock[DUE] == 1:
        plan(state)
    return state.models.actions[s]


@njit(**EXACT_INLINE)
def observe(state, s, a, r, t):
    """Condition the belief on one transition; a pair that has become known makes a plan due."""
    learn(state.posterior, s, a, r, t)
    state.visits[s, a] += 1
    if state.visits[s, a] == state.known:
        state.clock[DUE] = 1


@agent(
    "boss",
    summary="the best mixture of K sampled models, drawn again when a pair becomes known (Asmuth et al. 2009)",
    parameters=(
        Number("k", 5, 1, 2**20, "models merged at a plan", whole=True, always=True),
        Number("b", 10, 1, 2**40, "visits that make a pair known", whole=True, always=True),
        *PRIOR,
        DISCOUNT,
    ),
    presets={"guez": {"k": 20, "b": 5}},
)
def boss(setting: Setting, *, k: int, b: int, **values: Any) -> Machine:
    """The machine; memory is that of K models."""
    check_memory(setting, k, f"k is {k}")
    models = merged_models(k, setting.n_states, setting.n_actions, setting.discount)
    models.copies[:] = k * setting.available
    posterior = posterior_for(setting, values)
    state = State(
        posterior=posterior,
        models=models,
        scratch=scratch_for(posterior),
        stream=no_stream(),
        visits=np.zeros((setting.n_states, setting.n_actions), np.int64),
        clock=np.zeros(2, np.int64),
        known=b,
    )
    return Machine(state, reset, act, observe)
