"""Model-based Bayesian exploration (Dearden, Friedman & Andre, UAI 1999): value of information over sampled models.

k models of the posterior are held with weights w and optimal values `q_m(s,a)`. With `q̄ = Σ_m w_m q_m` and `q̄₁ ≥ q̄₂`
the two largest in the present state, the agent plays `argmax_a q̄(a) + VPI(a)`, ties to the lowest, where
`VPI(a) = Σ_m w_m (q̄₂ − q_m(a))⁺` for the action of `q̄₁` and `Σ_m w_m (q_m(a) − q̄₁)⁺` for others: what one expects to
gain from being told q of that action. The paper also smooths by a kernel; this does not. `variant` says how models
follow the posterior:

* `global`: at every step k new models are drawn and solved;
* `importance`: weights are multiplied by the probability of what was seen; when the effective number `1 / Σ w²` falls
  below k/2 (our choice), new models are drawn and solved;
* `repair`: of every model only the row of the pair just tried is drawn again – valid, as rows are independent – and
  its values are put right by prioritised sweeping from there: at most `backups` states a step and model, the largest
  expected change first, none below `tolerance`;
* `local`: as `repair`, but whenever a state is backed up all its rows are drawn again: what is kept is samples of q,
  not models.

Models are solved exactly when drawn. Where rewards are unknown a model includes them; `importance` then needs beliefs
with at most two reward values, since it must know how probable each was. k, `backups` and `tolerance` are ours; no
guarantee is known to us.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from beliefbound.base.errors import BeliefError
from beliefbound.base.grammar import Choice, Number
from beliefbound.base.validation import FloatArray, IntArray
from beliefbound.kernels.actions import ActionLists, action_lists
from beliefbound.kernels.options import EXACT, EXACT_INLINE
from beliefbound.kernels.planning.sampled_models import SampledModels, sampled_models, solve_each, start_lowest
from beliefbound.kernels.posterior import Posterior, forget, learn, outcome_of, paid_for, paid_on, row_of
from beliefbound.kernels.random import load, save
from beliefbound.kernels.redraw import Scratch, redraw, redraw_all, scratch_for
from beliefbound.lab.agents.common.sampling import check_memory, no_stream
from beliefbound.lab.engine.priors import PRIOR, posterior_for
from beliefbound.lab.engine.protocol import DISCOUNT, Machine, Setting
from beliefbound.lab.engine.registry import agent

VARIANTS = ("global", "importance", "repair", "local")
GLOBAL, IMPORTANCE, REPAIR, LOCAL = range(4)
DUE, DRAWS = range(2)  # the clock

inlined = njit(inline="always", **EXACT)  # a function of its own with all of the state takes long to compile


class State(NamedTuple):
    """The belief, the models held, and parameters."""

    posterior: Posterior
    models: SampledModels
    weights: FloatArray  # [m]
    mean: FloatArray  # [a]: q̄ in the present state
    worth: FloatArray  # [a]: q̄ + VPI
    priority: FloatArray  # [s] scratch
    stream: np.ndarray  # uint64 [4]
    scratch: Scratch
    clock: IntArray  # whether new models are due, how often they were drawn
    lists: ActionLists
    variant: int
    backups: int
    tolerance: float


@njit(**EXACT)
def reset(state, stream):
    """Back to the prior."""
    save(state.stream, load(stream))
    forget(state.posterior)
    start_lowest(state.models.policy, state.models.available)
    state.clock[DUE], state.clock[DRAWS] = 1, 0


@njit(**EXACT)
def renew(state):
    """New models, equal weights."""
    models = state.models
    redraw_all(state.posterior, state.stream, models.p, models.r, state.scratch)
    solve_each(models)
    state.weights.fill(1.0 / state.weights.size)
    state.clock[DUE] = 0
    state.clock[DRAWS] += 1


@njit(**EXACT)
def value_information(lists, q, weights, s, mean, worth):
    """`mean[a]` and `worth[a] = mean + VPI` of the actions that `s` offers, from values `q[pair,m]`."""
    n_actions, n, counts, offered = mean.size, weights.size, lists.counts[s], lists.offered[s]
    best, second = -1, -np.inf
    for i in range(counts):
        a = offered[i]
        mean[a] = 0.0
        for m in range(n):
            mean[a] += weights[m] * q[s * n_actions + a, m]
        if best < 0 or mean[a] > mean[best]:
            second = mean[best] if best >= 0 else second
            best = a
        else:
            second = max(second, mean[a])
    for i in range(counts):
        a = offered[i]
        gain = 0.0
        if counts > 1:
            for m in range(n):
                value = q[s * n_actions + a, m]
                gain += weights[m] * max(0.0, second - value if a == best else value - mean[best])
        worth[a] = mean[a] + gain


@njit(**EXACT_INLINE)
def act(state, s):
    """Draw new models if they are due, and choose."""
    if state.clock[DUE] == 1:
        renew(state)
    value_information(state.lists, state.models.q, state.weights, s, state.mean, state.worth)
    best, worth = state.lists.offered[s, 0], state.worth
    for i in range(1, state.lists.counts[s]):
        a = state.lists.offered[s, i]
        if worth[a] > worth[best]:
            best = a
    return best


@inlined
def reward_chance(posterior, pair, j, r, p, mean):
    """How probable a reward is in a model with chances `p[t]` and expected reward `mean`: up to a common factor."""
    if posterior.reward.shape[0] == 1:
        return 1.0
    high, low = paid_on(posterior, 0, pair, p), paid_on(posterior, 1, pair, p)
    success, failure = paid_for(posterior, 0, pair, j), paid_for(posterior, 1, pair, j)
    if high == low or success == failure:
        return 1.0
    chance = min(max((mean - low) / (high - low), 0.0), 1.0)
    share = ((r - posterior.low) / posterior.width - failure) / (success - failure)
    if not posterior.fractional:
        share = 1.0 if share >= 0.5 else 0.0
    return chance**share * (1.0 - chance) ** (1.0 - share)


@njit(**EXACT)
def weigh(state, s, a, r, t):
    """Multiply weights by the probability of a transition; new models are due when few carry the weight."""
    posterior, models, weights = state.posterior, state.models, state.weights
    pair = s * posterior.n_actions + a
    j = outcome_of(posterior, pair, t)
    if j < 0 or posterior.alpha[row_of(posterior, pair), j] <= 0.0:
        return  # ruled out: it teaches nothing
    total, squares = 0.0, 0.0
    for m in range(weights.size):
        row = models.p[s, a, :, m]
        weights[m] *= models.p[s, a, t, m] * reward_chance(posterior, pair, j, r, row, models.r[s, a, m])
        total += weights[m]
        squares += weights[m] * weights[m]
    if not total * total > 0.5 * weights.size * squares:
        state.clock[DUE] = 1
    else:
        for m in range(weights.size):
            weights[m] /= total


@inlined
def back_up_state(state, s, m):
    """Values of state `s` in model `m` from those of its successors; returns the change of the state's value."""
    models, lists = state.models, state.lists
    n_states, n_actions = models.r.shape[:2]
    best = -np.inf
    for i in range(lists.counts[s]):
        a = lists.offered[s, i]
        if state.variant == LOCAL:
            row = row_of(state.posterior, s * n_actions + a)
            redraw(state.posterior, state.stream, row, m, m + 1, models.p, models.r, state.scratch)
        total = 0.0
        for t in range(n_states):
            total += models.p[s, a, t, m] * models.v[t, m]
        value = models.r[s, a, m] + models.discount * total
        models.q[s * n_actions + a, m] = value
        best = max(best, value)
    change = abs(best - models.v[s, m])
    models.v[s, m] = best
    return change


@inlined
def sweep_from(state, pair, m):
    """Prioritised sweeping of model `m`, from the states whose rows a pair shares."""
    models, lists, priority = state.models, state.lists, state.priority
    n_states, n_actions = models.r.shape[:2]
    priority.fill(0.0)
    for s in range(n_states):
        for a in range(n_actions):
            if row_of(state.posterior, s * n_actions + a) == row_of(state.posterior, pair):
                priority[s] = np.inf
    for _ in range(state.backups):
        s = priority.argmax()
        if priority[s] <= state.tolerance:
            break
        priority[s] = 0.0
        change = models.discount * back_up_state(state, s, m)
        for before in range(n_states):
            for i in range(lists.counts[before]):
                priority[before] = max(priority[before], change * models.p[before, lists.offered[before, i], s, m])


@njit(**EXACT)
def repair(state, pair):
    """Draw the row of a pair again in every model, and put values right."""
    models = state.models
    n = models.r.shape[2]
    row = row_of(state.posterior, pair)
    redraw(state.posterior, state.stream, row, 0, n, models.p, models.r, state.scratch)
    for m in range(n):
        sweep_from(state, pair, m)


@njit(**EXACT_INLINE)
def observe(state, s, a, r, t):
    """Condition the belief and the models on one transition."""
    learn(state.posterior, s, a, r, t)
    if state.variant == GLOBAL:
        state.clock[DUE] = 1
    elif state.clock[DUE] == 0:
        if state.variant == IMPORTANCE:
            weigh(state, s, a, r, t)
        else:
            repair(state, s * state.posterior.n_actions + a)


@agent(
    "vpi",
    summary="value of perfect information over sampled models: model-based exploration (Dearden et al. 1999)",
    parameters=(
        Number("k", 16, 1, 2**20, "models held", whole=True, always=True),
        Choice("variant", "global", VARIANTS, "how models follow the posterior", always=True),
        Number(
            "backups",
            20,
            1,
            10**6,
            "most states backed up a step and model",
            whole=True,
            needs=("variant", VARIANTS[2:]),
        ),
        Number("tolerance", 1e-4, 0.0, 1e6, "least priority of a state to back up", needs=("variant", VARIANTS[2:])),
        *PRIOR,
        DISCOUNT,
    ),
)
def vpi(setting: Setting, *, k: int, variant: str, backups: int, tolerance: float, **values: Any) -> Machine:
    """The machine; memory is that of k models."""
    check_memory(setting, k, f"k is {k}")
    posterior = posterior_for(setting, values)
    if variant == "importance" and len(posterior.reward) > 2:
        raise BeliefError(
            f"the belief has {len(posterior.reward)} reward values: variant=importance weighs models by the chances "
            "of rewards and keeps those of two values at most; take variant=global, repair or local"
        )
    state = State(
        posterior=posterior,
        models=sampled_models(k, setting.available, setting.discount),
        weights=np.zeros(k),
        mean=np.zeros(setting.n_actions),
        worth=np.zeros(setting.n_actions),
        priority=np.zeros(setting.n_states),
        stream=no_stream(),
        scratch=scratch_for(posterior),
        clock=np.zeros(2, np.int64),
        lists=action_lists(setting.available),
        variant=VARIANTS.index(variant),
        backups=backups,
        tolerance=float(tolerance),
    )
    return Machine(state, reset, act, observe)
