"""BBI, Bayesian backwards induction, from inferential induction (Eriksson, Jorge, Dimitrakakis, Basu & Grover 2020).

What is unknown about an MDP makes values unknown: after the data D, the value `V_i` of the policy that is played from
stage i on has a law. Inferential induction finds it from the stage after,

    Pr(V_i | D) = ∫ Pr(V_{i+1} | D) ∫ Pr(μ | V_{i+1}, D) [V_i = r_μ + γ P_μ V_{i+1}],

where models are believed in as far as they *explain the value that follows*: a backup with models drawn from the
posterior alone would forget that the same MDP is met at the next step. The policy of stage i maximises the mean,
`argmax_a E[r_μ(s,a) + γ Σ_t P_μ(t|s,a) V_{i+1}(t)]`, ties to the lowest action, and so on backwards.

As an ensemble: n models are drawn from the posterior when a plan is due, as MCBRL does, and n values are followed
backwards through `horizon` stages. `Pr(μ | V)` is `∝ exp(−d(V, U_μ)² / 2(bandwidth · σ)²)`, `U_μ` the value of the same
policy on the model μ itself, d the root mean square over states, σ² the variance of `U_μ` over models: at each stage
every value draws its model from these weights; at the last stage, of which no value tells, each has one of its own.
With bandwidth 0 every value stays with its model, and this is MMBI on the n models; with a wide one models are drawn
anew at every stage, and it is backwards induction on their average. Between plans the policy of the first stage is
followed.

The paper fits Gaussians to values found by roll-outs; here `U_μ` is exact. Bandwidth and n are ours. It proves nothing.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from beliefbound.base.grammar import Number
from beliefbound.base.validation import FloatArray, IntArray
from beliefbound.kernels.options import EXACT, EXACT_INLINE
from beliefbound.kernels.out_of_line import out_of_line
from beliefbound.kernels.planning.held_models import held_models
from beliefbound.kernels.planning.urn import decisions_that_matter
from beliefbound.kernels.random import uniform
from beliefbound.lab.agents import mcbrl
from beliefbound.lab.agents.mcbrl import DUE, PLANNING, STEP
from beliefbound.lab.engine.protocol import Machine, Setting
from beliefbound.lab.engine.registry import agent


class Ensemble(NamedTuple):
    """Values, and the models that explain them."""

    v: FloatArray  # [s,j]: value j
    u: FloatArray  # [s,m]: of the same policy on model m
    next_v: FloatArray  # [s,j]
    next_u: FloatArray  # [s,m]
    q: FloatArray  # [j] scratch
    best: FloatArray  # [j] scratch
    weights: FloatArray  # [m] scratch
    model: IntArray  # [j]: that value j is backed up with
    actions: IntArray  # [s]


class State(NamedTuple):
    """MCBRL's belief, models and clock; the ensemble, and parameters."""

    core: mcbrl.State
    ensemble: Ensemble
    horizon: int
    bandwidth: float


@njit(**EXACT)
def reset(state, stream):
    """Back to the prior."""
    mcbrl.reset(state.core, stream)


@njit(**EXACT)
def explain(ensemble, bandwidth, stream):
    """Draw for every value a model that explains it."""
    v, u, weights = ensemble.v, ensemble.u, ensemble.weights
    n_states, n = v.shape
    spread = 0.0
    for s in range(n_states):
        mean, square = 0.0, 0.0
        for m in range(n):
            mean += u[s, m] / n
        for m in range(n):
            square += (u[s, m] - mean) ** 2
        spread += square / n
    for j in range(n):
        nearest = ensemble.model[j]
        for m in range(n):
            weights[m] = 0.0
            for s in range(n_states):
                weights[m] += (v[s, j] - u[s, m]) ** 2
        for m in range(n):
            if weights[m] < weights[nearest]:
                nearest = m
        ensemble.model[j] = nearest
        scale = 2.0 * bandwidth * bandwidth * spread
        if scale > 0.0:
            least, total = weights[nearest], 0.0
            for m in range(n):
                weights[m] = math.exp((least - weights[m]) / scale)
                total += weights[m]
            left = uniform(stream) * total
            for m in range(n):
                ensemble.model[j] = m
                left -= weights[m]
                if left < 0.0:
                    break


@njit(**EXACT)
def back_up(models, s, a, m, v, j):
    """Value j one stage earlier, with model m."""
    total = 0.0
    for t in range(v.shape[0]):
        total += models.p[s, a, t, m] * v[t, j]
    return models.r[s, a, m] + models.discount * total


@out_of_line
@njit(**EXACT)
def induct(models, ensemble, horizon, bandwidth, stream):
    """All stages backwards; `actions` are those of the first."""
    v, u, q, best, model = ensemble.v, ensemble.u, ensemble.q, ensemble.best, ensemble.model
    n_states, n = v.shape
    v.fill(0.0)
    u.fill(0.0)
    for stage in range(horizon):
        if stage == 0:
            for j in range(n):
                model[j] = j
        else:
            explain(ensemble, bandwidth, stream)
        for s in range(n_states):
            most, chosen = -np.inf, 0
            for a in range(models.available.shape[1]):
                if models.available[s, a]:
                    total = 0.0
                    for j in range(n):
                        q[j] = back_up(models, s, a, model[j], v, j)
                        total += q[j]
                    if total > most:
                        most, chosen = total, a
                        for j in range(n):
                            best[j] = q[j]
            ensemble.actions[s] = chosen
            for j in range(n):
                ensemble.next_v[s, j] = best[j]
                ensemble.next_u[s, j] = back_up(models, s, chosen, j, u, j)
        for s in range(n_states):
            for j in range(n):
                v[s, j] = ensemble.next_v[s, j]
                u[s, j] = ensemble.next_u[s, j]


@njit(**EXACT_INLINE)
def act(state, s):
    """Plan if it is due, and follow the plan."""
    core = state.core
    core.clock[STEP] += 1
    if core.clock[STEP] >= core.clock[DUE]:
        mcbrl.plan(core)
        induct(core.models, state.ensemble, state.horizon, state.bandwidth, core.stream)
    return state.ensemble.actions[s]


@njit(**EXACT_INLINE)
def observe(state, s, a, r, t):
    """Condition the belief on one transition."""
    mcbrl.observe(state.core, s, a, r, t)


@agent(
    "bbi",
    summary="backwards induction on values and the models that explain them (Eriksson, Jorge et al. 2020)",
    parameters=(
        Number("n", 16, 1, 2**14, "models drawn at a plan", whole=True, always=True),
        Number("bandwidth", 0.3, 0.0, 1e9, "of models that explain a value, in deviations of values over models"),
        Number("horizon", None, 1, 10**5, "stages of a plan", whole=True, auto="ln 0.01 / ln discount"),
        *(each for each in PLANNING if each.name not in ("sweeps", "tolerance", "warm")),
    ),
)
def bbi(setting: Setting, *, n: int, bandwidth: float, horizon: int | None, **values: Any) -> Machine:
    """The machine; memory is that of n models."""
    core = mcbrl.mcbrl(setting, n=n, sweeps=1, tolerance=0.0, warm="yes", **values).state
    core = core._replace(models=held_models(n, setting.available, setting.discount))  # dense, whatever the size
    S = setting.n_states
    ensemble = Ensemble(
        v=np.zeros((S, n)),
        u=np.zeros((S, n)),
        next_v=np.zeros((S, n)),
        next_u=np.zeros((S, n)),
        q=np.zeros(n),
        best=np.zeros(n),
        weights=np.zeros(n),
        model=np.zeros(n, np.int64),
        actions=np.argmax(setting.available, axis=1),
    )
    stages = decisions_that_matter(setting.discount) if horizon is None else horizon
    return Machine(State(core, ensemble, stages, float(bandwidth)), reset, act, observe)
