"""Optimistic model selection (Wyatt, ICML 2001).

When a plan is due, n models are drawn from the posterior and each is solved; the agent adopts the model whose optimal
value in the present state is the largest, ties to the first drawn, and follows its optimal policy until the next plan.
Unlike in BOSS the rows of different models are never mixed: it is optimistic about whole models. With n = 1 it is
Thompson sampling.

We know the idea, not the details: that models come from the posterior, the constant interval between plans and its
default `1 / (1 − γ)`, the effective horizon, are our choices; n = 16 is MCBRL's. Solutions are exact, ties between
actions go to the lowest. No guarantee is known to us.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from beliefbound.base.grammar import Number
from beliefbound.base.validation import IntArray
from beliefbound.kernels.options import EXACT, EXACT_INLINE
from beliefbound.kernels.planning.sampled_models import (
    SampledModels,
    greedy,
    sampled_models,
    solve_each,
    start_lowest,
)
from beliefbound.kernels.posterior import Posterior, forget
from beliefbound.kernels.random import load, save
from beliefbound.kernels.redraw import Scratch, redraw_all, scratch_for
from beliefbound.lab.agents.common.belief import observe
from beliefbound.lab.agents.common.sampling import check_memory, no_stream
from beliefbound.lab.engine.priors import PRIOR, posterior_for
from beliefbound.lab.engine.protocol import DISCOUNT, Machine, Setting
from beliefbound.lab.engine.registry import agent

LEFT, ADOPTED = range(2)  # the clock


class State(NamedTuple):
    """The belief, the models drawn, and parameters."""

    posterior: Posterior
    models: SampledModels
    scratch: Scratch
    stream: np.ndarray  # uint64 [4]
    clock: IntArray  # steps left to follow the plan, the model adopted
    interval: int


@njit(**EXACT)
def reset(state, stream):
    """Back to the prior."""
    save(state.stream, load(stream))
    forget(state.posterior)
    start_lowest(state.models.policy, state.models.available)
    state.clock.fill(0)


@njit(**EXACT)
def plan(state, s):
    """Draw and solve models, and adopt the one that promises most."""
    models = state.models
    redraw_all(state.posterior, state.stream, models.p, models.r, state.scratch)
    solve_each(models)
    best = 0
    for m in range(1, models.v.shape[1]):
        if models.v[s, m] > models.v[s, best]:
            best = m
    state.clock[LEFT], state.clock[ADOPTED] = state.interval, best


@njit(**EXACT_INLINE)
def act(state, s):
    """Plan if it is due, and follow the model adopted."""
    if state.clock[LEFT] == 0:
        plan(state, s)
    state.clock[LEFT] -= 1
    return greedy(state.models, s, state.clock[ADOPTED])


@agent(
    "wyatt",
    summary="follow the sampled model of largest value for a while: optimistic model selection (Wyatt 2001)",
    parameters=(
        Number("n", 16, 1, 2**20, "models drawn at a plan", whole=True, always=True),
        Number("interval", None, 1, 2**40, "steps between plans", whole=True, auto="1/(1-discount)"),
        *PRIOR,
        DISCOUNT,
    ),
)
def wyatt(setting: Setting, *, n: int, interval: int | None, **values: Any) -> Machine:
    """The machine; memory is that of n models."""
    check_memory(setting, n, f"n is {n}")
    posterior = posterior_for(setting, values)
    state = State(
        posterior=posterior,
        models=sampled_models(n, setting.available, setting.discount),
        scratch=scratch_for(posterior),
        stream=no_stream(),
        clock=np.zeros(2, np.int64),
        interval=round(1.0 / (1.0 - setting.discount)) if interval is None else interval,
    )
    return Machine(state, reset, act, observe)
