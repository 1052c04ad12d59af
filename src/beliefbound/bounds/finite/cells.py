"""Which models to put into one cell (`kernels.graph.cells`), how many, and on how fine a grid.

Any division gives a bound. A good cell holds models that call for different actions, are hard to tell apart, and are
likely together where the search is: what a pair of models loses when only the pair is told (`bounds.finite.pairs`),
times the mean product of their weights at beliefs of the graph, is added up within cells. These are filled one by one
with the model that adds most, and then models are exchanged as long as that adds more. Larger cells tell less, but a
grid of `k − 1` dimensions must be coarse, and takes more work.
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
    follow_cell,
    grid,
    locate,
    new_corners,
    outcomes_of_cell,
    solve_cell,
    sweep_cell,
    told_apart,
)
from beliefbound.kernels.graph.nodes import BeliefMDP
from beliefbound.models.enclosing import UNIT

_SIZES = {8: (7, 5), 6: (12, 9), 4: (16,), 3: (24,)}  # models in a cell: resolutions, of which the finest that fits
_SWEEPS = 200  # of one cell; valid after any number
_SWEEP = 1.7  # operations, in time, of a grid point and an outcome, for each model of a cell and two more
_TOGETHER = 8  # cells that are solved side by side, as far as memory allows
_ROUNDS, _FOLLOWED = 40, 15  # of policy iteration; sweeps in one that follow a policy
_ABOVE = 20.0  # times where sweeps end: what may be added for values that still rise
_SOLVING = 55.0  # sweeps, in time, until a cell is solved
_EXCHANGES, _LEAST_ADDED = 2, 1e-9  # of models between cells, for each model; the least share that one must add


class Size(NamedTuple):
    """Models in a cell, resolution of the grid, and the operations that it takes."""

    models: int
    resolution: int
    work: float


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
    return _exchanged(gain, cells)


def _exchanged(gain: FloatArray, cells: IntArray) -> IntArray:
    """The same with models of two cells exchanged, as long as cells then lose more: always the exchange that adds
    most."""
    n_models = len(gain)
    place = np.empty(n_models, dtype=np.int64)
    for c, cell in enumerate(cells):
        place[cell[cell >= 0]] = c
    inside = np.eye(len(cells))[place]
    for _ in range(n_models * _EXCHANGES):
        to = gain @ inside  # [m,cell]: what a model loses with those of a cell
        own = to[np.arange(n_models), place]
        more = to[:, place] - own[:, None]  # [m,n]: what m adds in the cell of n, without n's leaving
        added = np.where(place[:, None] == place, 0.0, more + more.T - 2.0 * gain)
        m, n = divmod(int(np.argmax(added)), n_models)
        if added[m, n] <= _LEAST_ADDED * float(own.sum()):
            break
        place[[m, n]] = place[[n, m]]
        inside[[m, n]] = inside[[n, m]]
    exchanged = np.full_like(cells, -1)
    for c, cell in enumerate(exchanged):
        held = np.flatnonzero(place == c)
        cell[: len(held)] = held
    return exchanged


def solving_steps(
    problem: BeliefMDP,
    division: IntArray,
    resolution: int,
    epsilon: float,
    meter: Meter,
    team: Team = ALONE,
    *,
    start: FloatArray | None = None,
) -> Stepwise[Cells]:
    """The cells of one division, solved on their grids step by step, several side by side; sweeps end where they
    change less than `epsilon`. `start`: a distribution of states, from which the others are reached; by default they
    may all be met."""
    k = division.shape[1]
    states = _met(problem, start)
    rows = _n_rows(problem, states)
    table = binomials(resolution + k)
    points = grid(k, resolution, table)
    n_states, n_actions = problem.available.shape
    tables = np.empty((len(division), len(problem.q), n_states, len(points), n_actions))
    sweep = _SWEEP * len(points) * rows * (k + 2.0)
    meter.add(20.0 * len(points) * k)
    together = max(1, min(_TOGETHER, CELL_BYTES // _scratch(len(problem.arrive), len(points), k)))
    for first in range(0, len(division), together):
        here = range(first, min(first + together, len(division)))
        if len(problem.q) > 1:

            def solve(c: int) -> None:
                solve_cell(problem, division[c], points, resolution, table, new_corners(k), _SWEEPS, epsilon, tables[c])

            team.run([partial(solve, c) for c in here])
            meter.add(len(here) * (len(problem.q) + k) * sweep)
        else:

            def begin(c: int) -> _Solving:
                return _Solving(problem, division[c], points, resolution, table, tables[c], states)

            cells = team.run([partial(begin, c) for c in here])
            meter.add(len(here) * k * sweep)
            while cells:
                each = max(1.0, meter.left / (len(cells) * sweep))
                meter.add(sweep * sum(team.run([partial(cell.more, each, epsilon) for cell in cells])))
                cells = [cell for cell in cells if not cell.ended]
                if cells and meter.full():
                    yield
        for c in here:
            tables[c] += _off(problem, tables[c], k, resolution)
        if meter.full():
            yield
    return Cells(division, tables, table, resolution)


def _met(problem: BeliefMDP, start: FloatArray | None) -> IntArray:
    """States in which a search may be: those of the start, and in which an outcome arrives; of joined states, one."""
    if start is None:
        return np.arange(len(problem.available))
    return np.union1d(np.flatnonzero(start), problem.arrive)


def _n_rows(problem: BeliefMDP, states: IntArray) -> int:
    return int((problem.first[states, -1] - problem.first[states, 0]).sum())


def _off(problem: BeliefMDP, table: FloatArray, k: int, resolution: int) -> FloatArray:
    """What rounding can take from a table `[stage,s,g,a]` where it is read between grid points: `[stage,s,1,a]`.

    Shares of grid points are differences of sums of `k` numbers up to `n`, so they are off by some units of that,
    however small they are: of `k` of them, by `2k(k + 2)n` units together, times the largest value that one of them may
    have been taken from. The table was itself found by reading values so, stage after stage.
    """
    share = 2.0 * k * (k + 2.0) * resolution * UNIT
    values = np.where(problem.available, table.swapaxes(1, 2), -np.inf).max(axis=-1)
    known = np.abs(np.where(problem.available[:, None], table, 0.0))
    ever = 1.0 / (1.0 - problem.discount) if problem.discount < 1.0 else float(_SWEEPS)
    lasting = ever if len(problem.q) == 1 else float(len(problem.q))
    return np.asarray(share * (known.max(axis=2, keepdims=True) + lasting * float(np.abs(values).max())))


class _Solving:
    """One cell without a horizon being solved, into `table[stage,s,g,a]`, no less than the solution on the grid.

    Modified policy iteration: between two sweeps `T` over all actions, `_FOLLOWED` that follow the best of them. Such
    values may fall below the solution `W`, but where `TV ≤ V + e` everywhere, `W ≤ V + e/(1 − γ)`, as `T` is monotone
    and takes constants to `γ` times themselves; then no action is worth more than its `Q` by `V` and `γe/(1 − γ)`.
    (Rounding does to `e` what it does to backups for ever, `planning.rounding`.) Where that is not small in the end,
    and where `γ` is 1, sweeps begin again from values told apart, and stay above `W`.
    """

    def __init__(
        self,
        problem: BeliefMDP,
        models: IntArray,
        points: FloatArray,
        resolution: int,
        binom: IntArray,
        table: FloatArray,
        states: IntArray,
    ) -> None:
        self._cell = problem, models, points
        self._outcomes = outcomes_of_cell(problem, models, points, resolution, binom, new_corners(len(models)), states)
        self._values, self._q = told_apart(*self._cell)
        self._table, self._gamma = table, problem.discount
        self._rounds, self._sweeps, self.ended = _ROUNDS if self._gamma < 1.0 else 0, _SWEEPS, False

    def more(self, most: float, epsilon: float) -> float:
        """More of it, until the work of `most` sweeps over all actions is done; how much was."""
        done = 0.0
        while done < most and not self.ended:
            done += self._improve(epsilon) if self._rounds > 0 else self._sweep(epsilon)
        return done

    def _improve(self, epsilon: float) -> float:
        change, rise = sweep_cell(*self._cell, self._outcomes, self._values, self._q)
        above = self._gamma * rise / (1.0 - self._gamma)
        if change <= epsilon and above <= _ABOVE * epsilon:
            self._table[0], self.ended = self._q + above, True
            return 1.0
        follow_cell(*self._cell, self._outcomes, self._values, self._q, _FOLLOWED)
        self._rounds -= 1
        if self._rounds == 0:
            self._values, self._q = told_apart(*self._cell)
        return 1.0 + _FOLLOWED / float(self._q.shape[2])

    def _sweep(self, epsilon: float) -> float:
        change, _ = sweep_cell(*self._cell, self._outcomes, self._values, self._q)
        self._sweeps -= 1
        if change <= epsilon or self._sweeps == 0:
            self._table[0], self.ended = self._q, True
        return 1.0


def _scratch(rows: int, n_points: int, k: int) -> int:
    """Bytes to solve one cell: those of `outcomes_of_cell`."""
    return rows * n_points * (8 + 12 * k)


def read_cells(problem: BeliefMDP, cells: Cells, weights: FloatArray) -> FloatArray:
    """The bound at stage 0 by the division, `[s]`."""
    corners = new_corners(cells.models.shape[1])
    q = np.where(problem.available, 0.0, -np.inf)
    for models, table in zip(cells.models, cells.tables, strict=True):
        corners.weight[:] = np.where(models >= 0, weights[models], 0.0)
        total = float(corners.weight.sum())
        if total > 0.0:
            locate(corners, total, cells.resolution, cells.binomials)
            q += total * np.tensordot(corners.share, table[0][:, corners.point], axes=(0, 1))
    best: FloatArray = q.max(axis=-1)
    return best


def sizes(problem: BeliefMDP, n_models: int, start: FloatArray | None = None) -> list[Size]:
    """All that there are for so many models and fit in memory, those of least work first."""
    found, rows = [], _n_rows(problem, _met(problem, start))
    for k, resolutions in _SIZES.items():
        n_cells = -(-n_models // k)
        for resolution in resolutions if k <= n_models else ():
            n_points = int(binomials(resolution + k)[resolution + k - 1, k - 1])
            tables = 8 * n_cells * n_points * len(problem.q) * problem.available.size
            if max(_scratch(len(problem.arrive), n_points, k), tables) <= CELL_BYTES:
                found.append(Size(k, resolution, float(n_cells * n_points * k * rows * _SOLVING)))
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
    division = divide(gain, size.models)
    cells = yield from solving_steps(problem, division, size.resolution, epsilon, meter, team, start=start)
    return cells, float(start @ read_cells(problem, cells, weights))
