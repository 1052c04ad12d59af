"""Delayed Q-learning (Strehl, Li, Wiewiora, Langford & Littman, ICML 2006): PAC-MDP without a model.

`Q` starts at `1/(1 − γ)`, rewards being scaled to [0, 1], and the agent is greedy. A pair that is learning collects m
targets `x + γ max_b Q(t,b)`. Then, U being their mean: if `Q − U ≥ 2ε₁`, the update succeeds, `Q = U + ε₁`; if not, and
no update of any pair has succeeded since this pair's previous attempt, the pair stops learning. A pair that has stopped
starts again once some update has succeeded since its last attempt.

The analysis takes `m = ln(3SA(1 + SA/((1−γ)ε₁))/δ) / (2ε₁²(1−γ)²)`, 287 258 for 6 states, 2 actions, γ = .95,
ε₁ = .1, δ = .05; the default 5 is what public implementations play with. Memory and work are those of Q-learning. It
learns no model and uses no prior.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from beliefbound.base.grammar import Number
from beliefbound.base.validation import BoolArray, FloatArray, IntArray
from beliefbound.kernels.actions import ActionLists, action_lists, best_offered
from beliefbound.kernels.options import EXACT, EXACT_INLINE
from beliefbound.lab.engine.protocol import DISCOUNT, Machine, Setting
from beliefbound.lab.engine.registry import agent

TIME, SUCCESS = range(2)  # the clock


class State(NamedTuple):
    """Action values and what is being collected for them."""

    q: FloatArray  # [s,a]
    total: FloatArray  # [s,a]: sum of the targets collected
    samples: IntArray  # [s,a]: how many
    attempt: IntArray  # [s,a]: time of the last attempt
    learning: BoolArray  # [s,a]
    clock: IntArray  # steps so far, time of the last success
    lists: ActionLists
    needed: int
    accuracy: float
    low: float
    width: float
    discount: float


@njit(**EXACT)
def reset(state, stream):
    """Forget everything. No random numbers are used."""
    state.q.fill(1.0 / (1.0 - state.discount))
    state.total.fill(0.0)
    state.samples.fill(0)
    state.attempt.fill(0)
    state.learning.fill(True)
    state.clock.fill(0)


@njit(**EXACT_INLINE)
def act(state, s):
    """Greedy."""
    return best_offered(state.lists, state.q, s)


@njit(**EXACT)
def attempt(state, s, a):
    """An update with the targets collected."""
    mean = state.total[s, a] / state.needed
    if state.q[s, a] - mean >= 2.0 * state.accuracy:
        state.q[s, a] = mean + state.accuracy
        state.clock[SUCCESS] = state.clock[TIME]
    elif state.attempt[s, a] >= state.clock[SUCCESS]:
        state.learning[s, a] = False
    state.attempt[s, a] = state.clock[TIME]
    state.total[s, a] = 0.0
    state.samples[s, a] = 0


@njit(**EXACT_INLINE)
def observe(state, s, a, r, t):
    """Collect one target."""
    state.clock[TIME] += 1
    if state.learning[s, a]:
        best = state.q[t, best_offered(state.lists, state.q, t)]
        state.total[s, a] += (r - state.low) / state.width + state.discount * best
        state.samples[s, a] += 1
        if state.samples[s, a] == state.needed:
            attempt(state, s, a)
    elif state.attempt[s, a] < state.clock[SUCCESS]:
        state.learning[s, a] = True


@agent(
    "delayed-q",
    summary="Q-learning that updates after m samples, from above (Strehl et al. 2006)",
    parameters=(
        Number("m", 5, 1, 2**40, "targets of an update", whole=True, always=True),
        Number("accuracy", 0.1, 0.0, 1e6, "ε₁: an update must lower Q by ε₁ at least", above=True),
        DISCOUNT,
    ),
)
def delayed_q(setting: Setting, *, m: int, accuracy: float, discount: float) -> Machine:
    """The machine."""
    shape = (setting.n_states, setting.n_actions)
    state = State(
        q=np.zeros(shape),
        total=np.zeros(shape),
        samples=np.zeros(shape, np.int64),
        attempt=np.zeros(shape, np.int64),
        learning=np.zeros(shape, np.bool_),
        clock=np.zeros(2, np.int64),
        lists=action_lists(setting.available),
        needed=m,
        accuracy=float(accuracy),
        low=setting.low,
        width=setting.width,
        discount=float(discount),
    )
    return Machine(state, reset, act, observe)
