"""Which models to put into one cell (`kernels.graph.cells`), how many, and on how fine a grid.

Any division gives a bound. A good cell holds models that call for different actions and are hard to tell apart: what a
pair of models loses when only the pair is told (`bounds.finite.pairs`) is added up within cells, and cells are filled
one by one with the model that adds most. Larger cells tell less, but a grid of `k − 1` dimensions must be coarse, and
takes more work.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from beliefbound.base.executors.team import ALONE, Team
from beliefbound.base.limits import CELL_BYTES
from beliefbound.base.validation import FloatArray, IntArray
from beliefbound.bounds.finite.pairs import EPSILON
from beliefbound.bounds.finite.problem import scale_of
from beliefbound.bounds.steps import Meter, Stepwise
from beliefbound.kernels.graph.cells import (
    Cells,
    binomials,
    grid,
    locate,
    new_corners,
    outcomes_of_cell,
    solve_cell,
    sweep_cell,
    told_apart,
)
from beliefbound.kernels.graph.nodes import BeliefMDP

_SIZES = {8: (9, 6), 6: (12, 9), 5: (16, 12), 4: (16,), 3: (24,)}  # models in a cell: resolutions, finest first
_SWEEPS = 200  # of one cell; valid after any number
_SWEEP = 1.7  # operations, in time, of a grid point and an outcome, for each model of a cell and two more
_TOGETHER = 8  # cells that are solved side by side, as far as memory allows
_FEWER = 0.75  # of the cells there were: what larger ones must save


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


def solving_steps(
    problem: BeliefMDP, division: IntArray, resolution: int, epsilon: float, meter: Meter, team: Team = ALONE
) -> Stepwise[Cells]:
    """The cells of one division, solved on their grids step by step, several side by side; sweeps end where they
    change less than `epsilon`."""
    k = division.shape[1]
    table = binomials(resolution + k)
    points = grid(k, resolution, table)
    n_states, n_actions = problem.available.shape
    tables = np.empty((1, len(division), len(problem.q), n_states, len(points), n_actions))
    sweep = _SWEEP * len(points) * len(problem.arrive) * (k + 2.0)
    meter.add(20.0 * len(points) * k)
    together = max(1, min(_TOGETHER, CELL_BYTES // _scratch(len(problem.arrive), len(points), k)))
    for first in range(0, len(division), together):
        here = range(first, min(first + together, len(division)))
        if len(problem.q) > 1:

            def solve(c: int) -> None:
                solve_cell(
                    problem, division[c], points, resolution, table, new_corners(k), _SWEEPS, epsilon, tables[0, c]
                )

            team.run([partial(solve, c) for c in here])
            meter.add(len(here) * (len(problem.q) + k) * sweep)
        else:

            def begin(c: int) -> _Sweeps:
                return _Sweeps(problem, division[c], points, resolution, table, tables[0, c])

            cells = team.run([partial(begin, c) for c in here])
            meter.add(len(here) * k * sweep)
            while cells:
                each = max(1, int(meter.left / (len(cells) * sweep)))
                meter.add(sweep * sum(team.run([partial(cell.more, each, epsilon) for cell in cells])))
                cells = [cell for cell in cells if not cell.ended]
                if cells and meter.full():
                    yield
        if meter.full():
            yield
    return Cells(division[None], tables, table, resolution)


class _Sweeps:
    """The sweeps over one cell without a horizon, into `table[stage,s,g,a]`."""

    def __init__(
        self,
        problem: BeliefMDP,
        models: IntArray,
        points: FloatArray,
        resolution: int,
        binom: IntArray,
        table: FloatArray,
    ) -> None:
        self._problem, self._models, self._points, self._table = problem, models, points, table
        self._outcomes = outcomes_of_cell(problem, models, points, resolution, binom, new_corners(len(models)))
        self._values, self._q = told_apart(problem, models, points)
        self._left, self.ended = _SWEEPS, False

    def more(self, most: int, epsilon: float) -> int:
        """Up to so many more; how many there were."""
        done = 0
        while done < most and not self.ended:
            change = sweep_cell(self._problem, self._models, self._points, self._outcomes, self._values, self._q)
            done, self._left = done + 1, self._left - 1
            self.ended = change <= epsilon or self._left == 0
        if self.ended:
            self._table[0] = self._q
        return done


def _scratch(rows: int, n_points: int, k: int) -> int:
    """Bytes to solve one cell: those of `outcomes_of_cell`."""
    return rows * n_points * (8 + 12 * k)


def read_cells(problem: BeliefMDP, cells: Cells, weights: FloatArray) -> FloatArray:
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


class Size(NamedTuple):
    """Models in a cell, resolution of the grid, the operations that it takes, and how many cells there are."""

    models: int
    resolution: int
    work: float
    cells: int = 1


def worthwhile(size: Size, last: Size | None) -> bool:
    """Whether a size is worth its work after another one: it has fewer cells by far, or two of more models."""
    if last is None or size.cells <= _FEWER * last.cells:
        return True
    return size.cells <= 2 and size.models > last.models


def sizes(problem: BeliefMDP, n_models: int) -> list[Size]:
    """All that there are for so many models and fit in memory, those of least work first."""
    found, rows = [], len(problem.arrive)
    for k, resolutions in _SIZES.items():
        n_cells = -(-n_models // k)
        for resolution in resolutions if k <= n_models else ():
            n_points = int(binomials(resolution + k)[resolution + k - 1, k - 1])
            tables = 8 * n_cells * n_points * len(problem.q) * problem.available.size
            if max(_scratch(rows, n_points, k), tables) <= CELL_BYTES:
                found.append(Size(k, resolution, float(n_cells * n_points * k * rows * _SWEEPS), n_cells))
                break
    return sorted(found, key=lambda size: size.work)


def cell_steps(
    problem: BeliefMDP,
    gain: FloatArray,
    weights: FloatArray,
    start: FloatArray,
    size: Size,
    meter: Meter,
    team: Team = ALONE,
) -> Stepwise[tuple[Cells, float]]:
    """Cells of one size, solved step by step, and their bound at the start, but for rounding."""
    epsilon = EPSILON * scale_of(problem, weights, start)
    cells = yield from solving_steps(problem, divide(gain, size.models), size.resolution, epsilon, meter, team)
    return cells, float(start @ read_cells(problem, cells, weights))
