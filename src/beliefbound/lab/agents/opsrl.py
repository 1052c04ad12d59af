"""Optimistic PSRL: the best of several posterior draws of every pair, by episodes (after Agrawal & Jia, NIPS 2017).

At the start of an episode ψ models are drawn from the posterior and merged (`kernels.planning.merged_models`): in every
state the agent may choose an action and, with it, which draw the world follows. The policy of the episode is the
optimal one of the merged MDP, for discounted rewards; the episode ends when a pair has been tried in it as often as
before it (at least once). With ψ = 1 it is `psrl`; with more, a plan is the more likely to be above the truth.

The paper's version adds what its worst-case proof needs, and this one leaves out: posteriors widened by a factor κ, a
separate rule for pairs with few visits, and average rewards; ψ is there `O(S ln(SA/ρ))`. Drawing anew by episodes is
what tells it from BOSS, which does when a pair becomes known.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from beliefbound.base.grammar import Number
from beliefbound.base.validation import IntArray
from beliefbound.kernels.options import EXACT, EXACT_INLINE
from beliefbound.kernels.planning.merged_models import MergedModels, merged_models
from beliefbound.kernels.posterior import Posterior, forget, learn
from beliefbound.kernels.random import load, save
from beliefbound.kernels.redraw import Scratch, scratch_for
from beliefbound.lab.agents.boss import DUE, PLANS, plan
from beliefbound.lab.agents.common.sampling import check_memory, no_stream
from beliefbound.lab.engine.priors import PRIOR, posterior_for
from beliefbound.lab.engine.protocol import DISCOUNT, Machine, Setting
from beliefbound.lab.engine.registry import agent


class State(NamedTuple):
    """The belief, the merged models, and the episode."""

    posterior: Posterior
    models: MergedModels
    scratch: Scratch
    stream: np.ndarray  # uint64 [4]
    visits: IntArray  # [s,a]
    before: IntArray  # [s,a]: before the episode
    clock: IntArray  # whether an episode is due, episodes begun


@njit(**EXACT)
def reset(state, stream):
    """Back to the prior."""
    save(state.stream, load(stream))
    forget(state.posterior)
    state.visits.fill(0)
    state.before.fill(0)
    state.clock[DUE], state.clock[PLANS] = 1, 0


@njit(**EXACT_INLINE)
def act(state, s):
    """Begin an episode if it is due, and follow its policy."""
    if state.clock[DUE] == 1:
        plan(state)
        state.before[:] = state.visits
    return state.models.actions[s]


@njit(**EXACT_INLINE)
def observe(state, s, a, r, t):
    """Condition the belief on one transition; a count that has doubled ends the episode."""
    learn(state.posterior, s, a, r, t)
    state.visits[s, a] += 1
    if state.visits[s, a] - state.before[s, a] >= max(1, state.before[s, a]):
        state.clock[DUE] = 1


@agent(
    "opsrl",
    summary="PSRL with the best of ψ posterior draws of every pair (after Agrawal & Jia 2017)",
    parameters=(
        Number("psi", 10, 1, 2**20, "models drawn for an episode", whole=True, always=True),
        *PRIOR,
        DISCOUNT,
    ),
)
def opsrl(setting: Setting, *, psi: int, **values: Any) -> Machine:
    """The machine; memory is that of ψ models."""
    check_memory(setting, psi, f"psi is {psi}")
    models = merged_models(psi, setting.n_states, setting.n_actions, setting.discount)
    models.copies[:] = psi * setting.available
    posterior, shape = posterior_for(setting, values), (setting.n_states, setting.n_actions)
    state = State(
        posterior=posterior,
        models=models,
        scratch=scratch_for(posterior),
        stream=no_stream(),
        visits=np.zeros(shape, np.int64),
        before=np.zeros(shape, np.int64),
        clock=np.zeros(2, np.int64),
    )
    return Machine(state, reset, act, observe)
