"""SEM: EM on reward-weighted trajectories of a point estimate, or of sampled models (Furmston & Barber, AISTATS 2010,
"Variational methods for reinforcement learning").

The policy that EM finds (`lab.agents.common.em`) for

* `estimate=point`: the mean of the posterior, the approach that their abstract calls naive;
* `estimate=sampled`: `n` models drawn from the posterior at every plan, their gains added: exact EM for the belief that
  gives each of them the weight 1/n.

What the S of their SEM stands for, *standard* or *stochastic*, could not be looked up: these are the two readings.
Interval, horizon, iterations and prior are not published; the defaults are ours. Rewards count by their posterior mean,
which is exact, as a trajectory is paid once.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from beliefbound.base.errors import ParameterError
from beliefbound.base.grammar import Choice, Number
from beliefbound.base.limits import AGENT_BYTES
from beliefbound.base.validation import FloatArray
from beliefbound.kernels.options import EXACT, EXACT_INLINE
from beliefbound.kernels.posterior import Posterior, draw, expected, forget
from beliefbound.lab.agents.common import em
from beliefbound.lab.agents.common.belief import observe
from beliefbound.lab.engine.priors import posterior_for
from beliefbound.lab.engine.protocol import Machine, Setting
from beliefbound.lab.engine.registry import agent


class State(NamedTuple):
    """The belief, the policy with its messages, and the models drawn."""

    posterior: Posterior
    trajectories: em.Trajectories
    p: FloatArray  # [s,a,t,m], empty for a point estimate
    r: FloatArray  # [s,a,m]


@njit(**EXACT)
def reset(state, stream):
    """Back to the prior and the uniform policy."""
    forget(state.posterior)
    em.begin(state.trajectories, stream)


@njit(**EXACT)
def plan(state, s):
    """Improve the policy on the mean model, or on models drawn for this plan."""
    models = state.p.shape[3]
    if models > 0:
        draw(state.posterior, state.trajectories.stream, state.p, state.r)
        improve_on(state.trajectories, state.p, state.r, s)
        return
    trajectories = state.trajectories
    for pair in range(trajectories.gain.size):
        i, a = pair // state.posterior.n_actions, pair % state.posterior.n_actions
        trajectories.r[0, i, a] = expected(state.posterior, pair, trajectories.p[0, i, a])
    for _ in range(trajectories.iterations):
        em.backward(trajectories, s)
        em.forward(trajectories, s)
        em.improve(trajectories)


@njit(**EXACT)
def improve_on(trajectories, p, r, s):
    """M-steps on equally weighted models `p[s,a,t,m]`, `r[s,a,m]`."""
    n_states, n_actions, _, n = p.shape
    for _ in range(trajectories.iterations):
        for m in range(n):
            for i in range(n_states):
                for a in range(n_actions):
                    trajectories.r[0, i, a] = r[i, a, m]
                    for t in range(n_states):
                        trajectories.p[0, i, a, t] = p[i, a, t, m]
            em.backward(trajectories, s)
            em.forward(trajectories, s)
        em.improve(trajectories)


@njit(**EXACT_INLINE)
def act(state, s):
    """Plan if it is due, and draw an action."""
    if em.is_due(state.trajectories):
        plan(state, s)
    return em.choose(state.trajectories, s)


@agent(
    "sem",
    summary="EM on reward-weighted trajectories of the mean model, or of sampled ones (Furmston & Barber 2010)",
    parameters=em.parameters(
        Choice("estimate", "point", ("point", "sampled"), "the posterior mean, or models drawn at every plan"),
        Number("n", 8, 1, 2**20, "models drawn at a plan", whole=True, needs=("estimate", ("sampled",))),
    ),
)
def sem(setting: Setting, *, estimate: str, n: int, **values: Any) -> Machine:
    """The machine; memory is that of n models."""
    S, A = setting.n_states, setting.n_actions
    models = n if estimate == "sampled" else 0
    if 8 * S * A * S * models > AGENT_BYTES:
        raise ParameterError(f"n is {n}: {n} models need {8e-9 * S * A * S * n:.0f} GB; take fewer")
    state = State(
        posterior=posterior_for(setting, values),
        trajectories=em.trajectories_for(setting, values),
        p=np.zeros((S, A, S, models)),
        r=np.zeros((S, A, models)),
    )
    return Machine(state, reset, act, observe)
