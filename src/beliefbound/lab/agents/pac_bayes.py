"""A PAC-Bayes hybrid in the manner of Fard & Pineau (NIPS 2010): lean on the prior, or drop it, by a bound.

A *reconstruction*: the paper bounds the error of value functions learnt from a batch of data whatever the prior, and
chooses between prior and data by the bound; its theorem was not at hand, so the bound and the on-line use are ours.

Three candidates: `Q₀`, optimal for the expected MDP of the prior; `Q_B`, for that of the posterior; `Q_E`, for
empirical frequencies, where a pair never tried keeps its `Q₀`. Each stands for the Gaussian `ρ = N(Q, ς² I)`, and
`π = N(Q₀, ς² I)` is fixed before data, so `KL(ρ‖π) = ‖Q − Q₀‖² / 2ς²`. With B the Bellman operator of the truth, B̂ the
empirical one and n the visits of a pair, for all ρ and pairs with probability 1 − δ,

`E_ρ |Q' − BQ'|(s,a) ≤ E_ρ |Q' − B̂Q'|(s,a) + V_max sqrt((KL + ln(4 n S A / δ)) / (2n − 1))`,

`E_ρ |Q' − B̂Q'| ≤ |Q − B̂Q| + ς (sqrt(2/π) + γ sqrt(2 ln 2A))`, the second term being what the Gaussian itself adds.
`V_max = 1/(1 − γ)` stands for pairs never tried and caps all others. The largest over pairs, divided by `1 − γ`, bounds
the value error; the agent is greedy on the candidate of least bound. Where bounds do not tell, `Q_B` goes first, then
`Q₀`: no data, the prior's policy. Bounds are taken again when the visits of a pair become 1, 2, 4, 8, …

Stated for n independent samples of every pair. On-line data are not, so here the bound is a criterion, not a
guarantee. As nothing in it explores, a share `epsilon` of actions is random; that too is ours.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from beliefbound.base.grammar import Number
from beliefbound.base.validation import FloatArray, IntArray
from beliefbound.kernels.actions import ActionLists, action_lists
from beliefbound.kernels.options import EXACT, EXACT_INLINE
from beliefbound.kernels.planning.empirical import Counts, count, forget_counts, no_counts
from beliefbound.kernels.planning.sampled_models import (
    SampledModels,
    greedy,
    sampled_models,
    solve_each,
    start_lowest,
)
from beliefbound.kernels.posterior import Posterior, expected, forget, learn
from beliefbound.kernels.random import below, load, save, uniform
from beliefbound.lab.agents.common.sampling import check_memory, no_stream
from beliefbound.lab.engine.priors import PRIOR, posterior_for
from beliefbound.lab.engine.protocol import DISCOUNT, Machine, Setting
from beliefbound.lab.engine.registry import agent

BAYES, PRIOR_ONLY, EMPIRICAL = range(3)  # the candidates, in the order in which ties are broken
DUE, CHOSEN = range(2)  # the clock


class State(NamedTuple):
    """The belief, what was counted, the candidates, and parameters."""

    posterior: Posterior
    counts: Counts
    models: SampledModels  # one for each candidate
    bounds: FloatArray  # [candidate]: on the largest Bellman error
    stream: np.ndarray  # uint64 [4]
    clock: IntArray  # whether bounds are to be taken again, the candidate chosen
    lists: ActionLists
    epsilon: float
    delta: float
    spread: float


@njit(**EXACT)
def reset(state, stream):
    """Back to the prior, which is solved."""
    save(state.stream, load(stream))
    forget(state.posterior)
    forget_counts(state.counts)
    start_lowest(state.models.policy, state.models.available)
    for candidate in range(3):
        expect(state, candidate)
    solve_each(state.models)
    state.bounds.fill(1.0 / (1.0 - state.models.discount))
    state.clock[DUE], state.clock[CHOSEN] = 0, BAYES


@njit(**EXACT)
def expect(state, candidate):
    """The expected MDP of the posterior as the model of a candidate."""
    p, r = state.models.p, state.models.r
    for s in range(p.shape[0]):
        for a in range(p.shape[1]):
            r[s, a, candidate] = expected(state.posterior, s * p.shape[1] + a, p[s, a, :, candidate])


@njit(**EXACT)
def estimate(counts, models):
    """The empirical MDP; a pair never tried is worth its `Q₀`, and leads nowhere."""
    n_states, n_actions = counts.visits.shape
    for s in range(n_states):
        for a in range(n_actions):
            n = counts.visits[s, a]
            for t in range(n_states):
                models.p[s, a, t, EMPIRICAL] = counts.arrivals[s, a, t] / max(1, n)
            unseen = models.q[s * n_actions + a, PRIOR_ONLY]
            models.r[s, a, EMPIRICAL] = counts.rewards[s, a] / n if n > 0 else unseen


@njit(**EXACT)
def slack(n, n_pairs, divergence, delta):
    """`sqrt((KL + ln(4 n S A / δ)) / (2n − 1))`, for n > 0."""
    return math.sqrt((divergence + math.log(4.0 * n * n_pairs / delta)) / (2.0 * n - 1.0))


@njit(**EXACT)
def largest_error(models, counts, candidate, spread, delta):
    """The bound on the largest Bellman error of a candidate."""
    n_states, n_actions = counts.visits.shape
    discount, largest = models.discount, 1.0 / (1.0 - models.discount)
    divergence = 0.0
    for s in range(n_states):
        for a in range(n_actions):
            if models.available[s, a]:
                pair = s * n_actions + a
                divergence += (models.q[pair, candidate] - models.q[pair, PRIOR_ONLY]) ** 2
    divergence /= 2.0 * spread * spread
    noise = spread * (math.sqrt(2.0 / math.pi) + discount * math.sqrt(2.0 * math.log(2.0 * n_actions)))
    worst = 0.0
    for s in range(n_states):
        for a in range(n_actions):
            n = counts.visits[s, a]
            if models.available[s, a] and n == 0:
                return largest
            if models.available[s, a]:
                target = 0.0
                for t in range(n_states):
                    target += counts.arrivals[s, a, t] * models.v[t, candidate]
                target = (counts.rewards[s, a] + discount * target) / n
                error = abs(models.q[s * n_actions + a, candidate] - target) + noise
                error += largest * slack(n, n_states * n_actions, divergence, delta)
                worst = max(worst, error)
    return min(worst, largest)


@njit(**EXACT)
def plan(state):
    """Solve the candidates and choose the one of least bound."""
    models = state.models
    expect(state, BAYES)
    estimate(state.counts, models)
    solve_each(models)
    for candidate in range(3):
        state.bounds[candidate] = largest_error(models, state.counts, candidate, state.spread, state.delta)
    state.clock[DUE], state.clock[CHOSEN] = 0, state.bounds.argmin()


@njit(**EXACT_INLINE)
def act(state, s):
    """Explore, or follow the candidate chosen."""
    if state.clock[DUE] == 1:
        plan(state)
    if state.epsilon > 0.0 and uniform(state.stream) < state.epsilon:
        return state.lists.offered[s, below(state.stream, state.lists.counts[s])]
    return greedy(state.models, s, state.clock[CHOSEN])


@njit(**EXACT_INLINE)
def observe(state, s, a, r, t):
    """Condition the belief on one transition and count it."""
    learn(state.posterior, s, a, r, t)
    n = count(state.counts, s, a, r, t)
    if n & (n - 1) == 0:
        state.clock[DUE] = 1


@agent(
    "pac-bayes",
    summary="prior, posterior or data, by a PAC-Bayes bound: a reconstruction (after Fard & Pineau 2010)",
    parameters=(
        Number("epsilon", 0.1, 0.0, 1.0, "share of random actions"),
        Number("delta", 0.05, 0.0, 1.0, "probability that the bound fails", above=True),
        Number("spread", 0.1, 1e-9, 1e3, "ς, deviation of candidates as a fraction of the largest value"),
        *PRIOR,
        DISCOUNT,
    ),
)
def pac_bayes(setting: Setting, *, epsilon: float, delta: float, spread: float, **values: Any) -> Machine:
    """The machine."""
    check_memory(setting, 4, "pac-bayes solves three models", fix="take a smaller environment")
    state = State(
        posterior=posterior_for(setting, values),
        counts=no_counts(setting.n_states, setting.n_actions, low=setting.low, width=setting.width),
        models=sampled_models(3, setting.available, setting.discount),
        bounds=np.zeros(3),
        stream=no_stream(),
        clock=np.zeros(2, np.int64),
        lists=action_lists(setting.available),
        epsilon=float(epsilon),
        delta=float(delta),
        spread=spread / (1.0 - setting.discount),
    )
    return Machine(state, reset, act, observe)
