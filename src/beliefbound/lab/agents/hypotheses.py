"""Hypotheses: models drawn from the prior once, then a POMDP policy over them – the "MC-BRL" of Wang, Won, Hsu & Lee
(ICML 2012), under a name that nobody confuses with MCBRL.

At the start of a run n models are drawn from the prior. With weights `w_m`, at first equal, they are a finite belief,
whose Bayes-optimal policy is that of a POMDP with hidden state m; it is planned for once, by point-based backups, and
followed to the end while `w_m` becomes proportional to `w_m Pr_m(t, r | s,a)`. The paper solves the POMDP with SARSOP;
here alpha vectors (`kernels.graph.alpha`) are backed up at beliefs met on trajectories: `rounds` rounds of `beliefs`
beliefs, each backed up `SWEEPS` times. The action played maximises one step ahead of the vectors, at the exact weights:

    max_a Σ_m w_m r_m(s,a) + γ Σ_o max_α Σ_m w_m Pr_m(o | s,a) α(m),

which earns, under the n hypotheses, at least what the best vector promises.

Hypotheses are never drawn again: a continuous prior is misfit, and the weights gather on those that are closest to the
truth. What no hypothesis explains leaves the weights as they were. A Bernoulli reward a share x of the way from failure
to success counts as `p^x (1 − p)^(1−x)`, as everywhere. Steps are compiled and allocate nothing; the plan at the start
of a run is made in Python around compiled kernels, some tens of milliseconds on small problems. Fewer beliefs leave the
POMDP under-solved: on the coin of the tests, 128 in 3 rounds play the wrong first action in 6 of 60 runs.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from beliefbound.base.grammar import Number
from beliefbound.base.validation import BoolArray, FloatArray, IntArray
from beliefbound.beliefs.belief import Belief
from beliefbound.beliefs.capabilities import offering
from beliefbound.beliefs.finite import FiniteBelief
from beliefbound.beliefs.signals import Bernoulli
from beliefbound.bounds.finite.backups import SWEEPS, PointBackups, new_points
from beliefbound.bounds.finite.outcomes import rows_of
from beliefbound.bounds.finite.problem import problem_of
from beliefbound.bounds.steps import Meter, finish
from beliefbound.kernels.amounts import OF_LARGEST, RELATIVE
from beliefbound.kernels.graph.alpha import look_below
from beliefbound.kernels.options import EXACT, EXACT_INLINE
from beliefbound.kernels.posterior import copy_into
from beliefbound.kernels.random import stream_from
from beliefbound.lab.engine.priors import PRIOR, offered_belief
from beliefbound.lab.engine.protocol import DISCOUNT, CompiledAgent, Machine, Setting
from beliefbound.lab.engine.registry import agent
from beliefbound.planning.expected import expected_plan
from beliefbound.planning.mmbi import mmbi_plan
from beliefbound.planning.task import FiniteTask

_GAIN = 1e-6  # of the largest value: what a new vector must add
_MMBI_WORK = 2e7  # multiply-adds: where MMBI cycles, 10⁵ sweeps would not make a better policy to start from


class Hypotheses(NamedTuple):
    """What `look_below` reads of a `kernels.graph.nodes.BeliefMDP`, and the rewards that rows show."""

    like: FloatArray  # flat: the rows of state s are a block [m, rows of s]
    arrive: IntArray  # [k]
    first: IntArray  # [s,a+1]
    reward: FloatArray  # [m,s,a]
    available: BoolArray  # [s,a]
    shown: FloatArray  # [k]; NaN where nothing is
    discount: float
    failure: float  # of Bernoulli rewards
    success: float  # the same as failure where rewards are not Bernoulli
    largest: float  # reward, in absolute value


class Asked(NamedTuple):
    """What `look_below` reads of `kernels.graph.alpha.Vectors`."""

    known: FloatArray  # [s,m,i]
    known_count: IntArray  # [s]
    scale: FloatArray  # [m]
    heavy: IntArray  # [m] scratch
    totals: FloatArray  # [i] scratch


class State(NamedTuple):
    """Hypotheses, their weights, and the plan."""

    models: Hypotheses
    vectors: Asked
    prior: FloatArray  # [m]: weights at the start
    weights: FloatArray  # [m]
    likely: FloatArray  # [m] scratch
    chosen: IntArray  # [row] scratch


@njit(**EXACT)
def reset(state, stream):
    """Back to the first weights. The plan is that of the run: `planned` drew from the run's seed."""
    copy_into(state.weights, state.prior)


@njit(**EXACT)
def best_action(models, vectors, weights, likely, chosen, s):
    """The best action one step ahead of the vectors; ties to the lowest."""
    action, best = -1, -np.inf
    for a in range(models.available.shape[1]):
        if models.available[s, a]:
            value = look_below(models, vectors, s, a, weights, likely, chosen)
            if value > best:
                action, best = a, value
    return action


@njit(**EXACT)
def rows_seen(models, s, a, r, t):
    """`(won, lost, x)`: what was seen has the likelihood `like[won]^x like[lost]^(1−x)`; −1 for a row that no model
    allows."""
    fractional = models.success > models.failure
    x = (r - models.failure) / (models.success - models.failure) if fractional else 1.0
    won, lost, distance = -1, -1, np.inf
    for k in range(models.first[s, a], models.first[s, a + 1]):
        if models.arrive[k] != t:
            continue
        paid = models.shown[k]
        if np.isnan(paid):
            return k, k, 1.0
        if fractional:
            won, lost = (k, lost) if paid == models.success else (won, k)
        elif abs(paid - r) < distance:
            distance = abs(paid - r)
            if distance <= OF_LARGEST * models.largest + RELATIVE * max(abs(paid), abs(r)):
                won = lost = k
    return won, lost, x


@njit(**EXACT)
def reweigh(models, weights, likely, s, a, r, t):
    """The weights after a transition."""
    won, lost, x = rows_seen(models, s, a, r, t)
    if not 0.0 <= x <= 1.0:
        return
    n = weights.size
    base = models.first[s, 0]
    width, total = models.first[s, -1] - base, 0.0
    for m in range(n):
        block = base * n + m * width - base
        chance = 1.0
        if x > 0.0:
            chance *= models.like[block + won] ** x if won >= 0 else 0.0
        if x < 1.0:
            chance *= models.like[block + lost] ** (1.0 - x) if lost >= 0 else 0.0
        likely[m] = weights[m] * chance
        total += likely[m]
    if total > 0.0:
        for m in range(n):
            weights[m] = likely[m] / total


@njit(**EXACT_INLINE)
def act(state, s):
    """The best action one step ahead of the vectors."""
    return best_action(state.models, state.vectors, state.weights, state.likely, state.chosen, s)


@njit(**EXACT_INLINE)
def observe(state, s, a, r, t):
    """Weigh the hypotheses by what they gave the transition."""
    reweigh(state.models, state.weights, state.likely, s, a, r, t)


def planned(
    belief: FiniteBelief, start: FloatArray, discount: float, beliefs: int, rounds: int, rng: np.random.Generator
) -> State:
    """Vectors for a finite belief, and the state in which a run begins."""
    task = FiniteTask.of(belief, discount=discount, initial=start)
    policies = [mmbi_plan(task, most_work=_MMBI_WORK).policy, expected_plan(task).policy]
    weights = np.array(belief.weights)
    problem = problem_of(task, stages=0, policies=policies)
    capacity, gain = SWEEPS * rounds * beliefs, _GAIN * task.largest_value
    backups = PointBackups(task, problem, policies, stream_from(rng), capacity=capacity, gain=gain)
    for _ in range(rounds):
        points = new_points(beliefs, len(weights))
        finish(backups.trajectories(weights, points, 0, Meter()))
        finish(backups.back_up(points, Meter()))
        backups.keep_used(points)
    vectors = backups.vectors
    signal = belief.signal.heard
    shown = rows_of(task).reward
    models = Hypotheses(
        like=problem.like,
        arrive=problem.arrive,
        first=problem.first,
        reward=problem.reward,
        available=problem.available,
        shown=shown,
        discount=problem.discount,
        failure=signal.low if isinstance(signal, Bernoulli) else 0.0,
        success=signal.high if isinstance(signal, Bernoulli) else 0.0,
        largest=float(np.nanmax(np.abs(shown), initial=0.0)),
    )
    known = np.ascontiguousarray(vectors.known[:, :, : vectors.known_count.max()])
    chosen = np.zeros(vectors.then.shape[1], dtype=np.int64)
    return State(
        models,
        Asked(known, vectors.known_count, vectors.scale, vectors.heavy, np.empty(known.shape[2])),
        weights.copy(),
        weights,
        np.empty(len(weights)),
        chosen,
    )


def drawn(setting: Setting, *, n: int, beliefs: int, rounds: int, **values: Any) -> CompiledAgent:
    """On a belief that counts nothing: it is drawn from once, at the start of a run, and never conditioned."""
    machine = planning(setting, offering(setting.belief, setting.available), n, beliefs, rounds)
    return CompiledAgent(f"hypotheses:n={n}", setting, machine)


@agent(
    "hypotheses",
    summary="models drawn from the prior once, a point-based POMDP policy over them (MC-BRL of Wang et al. 2012)",
    parameters=(
        Number("n", 32, 1, 10**5, "models drawn at the start of a run", whole=True, always=True),
        Number("beliefs", 512, 1, 10**6, "backed up in a round", whole=True),
        Number("rounds", 10, 1, 10**4, "of backups", whole=True),
        *PRIOR,
        DISCOUNT,
    ),
    drawn=drawn,
)
def hypotheses(setting: Setting, *, n: int, beliefs: int, rounds: int, **values: Any) -> Machine:
    """The machine: a plan at the start of each run."""
    return planning(setting, offered_belief(setting, values), n, beliefs, rounds)


def planning(setting: Setting, prior: Belief, n: int, beliefs: int, rounds: int) -> Machine:
    """The machine on any belief that draws."""
    start = None if setting.environment is None else setting.environment.start
    begin = np.full(setting.n_states, 1.0 / setting.n_states) if start is None else np.array(start)

    def plan(seed: int) -> State:
        rng = np.random.default_rng(seed)
        return planned(prior.sample(n, rng), begin, setting.discount, beliefs, rounds, rng)

    return Machine(None, reset, act, observe, plan)
