"""IEQL+ (Meuleau & Bourgine, Machine Learning 1999): Q-learning with an exploration bonus that is propagated too.

Two tables, Q of values and B of bonuses; the agent is greedy on `Q + B`. The exact update of the paper is not known to
us; this is our choice. After `(s, a, x, t)`, with n visits of the pair including this one, step size
`η = step / n^power`, and `b` the action that is greedy in t,

`Q(s,a) += η (x + γ Q(t,b) − Q(s,a))`,
`B(s,a) += η ((1 − γ) z σ/√n + γ B(t,b) − B(s,a))`:

a local uncertainty `z σ/√n` about the return is spread over the steps that make the return, and discounted along the
way like a reward. `σ` is the largest deviation a return may have: by default `1 / (2(1 − γ))`, that of rewards in
[0, 1]. Q starts at 0, B at `z σ`, so that an untried action looks at least as good as any for `z ≥ 2`. It learns no
model and uses no prior.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from beliefbound.base.grammar import Number
from beliefbound.base.validation import FloatArray, IntArray
from beliefbound.kernels.actions import ActionLists, action_lists, best_offered
from beliefbound.kernels.options import EXACT, EXACT_INLINE
from beliefbound.lab.engine.protocol import DISCOUNT, Machine, Setting
from beliefbound.lab.engine.registry import agent


class State(NamedTuple):
    """Values, bonuses and parameters."""

    q: FloatArray  # [s,a]
    bonus: FloatArray  # [s,a]
    hope: FloatArray  # [s,a]: their sum
    visits: IntArray  # [s,a]
    lists: ActionLists
    width_of_one: float  # z σ
    step: float
    power: float
    low: float
    width: float
    discount: float


@njit(**EXACT)
def reset(state, stream):
    """Forget everything. No random numbers are used."""
    state.q.fill(0.0)
    state.bonus.fill(state.width_of_one)
    state.hope.fill(state.width_of_one)
    state.visits.fill(0)


@njit(**EXACT_INLINE)
def act(state, s):
    """The largest value and bonus together."""
    return best_offered(state.lists, state.hope, s)


@njit(**EXACT_INLINE)
def observe(state, s, a, r, t):
    """One update of both tables."""
    state.visits[s, a] += 1
    n = state.visits[s, a]
    rate = state.step / n**state.power
    b = best_offered(state.lists, state.hope, t)
    local = (1.0 - state.discount) * state.width_of_one / math.sqrt(n)
    x = (r - state.low) / state.width
    state.q[s, a] += rate * (x + state.discount * state.q[t, b] - state.q[s, a])
    state.bonus[s, a] += rate * (local + state.discount * state.bonus[t, b] - state.bonus[s, a])
    state.hope[s, a] = state.q[s, a] + state.bonus[s, a]


@agent(
    "ieql",
    summary="IEQL+: Q-learning with a propagated interval bonus (Meuleau & Bourgine 1999)",
    parameters=(
        Number("z", 1.96, 0.0, 1e3, "deviations from the mean to the end of an interval"),
        Number("sigma", None, 0.0, 1e9, "largest deviation of a return", auto="1/(2(1-discount))"),
        Number("step", 1.0, 0.0, 1.0, "step size of the first visit", above=True),
        Number("power", 0.6, 0.0, 1.0, "of the visits that divides the step size"),
        DISCOUNT,
    ),
)
def ieql(setting: Setting, *, z: float, sigma: float | None, step: float, power: float, discount: float) -> Machine:
    """The machine."""
    shape = (setting.n_states, setting.n_actions)
    state = State(
        q=np.zeros(shape),
        bonus=np.zeros(shape),
        hope=np.zeros(shape),
        visits=np.zeros(shape, np.int64),
        lists=action_lists(setting.available),
        width_of_one=z * (0.5 / (1.0 - discount) if sigma is None else sigma),
        step=float(step),
        power=float(power),
        low=setting.low,
        width=setting.width,
        discount=float(discount),
    )
    return Machine(state, reset, act, observe)
