"""AMP-EM: EM on reward-weighted trajectories by approximate message passing (Furmston & Barber, AISTATS 2010).

In the law of trajectories and parameters θ that is proportional to reward times probability (`lab.agents.common.em`),
every step τ is a factor `p(s_{τ+1}|s_τ,a_τ,θ)`, and all of them meet in θ: a graph with loops. Expectation propagation
replaces what step τ says about θ by a Dirichlet *site* `Π θ^{ρ_τ}`. With α the posterior counts and `c_τ = α + Σ_{σ≠τ}
ρ_σ` (the
*cavity*: what all other steps say),

* trajectories run, at step τ, on the mean of the cavity, `p_τ = c_τ / Σ c_τ`;
* with `w_j` the weight of trajectories that use outcome j of a row at step τ, divided by that of all, the row's law is
  the mixture of `Dirichlet(c_τ + e_j)` with weights `w_j` and of `Dirichlet(c_τ)` with the rest. The Dirichlet with
  its means and the sum of its variances, divided by the cavity, is the new site.

All sites of a pass are updated from the same messages, `damping` being the share of the new one. `rounds` passes, then
an M-step. Sites are warm from plan to plan. Nothing is bounded, nor need passes converge: a cavity count is kept above
a thousandth of the posterior's. Where only one step meets an uncertain row, the value is exact.

Their abstract names expectation propagation, and the paper that this package reproduces "the first two moments"; the
rest is our reading. Interval, horizon, iterations and prior are not published; the defaults are ours.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from beliefbound.base.errors import ParameterError
from beliefbound.base.grammar import Number
from beliefbound.base.limits import AGENT_BYTES
from beliefbound.base.validation import FloatArray
from beliefbound.kernels.options import EXACT, EXACT_INLINE
from beliefbound.kernels.posterior import Posterior, arrival_of, forget, on_arrival, row_of
from beliefbound.lab.agents.common import em
from beliefbound.lab.agents.common.belief import observe
from beliefbound.lab.agents.vb_em import paid_when, run_on
from beliefbound.lab.engine.priors import dirichlet_for
from beliefbound.lab.engine.protocol import Machine, Setting
from beliefbound.lab.engine.registry import agent

LEAST = 1e-3  # of a cavity count, as a share of the posterior's: keeps means defined while sites overshoot


class State(NamedTuple):
    """The belief, the policy with its messages, and what each step says about the parameters."""

    posterior: Posterior
    trajectories: em.Trajectories
    sites: FloatArray  # [τ,row,j]: ρ
    total: FloatArray  # [row,j]: α and all sites
    cavity: FloatArray  # [row,j] of the step at hand
    theta: FloatArray  # [row,j]: its means
    weight: FloatArray  # [row,j]: w of the step at hand
    rounds: int
    damping: float


@njit(**EXACT)
def reset(state, stream):
    """Back to the prior and the uniform policy."""
    forget(state.posterior)
    state.sites.fill(0.0)
    em.begin(state.trajectories, stream)


@njit(**EXACT)
def add_up(state):
    """`total` from the counts and the sites."""
    alpha, sites, total = state.posterior.alpha, state.sites, state.total
    for row in range(len(alpha)):
        for j in range(alpha.shape[1]):
            total[row, j] = alpha[row, j]
    for k in range(len(sites)):
        for row in range(len(alpha)):
            for j in range(alpha.shape[1]):
                total[row, j] += sites[k, row, j]


@njit(**EXACT)
def leave_out(state, k):
    """The cavity of step k and its means."""
    alpha, cavity, theta = state.posterior.alpha, state.cavity, state.theta
    for row in range(len(alpha)):
        whole = 0.0
        for j in range(alpha.shape[1]):
            cavity[row, j] = max(state.total[row, j] - state.sites[k, row, j], LEAST * alpha[row, j])
            whole += cavity[row, j]
        for j in range(alpha.shape[1]):
            theta[row, j] = cavity[row, j] / whole


@njit(**EXACT)
def weigh(state, k, value):
    """`weight` of the outcomes of each row at step k."""
    posterior, trajectories, weight = state.posterior, state.trajectories, state.weight
    policy, p = trajectories.policy, trajectories.p[k]
    arriving = on_arrival(posterior)
    weight.fill(0.0)
    for pair in range(policy.size):
        s, a = pair // posterior.n_actions, pair % posterior.n_actions
        share = trajectories.f[k, s] * policy[s, a] / value
        if share <= 0.0:
            continue
        row = row_of(posterior, pair)
        for j in range(weight.shape[1]):
            t = arrival_of(posterior, pair, j)
            if t >= 0 and p[s, a, t] > 0.0:
                paid = paid_when(posterior, pair, j) if arriving else 0.0
                weight[row, j] += share * p[s, a, t] * (paid + trajectories.discount * trajectories.v[k + 1, t])


@njit(**EXACT)
def match(c, w, site, damping):
    """Move `site[j]` towards what gives, with the cavity `c[j]`, the moments of the mixture of weights `w[j]`.

    The mixture has `E θ_i = (1 − W) c_i/C + (W c_i + w_i)/(C + 1)` with W the sum of w and C that of c, and
    `E θ_i² = c_i(c_i + 1) ((1 − W)/(C(C + 1)) + W/((C + 1)(C + 2))) + 2 w_i(c_i + 1)/((C + 1)(C + 2))`. A Dirichlet of
    these means and sum A has variances that sum to `(1 − Σ E²) / (A + 1)`.
    """
    whole, used = 0.0, 0.0
    for j in range(c.size):
        whole += c[j]
        used += w[j]
    rest = max(1.0 - used, 0.0)
    once, twice = whole + 1.0, (whole + 1.0) * (whole + 2.0)
    squares, variance = 0.0, 0.0
    for j in range(c.size):
        mean = rest * c[j] / whole + (used * c[j] + w[j]) / once
        second = c[j] * (c[j] + 1.0) * (rest / (whole * once) + used / twice) + 2.0 * w[j] * (c[j] + 1.0) / twice
        squares += mean * mean
        variance += second - mean * mean
    if not variance > 1e-15:  # one outcome only, or as good as known
        return
    size = (1.0 - squares) / variance - 1.0
    for j in range(c.size):
        mean = rest * c[j] / whole + (used * c[j] + w[j]) / once
        site[j] += damping * (mean * size - c[j] - site[j])


@njit(**EXACT)
def run_trajectories(state, s):
    """Messages on the means of the cavities; returns the value."""
    trajectories = state.trajectories
    add_up(state)
    for k in range(len(trajectories.p)):
        leave_out(state, k)
        run_on(state.posterior, state.theta, trajectories.p[k], trajectories.r[k])
    value = em.backward(trajectories, s)
    trajectories.gain.fill(0.0)
    em.forward(trajectories, s)
    return value


@njit(**EXACT)
def plan(state, s):
    """Rounds of messages and sites, then an M-step; again and again."""
    trajectories = state.trajectories
    for _ in range(trajectories.iterations):
        for _ in range(state.rounds):
            value = run_trajectories(state, s)
            if not value > 0.0:  # nothing pays, whatever is done: nothing to weigh trajectories by
                return
            for k in range(len(state.sites)):
                leave_out(state, k)
                weigh(state, k, value)
                for row in range(len(state.weight)):
                    match(state.cavity[row], state.weight[row], state.sites[k, row], state.damping)
        em.improve(trajectories)


@njit(**EXACT_INLINE)
def act(state, s):
    """Plan if it is due, and draw an action."""
    if em.is_due(state.trajectories):
        plan(state, s)
    return em.choose(state.trajectories, s)


@agent(
    "amp-em",
    summary="EM on reward-weighted trajectories by expectation propagation (Furmston & Barber 2010)",
    parameters=em.parameters(
        Number("rounds", 1, 1, 10**6, "passes of messages before an M-step", whole=True),
        Number("damping", 0.5, 0.0, 1.0, "share of the new site in an update", above=True),
    ),
)
def amp_em(setting: Setting, *, rounds: int, damping: float, **values: Any) -> Machine:
    """The machine; memory is that of a model for each step of the horizon."""
    posterior = dirichlet_for(setting, values)
    trajectories = em.trajectories_for(setting, values, each_step=True)
    if 8 * values["horizon"] * posterior.alpha.size > AGENT_BYTES:
        raise ParameterError(f"horizon is {values['horizon']}: sites of so many steps need too much memory; shorten it")
    counts = np.zeros_like(posterior.alpha)
    state = State(
        posterior=posterior,
        trajectories=trajectories,
        sites=np.zeros((values["horizon"], *counts.shape)),
        total=counts,
        cavity=counts.copy(),
        theta=counts.copy(),
        weight=counts.copy(),
        rounds=rounds,
        damping=float(damping),
    )
    return Machine(state, reset, act, observe)
