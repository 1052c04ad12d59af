"""Dithering on the expected MDP: ε-greedy, or soft-max (Boltzmann) exploration. What every explorer should beat.

At every step `sweeps` sweeps of value iteration on the expected MDP of the posterior, warm-started from the step before
(as Exploit does), give values `Q(s, ·)`. Then

* `explore=epsilon`: with probability ε any action that the state offers, each alike, else the best one (ties: lowest);
* `explore=softmax`: action a with probability proportional to `exp(Q(s, a) / temperature)`, rewards scaled to [0, 1].

With ε = 0 it is Exploit, and the expected MDP is held as Exploit's is. Both are textbook rules (Sutton & Barto);
neither looks for what it does not know.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from beliefbound.base.grammar import Choice, Number
from beliefbound.base.validation import FloatArray
from beliefbound.kernels.actions import ActionLists, action_lists
from beliefbound.kernels.options import EXACT, EXACT_INLINE
from beliefbound.kernels.planning.expected_rows import ExpectedRows
from beliefbound.kernels.planning.held_models import (
    ExpectedModel,
    action_values,
    clear,
    expect_first,
    hold_expected,
    repeat,
)
from beliefbound.kernels.posterior import Posterior, forget
from beliefbound.kernels.random import load, save, uniform
from beliefbound.lab.agents.common.sampling import check_memory, no_stream
from beliefbound.lab.agents.exploit import expected_prior, observe, observe_tied
from beliefbound.lab.engine.priors import PRIOR, posterior_for
from beliefbound.lab.engine.protocol import DISCOUNT, Machine, Setting
from beliefbound.lab.engine.registry import agent


class State(NamedTuple):
    """The belief and its expected MDP, a set of one model."""

    posterior: Posterior
    models: ExpectedModel | ExpectedRows
    prior_p: FloatArray  # [s,a,t]: the expected MDP before the first step
    prior_r: FloatArray  # [s,a]
    lists: ActionLists
    stream: np.ndarray  # uint64 [4]
    sweeps: int
    epsilon: float
    temperature: float  # 0 for ε-greedy


@njit(**EXACT)
def reset(state, stream):
    """Back to the prior."""
    save(state.stream, load(stream))
    forget(state.posterior)
    expect_first(state.models, state.prior_p, state.prior_r)
    clear(state.models)


@njit(**EXACT)
def drawn_softly(values, lists, s, temperature, u):
    """The action offered in `s` that a uniform `u` picks with chances `∝ exp(values[a] / temperature)`."""
    count, offered = lists.counts[s], lists.offered
    most, total = -np.inf, 0.0
    for i in range(count):
        most = max(most, values[offered[s, i]])
    for i in range(count):
        total += math.exp((values[offered[s, i]] - most) / temperature)
    left = u * total
    for i in range(count):
        left -= math.exp((values[offered[s, i]] - most) / temperature)
        if left < 0.0:
            return offered[s, i]
    return offered[s, count - 1]


@njit(**EXACT_INLINE)
def act(state, s):
    """Sweep, then explore or exploit; one uniform decides both whether and where."""
    repeat(state.models, state.sweeps)
    u = uniform(state.stream)
    if state.temperature > 0.0:
        return drawn_softly(action_values(state.models, s), state.lists, s, state.temperature, u)
    if u < state.epsilon:
        count = state.lists.counts[s]
        return state.lists.offered[s, min(np.int64(u / state.epsilon * count), count - 1)]
    return state.models.actions[s]


@agent(
    "dither",
    summary="ε-greedy or soft-max on the expected MDP: what every explorer should beat",
    parameters=(
        Choice("explore", "epsilon", ("epsilon", "softmax"), "any action now and then, or better ones more often"),
        Number("epsilon", 0.1, 0.0, 1.0, "probability of a random action", needs=("explore", ("epsilon",))),
        Number(
            "temperature", 0.1, 0.0, 1e9, "of the soft-max, in rewards", above=True, needs=("explore", ("softmax",))
        ),
        Number("sweeps", 1, 1, 10**6, "value-iteration sweeps a step", whole=True),
        *PRIOR,
        DISCOUNT,
    ),
)
def dither(
    setting: Setting, *, explore: str, epsilon: float, temperature: float, sweeps: int, **values: Any
) -> Machine:
    """The machine."""
    check_memory(setting, 1, "dither holds a model", fix="take a smaller environment or an agent without a model")
    posterior = posterior_for(setting, values)
    p, r = expected_prior(posterior, setting.available.shape)
    state = State(
        posterior=posterior,
        models=hold_expected(posterior, setting.available, setting.discount),
        prior_p=p,
        prior_r=r,
        lists=action_lists(setting.available),
        stream=no_stream(),
        sweeps=sweeps,
        epsilon=float(epsilon),
        temperature=float(temperature) if explore == "softmax" else 0.0,
    )
    return Machine(state, reset, act, observe_tied if posterior.tied else observe)
