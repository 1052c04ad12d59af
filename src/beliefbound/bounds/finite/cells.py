"""Which models to put into one cell (`kernels.graph.cells`), how many, and on how fine a grid.

Any division gives a bound. A good cell holds models that call for different actions and are hard to tell apart: what a
pair of models loses when only the pair is told (`bounds.finite.pairs`) is added up within cells, and cells are filled
one by one with the model that adds most. Larger cells tell less, but a grid of `k − 1` dimensions must be coarse: the
two largest sizes that are affordable are tried, and the one of the least bound at the start is kept.
"""

import numpy as np

from beliefbound.bounds.bound import Bound
from beliefbound.kernels.graph.cells import Cells, binomials, grid, locate, new_corners, solve_cell
from beliefbound.kernels.graph.nodes import Problem
from beliefbound.validation import FloatArray, IntArray

_SIZES = ((8, 6), (6, 9), (5, 12), (4, 16), (3, 24))  # models in a cell, resolution: up to some 2000 grid points
_TRIED = 2  # of them: the largest that are affordable
_WORK = 100_000_000  # grid points met by outcomes and sweeps, for each second there is: a tenth of it, or less
_SWEEPS = 200  # of one cell; valid after any number
_EPSILON = 1e-6  # of the largest value: when sweeps stop earlier


def divide(gain: FloatArray, k: int) -> IntArray:
    """`[cell,k]`, −1 where a cell has fewer models: each cell begins with the pair that loses most, and takes the model
    that adds most until it is full."""
    left = list(range(len(gain)))
    cells = np.full((-(-len(gain) // k), k), -1, dtype=np.int64)
    for cell in cells:
        chosen = left[:1]
        if len(left) > 1:
            among = gain[np.ix_(left, left)] - np.eye(len(left))
            chosen = [left[i] for i in divmod(int(np.argmax(among)), len(left))]
        while len(chosen) < min(k, len(left)):
            others = [m for m in left if m not in chosen]
            chosen.append(others[int(np.argmax(gain[np.ix_(others, chosen)].sum(axis=1)))])
        cell[: len(chosen)] = chosen
        left = [m for m in left if m not in chosen]
    return cells


def solved(problem: Problem, division: IntArray, resolution: int) -> Cells:
    """The cells of one division, solved on their grids."""
    k = division.shape[1]
    table = binomials(resolution + k)
    points, corners = grid(k, resolution, table), new_corners(k)
    epsilon = _EPSILON * float(np.abs(problem.q).max())
    n_states, n_actions = problem.available.shape
    tables = np.empty((1, len(division), len(problem.q), n_states, len(points), n_actions))
    for models, own in zip(division, tables[0], strict=True):
        solve_cell(problem, models, points, resolution, table, corners, _SWEEPS, epsilon, own)
    return Cells(division[None], tables, table, resolution)


def read_cells(problem: Problem, cells: Cells, weights: FloatArray) -> FloatArray:
    """The bound at stage 0 by the first division, `[s]`."""
    corners = new_corners(cells.models.shape[2])
    q = np.where(problem.available, 0.0, -np.inf)
    for models, table in zip(cells.models[0], cells.tables[0], strict=True):
        corners.weight[:] = np.where(models >= 0, weights[models], 0.0)
        total = float(corners.weight.sum())
        if total > 0.0:
            locate(corners, total, cells.resolution, cells.binomials)
            q += total * np.tensordot(corners.share, table[0][:, corners.point], axes=(0, 1))
    best: FloatArray = q.max(axis=-1)
    return best


def best_cells(
    problem: Problem, gain: FloatArray, weights: FloatArray, start: FloatArray, seconds: float
) -> tuple[Cells, Bound] | None:
    """The division of the least bound at the start among the sizes that are affordable in a small part of `seconds`;
    none where none is."""
    found: tuple[Cells, Bound] | None = None
    tried = 0
    for k, resolution in _SIZES:
        n_cells, n_points = -(-len(weights) // k), int(binomials(resolution + k)[resolution + k - 1, k - 1])
        work = n_cells * n_points * k * len(problem.arrive) * _SWEEPS
        if k > len(weights) or work > _WORK * seconds or tried == _TRIED:
            continue
        tried += 1
        cells = solved(problem, divide(gain, k), resolution)
        value = float(start @ read_cells(problem, cells, weights))
        if found is None or value < found[1].value:
            found = cells, Bound(value, "upper", f"told which {k} models hold the true one")
    return found
