"""Values of an agent that is told which few models hold its own: upper values for the leaves of a belief graph.

Divide the models into *cells* of `k` and tell the agent its cell; the rest is left for it to learn. It can do no worse
than before, so for any division, with `b_c` the weight of cell `c` and `p_c` the weights within it,

    V*(b,s) ≤ Σ_c b_c W_c(p_c,s),      W_c(p,s) = max_a Q_c(p,s,a),
    Q_c(p,s,a) = r_p(s,a) + γ Σ_j Pr_p(j | s,a) W_c(p^j, arrive_j).

QMDP is the same bound with `k = 1`. `W_c` is a function of a state and of `k − 1` numbers, so it is solved on the grid
of weights that are multiples of `1/n`, and read between grid points by interpolation in the Freudenthal triangulation
(Lovejoy 1991): `p = Σ_i λ_i g_i`, at most `k` grid points around it. What is read

1. is above the true `W_c`: that is convex in `p`, so `W_c(p) ≤ Σ_i λ_i W_c(g_i)`. Any `k`.
2. for `k = 2` falls under its own backups, `W ≥ max_a r + γ E W`, between grid points too. Read values are then convex
   (grid values of a convex function on a line are), so is `Q_c(·,s,a)` computed from them, and thus it lies below
   *its* chords. With `Q` the chords, `W(b,s) = max_a Σ_c b_c Q_c(p_c,s,a)` is at most `Σ_c b_c W_c(p_c,s)` and at least
   the backup of the latter. For `k > 2` interpolation need not be convex, and this may fail.

Search (`kernels.graph.search`) asks for 1, the relaxation (`kernels.graph.information_relaxation`) for 2 as well.

A cell of next to no weight is not read: told the model itself, the agent knows next to nothing more.

With cumulated weights `y_j = n Σ_{i ≥ j} p_i`, `n ≥ y_1 ≥ … ≥ y_{k−1} ≥ 0`, grid points are the whole ones, numbered by
`Σ_j C(y_j + k − 1 − j, k − j)`. A cell with fewer than `k` models has −1 in the other places, whose weight is 0.
"""

from itertools import combinations_with_replacement
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from beliefbound.kernels.lines import copied, zeros
from beliefbound.kernels.options import FAST, FAST_INLINE
from beliefbound.kernels.out_of_line import out_of_line
from beliefbound.kernels.planning.sweep import best_action
from beliefbound.kernels.reference import by_reference
from beliefbound.kernels.sums import sum_of

_LIGHT = 1e-3  # of all weight, each times the scale of its values: a cell of less is told apart


@by_reference
class Cells(NamedTuple):
    """A division of the models into cells, solved."""

    models: np.ndarray  # int64 [cell,k]
    tables: np.ndarray  # [cell,stage,s,g,a]: Q at grid point g
    binomials: np.ndarray  # int64 [i,j]: i over j
    resolution: int  # n


@by_reference
class Corners(NamedTuple):
    """Scratch for `locate`, and what it finds."""

    weight: np.ndarray  # [k]: where to look
    share: np.ndarray  # [k]: λ of the grid points around it
    part: np.ndarray  # [k]
    point: np.ndarray  # int64 [k]: the grid points
    order: np.ndarray  # int64 [k]
    floor: np.ndarray  # int64 [k]


def new_corners(k: int) -> Corners:
    """Scratch for cells of `k` models."""
    whole = (copied(np.zeros(k, dtype=np.int64)) for _ in range(3))
    return Corners(zeros(k), zeros(k), zeros(k), *whole)


def binomials(n: int) -> np.ndarray:
    """`C(i,j)` for `i, j ≤ n`."""
    table = np.zeros((n + 1, n + 1), dtype=np.int64)
    table[:, 0] = 1
    for i in range(1, n + 1):
        table[i, 1:] = table[i - 1, :-1] + table[i - 1, 1:]
    return table


def no_cells() -> Cells:
    """No division."""
    empty = np.empty((0, 1), dtype=np.int64)
    return Cells(empty, np.empty((0, 1, 1, 1, 1)), np.ones((1, 1), dtype=np.int64), 1)


def grid(k: int, n: int, table: np.ndarray) -> np.ndarray:
    """The grid points `[g,k]` in the order of their numbers."""
    rising = list(combinations_with_replacement(range(n + 1), k - 1))
    y = np.array(rising, dtype=np.int64)[:, ::-1]  # [g,k−1]: cumulated weights, falling
    number = np.zeros(len(y), dtype=np.int64)
    for j in range(1, k):
        number += table[y[:, j - 1] + k - 1 - j, k - j]
    points = np.empty((len(y), k))
    points[number] = -np.diff(y, axis=1, prepend=n, append=0) / n
    return points


@njit(**FAST_INLINE)
def locate(corners, total, resolution, binom):
    """Grid points around `corners.weight / total`, and their shares."""
    k = corners.weight.size
    scale, y = resolution / total, 0.0
    number = 0
    for j in range(k - 1, 0, -1):
        y += corners.weight[j] * scale
        whole = min(np.int64(y), resolution - 1)
        corners.floor[j] = whole
        corners.part[j] = min(y - whole, 1.0)
        number += binom[whole + k - 1 - j, k - j]
    for i in range(1, k):  # largest part first; on ties the smaller j, which keeps y falling
        here, h = corners.part[i], i - 1
        while h >= 1 and corners.part[corners.order[h]] < here:
            corners.order[h + 1] = corners.order[h]
            h -= 1
        corners.order[h + 1] = i
    corners.point[0] = number
    left = 1.0
    for i in range(1, k):
        j = corners.order[i]
        corners.share[i - 1] = left - corners.part[j]
        left = corners.part[j]
        top = corners.floor[j] + k - 1 - j
        number += binom[top + 1, k - j] - binom[top, k - j]
        corners.point[i] = number
    corners.share[k - 1] = left


class Outcomes(NamedTuple):
    """What an outcome row does to a grid point of a cell."""

    chance: np.ndarray  # [row,g]
    point: np.ndarray  # int32 [row,g,k]: the grid points around where it leads
    share: np.ndarray  # [row,g,k]
    states: np.ndarray  # int64: of whose rows this is, and that are solved


def outcomes_of_cell(
    problem: Any,
    models: np.ndarray,
    points: np.ndarray,
    resolution: int,
    binom: np.ndarray,
    corners: Corners,
    states: np.ndarray,
) -> Outcomes:
    """The outcomes of the cell `models[k]` at grid points `points[g,k]`, in some states."""
    shape, k = (len(problem.arrive), len(points)), len(models)
    outcomes = Outcomes(np.zeros(shape), np.zeros((*shape, k), np.int32), np.zeros((*shape, k)), states)
    set_outcomes(problem, models, points, resolution, binom, corners, outcomes)
    return outcomes


@njit(**FAST)
def set_outcomes(problem, models, points, resolution, binom, corners, outcomes):
    """`outcomes_of_cell`."""
    chance, point, share, states = outcomes
    n_models, k = problem.reward.shape[0], models.size
    for s in states:
        base = problem.first[s, 0]
        n_rows = problem.first[s, -1] - base
        for row in range(n_rows):
            for g in range(len(points)):
                for j in range(k):
                    x = 0.0
                    if models[j] >= 0:
                        x = points[g, j] * problem.like[base * n_models + models[j] * n_rows + row]
                    corners.weight[j] = x
                total = sum_of(corners.weight[:k])
                chance[base + row, g] = total
                if total > 0.0:
                    locate(corners, total, resolution, binom)
                    for j in range(k):
                        point[base + row, g, j], share[base + row, g, j] = corners.point[j], corners.share[j]


@njit(**FAST_INLINE)
def ahead_of(problem, models, points, outcomes, values, s, a, g):
    """`r + γ E values` of an action at a grid point."""
    chance, point, share, _ = outcomes
    total, reward = 0.0, 0.0
    for i in range(problem.first[s, a], problem.first[s, a + 1]):
        if chance[i, g] > 0.0:
            later, here = values[problem.arrive[i]], 0.0
            for j in range(models.size):
                here += share[i, g, j] * later[point[i, g, j]]
            total += chance[i, g] * here
    for j in range(models.size):
        if models[j] >= 0:
            reward += points[g, j] * problem.reward[models[j], s, a]
    return reward + problem.discount * total


@njit(**FAST)
def sweep_cell(problem, models, points, outcomes, values, q):
    """`q[s,g,a]` from the values `[s,g]` of the next stage, which become those of this one; the largest change, and the
    largest rise."""
    n_grid = values.shape[1]
    for s in outcomes.states:
        for a in range(problem.available.shape[1]):
            if problem.available[s, a]:
                for g in range(n_grid):
                    q[s, g, a] = ahead_of(problem, models, points, outcomes, values, s, a, g)
    change, rise = 0.0, 0.0
    for s in outcomes.states:
        for g in range(n_grid):
            _, best = best_action(q[:, g], problem.available, s)
            change, rise = max(change, abs(best - values[s, g])), max(rise, best - values[s, g])
            values[s, g] = best
    return change, rise


@njit(**FAST)
def follow_cell(problem, models, points, outcomes, values, q, sweeps):
    """Sweeps over `values[s,g]` that follow the best actions of `q[s,g,a]`: each costs a share of `sweep_cell`."""
    n_grid = values.shape[1]
    for _ in range(sweeps):
        for s in outcomes.states:
            for g in range(n_grid):
                a, _ = best_action(q[:, g], problem.available, s)
                values[s, g] = ahead_of(problem, models, points, outcomes, values, s, a, g)


def told_apart(problem: Any, models: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`(values [s,g], q [s,g,a])` of the models by themselves, told apart, at the last stage there is: where sweeps
    begin."""
    (n_states, n_actions), n_grid = problem.available.shape, len(points)
    values, q = np.zeros((n_states, n_grid)), np.zeros((n_states, n_grid, n_actions))
    tell_apart(problem, models, points, values, q)
    return values, q


@njit(**FAST)
def tell_apart(problem, models, points, values, q):
    """`told_apart`, in arrays of zeros."""
    n_states, n_grid, n_actions = q.shape
    told = problem.q[problem.q.shape[0] - 1]
    for j in range(models.size):
        if models[j] >= 0:
            for s in range(n_states):
                _, best = best_action(told[models[j]], problem.available, s)
                for g in range(n_grid):
                    values[s, g] += points[g, j] * best
                    for a in range(n_actions):
                        q[s, g, a] += points[g, j] * told[models[j], s, a]


def solve_cell(
    problem: Any,
    models: np.ndarray,
    points: np.ndarray,
    resolution: int,
    binom: np.ndarray,
    corners: Corners,
    max_sweeps: int,
    epsilon: float,
    table: np.ndarray,
) -> np.ndarray:
    """Fill `table[stage,s,g,a]` (none is kept where it has no stages) and return the values `[s,g]` at stage 0.

    It begins at the last stage there is and goes backwards; without a horizon it sweeps until values change by
    `epsilon` or less, and is valid after any number.
    """
    n_stages = len(problem.q)
    values, q = told_apart(problem, models, points)
    states = np.arange(len(problem.available))
    outcomes = outcomes_of_cell(problem, models, points, resolution, binom, corners, states)
    for _ in range(max_sweeps if n_stages == 1 else 0):
        if sweep_cell(problem, models, points, outcomes, values, q)[0] <= epsilon:
            break
    for stage in range(n_stages - 1, -1, -1):
        if stage < n_stages - 1:
            sweep_cell(problem, models, points, outcomes, values, q)
        if stage < len(table):
            table[stage] = q
    return values


@njit(**FAST_INLINE)
def add_cell(cells, c, corners, mass, total, stage, t, told):
    """Add what a cell of a weight above 0 says of every action, times its weight, to `told[a]`."""
    models, table = cells.models[c], cells.tables[c]
    for j in range(models.size):
        corners.weight[j] = mass[models[j]] if models[j] >= 0 else 0.0
    locate(corners, total, cells.resolution, cells.binomials)
    values = table[min(stage, table.shape[0] - 1), t]
    for j in range(models.size):
        share = total * corners.share[j]
        if share > 0.0:
            here = values[corners.point[j]]
            for a in range(told.size):
                told[a] += share * here[a]


@out_of_line
@njit(**FAST)
def told_cell(problem, graph, t, stage):
    """The upper value by cells at unnormalised weights `graph.mass[m]` in a state, times their sum: the best action by
    the sum over cells. `graph.told[a]` has that of each action."""
    cells, corners, told, mass, scale = problem.cells, graph.corners, graph.told, graph.mass, problem.scale
    apart = problem.q[min(stage, problem.q.shape[0] - 1)]
    least = 0.0
    for m in range(mass.size):
        least += mass[m] * scale[m]
    least *= _LIGHT
    for a in range(told.size):
        told[a] = 0.0
    for c in range(cells.models.shape[0]):
        total, size = 0.0, 0.0
        for m in cells.models[c]:
            if m >= 0:
                total += mass[m]
                size += mass[m] * scale[m]
        if size > least:
            add_cell(cells, c, corners, mass, total, stage, t, told)
        elif total > 0.0:
            for m in cells.models[c]:
                if m >= 0:
                    for a in range(told.size):
                        told[a] += mass[m] * apart[m, t, a]
    best = -np.inf
    for a in range(told.size):
        if problem.available[t, a]:
            best = max(best, told[a])
    return best
