"""PSRL, posterior sampling for reinforcement learning (Osband, Russo & Van Roy, NIPS 2013).

Thompson sampling by *episode*: at the start of each, one model is drawn from the posterior and solved, and its optimal
policy is followed to the end of the episode.

* `episodes=fixed`, as published: episodes of τ steps, and the policy is the optimal one for the τ undiscounted rewards
  of the episode, so it depends on the steps left. The expected regret against policies that know the model is
  `O(τ S sqrt(A T ln(SAT)))` after T steps if the world begins anew with each episode and the prior is right. Here
  the world goes on where it is.
* `episodes=doubling`, the default, for worlds without episodes: one ends before the action that has been taken in it as
  often as before it (at least once), as in UCRL2. The policy is the optimal one for discounted rewards, which is our
  choice.
* `episodes=dynamic`: TSDE (Ouyang, Gagrani, Nayyar & Jain, NIPS 2017), for worlds without episodes. An episode ends
  when it has been longer than the one before, or when any pair has been tried more than twice as often as before it.
  The paper's policy is optimal for average rewards, and its regret `O(H S sqrt(A T))` up to logarithms; ours is for
  discounted ones.

Solutions are exact, ties go to the lowest action. A prior that knows the model plays optimally.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from beliefbound.base.errors import ParameterError
from beliefbound.base.grammar import Choice, Number
from beliefbound.base.limits import AGENT_BYTES
from beliefbound.base.validation import FloatArray, IntArray
from beliefbound.kernels.options import EXACT, EXACT_INLINE
from beliefbound.kernels.planning.sampled_models import (
    SampledModels,
    greedy,
    sampled_models,
    solve_each,
    start_lowest,
)
from beliefbound.kernels.planning.sweep import Lanes, induct_lanes, lanes_of
from beliefbound.kernels.posterior import Posterior, forget, learn
from beliefbound.kernels.random import load, save
from beliefbound.kernels.redraw import Scratch, redraw_all, scratch_for
from beliefbound.lab.agents.common.sampling import check_memory, no_stream
from beliefbound.lab.engine.drawn import DrawnPsrl
from beliefbound.lab.engine.priors import PRIOR, posterior_for
from beliefbound.lab.engine.protocol import DISCOUNT, Machine, Setting
from beliefbound.lab.engine.registry import agent

EPISODES, STAGE, LAST, DOUBLED = range(4)  # the clock


class Stages(NamedTuple):
    """For backwards induction over the steps of an episode; empty where episodes are not fixed."""

    actions: IntArray  # [stage,s]
    v: FloatArray  # [s,1]
    lanes: Lanes  # the model drawn, undiscounted


class State(NamedTuple):
    """The belief, the model drawn, and the episode."""

    posterior: Posterior
    models: SampledModels
    stages: Stages
    scratch: Scratch
    stream: np.ndarray  # uint64 [4]
    visits: IntArray  # [s,a]
    before: IntArray  # [s,a]: before the episode
    clock: IntArray  # episodes begun, steps made in the present one and in the last, whether a count has doubled in it
    dynamic: bool


@njit(**EXACT)
def reset(state, stream):
    """Back to the prior."""
    save(state.stream, load(stream))
    forget(state.posterior)
    start_lowest(state.models.policy, state.models.available)
    state.visits.fill(0)
    state.clock.fill(0)


@njit(**EXACT)
def begin_episode(state):
    """Draw a model and solve it."""
    redraw_all(state.posterior, state.stream, state.models.p, state.models.r, state.scratch)
    if state.stages.actions.shape[0] > 0:
        state.stages.v.fill(0.0)
        induct_lanes(state.stages.lanes, state.stages.v, state.stages.actions)
    else:
        solve_each(state.models)
        n_states, n_actions = state.visits.shape
        for s in range(n_states):
            for a in range(n_actions):
                state.before[s, a] = state.visits[s, a]
    state.clock[LAST] = state.clock[STAGE] if state.clock[EPISODES] > 0 else 1
    state.clock[EPISODES] += 1
    state.clock[STAGE], state.clock[DOUBLED] = 0, 0


@njit(**EXACT_INLINE)
def is_over(state, s):
    """Whether an episode has to begin before acting in `s`."""
    n_stages = state.stages.actions.shape[0]
    if state.clock[EPISODES] == 0:
        return True
    if n_stages > 0:
        return state.clock[STAGE] == n_stages
    if state.dynamic:
        return state.clock[STAGE] > state.clock[LAST] or state.clock[DOUBLED] == 1
    a = greedy(state.models, s, 0)
    return state.visits[s, a] - state.before[s, a] >= max(1, state.before[s, a])


@njit(**EXACT_INLINE)
def act(state, s):
    """Begin an episode if it is due, and follow its policy."""
    if is_over(state, s):
        begin_episode(state)
    state.clock[STAGE] += 1
    if state.stages.actions.shape[0] == 0:
        return greedy(state.models, s, 0)
    return state.stages.actions[state.clock[STAGE] - 1, s]


@njit(**EXACT_INLINE)
def observe(state, s, a, r, t):
    """Condition the belief on one transition."""
    learn(state.posterior, s, a, r, t)
    state.visits[s, a] += 1
    if state.visits[s, a] > 2 * state.before[s, a]:
        state.clock[DOUBLED] = 1


@agent(
    "psrl",
    summary="Thompson sampling by episodes: of fixed length, or until a count doubles (Osband et al. 2013); TSDE",
    parameters=(
        Choice("episodes", "doubling", ("doubling", "dynamic", "fixed"), "until a count doubles; TSDE; tau steps"),
        Number("tau", 20, 1, 10**7, "steps of an episode", whole=True, needs=("episodes", ("fixed",))),
        *PRIOR,
        DISCOUNT,
    ),
    drawn=DrawnPsrl,
)
def psrl(setting: Setting, *, episodes: str, tau: int, **values: Any) -> Machine:
    """The machine."""
    S, A = setting.n_states, setting.n_actions
    stages = tau if episodes == "fixed" else 0
    check_memory(setting, 1, "psrl holds a model", fix="take a smaller environment or an agent without a model")
    if 8 * stages * S > AGENT_BYTES:
        raise ParameterError(f"tau is {tau}: a policy of so many steps for {S} states needs {8e-9 * stages * S:.0f} GB")
    posterior, models = posterior_for(setting, values), sampled_models(1, setting.available, setting.discount)
    state = State(
        posterior=posterior,
        models=models,
        stages=Stages(
            actions=np.zeros((stages, S), np.int64),
            v=np.zeros((S, 1)),
            lanes=lanes_of(models.p, models.r, np.ones(1), setting.available, 1.0),
        ),
        scratch=scratch_for(posterior),
        stream=no_stream(),
        visits=np.zeros((S, A), np.int64),
        before=np.zeros((S, A), np.int64),
        clock=np.zeros(4, np.int64),
        dynamic=episodes == "dynamic",
    )
    return Machine(state, reset, act, observe)
