"""Planning as inference: EM on reward-weighted trajectories, what SEM, VB-EM and AMP-EM share.

With rewards in [0, 1], a policy `π(a|s)`, transitions `p_τ(t|s,a)` at steps `τ = 0 … H−1` and the start `s_0`, take a
trajectory and the step at which it is paid, T, with the weight `γ^T r(s_T,a_T) Π π(a_τ|s_τ) Π p_τ(s_{τ+1}|s_τ,a_τ)`.
All weights together are the value of π over H steps. With

`v_τ(s) = Σ_a π(a|s) Q_τ(s,a)`, `Q_τ(s,a) = r_τ(s,a) + γ Σ_t p_τ(t|s,a) v_{τ+1}(t)`, `v_H = 0`,
`f_0 = 1{s = s_0}`, `f_{τ+1}(t) = γ Σ_{s,a} f_τ(s) π(a|s) p_τ(t|s,a)`,

the weight of all that act a in s at some step up to the paid one is `gain(s,a) = Σ_τ f_τ(s) π(a|s) Q_τ(s,a)`, and the
M-step is `π'(a|s) = gain(s,a) / Σ_b gain(s,b)`. On one model, or on a weighted set of models whose gains are added, the
value never falls (Dempster, Laird & Rubin 1977; Toussaint & Storkey, ICML 2006). States of no weight keep their policy.

The agents plan at their first step and then every `interval` steps, from the state they are in. A plan mixes the last
policy with a share `floor` of the uniform one, since a chance of 0 would stay 0, and makes `iterations` M-steps. In
between the agent draws its actions from π; few iterations leave π random, and that is all the exploration there is.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from beliefbound.base.errors import ParameterError
from beliefbound.base.grammar import Number
from beliefbound.base.limits import AGENT_BYTES
from beliefbound.base.validation import BoolArray, FloatArray, IntArray
from beliefbound.kernels.options import EXACT, EXACT_INLINE
from beliefbound.kernels.random import categorical, load, save
from beliefbound.lab.engine.priors import PRIOR
from beliefbound.lab.engine.protocol import DISCOUNT, Setting

STEP, DUE, PLANS = range(3)  # the clock


def parameters(*own: Any) -> tuple[Any, ...]:
    """The parameters of an EM agent: its own, then those that all have."""
    return (
        *own,
        Number("interval", 10, 1, 2**40, "steps from plan to plan", whole=True),
        Number("horizon", 30, 1, 10**5, "steps that a plan looks ahead", whole=True),
        Number("iterations", 20, 1, 10**6, "M-steps of a plan", whole=True),
        Number("floor", 1e-3, 0.0, 1.0, "share of the uniform policy mixed in before a plan"),
        *PRIOR,
        DISCOUNT,
    )


class Trajectories(NamedTuple):
    """A policy, the model that it is improved on, and messages along trajectories of H steps."""

    policy: FloatArray  # [s,a]
    p: FloatArray  # [τ,s,a,t], or [1,s,a,t] where every step has the same
    r: FloatArray  # [τ,s,a], or [1,s,a]
    f: FloatArray  # [H,s] forward
    v: FloatArray  # [H+1,s] backward
    gain: FloatArray  # [s,a]
    available: BoolArray  # [s,a]
    stream: np.ndarray  # uint64 [4]
    clock: IntArray  # steps taken, step of the next plan, plans made
    discount: float
    interval: int
    iterations: int
    floor: float


def trajectories_for(setting: Setting, values: Mapping[str, Any], *, each_step: bool = False) -> Trajectories:
    """Empty arrays for the messages, by the `values` of `parameters`; with `each_step`, for a model of every step."""
    S, A, horizon = setting.n_states, setting.n_actions, values["horizon"]
    models = horizon if each_step else 1
    if 8 * S * A * S * models + 16 * horizon * S > AGENT_BYTES:
        raise ParameterError(
            f"horizon is {horizon}: messages over so many steps of {S} states and {A} actions need "
            f"{8e-9 * (S * A * S * models + 2 * horizon * S):.0f} GB; take a shorter one"
        )
    return Trajectories(
        policy=np.zeros((S, A)),
        p=np.zeros((models, S, A, S)),
        r=np.zeros((models, S, A)),
        f=np.zeros((horizon, S)),
        v=np.zeros((horizon + 1, S)),
        gain=np.zeros((S, A)),
        available=setting.available,
        stream=np.zeros(4, np.uint64),
        clock=np.zeros(3, np.int64),
        discount=setting.discount,
        interval=values["interval"],
        iterations=values["iterations"],
        floor=float(values["floor"]),
    )


@njit(**EXACT)
def begin(trajectories, stream):
    """The uniform policy, and a plan at the first step."""
    save(trajectories.stream, load(stream))
    trajectories.clock.fill(0)
    trajectories.clock[DUE] = 1
    mix(trajectories.policy, trajectories.available, 1.0)


@njit(**EXACT)
def mix(policy, available, share):
    """`share` of the uniform policy, the rest as it was."""
    n_states, n_actions = policy.shape
    for s in range(n_states):
        offered = 0
        for a in range(n_actions):
            offered += available[s, a]
        for a in range(n_actions):
            policy[s, a] = (1.0 - share) * policy[s, a] + (share / offered if available[s, a] else 0.0)


@njit(**EXACT_INLINE)
def is_due(trajectories):
    """Count a step; if a plan is due, set the date of the next one and mix the policy."""
    clock = trajectories.clock
    clock[STEP] += 1
    if clock[STEP] < clock[DUE]:
        return False
    clock[DUE] = clock[STEP] + trajectories.interval
    clock[PLANS] += 1
    mix(trajectories.policy, trajectories.available, trajectories.floor)
    return True


@njit(**EXACT_INLINE)
def choose(trajectories, s):
    """An action from the policy."""
    return categorical(trajectories.stream, trajectories.policy[s])


@njit(**EXACT)
def backward(trajectories, s):
    """`v`; returns the value of the policy from `s`."""
    policy, p, r, v, discount = (
        trajectories.policy,
        trajectories.p,
        trajectories.r,
        trajectories.v,
        trajectories.discount,
    )
    horizon, (n_states, n_actions) = len(trajectories.f), policy.shape
    for t in range(n_states):
        v[horizon, t] = 0.0
    for k in range(horizon - 1, -1, -1):
        m = k if len(p) > 1 else 0
        for i in range(n_states):
            total = 0.0
            for a in range(n_actions):
                if policy[i, a] > 0.0:
                    ahead = 0.0
                    for t in range(n_states):
                        ahead += p[m, i, a, t] * v[k + 1, t]
                    total += policy[i, a] * (r[m, i, a] + discount * ahead)
            v[k, i] = total
    return v[0, s]


@njit(**EXACT)
def forward(trajectories, s):
    """`f` from `s` on, and what it adds to `gain`; after `backward`."""
    policy, p, r, f, v = trajectories.policy, trajectories.p, trajectories.r, trajectories.f, trajectories.v
    discount = trajectories.discount
    horizon, (n_states, n_actions) = len(f), policy.shape
    f.fill(0.0)
    f[0, s] = 1.0
    for k in range(horizon):
        m = k if len(p) > 1 else 0
        for i in range(n_states):
            if f[k, i] <= 0.0:
                continue
            for a in range(n_actions):
                weight = f[k, i] * policy[i, a]
                if weight <= 0.0:
                    continue
                ahead = 0.0
                for t in range(n_states):
                    ahead += p[m, i, a, t] * v[k + 1, t]
                trajectories.gain[i, a] += weight * (r[m, i, a] + discount * ahead)
                if k + 1 < horizon:
                    for t in range(n_states):
                        f[k + 1, t] += discount * weight * p[m, i, a, t]


@njit(**EXACT)
def improve(trajectories):
    """The M-step, and `gain` back to 0."""
    policy, gain = trajectories.policy, trajectories.gain
    n_states, n_actions = policy.shape
    for s in range(n_states):
        total = 0.0
        for a in range(n_actions):
            total += gain[s, a]
        if total > 0.0:
            for a in range(n_actions):
                policy[s, a] = gain[s, a] / total
    gain.fill(0.0)
