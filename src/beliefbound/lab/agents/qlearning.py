"""ε-greedy Q-learning (Watkins 1989) on rewards scaled to [0, 1]: the model-free yardstick.

After a transition `(s, a, x, t)`, with N the visits of `(s,a)` including this one,
`Q(s,a) += step / N^power · (x + γ max_b Q(t,b) − Q(s,a))`; `power=0` is a constant step size, and for `0.5 < power ≤ 1`
Q converges to the optimum if every pair is visited for ever. At step k = 0, 1, … a random available action is played
with probability `epsilon / (1 + decay·k)`, else the greedy one, ties to the lowest. Q starts at `optimism / (1 − γ)`,
a fraction of the largest value possible.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from beliefbound.base.grammar import Number
from beliefbound.base.validation import FloatArray, IntArray
from beliefbound.kernels.actions import ActionLists, action_lists, best_offered
from beliefbound.kernels.options import EXACT, EXACT_INLINE
from beliefbound.kernels.random import load, save, uniform
from beliefbound.lab.engine.protocol import DISCOUNT, Machine, Setting
from beliefbound.lab.engine.registry import agent


class State(NamedTuple):
    """Action values, visits and parameters."""

    stream: np.ndarray  # uint64 [4]
    q: FloatArray  # [s,a]
    visits: IntArray  # [s,a]
    steps: IntArray  # [1]
    lists: ActionLists
    epsilon: float
    decay: float
    step: float
    power: float
    initial: float
    low: float
    width: float
    discount: float


@njit(**EXACT)
def reset(state, stream):
    """Forget everything."""
    save(state.stream, load(stream))
    state.q.fill(state.initial)
    state.visits.fill(0)
    state.steps.fill(0)


@njit(**EXACT_INLINE)
def act(state, s):
    """Explore or exploit; one uniform decides both whether and where."""
    epsilon = state.epsilon / (1.0 + state.decay * state.steps[0])
    state.steps[0] += 1
    u = uniform(state.stream)
    if u < epsilon:
        i = min(np.int64(u / epsilon * state.lists.counts[s]), state.lists.counts[s] - 1)
        return state.lists.offered[s, i]
    return best_offered(state.lists, state.q, s)


@njit(**EXACT_INLINE)
def observe(state, s, a, r, t):
    """One update."""
    state.visits[s, a] += 1
    target = (r - state.low) / state.width + state.discount * state.q[t, best_offered(state.lists, state.q, t)]
    state.q[s, a] += state.step / state.visits[s, a] ** state.power * (target - state.q[s, a])


@agent(
    "qlearning",
    summary="ε-greedy Q-learning (Watkins 1989)",
    parameters=(
        Number("epsilon", 0.1, 0.0, 1.0, "probability of a random action at the first step"),
        Number("decay", 0.0, 0.0, 1e6, "of epsilon: divided by 1 + decay × steps so far"),
        Number("step", 1.0, 0.0, 1.0, "step size of the first visit", above=True),
        Number("power", 0.6, 0.0, 1.0, "of the visits that divides the step size"),
        Number("optimism", 0.0, 0.0, 1.0, "initial value as a fraction of the largest"),
        DISCOUNT,
    ),
)
def qlearning(
    setting: Setting, *, epsilon: float, decay: float, step: float, power: float, optimism: float, discount: float
) -> Machine:
    """The machine."""
    shape = (setting.n_states, setting.n_actions)
    state = State(
        stream=np.zeros(4, np.uint64),
        q=np.zeros(shape),
        visits=np.zeros(shape, np.int64),
        steps=np.zeros(1, np.int64),
        lists=action_lists(setting.available),
        epsilon=epsilon,
        decay=decay,
        step=step,
        power=power,
        initial=optimism / (1.0 - setting.discount),
        low=setting.low,
        width=setting.width,
        discount=setting.discount,
    )
    return Machine(state, reset, act, observe)
