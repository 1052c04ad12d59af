"""BEETLE, Bayesian exploration-exploitation trade-off in learning (Poupart, Vlassis, Hoey & Regan, ICML 2006).

The Bayes-optimal value is an upper envelope of polynomials in the unknown parameters: `V_s(b) = max_α E_b[α_s(θ)]`. The
value of a plan that acts a in s and goes on with `α_t` on arrival in t is `α_s(θ) = Σ_t θ_sa^t (r + γ α_t(θ))`: one
degree more. So functions are kept as coefficients on a fixed basis of monomials `φ(θ) = Π θ^m`, and a backup is
projected on it. Everything is planned before the first step, from the prior alone:

* **points** `(s, b)`: beliefs met on trajectories of the prior's own predictive, uniform start and actions, kept at
  steps 0, 1, 2, 4, 8, … up to `length`, until there are `points`;
* **basis**: the monomial of a history (a power of each parameter as often as it was seen) is, up to a factor, the
  density of the belief after it. Of those of the points, `basis` are chosen by QR with pivots on their expectations at
  all points, the constant 1 first; each is scaled to at most 1 at the points;
* **projection**: least squares at the points, of expectations, as these are what is used (the published one is L2 over
  θ, which is badly conditioned), with a relative ridge. Multiplying by a parameter and projecting is linear: a matrix
  for every outcome of every pair, made once. What leaves [0, 1/(1 − γ)] at the points is cut there and projected again;
* **backups** from `V = 0` in sweeps over the points as in Perseus (Spaan & Vlassis 2005), until no value at a point
  rises by `tolerance`, or `sweeps` are made.

On line the agent keeps `E_b φ` for every monomial, `E_{b+j} φ = E_b φ (α_j + m_j)/α_j · Σα/(Σα + Σm)`, and plays the
action of the best function of its state. It never plans again. Rewards that are not known beforehand join the outcome,
as one of their values (success or failure, for Beta rewards). Projected values are no bounds, and with many free
parameters the basis is poor: the published total on Chain is 3650 where slips are tied and 1754 where nothing is.
Points, basis size and ridge of the published runs are not known; the defaults are ours.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from beliefbound.base.errors import ParameterError
from beliefbound.base.grammar import Number
from beliefbound.base.limits import AGENT_BYTES
from beliefbound.base.validation import FloatArray, IntArray
from beliefbound.kernels.options import EXACT, EXACT_INLINE, FAST
from beliefbound.kernels.posterior import Posterior, copy_into, forget, learn, outcome_of, row_of
from beliefbound.kernels.random import below, stream_from
from beliefbound.lab.agents.common.monomials import (
    Basis,
    Points,
    Projection,
    Unknowns,
    choose_basis,
    lift,
    projection_of,
    sample_points,
    unknowns_of,
)
from beliefbound.lab.engine.offline import MOST_PLANNING, planned_once
from beliefbound.lab.engine.priors import PRIOR, dirichlet_for
from beliefbound.lab.engine.protocol import DISCOUNT, Machine, Setting
from beliefbound.lab.engine.registry import agent


class Functions(NamedTuple):
    """α-functions, sorted by state."""

    coefficients: FloatArray  # [f,i]
    action: IntArray  # [f]
    first: IntArray  # [s+1]: those of state s are first[s] … first[s+1] − 1


class BackupInputs(NamedTuple):
    """All that backups read."""

    unknowns: Unknowns
    points: Points
    basis: Basis
    projection: Projection
    highest: float  # 1 / (1 − γ)


class Pool(NamedTuple):
    """α-functions by state, and how many there are."""

    coefficients: FloatArray  # [f,i]
    action: IntArray  # [f]
    members: IntArray  # [s,·]: functions of a state
    size: IntArray  # [s]
    used: IntArray  # [1]


class Scratch(NamedTuple):
    """Empty arrays for one backup."""

    phi: FloatArray  # [i]
    follow: IntArray  # [k,j]: the function that goes on, for the action tried
    best: IntArray  # [k,j]: for the best action so far
    out: FloatArray  # [i]: the new function
    values: FloatArray  # [n]
    risen: FloatArray  # [n]: values of the sweep at hand
    left: IntArray  # [n]: points that it has not served yet


@njit(**FAST)
def dot(x, y):
    """`Σ x y`."""
    total = 0.0
    for i in range(x.size):
        total += x[i] * y[i]
    return total


@njit(**EXACT_INLINE)
def share(counts, column):
    """Of a column in the sum of a row."""
    total = 0.0
    for x in counts:
        total += x
    return counts[column] / total


@njit(**EXACT)
def add(pool, s, action, coefficients):
    """One more function of state s."""
    f = pool.used[0]
    copy_into(pool.coefficients[f], coefficients)
    pool.action[f] = action
    pool.members[s, pool.size[s]] = f
    pool.size[s] += 1
    pool.used[0] += 1


@njit(**EXACT)
def best_function(pool, s, phi):
    """The function of s that is worth most where the basis has the expectations `phi[i]`, and its value."""
    best, value = -1, -np.inf
    for m in range(pool.size[s]):
        x = dot(pool.coefficients[pool.members[s, m]], phi)
        if x > value:
            best, value = pool.members[s, m], x
    return best, value


@njit(**EXACT)
def backup(problem, pool, n, scratch):
    """The projected function of the best action at point n to `scratch.out`; returns the action."""
    unknowns, points, basis = problem.unknowns, problem.points, problem.basis
    n_values, _, n_outcomes = unknowns.paid.shape
    s, n_actions, counts = points.state[n], unknowns.available.shape[1], points.counts[n]
    chosen, highest = -1, -np.inf
    for a in range(n_actions):
        if not unknowns.available[s, a]:
            continue
        pair, value = s * n_actions + a, 0.0
        row, rewards = unknowns.row[pair], unknowns.n_rows + pair
        for k in range(n_values):
            for j in range(n_outcomes):
                t = unknowns.arrive[pair, j]
                if t < 0:
                    continue
                chance = share(counts[row], j)
                copy_into(scratch.phi, points.phi[n])
                lift(counts[row], j, basis.powers[row, j], basis.degree[row], scratch.phi)
                if n_values > 1:
                    chance *= share(counts[rewards], k)
                    lift(counts[rewards], k, basis.powers[rewards, k], basis.degree[rewards], scratch.phi)
                scratch.follow[k, j], ahead = best_function(pool, t, scratch.phi)
                value += chance * (unknowns.paid[k, pair, j] + unknowns.discount * clipped(ahead, problem.highest))
        if value > highest + 1e-12:
            chosen, highest = a, value
            copy_into(scratch.best, scratch.follow)
    project(problem, pool, s * n_actions + chosen, scratch)
    return chosen


@njit(**EXACT_INLINE)
def clipped(value, highest):
    """Within what rewards in [0, 1] can bring."""
    return min(max(value, 0.0), highest)


@njit(**EXACT)
def project(problem, pool, pair, scratch):
    """Coefficients of playing `pair` and going on with the functions `scratch.best[k,j]`."""
    projection, points, out, values = problem.projection, problem.points, scratch.out, scratch.values
    n_values, n_outcomes = scratch.best.shape
    copy_into(out, projection.reward[pair])
    for k in range(n_values):
        for j in range(n_outcomes):
            cell = projection.cell[pair, k, j]
            if cell >= 0:
                follow = pool.coefficients[scratch.best[k, j]]
                for i in range(out.size):
                    out[i] += problem.unknowns.discount * dot(projection.times[cell, i], follow)
    cut = False
    for n in range(values.size):
        values[n] = dot(points.phi[n], out)
        if clipped(values[n], problem.highest) != values[n]:
            values[n] = clipped(values[n], problem.highest)
            cut = True
    if cut:
        for i in range(out.size):
            out[i] = dot(projection.solve[i], values)


@njit(**EXACT)
def sweep(problem, old, new, values, stream, scratch):
    """Functions that are worth no less than `values[n]` at any point, by backups at some; returns the largest rise."""
    points = problem.points
    new.size.fill(0)
    new.used[0] = 0
    risen, left, n_left = scratch.risen, scratch.left, values.size
    for m in range(n_left):
        risen[m], left[m] = -np.inf, m
    while n_left > 0:
        n = left[below(stream, n_left)]
        s = points.state[n]
        action = backup(problem, old, n, scratch)
        if clipped(dot(points.phi[n], scratch.out), problem.highest) < values[n]:  # lost in projection: keep the old
            f, _ = best_function(old, s, points.phi[n])
            action = old.action[f]
            copy_into(scratch.out, old.coefficients[f])
        add(new, s, action, scratch.out)
        for m in range(values.size):
            if points.state[m] == s:
                risen[m] = max(risen[m], clipped(dot(points.phi[m], scratch.out), problem.highest))
        risen[n] = max(risen[n], values[n])
        kept = 0
        for m in range(n_left):
            if risen[left[m]] < values[left[m]]:
                left[kept] = left[m]
                kept += 1
        n_left = kept
    for s in range(new.size.size):
        if new.size[s] == 0:  # never met at a point
            f = old.members[s, 0]
            add(new, s, old.action[f], old.coefficients[f])
    rise = 0.0
    for m in range(values.size):
        rise = max(rise, risen[m] - values[m])
        values[m] = risen[m]
    return rise


def new_pool(problem: BackupInputs) -> Pool:
    """Empty arrays for a function of every point and of every state."""
    (n_states, _), (points, size) = problem.unknowns.available.shape, problem.points.phi.shape
    return Pool(
        coefficients=np.zeros((points + n_states, size)),
        action=np.zeros(points + n_states, np.int64),
        members=np.zeros((n_states, points + 1), np.int64),
        size=np.zeros(n_states, np.int64),
        used=np.zeros(1, np.int64),
    )


def first_pool(problem: BackupInputs) -> Pool:
    """The least value there is, 0, in every state."""
    pool, nothing = new_pool(problem), np.zeros(problem.points.phi.shape[1])
    for s, offered in enumerate(problem.unknowns.available):
        add(pool, s, int(offered.argmax()), nothing)
    return pool


def scratch_for(problem: BackupInputs) -> Scratch:
    """Empty arrays for one backup."""
    n_values, _, n_outcomes = problem.unknowns.paid.shape
    points, size = problem.points.phi.shape
    follow = np.zeros((n_values, n_outcomes), np.int64)
    return Scratch(
        phi=np.zeros(size),
        follow=follow,
        best=follow.copy(),
        out=np.zeros(size),
        values=np.zeros(points),
        risen=np.zeros(points),
        left=np.zeros(points, np.int64),
    )


def problem_of(unknowns: Unknowns, points: Points, *, size: int, ridge: float) -> BackupInputs:
    """Basis and projection for given points."""
    points, basis = choose_basis(unknowns, points, size)
    highest = 1.0 / (1.0 - unknowns.discount) if unknowns.discount < 1.0 else math.inf
    return BackupInputs(unknowns, points, basis, projection_of(unknowns, points, basis, ridge), highest)


def plan(
    unknowns: Unknowns,
    points: int,
    length: int,
    size: int,
    ridge: float,
    sweeps: int,
    tolerance: float,
    seed: int,
) -> tuple[Basis, Functions]:
    """What the agent takes on line."""
    rng = np.random.default_rng(seed)
    met = sample_points(unknowns, points=points, length=length, rng=rng)
    problem = problem_of(unknowns, met, size=size, ridge=ridge)
    old, new, scratch = first_pool(problem), new_pool(problem), scratch_for(problem)
    values, stream = np.zeros(points), stream_from(rng)
    for _ in range(sweeps):
        rise = sweep(problem, old, new, values, stream, scratch)
        old, new = new, old
        if rise < tolerance:
            break
    order = np.concatenate([members[:n] for members, n in zip(old.members, old.size, strict=True)])
    first = np.concatenate([[0], np.cumsum(old.size)])
    return problem.basis, Functions(old.coefficients[order], old.action[order], first)


class State(NamedTuple):
    """The belief, the expectations of the basis under it, and the plan."""

    posterior: Posterior
    basis: Basis
    functions: Functions
    phi: FloatArray  # [i]
    before: FloatArray  # [k]: counts of a pair's reward values


@njit(**EXACT)
def reset(state, stream):
    """Back to the prior. No random numbers are used."""
    forget(state.posterior)
    copy_into(state.phi, state.basis.start)


@njit(**EXACT)
def act(state, s):
    """The action of the best function."""
    functions = state.functions
    best, value = functions.first[s], -np.inf
    for f in range(functions.first[s], functions.first[s + 1]):
        x = dot(functions.coefficients[f], state.phi)
        if x > value:
            best, value = f, x
    return functions.action[best]


@njit(**EXACT)
def observe(state, s, a, r, t):
    """Condition the belief, and the expectations of the basis, on one transition."""
    posterior, basis, before = state.posterior, state.basis, state.before
    pair = s * posterior.n_actions + a
    row, j = row_of(posterior, pair), outcome_of(posterior, pair, t)
    if j >= 0 and posterior.alpha[row, j] > 0.0:
        lift(posterior.alpha[row], j, basis.powers[row, j], basis.degree[row], state.phi)
    n_values = before.size
    for k in range(n_values):
        before[k] = posterior.reward[k, pair]
    learn(posterior, s, a, r, t)
    if n_values > 1:
        rewards = len(posterior.alpha) + pair
        for i in range(state.phi.size):
            if basis.degree[rewards, i] > 0.0:
                change, total, whole = 0.0, 0.0, 0.0
                for k in range(n_values):
                    power, now = basis.powers[rewards, k, i], posterior.reward[k, pair]
                    if power > 0.0 and now != before[k]:
                        change += math.lgamma(now + power) - math.lgamma(now)
                        change -= math.lgamma(before[k] + power) - math.lgamma(before[k])
                    total += before[k]
                    whole += now
                if whole != total:  # one more in all
                    change -= math.log(total + basis.degree[rewards, i]) - math.log(total)
                state.phi[i] *= math.exp(change)


@agent(
    "beetle",
    summary="value functions as polynomials in the unknown chances, planned once from the prior (Poupart et al. 2006)",
    parameters=(
        Number("points", 250, 2, 10**5, "beliefs at which values are backed up", whole=True),
        Number("length", 64, 1, 10**4, "steps of the trajectories that they are met on", whole=True),
        Number("basis", 50, 1, 5000, "monomials", whole=True),
        Number("ridge", 1e-6, 0.0, 1.0, "of the projection, relative"),
        Number("sweeps", 60, 1, 10**6, "most sweeps over the points", whole=True),
        Number("tolerance", 1e-3, 0.0, 1e6, "rise of a value at a point that ends the sweeps"),
        Number("seed", 1, 0, 2**31, "of the points and of the order of backups", whole=True),
        *PRIOR,
        DISCOUNT,
    ),
)
def beetle(setting: Setting, *, points: int, basis: int, **values: Any) -> Machine:
    """The machine; planning is done here, once for a prior and its parameters."""
    posterior = dirichlet_for(setting, values)
    unknowns = unknowns_of(posterior, setting.available, setting.discount)
    size = min(basis, points)
    cells = len(posterior.reward) * int((unknowns.arrive >= 0).sum())
    needed = 8 * (cells * size**2 + 2 * points**2 + 3 * points * unknowns.prior.size)
    work = cells * points * size**2 + values["sweeps"] * points * (cells * size**2 / setting.n_states + points * size)
    if needed > AGENT_BYTES or work > MOST_PLANNING:
        raise ParameterError(
            f"basis is {basis} and points {points}: to plan on them for {cells} outcomes needs {needed / 1e9:.1f} GB "
            f"and up to {work:.1g} operations; take a smaller basis, fewer points, or a prior with fewer outcomes"
        )
    settings = (values[name] for name in ("ridge", "sweeps", "tolerance", "seed"))
    found, functions = planned_once(plan, unknowns, points, values["length"], size, *settings)
    state = State(posterior, found, functions, found.start.copy(), np.zeros(len(posterior.reward)))
    return Machine(state, reset, act, observe)
