"""Which models to put into one cell (`kernels.graph.cells`), how many, and on how fine a grid.

Any division gives a bound. A good cell holds models that call for different actions, are hard to tell apart, and are
likely together where the search is: what a pair of models loses when only the pair is told (`bounds.finite.pairs`),
times the mean product of their weights at beliefs of the graph, is added up within cells. These are filled one by one
with the model that adds most, and then models are exchanged as long as that adds more. Larger cells tell less, but a
grid of `k − 1` dimensions must be coarse, and takes more work.
"""

from typing import NamedTuple

import numpy as np

from beliefbound.base.limits import CELL_BYTES
from beliefbound.base.validation import FloatArray, IntArray
from beliefbound.bounds.finite.pairs import EPSILON
from beliefbound.bounds.finite.problem import scale_of
from beliefbound.bounds.steps import Meter, Stepwise
from beliefbound.kernels.graph.cells import (
    Cells,
    Outcomes,
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

_SIZES = {8: (7, 5), 6: (12, 9), 4: (16,), 3: (24,)}  # models in a cell: resolutions, of which the finest that fits
_SWEEPS = 200  # of one cell; valid after any number
_ROUNDS, _FOLLOWED = 40, 15  # of policy iteration; sweeps in one that follow a policy
_ABOVE = 20.0  # times where sweeps end: what may be added for values that still rise
_SOLVING = 55.0  # sweeps, in time, until a cell is solved
_EXCHANGES, _LEAST_ADDED = 2, 1e-9  # of models between cells, for each model; the least share that one must add


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
    problem: BeliefMDP, division: IntArray, resolution: int, epsilon: float, meter: Meter
) -> Stepwise[Cells]:
    """The cells of one division, solved on their grids step by step; sweeps end where they change less than
    `epsilon`."""
    k = division.shape[1]
    table = binomials(resolution + k)
    points, corners = grid(k, resolution, table), new_corners(k)
    n_states, n_actions = problem.available.shape
    tables = np.empty((1, len(division), len(problem.q), n_states, len(points), n_actions))
    sweep = len(points) * len(problem.arrive) * (k + 2.0)
    meter.add(20.0 * len(points) * k)
    for models, own in zip(division, tables[0], strict=True):
        if len(problem.q) > 1:
            solve_cell(problem, models, points, resolution, table, corners, _SWEEPS, epsilon, own)
            meter.add((len(problem.q) + k) * sweep)
        else:
            outcomes = outcomes_of_cell(problem, models, points, resolution, table, corners)
            meter.add(k * sweep)
            own[0] = yield from _solved(problem, models, points, outcomes, epsilon, sweep, meter)
        if meter.full():
            yield
    return Cells(division[None], tables, table, resolution)


def _solved(
    problem: BeliefMDP,
    models: IntArray,
    points: FloatArray,
    outcomes: Outcomes,
    epsilon: float,
    work: float,
    meter: Meter,
) -> Stepwise[FloatArray]:
    """`[s,g,a]`, no less than the solution on the grid; a sweep takes `work`.

    Modified policy iteration: between two sweeps `T` over all actions, `_FOLLOWED` that follow the best of them. Such
    values may fall below the solution `W`, but where `TV ≤ V + e` everywhere, `W ≤ V + e/(1 − γ)`, as `T` is monotone
    and takes constants to `γ` times themselves; then no action is worth more than its `Q` by `V` and `γe/(1 − γ)`.
    (Rounding does to `e` what it does to backups for ever, `planning.rounding`.) Where that is not small in the end,
    and where `γ` is 1, sweeps begin again from values told apart, and stay above `W`.
    """
    discount = problem.discount
    values, q = told_apart(problem, models, points)
    for _ in range(_ROUNDS if discount < 1.0 else 0):
        change, rise = sweep_cell(problem, models, points, outcomes, values, q)
        meter.add(work)
        above = discount * rise / (1.0 - discount)
        if change <= epsilon and above <= _ABOVE * epsilon:
            return np.asarray(q + above)
        follow_cell(problem, models, points, outcomes, values, q, _FOLLOWED)
        meter.add(_FOLLOWED * work / problem.available.shape[1])
        if meter.full():
            yield
    values, q = told_apart(problem, models, points)
    for _ in range(_SWEEPS):
        meter.add(work)
        if sweep_cell(problem, models, points, outcomes, values, q)[0] <= epsilon:
            break
        if meter.full():
            yield
    return q


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
    """Models in a cell, resolution of the grid, and the operations that it takes."""

    models: int
    resolution: int
    work: float


def sizes(problem: BeliefMDP, n_models: int) -> list[Size]:
    """All that there are for so many models and fit in memory, those of least work first."""
    found, rows = [], len(problem.arrive)
    for k, resolutions in _SIZES.items():
        n_cells = -(-n_models // k)
        for resolution in resolutions if k <= n_models else ():
            n_points = int(binomials(resolution + k)[resolution + k - 1, k - 1])
            tables = 8 * n_cells * n_points * len(problem.q) * problem.available.size
            if max(rows * n_points * (8 + 12 * k), tables) <= CELL_BYTES:  # `outcomes_of_cell`, and what is kept
                found.append(Size(k, resolution, float(n_cells * n_points * k * rows * _SOLVING)))
                break
    return sorted(found, key=lambda size: size.work)


def cell_steps(
    problem: BeliefMDP, gain: FloatArray, weights: FloatArray, start: FloatArray, size: Size, meter: Meter
) -> Stepwise[tuple[Cells, float]]:
    """Cells of one size, solved step by step, and their bound at the start, but for rounding."""
    epsilon = EPSILON * scale_of(problem, weights, start)
    cells = yield from solving_steps(problem, divide(gain, size.models), size.resolution, epsilon, meter)
    return cells, float(start @ read_cells(problem, cells, weights))
