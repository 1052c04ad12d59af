"""An agent that follows, at every step, the policy that `bracket` certifies for its present belief.

For a Dirichlet belief that policy (`bounds.dirichlet.replanning`) draws particles of the posterior, solves each, values
a few stationary policies on all of them, and looks one step ahead between the best of those and what would be earned if
the model were then known. The certified policy uses fewer particles as time goes on, and stops to learn where little is
left of the discounted value. This agent has no last step: at every step it is where the certified policy starts, with
`n` particles of the posterior it has reached.

Particles are a function of a run's seed and of the counts, so rows that were not visited keep theirs. Beta rewards
between the two ends count as a success with that chance. What the belief rules out teaches nothing, nor do outcomes so
rare that the certified policy leaves them out (`bounds.dirichlet.rare`).
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from beliefbound.base.grammar import Number
from beliefbound.base.validation import IntArray
from beliefbound.bounds.dirichlet.arrays import problem_of
from beliefbound.bounds.dirichlet.effort import POOL
from beliefbound.bounds.dirichlet.rare import cut
from beliefbound.bounds.dirichlet.replanning import MIX
from beliefbound.kernels.amounts import OF_LARGEST, RELATIVE
from beliefbound.kernels.options import EXACT, EXACT_INLINE
from beliefbound.kernels.particles.look import LookSpace, look, new_look_space
from beliefbound.kernels.particles.rows import BAMDP, clear, n_columns, width_of
from beliefbound.kernels.posterior import nearest_value, outcome_of, paid_for, row_of
from beliefbound.kernels.random import load, save, uniform
from beliefbound.lab.agents.common.sampling import check_memory, no_stream
from beliefbound.lab.engine.priors import PRIOR, offered_belief
from beliefbound.lab.engine.protocol import DISCOUNT, Machine, Setting
from beliefbound.lab.engine.registry import agent
from beliefbound.planning.task import Task


class State(NamedTuple):
    """The prior, what was counted since, and particles."""

    problem: BAMDP
    space: LookSpace
    counts: IntArray  # [pair,column]
    first: IntArray  # [s]: an action that is offered
    stream: np.ndarray  # uint64 [4]
    mix: float  # of lower and upper value in the look-ahead


@njit(**EXACT)
def reset(state, stream):
    """Back to the prior, with other particles. Their address is `lab.engine.protocol.seed_of` of the stream."""
    save(state.stream, load(stream))
    state.problem.address[0] = stream[0] >> np.uint64(1)
    state.counts.fill(0)
    clear(state.space.rows)


@njit(**EXACT_INLINE)
def act(state, s):
    """Look ahead on particles of the posterior."""
    action, _ = look(state.problem, state.space, state.counts, s, state.problem.horizon, state.first, state.mix)
    return action


@njit(**EXACT)
def value_seen(posterior, pair, j, x, u):
    """The reward value that pays `x`: one of the two ends at random where it is in between; −1 if none does."""
    if posterior.fractional:
        success, failure = paid_for(posterior, 0, pair, j), paid_for(posterior, 1, pair, j)
        return 0 if success == failure or u < (x - failure) / (success - failure) else 1
    k = nearest_value(posterior, pair, j, x)
    paid = paid_for(posterior, k, pair, j)
    return k if abs(paid - x) <= OF_LARGEST + RELATIVE * abs(x) else -1


@njit(**EXACT)
def observe(state, s, a, r, t):
    """Count one transition, if the belief allows it."""
    posterior = state.problem.posterior
    pair, k = s * posterior.n_actions + a, 0
    j = outcome_of(posterior, pair, t)
    if j < 0 or not posterior.alpha[row_of(posterior, pair), j] > 0.0:
        return
    if posterior.reward.shape[0] > 1:
        k = value_seen(posterior, pair, j, r / state.problem.unit, uniform(state.stream))
    if k >= 0:
        state.counts[pair, k * posterior.alpha.shape[1] + j] += 1


@agent(
    "bracket",
    summary="at every step the policy that `bracket` certifies for the present belief",
    parameters=(Number("n", 64, 8, 2**16, "particles", whole=True, always=True), *PRIOR, DISCOUNT),
)
def bracket(setting: Setting, *, n: int, **values: Any) -> Machine:
    """The machine. Draws of every pair are held for the present counts, and as many for earlier ones."""
    S = setting.n_states
    task = Task(offered_belief(setting, values), np.full(S, 1.0 / S), float(setting.discount), None)
    problem = cut(problem_of(task, np.zeros(1, np.uint64), horizon=None), "lower", None)
    check_memory(setting, 2 * n, f"n is {n}, with draws of earlier counts", width=width_of(problem))
    pairs = len(problem.available)
    state = State(
        problem=problem,
        space=new_look_space(problem, n, POOL, spare=pairs),
        counts=np.zeros((pairs, n_columns(problem)), np.int64),
        first=np.argmax(task.belief.available, axis=1),
        stream=no_stream(),
        mix=MIX,
    )
    return Machine(state, reset, act, observe)
