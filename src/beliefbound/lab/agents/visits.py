"""Visits: Bayes-optimal within a visit of a state, which lasts until the next transition to another one.

While a visit lasts, all that is learnt of transitions is how often each action stayed. Given what the other states are
worth, the actions of a state are then the arms of a bandit that ends when one of them leaves, and to play the largest
Gittins index is optimal (`kernels.planning.visits` has the mathematics). What the other states are worth is found by
the same rule, as if what a visit teaches were forgotten when it ends: so the agent tries what it does not know where
trying it again is near at hand, and does not travel in order to learn.

At every step, at most `sweeps` Gauss–Seidel sweeps over all states, warm from the step before, ending after one that
changes no value by more than a share `tolerance` of what lies between the values of the worst and the best state, so
that units of rewards do not matter; then the action of the largest index in the present state, ties to the lowest. All
counts are used at every step: nothing is really forgotten. The values of the prior are found once, up to the tolerance,
by at most `FIRST` sweeps.

Where no action can stay this is the greedy agent on the expected MDP, solved at every step, and nothing is tried on
purpose. Rewards count as they are expected: what a visit teaches about them is left out. Tied rows, and rows of unknown
support, as in `kernels.planning.visits`. Ours; nothing is guaranteed about its regret.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from beliefbound.base.errors import ParameterError
from beliefbound.base.grammar import Number
from beliefbound.base.limits import AGENT_BYTES
from beliefbound.base.validation import FloatArray, IntArray
from beliefbound.kernels.options import EXACT, EXACT_INLINE
from beliefbound.kernels.planning.visits import Visits, best_now, look_again, look_at_all, solve, visits_model
from beliefbound.kernels.posterior import Posterior, forget, learn
from beliefbound.lab.engine.priors import PRIOR, posterior_for
from beliefbound.lab.engine.protocol import DISCOUNT, Machine, Setting
from beliefbound.lab.engine.registry import agent

FIRST = 1000  # most sweeps for the values of the prior


class State(NamedTuple):
    """The belief, its model, and what the prior is worth."""

    posterior: Posterior
    model: Visits
    prior_v: FloatArray  # [s]
    known: IntArray  # [1]: whether `prior_v` is, which is the same in every run
    sweeps: int
    tolerance: float


@njit(**EXACT)
def reset(state, stream):
    """Back to the prior. No random numbers are used."""
    forget(state.posterior)
    look_at_all(state.posterior, state.model)
    v, prior_v = state.model.v, state.prior_v
    if state.known[0] == 0:
        v.fill(0.0)
        solve(state.model, FIRST, state.tolerance * (1.0 - state.model.discount))
        for s in range(v.size):
            prior_v[s] = v[s]
        state.known[0] = 1
    for s in range(v.size):
        v[s] = prior_v[s]


@njit(**EXACT_INLINE)
def act(state, s):
    """Solve and choose."""
    solve(state.model, state.sweeps, state.tolerance)
    return best_now(state.model, s)


@njit(**EXACT_INLINE)
def observe(state, s, a, r, t):
    """Condition the belief on one transition; look again at the pair, and at those that share its parameters."""
    learn(state.posterior, s, a, r, t)
    pair = s * state.posterior.n_actions + a
    if not state.posterior.tied:
        look_again(state.posterior, state.model, pair)
    else:
        for other in range(state.model.stay.size):
            if other == pair or state.posterior.row[other] == state.posterior.row[pair]:
                look_again(state.posterior, state.model, other)


@agent(
    "visits",
    summary="Bayes-optimal within a visit of a state, by Gittins indices of its actions; greedy between visits",
    parameters=(
        Number("sweeps", 5, 1, 10**6, "most sweeps a step", whole=True),
        Number("tolerance", 0.01, 0.0, 1.0, "change of the values, of their range, that ends a step's sweeps"),
        *PRIOR,
        DISCOUNT,
    ),
)
def visits(setting: Setting, *, sweeps: int, tolerance: float, **values: Any) -> Machine:
    """The machine; memory is that of a model of every transition."""
    S, A = setting.n_states, setting.n_actions
    if 28 * S * A * S > AGENT_BYTES:
        raise ParameterError(
            f"{S} states and {A} actions: counts and a model of every transition need {28e-9 * S * A * S:.0f} GB; "
            "take a smaller environment or an agent without a model"
        )
    state = State(
        posterior=posterior_for(setting, values),
        model=visits_model(setting.available, setting.discount),
        prior_v=np.zeros(setting.n_states),
        known=np.zeros(1, np.int64),
        sweeps=sweeps,
        tolerance=float(tolerance),
    )
    return Machine(state, reset, act, observe)
