"""VB-EM: EM on reward-weighted trajectories by variational Bayes (Furmston & Barber, AISTATS 2010).

The law of trajectories x and parameters θ that is proportional to reward times probability (`lab.agents.common.em`) is
taken as a product `q(x) Π Dirichlet(θ_row; α + ρ)`, α the posterior counts. Its factors are found in turn:

* given ρ, trajectories run on `θ̃_j = exp(ψ(α_j + ρ_j) − ψ(Σ (α + ρ)))`, chances that sum to less than 1;
* given q(x), `ρ[row, j]` is the expected number of times that outcome j of the row happens up to the paid step.

`rounds` of both, then an M-step. Every one of these steps raises, or keeps, the lower bound on the logarithm of the
value, `log v_0(s_0) − Σ_rows KL(Dirichlet(α + ρ) ‖ Dirichlet(α))`. The counts ρ are warm from plan to plan; they are
weighted by reward, hence hopeful, and never taken for what was seen.

Where rewards depend on the arrival the paid transition counts too. Interval, horizon, iterations and prior are not
published; the defaults are ours.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from beliefbound.base.grammar import Number
from beliefbound.base.validation import FloatArray
from beliefbound.kernels.options import EXACT, EXACT_INLINE
from beliefbound.kernels.posterior import Posterior, arrival_of, forget, mean_reward, on_arrival, paid_for, row_of
from beliefbound.lab.agents.common import em
from beliefbound.lab.agents.common.belief import observe
from beliefbound.lab.engine.priors import dirichlet_for
from beliefbound.lab.engine.protocol import Machine, Setting
from beliefbound.lab.engine.registry import agent


class State(NamedTuple):
    """The belief, the policy with its messages, and the reward-weighted counts."""

    posterior: Posterior
    trajectories: em.Trajectories
    rho: FloatArray  # [row,j]
    theta: FloatArray  # [row,j]: θ̃
    rounds: int


@njit(**EXACT)
def digamma(x):
    """`ψ(x)` for x > 0: upwards by `ψ(x) = ψ(x + 1) − 1/x`, then Stirling's series, to about 1e-14."""
    below = 0.0
    while x < 10.0:
        below += 1.0 / x
        x += 1.0
    y = 1.0 / (x * x)
    series = y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y * (1 / 240 - y * (1 / 132)))))
    return math.log(x) - 0.5 / x - series - below


@njit(**EXACT)
def reset(state, stream):
    """Back to the prior and the uniform policy."""
    forget(state.posterior)
    state.rho.fill(0.0)
    em.begin(state.trajectories, stream)


@njit(**EXACT)
def paid_when(posterior, pair, j):
    """The expected reward of a pair with outcome j, scaled."""
    n_values = posterior.reward.shape[0]
    if n_values == 1:
        return paid_for(posterior, 0, pair, j)
    total, reward = 0.0, 0.0
    for k in range(n_values):
        total += posterior.reward[k, pair]
        reward += posterior.reward[k, pair] * paid_for(posterior, k, pair, j)
    return reward / total


@njit(**EXACT)
def run_on(posterior, theta, p, r):
    """Transitions `p[s,a,t]` and rewards `r[s,a]` of chances `theta[row,j]`, whatever these sum to."""
    p.fill(0.0)
    for pair in range(r.size):
        s, a, row = pair // posterior.n_actions, pair % posterior.n_actions, row_of(posterior, pair)
        for j in range(theta.shape[1]):
            t = arrival_of(posterior, pair, j)
            if t >= 0:
                p[s, a, t] = theta[row, j]
        r[s, a] = mean_reward(posterior, pair, p[s, a])


@njit(**EXACT)
def soften(state):
    """`theta` from the counts, and the model that trajectories run on."""
    posterior, theta, rho = state.posterior, state.theta, state.rho
    for row in range(len(theta)):
        total = 0.0
        for j in range(theta.shape[1]):
            total += posterior.alpha[row, j] + rho[row, j]
        less = digamma(total)
        for j in range(theta.shape[1]):
            alpha = posterior.alpha[row, j]
            theta[row, j] = math.exp(digamma(alpha + rho[row, j]) - less) if alpha > 0.0 else 0.0
    run_on(posterior, theta, state.trajectories.p[0], state.trajectories.r[0])


@njit(**EXACT)
def count(posterior, trajectories, value, rho):
    """`rho`: expected outcomes of each row up to the paid step, `value` being the weight of all trajectories."""
    f, v, policy, p = trajectories.f, trajectories.v, trajectories.policy, trajectories.p[0]
    arriving = on_arrival(posterior)
    rho.fill(0.0)
    for pair in range(policy.size):
        s, a, row = pair // posterior.n_actions, pair % posterior.n_actions, row_of(posterior, pair)
        for j in range(rho.shape[1]):
            t = arrival_of(posterior, pair, j)
            if t < 0 or p[s, a, t] <= 0.0:
                continue
            paid = paid_when(posterior, pair, j) if arriving else 0.0
            total = 0.0
            for k in range(len(f)):
                total += f[k, s] * (paid + trajectories.discount * v[k + 1, t])
            rho[row, j] += total * policy[s, a] * p[s, a, t] / value


@njit(**EXACT)
def plan(state, s):
    """Rounds of trajectories and counts, then an M-step; again and again."""
    trajectories = state.trajectories
    for _ in range(trajectories.iterations):
        for _ in range(state.rounds):
            soften(state)
            value = em.backward(trajectories, s)
            if not value > 0.0:  # nothing pays, whatever is done: nothing to weigh trajectories by
                return
            trajectories.gain.fill(0.0)
            em.forward(trajectories, s)
            count(state.posterior, trajectories, value, state.rho)
        em.improve(trajectories)


@njit(**EXACT_INLINE)
def act(state, s):
    """Plan if it is due, and draw an action."""
    if em.is_due(state.trajectories):
        plan(state, s)
    return em.choose(state.trajectories, s)


@agent(
    "vb-em",
    summary="variational Bayes EM on reward-weighted trajectories (Furmston & Barber 2010)",
    parameters=em.parameters(
        Number("rounds", 2, 1, 10**6, "updates of trajectories and counts before an M-step", whole=True),
    ),
)
def vb_em(setting: Setting, *, rounds: int, **values: Any) -> Machine:
    """The machine."""
    posterior = dirichlet_for(setting, values)
    counts = np.zeros_like(posterior.alpha)
    state = State(posterior, em.trajectories_for(setting, values), counts, counts.copy(), rounds)
    return Machine(state, reset, act, observe)
