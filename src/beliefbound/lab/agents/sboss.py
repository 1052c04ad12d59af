"""SBOSS, smarter sampling for BOSS (Castro & Precup, ECML PKDD 2010).

As BOSS, but the posterior says how many samples a pair needs, and when to draw again. With Dirichlet counts α of a
pair, `α0` their sum, `p̄ = α/α0` and `σ²_t = α_t (α0 − α_t) / (α0² (α0 + 1))`,

* a pair gets `K(s,a) = max_t ceil(σ²_t / ε)` copies in the merged MDP, at least one;
* a plan is due when, for the pair just tried, `Σ_t |p̄_plan(t) − p̄(t)| / σ_plan(t) > δ`, `plan` marking what was
  believed at the last plan; terms with σ = 0 are left out.

The merged MDP is solved exactly (`kernels.planning.merged_models`), ties to the lowest action. Rows that pairs share
are drawn once for each copy, so tied rows stay tied.

The defaults ε = .1, δ = 2 are those of the benchmark library BBRL. Under ε = .1 few pairs have more than one copy.
`copies=fixed` gives every pair k of them and keeps the rule for plans, as the public code by the author of BAMCP does
(preset `guez`). The publications have known rewards. Where they are not known, ours treats the values of a pair's
reward as further outcomes: they enter K and the sum like next states. No guarantee is published.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from beliefbound.base.grammar import Choice, Number
from beliefbound.base.validation import BoolArray, FloatArray, IntArray
from beliefbound.kernels.options import EXACT, EXACT_INLINE
from beliefbound.kernels.planning.merged_models import MergedModels, merged_models, solve_merged
from beliefbound.kernels.posterior import Posterior, copy_into, forget, learn, row_of
from beliefbound.kernels.random import load, save
from beliefbound.kernels.redraw import Scratch, redraw, scratch_for
from beliefbound.lab.agents.common.sampling import check_memory, no_stream
from beliefbound.lab.engine.priors import PRIOR, posterior_for
from beliefbound.lab.engine.protocol import DISCOUNT, Machine, Setting
from beliefbound.lab.engine.registry import agent

DUE, PLANS = range(2)  # the clock


class State(NamedTuple):
    """The belief, now and at the last plan, the merged models, and parameters."""

    posterior: Posterior
    planned_alpha: FloatArray  # [row,j]
    planned_reward: FloatArray  # [k,pair]
    models: MergedModels
    stream: np.ndarray  # uint64 [4]
    clock: IntArray  # whether a plan is due, plans made
    needed: IntArray  # [row]: copies
    scratch: Scratch
    available: BoolArray  # [s,a]
    epsilon: float
    delta: float
    fixed: bool  # all pairs alike


@njit(**EXACT)
def reset(state, stream):
    """Back to the prior."""
    save(state.stream, load(stream))
    forget(state.posterior)
    state.clock[DUE], state.clock[PLANS] = 1, 0


@njit(**EXACT)
def largest_variance(alpha):
    """`max_j Var θ_j` of a Dirichlet with counts `alpha[j]`."""
    total, largest = 0.0, 0.0
    for j in range(alpha.size):
        total += alpha[j]
    for j in range(alpha.size):
        largest = max(largest, alpha[j] * (total - alpha[j]))
    return largest / (total * total * (total + 1.0))


@njit(**EXACT)
def movement(before, now):
    """`Σ_j |p̄_before(j) − p̄_now(j)| / σ_before(j)` of two Dirichlet laws."""
    old, new = 0.0, 0.0
    for j in range(before.size):
        old += before[j]
        new += now[j]
    moved = 0.0
    for j in range(before.size):
        variance = before[j] * (old - before[j]) / (old * old * (old + 1.0))
        if variance > 0.0:
            moved += abs(before[j] / old - now[j] / new) / math.sqrt(variance)
    return moved


@njit(**EXACT)
def copies_for(variance, epsilon, most):
    """How many copies a variance asks for."""
    needed = np.int64(math.ceil(variance / epsilon * (1.0 - 1e-12)))  # 9 is 9, whatever the rounding
    return min(max(1, needed), most)


@njit(**EXACT)
def plan(state):
    """Draw as many rows as needed, merge and solve."""
    posterior, models, needed = state.posterior, state.models, state.needed
    most, n_pairs = models.p.shape[3], state.available.size
    for row in range(needed.size):
        variance = largest_variance(posterior.alpha[row])
        needed[row] = most if state.fixed else copies_for(variance, state.epsilon, most)
    if posterior.reward.shape[0] > 1 and not state.fixed:
        for pair in range(n_pairs):
            row, variance = row_of(posterior, pair), largest_variance(posterior.reward[:, pair])
            needed[row] = max(needed[row], copies_for(variance, state.epsilon, most))
    for row in range(needed.size):
        redraw(posterior, state.stream, row, 0, needed[row], models.p, models.r, state.scratch)
    for pair in range(n_pairs):
        s, a = pair // posterior.n_actions, pair % posterior.n_actions
        models.copies[s, a] = needed[row_of(posterior, pair)] if state.available[s, a] else 0
    solve_merged(models)
    copy_into(state.planned_alpha, posterior.alpha)
    copy_into(state.planned_reward, posterior.reward)
    state.clock[DUE] = 0
    state.clock[PLANS] += 1


@njit(**EXACT_INLINE)
def act(state, s):
    """Plan if it is due, and follow the plan."""
    if state.clock[DUE] == 1:
        plan(state)
    return state.models.actions[s]


@njit(**EXACT_INLINE)
def observe(state, s, a, r, t):
    """Condition the belief on one transition, and see whether it has moved enough."""
    posterior = state.posterior
    learn(posterior, s, a, r, t)
    if state.clock[DUE] == 0:
        pair = s * posterior.n_actions + a
        row = row_of(posterior, pair)
        moved = movement(state.planned_alpha[row], posterior.alpha[row])
        if posterior.reward.shape[0] > 1:
            moved += movement(state.planned_reward[:, pair], posterior.reward[:, pair])
        if moved > state.delta:
            state.clock[DUE] = 1


@agent(
    "sboss",
    summary="BOSS with as many samples of a pair as its posterior variance asks for (Castro & Precup 2010)",
    parameters=(
        Number("delta", 2.0, 0.0, 1e9, "movement of a row, in deviations, that makes a plan due"),
        Choice("copies", "local", ("local", "fixed"), "samples by the variance of each pair, or k for all"),
        Number("epsilon", 0.1, 0.0, 1.0, "variance a sample stands for", above=True, needs=("copies", ("local",))),
        Number("k", 20, 1, 2**20, "samples of every pair", whole=True, needs=("copies", ("fixed",))),
        *PRIOR,
        DISCOUNT,
    ),
    presets={"bbrl": {}, "guez": {"copies": "fixed"}},
)
def sboss(setting: Setting, *, delta: float, copies: str, epsilon: float, k: int, **values: Any) -> Machine:
    """The machine; memory is that of the most samples a pair may need."""
    posterior = posterior_for(setting, values)
    most = k if copies == "fixed" else most_copies(posterior, epsilon)
    said = f"k is {k}" if copies == "fixed" else f"epsilon is {epsilon:g}"
    check_memory(setting, most, said, fix="take fewer" if copies == "fixed" else "take a larger one")
    state = State(
        posterior=posterior,
        planned_alpha=posterior.alpha.copy(),
        planned_reward=posterior.reward.copy(),
        models=merged_models(most, setting.n_states, setting.n_actions, setting.discount),
        stream=no_stream(),
        clock=np.zeros(2, np.int64),
        needed=np.zeros(len(posterior.alpha), np.int64),
        scratch=scratch_for(posterior),
        available=np.array(setting.available),
        epsilon=float(epsilon),
        delta=float(delta),
        fixed=copies == "fixed",
    )
    return Machine(state, reset, act, observe)


def most_copies(posterior: Posterior, epsilon: float) -> int:
    """No count law with the sum α0 has a variance above `1 / (4 (α0 + 1))`, and sums only grow."""
    least = float(posterior.alpha.sum(axis=1).min())
    if len(posterior.reward) > 1:
        least = min(least, float(posterior.reward.sum(axis=0).min()))
    return max(1, math.ceil(0.25 / (least + 1.0) / epsilon))
