"""Bayes-UCB for MDPs: the quantile of an action's value under the posterior, in place of a bonus.

For bandits (Kaufmann, Cappé & Garivier, AISTATS 2012) the arm is played whose mean has the largest posterior quantile
of level `1 − 1/t`, t the step; that is asymptotically optimal. Here the same is said of the optimal values of an MDP:

    a = argmax_a quantile_{1 − 1/t} of Q*_μ(s, a),  μ from the posterior,

with the quantile among `n` models that are drawn from the posterior and solved exactly: the smallest value that at
least a share `1 − 1/t` of them does not exceed. From step n on that is the largest of them. It is our reading for MDPs,
and has no guarantee there. Models are drawn anew at the first step and when a pair has been tried, since they were
drawn, as often as before (at least once), as in UCRL2; the level is that of the step at which they are. Ties go to the
lowest action.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from beliefbound.base.grammar import Number
from beliefbound.base.validation import FloatArray, IntArray
from beliefbound.kernels.options import EXACT, EXACT_INLINE
from beliefbound.kernels.planning.policy_iteration import GAIN
from beliefbound.kernels.planning.sampled_models import SampledModels, sampled_models, solve_each, start_lowest
from beliefbound.kernels.posterior import Posterior, forget, learn
from beliefbound.kernels.random import load, save
from beliefbound.kernels.redraw import Scratch, redraw_all, scratch_for
from beliefbound.lab.agents.common.sampling import check_memory, no_stream
from beliefbound.lab.engine.priors import PRIOR, posterior_for
from beliefbound.lab.engine.protocol import DISCOUNT, Machine, Setting
from beliefbound.lab.engine.registry import agent

STEPS, DUE, PLANS = range(3)  # the clock


class State(NamedTuple):
    """The belief, the models drawn, and the plan."""

    posterior: Posterior
    models: SampledModels
    actions: IntArray  # [s]: the plan
    values: FloatArray  # [m] scratch
    scratch: Scratch
    stream: np.ndarray  # uint64 [4]
    visits: IntArray  # [s,a]
    before: IntArray  # [s,a]: when the models were drawn
    clock: IntArray  # steps observed, whether a plan is due, plans made


@njit(**EXACT)
def reset(state, stream):
    """Back to the prior."""
    save(state.stream, load(stream))
    forget(state.posterior)
    start_lowest(state.models.policy, state.models.available)
    state.visits.fill(0)
    state.before.fill(0)
    state.clock[STEPS], state.clock[DUE], state.clock[PLANS] = 0, 1, 0


@njit(**EXACT)
def rank_of(t, n):
    """The place, in rising order from 0, of the quantile of level `1 − 1/t` among `n` values."""
    return max(0, math.ceil((t - 1) * n / t) - 1)


@njit(**EXACT)
def plan(state):
    """Draw, solve, and look up the quantiles."""
    models, values, n = state.models, state.values, state.values.size
    redraw_all(state.posterior, state.stream, models.p, models.r, state.scratch)
    solve_each(models)
    n_states, n_actions = state.visits.shape
    rank = rank_of(state.clock[STEPS] + 1, n)
    for s in range(n_states):
        chosen, best = -1, 0.0
        for a in range(n_actions):
            state.before[s, a] = state.visits[s, a]
            if not models.available[s, a]:
                continue
            for m in range(n):  # sorted by insertion
                value, i = models.q[s * n_actions + a, m], m
                while i > 0 and values[i - 1] > value:
                    values[i] = values[i - 1]
                    i -= 1
                values[i] = value
            if chosen < 0 or values[rank] > best + GAIN * (1.0 + abs(best)):
                chosen, best = a, values[rank]
        state.actions[s] = chosen
    state.clock[DUE] = 0
    state.clock[PLANS] += 1


@njit(**EXACT_INLINE)
def act(state, s):
    """Plan if it is due, and follow the plan."""
    if state.clock[DUE] == 1:
        plan(state)
    return state.actions[s]


@njit(**EXACT_INLINE)
def observe(state, s, a, r, t):
    """Condition the belief on one transition; a count that has doubled makes a plan due."""
    learn(state.posterior, s, a, r, t)
    state.visits[s, a] += 1
    state.clock[STEPS] += 1
    if state.visits[s, a] - state.before[s, a] >= max(1, state.before[s, a]):
        state.clock[DUE] = 1


@agent(
    "bayes-ucb",
    summary="the largest posterior quantile of an action's optimal value (Kaufmann et al. 2012, for MDPs)",
    parameters=(Number("n", 32, 1, 2**14, "models drawn at a plan", whole=True, always=True), *PRIOR, DISCOUNT),
)
def bayes_ucb(setting: Setting, *, n: int, **values: Any) -> Machine:
    """The machine; memory is that of n models."""
    check_memory(setting, n, f"n is {n}")
    posterior, shape = posterior_for(setting, values), (setting.n_states, setting.n_actions)
    state = State(
        posterior=posterior,
        models=sampled_models(n, setting.available, setting.discount),
        actions=np.zeros(setting.n_states, np.int64),
        values=np.zeros(n),
        scratch=scratch_for(posterior),
        stream=no_stream(),
        visits=np.zeros(shape, np.int64),
        before=np.zeros(shape, np.int64),
        clock=np.zeros(3, np.int64),
    )
    return Machine(state, reset, act, observe)
