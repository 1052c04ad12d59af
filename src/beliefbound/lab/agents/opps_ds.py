"""OPPS-DS, offline prior-based policy search in a discrete space (Castronovo, Fonteneau & Ernst 2012; 2016).

The agent plays the action of largest index `f(Q_mean, Q_uniform, Q_self)`, f a small formula and each Q the optimal
values of a model that counts what it sees and starts from other counts: those of the prior (*mean*), one for every next
state (*uniform*), and one for staying (*self*), which is hopeful or afraid where little was seen. Ties are broken
uniformly. Which f is decided before the first step: formulas (`lab.agents.common.formulas`) are the arms of a bandit, a
draw of an arm is the discounted return of a trial on an MDP drawn from the prior, and after `draws` draws by UCB1,
`mean + c · sqrt(ln N / n)`, the arm that was drawn most is played. An arm that cannot be computed in a trial is put
aside. This searches for the best of its policies under the prior and proves nothing about them.

After the authors' program: variables, operators, UCB1 with `c = 660`, for returns up to 200, hence 3.3 of the largest
return; the arm drawn most. Of their sets of formulas, sizes 2 to 6, and numbers of draws, 50 to 10⁶, ours are the
defaults. A trial is as long as a reward still counts for 1%. It needs no model drawn: outcomes from the agent's own
predictive, counted as they fall, have the law of one model of the prior (`kernels.planning.urn`).
"""

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from beliefbound.base.errors import ParameterError
from beliefbound.base.grammar import Number
from beliefbound.base.validation import FloatArray, IntArray
from beliefbound.beliefs.dirichlet import DirichletBelief
from beliefbound.kernels.actions import ActionLists, action_lists
from beliefbound.kernels.options import EXACT
from beliefbound.kernels.planning.held_models import (
    ExpectedModel,
    clear,
    expect_first,
    expect_pair,
    expect_tied,
    expected_model,
    mmbi_sweeps_held,
)
from beliefbound.kernels.planning.urn import decisions_that_matter, value_at
from beliefbound.kernels.posterior import Posterior, arrival_of, forget, learn, paid_for, row_of
from beliefbound.kernels.random import load, save, stream_from, uniform
from beliefbound.kernels.reference import pass_by_reference
from beliefbound.lab.agents.common.formulas import LONGEST, STOP, formulas, value_of
from beliefbound.lab.agents.common.sampling import check_memory, no_stream
from beliefbound.lab.agents.exploit import expected_prior
from beliefbound.lab.engine.offline import MOST_PLANNING, planned_once
from beliefbound.lab.engine.play import copied_state
from beliefbound.lab.engine.priors import PRIOR, belief_for, posterior_for
from beliefbound.lab.engine.protocol import DISCOUNT, Machine, Setting
from beliefbound.lab.engine.registry import agent

UNSEEN = 1e-9  # a count that is none, and may grow


class Counted(NamedTuple):
    """A belief, its expected MDP, and what that is before the first step."""

    posterior: Posterior
    models: ExpectedModel
    prior_p: FloatArray  # [s,a,t]
    prior_r: FloatArray  # [s,a]


class State(NamedTuple):
    """Three models that count, and the formula."""

    mean: Counted
    uniform: Counted
    own: Counted
    formula: IntArray  # [i]
    indices: FloatArray  # [a] scratch
    stack: FloatArray  # scratch
    lists: ActionLists
    stream: np.ndarray  # uint64 [4]
    sweeps: int
    tolerance: float
    low: float  # of rewards
    width: float


@njit(**EXACT)
def begin(counted):
    """Back to the first counts."""
    forget(counted.posterior)
    expect_first(counted.models, counted.prior_p, counted.prior_r)
    clear(counted.models)


@njit(**EXACT)
def see(counted, s, a, r, t):
    """Count one transition."""
    learn(counted.posterior, s, a, r, t)
    if counted.posterior.tied:
        expect_tied(counted.posterior, counted.models, s, a)
    else:
        expect_pair(counted.posterior, counted.models, s * counted.posterior.n_actions + a)


@njit(**EXACT)
def solve(models, sweeps, tolerance):
    """Optimal values, from those of the step before."""
    mmbi_sweeps_held(models, sweeps, tolerance)


@njit(**EXACT)
def reset(state, stream):
    """Back to the prior."""
    save(state.stream, load(stream))
    begin(state.mean)
    begin(state.uniform)
    begin(state.own)


@njit(**EXACT)
def choose(state, s):
    """An action of largest index, ties uniformly; −1 − that where some index cannot be computed, which then loses."""
    formula, index, lists = state.formula, state.indices, state.lists
    mean, uniformly, own = False, False, False  # whether the formula has them
    for token in formula:
        mean, uniformly, own = mean or token == 0, uniformly or token == 1, own or token == 2
    if mean:
        solve(state.mean.models, state.sweeps, state.tolerance)
    if uniformly:
        solve(state.uniform.models, state.sweeps, state.tolerance)
    if own:
        solve(state.own.models, state.sweeps, state.tolerance)
    base, width = state.low / (1.0 - state.mean.models.discount), state.width
    best, alike, computed = -np.inf, 0, True
    for i in range(lists.counts[s]):
        a = lists.offered[s, i]
        x = base + width * state.mean.models.mixed[s, a]
        y = base + width * state.uniform.models.mixed[s, a]
        z = base + width * state.own.models.mixed[s, a]
        index[a] = value_of(formula, x, y, z, state.stack)
        if math.isnan(index[a]):
            index[a], computed = -np.inf, False
        if index[a] > best:
            best, alike = index[a], 0
        alike += index[a] == best
    left = np.int64(uniform(state.stream) * alike) if alike > 1 else 0
    chosen = lists.offered[s, 0]
    for i in range(lists.counts[s]):
        a = lists.offered[s, i]
        if index[a] == best:
            chosen = a
            left -= 1
            if left < 0:
                break
    return chosen if computed else -1 - chosen


@njit(**EXACT)
def act(state, s):
    """The action of largest index."""
    a = choose(state, s)
    return a if a >= 0 else -1 - a


@njit(**EXACT)
def observe(state, s, a, r, t):
    """Count one transition in all three."""
    see(state.mean, s, a, r, t)
    see(state.uniform, s, a, r, t)
    see(state.own, s, a, r, t)


@njit(**EXACT)
def drawn(weights, u):
    """The place of quantile `u` among weights."""
    total = 0.0
    for x in weights:
        total += x
    left, last = u * total, 0
    for j in range(weights.size):
        if weights[j] > 0.0:
            last = j
            left -= weights[j]
            if left < 0.0:
                break
    return last


@njit(**EXACT)
def trial(state, start, steps, stream):
    """The discounted return, of scaled rewards, on a model of the prior; NaN where an index cannot be computed."""
    posterior = state.mean.posterior
    begin(state.mean)
    begin(state.uniform)
    begin(state.own)
    s, gained, weight = drawn(start, uniform(stream)), 0.0, 1.0
    for _ in range(steps):
        a = choose(state, s)
        if a < 0:
            return math.nan
        pair = s * posterior.n_actions + a
        j = drawn(posterior.alpha[row_of(posterior, pair)], uniform(stream))
        k = value_at(posterior, pair, uniform(stream)) if posterior.reward.shape[0] > 1 else 0
        t, x = arrival_of(posterior, pair, j), paid_for(posterior, k, pair, j)
        gained += weight * x
        weight *= state.mean.models.discount
        observe(state, s, a, state.low + state.width * x, t)
        s = t
    return gained


@njit(**EXACT)
def search(state, arms, start, steps, draws, c, stream, tries, means):
    """UCB1 over formulas `arms[i,code]`; `tries[i]` and `means[i]` of each, −1 tries for one that was put aside."""
    made = 0
    while made < draws:
        chosen, best = -1, -np.inf
        for i in range(arms.shape[0]):
            if tries[i] >= 0:
                score = np.inf if tries[i] == 0 else means[i] + c * math.sqrt(math.log(made) / tries[i])
                if score > best:
                    chosen, best = i, score
        if chosen < 0:
            return
        for k in range(arms.shape[1]):
            state.formula[k] = arms[chosen, k]
        gained = trial(state, start, steps, stream)
        if math.isnan(gained):
            tries[chosen] = -1
            continue
        made += 1
        tries[chosen] += 1
        means[chosen] += (gained - means[chosen]) / tries[chosen]


def searched(
    state: State, start: FloatArray, size: int, draws: int, steps: int, c: float, seed: int
) -> tuple[IntArray, IntArray, FloatArray]:
    """Formulas of at most that size, how often each was tried, and its mean return."""
    arms = formulas(size)
    tries, means = np.zeros(len(arms), np.int64), np.zeros(len(arms))
    held, stream = copied_state(state), stream_from(np.random.default_rng(seed))
    save(held.stream, load(stream_from(np.random.default_rng((seed, 1)))))
    pass_by_reference(held)
    search(held, arms, start, steps, draws, c, stream, tries, means)
    return arms, tries, means


def counted(setting: Setting, posterior: Posterior) -> Counted:
    """The models of a posterior, before the first step."""
    models = expected_model(setting.available, setting.discount)
    return Counted(posterior, models, *expected_prior(posterior, setting.available.shape))


def three(setting: Setting, values: dict[str, Any]) -> tuple[Counted, Counted, Counted]:
    """Mean, uniform and self."""
    S, A = setting.n_states, setting.n_actions
    belief = belief_for(setting, values)
    rewards, stay = getattr(belief, "rewards", None), np.full((S, A, S), UNSEEN)
    stay[np.arange(S), :, np.arange(S)] = 1.0
    others = []
    for concentration in (np.ones((S, A, S)), stay):
        same = DirichletBelief(S, A, concentration=concentration, rewards=rewards)
        others.append(counted(setting, posterior_for(replace(setting, belief=same), values)))
    return counted(setting, posterior_for(setting, values)), others[0], others[1]


@agent(
    "opps-ds",
    summary="the best of small index formulas, searched on draws of the prior (Castronovo, Fonteneau & Ernst 2012)",
    parameters=(
        Number("size", 3, 1, LONGEST, "of a formula: variables and operators", whole=True),
        Number("draws", 10_000, 1, 10**8, "of formulas on MDPs of the prior, before the first step", whole=True),
        Number("c", 3.3, 0.0, 1e6, "of UCB1, in largest returns"),
        Number("sweeps", 100, 1, 10**6, "most sweeps of value iteration a step", whole=True),
        Number("tolerance", 1e-3, 0.0, 1e6, "change of the values, in all, that ends them"),
        Number("seed", 1, 0, 2**31, "of the draws", whole=True),
        *PRIOR,
        DISCOUNT,
    ),
)
def opps_ds(
    setting: Setting, *, size: int, draws: int, c: float, sweeps: int, tolerance: float, seed: int, **values: Any
) -> Machine:
    """The machine; its formula is searched for once in a process."""
    check_memory(setting, 3, "opps-ds holds three models", fix="take a smaller environment or an agent without a model")
    S, A = setting.n_states, setting.n_actions
    steps = decisions_that_matter(setting.discount)
    work = float(draws) * steps * sweeps * S * A * S
    if work > MOST_PLANNING:
        raise ParameterError(f"opps-ds: {draws} draws may take {work:.0e} operations; take fewer draws or sweeps")
    mean, uniformly, own = three(setting, values)
    state = State(
        mean=mean,
        uniform=uniformly,
        own=own,
        formula=np.full(size, STOP, np.int64),
        indices=np.zeros(A),
        stack=np.zeros(size),
        lists=action_lists(setting.available),
        stream=no_stream(),
        sweeps=sweeps,
        tolerance=float(tolerance),
        low=setting.low,
        width=setting.width,
    )
    start = np.full(S, 1.0 / S) if setting.environment is None else np.array(setting.environment.start)
    largest = 1.0 / (1.0 - setting.discount)
    arms, tries, _ = planned_once(searched, state, start, size, draws, steps, c * largest, seed)
    return Machine(state._replace(formula=arms[int(np.argmax(tries))].copy()), reset, act, observe)
