"""Polynomials in the unknown parameters of a Dirichlet belief: monomials, their expectations, and projections.

Under independent Dirichlet rows the monomial `φ(θ) = Π θ^m` has the expectation `E_b φ = Π_rows B(α + m) / B(α)`,
`B(x) = Π Γ(x_j) / Γ(Σ x_j)`. Seeing outcome j once more multiplies it by `(α_j + m_j)/α_j · Σα/(Σα + Σm)`, sums over
the row, and `E_b[θ_j φ] = E_b[θ_j] E_{b+j}[φ]`. So with `times[j]` the least-squares projection, at a set of beliefs,
of `E_b[θ_j φ_i]` on the expectations of a basis, the product of `θ_j` and a polynomial of coefficients c is projected
to the coefficients `times[j] c`.

Reward values that are learnt are parameters like any other: a step shows an outcome j and a value k.
"""

from typing import NamedTuple

import numpy as np
import scipy.linalg
from numba import njit
from scipy.special import gammaln

from beliefbound.base.validation import BoolArray, FloatArray, IntArray
from beliefbound.kernels.options import EXACT
from beliefbound.kernels.posterior import Posterior


class Unknowns(NamedTuple):
    """The parameters as one table of counts: rows of transitions, then a row of reward values for each pair."""

    prior: FloatArray  # [row,column]
    row: IntArray  # [pair]: of transitions; that of rewards is `n_rows + pair`
    arrive: IntArray  # [pair,j]; −1 where there is no such outcome
    paid: FloatArray  # [k,pair,j], scaled
    available: BoolArray  # [s,a]
    n_rows: int
    discount: float


class Points(NamedTuple):
    """Beliefs, the states they were met in, and the expectations of the basis there."""

    state: IntArray  # [n]
    counts: FloatArray  # [n,row,column]
    phi: FloatArray  # [n,i]


class Basis(NamedTuple):
    """Monomials, each scaled to at most 1 at the points."""

    powers: FloatArray  # [row,column,i]
    degree: FloatArray  # [row,i]
    start: FloatArray  # [i]: expectations under the prior


class Projection(NamedTuple):
    """What a backup is projected by."""

    solve: FloatArray  # [i,n]: coefficients from values at the points
    reward: FloatArray  # [pair,i]: coefficients of the expected reward
    cell: IntArray  # [pair,k,j]: which matrix; −1 where there is no such outcome
    times: FloatArray  # [cell,i,i']: multiply by the chance of (j, k) and project


def unknowns_of(posterior: Posterior, available: BoolArray, discount: float) -> Unknowns:
    """The table of a posterior's prior."""
    (n_rows, n_outcomes), (n_values, pairs) = posterior.alpha.shape, posterior.reward.shape
    learnt = pairs if n_values > 1 else 0
    prior = np.zeros((n_rows + learnt, max(n_outcomes, n_values)))
    prior[:n_rows, :n_outcomes] = posterior.prior_alpha
    prior[n_rows:, :n_values] = posterior.prior_reward.T[:learnt]
    row = np.array(posterior.row) if posterior.tied else np.arange(pairs)
    arrive = np.array(posterior.arrive) if posterior.tied else np.tile(np.arange(n_outcomes), (pairs, 1))
    arrive = np.where(posterior.prior_alpha[row] > 0.0, arrive, -1)
    paid = np.array(np.broadcast_to(posterior.paid.reshape(n_values, pairs, -1), (n_values, pairs, n_outcomes)))
    return Unknowns(prior, row, arrive, paid, available, n_rows, discount)


def sample_points(unknowns: Unknowns, *, points: int, length: int, rng: np.random.Generator) -> Points:
    """Beliefs on trajectories of the predictive; `phi` is still empty."""
    states: list[int] = []
    counts: list[FloatArray] = []
    n_states, n_actions = unknowns.available.shape
    n_values = len(unknowns.paid)
    while len(states) < points:
        s, seen = int(rng.integers(n_states)), unknowns.prior.copy()
        for k in range(length + 1):
            if k & (k - 1) == 0:  # 0, 1, 2, 4, 8, …
                states.append(s)
                counts.append(seen.copy())
            pair = s * n_actions + int(rng.choice(np.flatnonzero(unknowns.available[s])))
            chances = seen[unknowns.row[pair]][: unknowns.arrive.shape[1]]
            j = int(rng.choice(len(chances), p=chances / chances.sum()))
            seen[unknowns.row[pair], j] += 1.0
            if n_values > 1:
                rewards = seen[unknowns.n_rows + pair][:n_values]
                seen[unknowns.n_rows + pair, int(rng.choice(n_values, p=rewards / rewards.sum()))] += 1.0
            s = int(unknowns.arrive[pair, j])
    kept = np.array(counts[:points])
    return Points(np.array(states[:points]), kept, np.zeros((points, 0)))


def log_expectations(counts: FloatArray, powers: FloatArray) -> FloatArray:
    """`log E_b φ` as `[n,i]` of monomials `powers[i,row,column]` at beliefs `counts[n,row,column]`, cells of none 0."""
    total = np.zeros((len(counts), len(powers)))
    for i, power in enumerate(powers):
        rows, columns = np.nonzero(power)
        some = np.unique(rows)
        cells, sums = counts[:, rows, columns], counts[:, some].sum(axis=2)
        total[:, i] = (gammaln(cells + power[rows, columns]) - gammaln(cells)).sum(axis=1)
        total[:, i] -= (gammaln(sums + power[some].sum(axis=1)) - gammaln(sums)).sum(axis=1)
    return total


def choose_basis(unknowns: Unknowns, points: Points, size: int) -> tuple[Points, Basis]:
    """Of the monomials of the points' histories, those that tell most: QR with pivots, the constant first."""
    candidates = np.unique((points.counts - unknowns.prior).round(), axis=0)
    order = np.argsort(candidates.reshape(len(candidates), -1).sum(axis=1), kind="stable")
    candidates = candidates[order]
    if candidates[0].any():
        candidates = np.concatenate([np.zeros_like(candidates[:1]), candidates])
    logs = log_expectations(points.counts, candidates)
    phi = np.exp(logs - logs.max(axis=0))
    if len(candidates) > size:
        free = phi[:, 1:] - phi[:, 1:].mean(axis=0)  # what is left beside the constant
        _, pivots = scipy.linalg.qr(free, mode="r", pivoting=True)
        chosen = np.concatenate([[0], 1 + np.sort(pivots[: size - 1])])
        candidates, logs, phi = candidates[chosen], logs[:, chosen], phi[:, chosen]
    start = np.exp(log_expectations(unknowns.prior[None], candidates)[0] - logs.max(axis=0))
    powers = np.ascontiguousarray(np.moveaxis(candidates, 0, -1))
    basis = Basis(powers, np.ascontiguousarray(powers.sum(axis=1)), start)
    return points._replace(phi=np.ascontiguousarray(phi)), basis


def projection_of(unknowns: Unknowns, points: Points, basis: Basis, ridge: float) -> Projection:
    """Least squares at the points, and what multiplying by each outcome's chance becomes under it."""
    u, sizes, v = np.linalg.svd(points.phi, full_matrices=False)
    solve = np.ascontiguousarray((v.T * (sizes / (sizes**2 + ridge * sizes[0] ** 2))) @ u.T)
    (n_values, pairs, _), size = unknowns.paid.shape, points.phi.shape[1]
    possible = np.broadcast_to(unknowns.arrive[:, None, :] >= 0, (pairs, n_values, unknowns.arrive.shape[1]))
    cell = np.where(possible, possible.cumsum().reshape(possible.shape) - 1, -1)
    reward, times = np.zeros((pairs, size)), np.zeros((int(possible.sum()), size, size))
    mean = points.counts / points.counts.sum(axis=2, keepdims=True)
    for pair, k, j in np.argwhere(possible):
        chance, lifted = mean[:, unknowns.row[pair], j].copy(), points.phi.copy()
        lift_all(points.counts, basis, unknowns.row[pair], j, lifted)
        if n_values > 1:
            chance *= mean[:, unknowns.n_rows + pair, k]
            lift_all(points.counts, basis, unknowns.n_rows + pair, k, lifted)
        reward[pair] += solve @ (chance * unknowns.paid[k, pair, j])
        times[cell[pair, k, j]] = solve @ (chance[:, None] * lifted)
    return Projection(solve, reward, cell, times)


@njit(**EXACT)
def lift(counts, column, powers, degree, phi):
    """Expectations `phi[i]` after one more in a `column` of a row of `counts`."""
    total = 0.0
    for x in counts:
        total += x
    for i in range(phi.size):
        phi[i] *= (counts[column] + powers[i]) * total / (counts[column] * (total + degree[i]))


@njit(**EXACT)
def lift_all(counts, basis, row, column, phi):
    """`lift` at every point: `counts[n,row,column]`, `phi[n,i]`."""
    for n in range(len(phi)):
        lift(counts[n, row], column, basis.powers[row, column], basis.degree[row], phi[n])
