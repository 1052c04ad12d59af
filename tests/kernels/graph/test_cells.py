"""Cells of models: grids, interpolation, and values above the exact ones."""

import numpy as np
import pytest

from beliefbound.beliefs import FiniteBelief
from beliefbound.bounds.finite.cells import read_cells, solving_steps
from beliefbound.bounds.finite.problem import problem_of
from beliefbound.bounds.steps import Meter, finish
from beliefbound.kernels.graph.cells import binomials, grid, locate, new_corners, solve_cell, told_cell
from beliefbound.kernels.graph.nodes import new_graph
from beliefbound.kernels.graph.pairs import solve_pair
from beliefbound.planning.task import FiniteTask
from support import oracles
from support.beliefs import ROUNDING, SIGNALS, random_belief


@pytest.mark.parametrize(("k", "n"), [(1, 3), (2, 7), (3, 5), (5, 4)])
def test_every_point_of_the_simplex_lies_between_grid_points_that_average_to_it(k, n):
    table, corners = binomials(n + k), new_corners(k)
    points = grid(k, n, table)
    assert len(np.unique(points, axis=0)) == len(points) == table[n + k - 1, k - 1]
    rng = np.random.default_rng(1)
    tried = [*points, *rng.dirichlet(np.full(k, 0.5), 200)]
    for weights in tried:
        scale = rng.uniform(0.1, 10.0)
        corners.weight[:] = scale * weights
        locate(corners, scale, n, table)
        assert (corners.share >= -1e-12).all()
        assert corners.share.sum() == pytest.approx(1.0)
        used = corners.share > 1e-9
        assert corners.share[used] @ points[corners.point[used]] == pytest.approx(weights, abs=1e-9)
        assert np.abs(points[corners.point[used]] - weights).max() <= 1.0 / n + 1e-9  # neighbours, not far away


@pytest.mark.parametrize("horizon", [None, 4])
def test_cells_of_two_are_pairs(horizon):
    belief, _ = random_belief(np.random.default_rng(2), "known", n_models=4)
    task = FiniteTask.of(belief, discount=0.9, horizon=horizon)
    problem = problem_of(task, stages=4, policies=())
    table, none = binomials(12), np.empty((0, 2, 11, 2))
    pair = solve_pair(problem, 1, 3, 11, 50, 1e-9, none)
    cell = solve_cell(problem, np.array([1, 3]), grid(2, 10, table), 10, table, new_corners(2), 50, 1e-9, none)
    assert cell == pytest.approx(pair[:, ::1], rel=1e-12)


@pytest.mark.parametrize("discount", [0.0, 0.6, 0.95])
def test_policy_iteration_ends_just_above_what_sweeps_from_above_converge_to(discount):
    belief, _ = random_belief(np.random.default_rng(4), "bernoulli", n_models=3)
    task = FiniteTask.of(belief, discount=discount)
    problem = problem_of(task, stages=1, policies=())
    models, n, epsilon = np.arange(3), 6, 1e-6
    table, corners = binomials(n + 3), new_corners(3)
    points, kept = grid(3, n, table), np.zeros((1, 2, 28, 2))
    solve_cell(problem, models, points, n, table, corners, 3000, 0.0, kept)
    found = finish(solving_steps(problem, models[None], n, epsilon, Meter()))
    above = found.tables[0] - kept
    assert above.min() >= -1e-11
    assert above.max() <= 25.0 * epsilon


@pytest.mark.parametrize("signal", SIGNALS)
def test_values_of_a_cell_are_above_the_exact_ones_and_close_on_a_fine_grid(signal):
    rng = np.random.default_rng(3)
    for _ in range(5):
        belief, (P, r, _, _) = random_belief(rng, signal, n_models=3)
        task = FiniteTask.of(belief, discount=0.9, horizon=3)
        problem = problem_of(task, stages=3, policies=())
        for n, most in ((2, np.inf), (12, 0.01)):
            table = binomials(n + 3)
            points = grid(3, n, table)
            none = np.empty((0, 2, len(points), 2))
            values = solve_cell(problem, np.arange(3), points, n, table, new_corners(3), 1, 0.0, none)
            for g in rng.choice(len(points), 4):
                exact = oracles.bayes_adaptive_value(P, r, points[g], 0, 0.9, 3, signal)
                assert exact - ROUNDING <= values[0, g] <= exact + most


def test_a_model_that_is_ruled_out_lowers_nothing_that_is_read():
    """Betting pays 1 but in the first model, where it costs 1e9; without that one it is worth 2, however the others are
    weighed: shares of grid points are rounded, and what is lost by that is allowed for."""
    rewards = [[[0.0, -1e9]], [[0.0, 1.0]], [[0.0, 1.0]]]
    belief = FiniteBelief(np.ones((3, 1, 2, 1)), rewards, reward_signal="unobserved")
    problem = problem_of(FiniteTask.of(belief, discount=0.5), stages=1, policies=())
    cells = finish(solving_steps(problem, np.arange(3)[None], 12, 1e-6, Meter()))
    for x in np.random.default_rng(1).random(300):
        assert 2.0 <= read_cells(problem, cells, np.array([0.0, x, 1.0 - x]))[0] <= 2.0 + 1e-2


@pytest.mark.parametrize("signal", SIGNALS)
def test_cells_of_next_to_no_weight_are_told_apart_which_hardly_raises_what_is_read(signal):
    belief, _ = random_belief(np.random.default_rng(5), signal, n_models=6)
    task = FiniteTask.of(belief, discount=0.9)
    problem = problem_of(task, stages=1, policies=())
    cells = finish(solving_steps(problem, np.arange(6).reshape(3, 2), 12, 1e-6, Meter()))
    problem, rng, apart = problem._replace(cells=cells), np.random.default_rng(6), 0
    graph = new_graph(problem, 1, 6)
    for _ in range(100):
        weights = rng.dirichlet(np.full(6, 0.1))
        graph.mass[:] = weights
        s = int(rng.integers(2))
        told, read = told_cell(problem, graph, s, 0), read_cells(problem, cells, weights)[s]
        assert graph.mass == pytest.approx(weights, abs=0.0)
        assert read - 1e-4 <= told <= read + 2 * 3 * 1e-3 * float(weights @ problem.scale)
        matter = (weights * problem.scale).reshape(3, 2).sum(axis=1)
        apart += int((matter < 1e-3 * matter.sum()).any())
    assert apart > 0  # or all cells were read


def test_cells_are_solved_in_the_states_that_may_be_met_and_elsewhere_told_apart():
    p = np.random.default_rng(7).dirichlet(np.ones(2), (4, 3, 2)) @ np.eye(3)[:2]  # nothing leads to state 2
    r = np.random.default_rng(8).random((4, 3, 2))
    problem = problem_of(
        FiniteTask.of(FiniteBelief(p, r, reward_signal="unobserved"), discount=0.9), stages=1, policies=()
    )
    models, start = np.arange(4).reshape(2, 2), np.array([1.0, 0.0, 0.0])
    every = finish(solving_steps(problem, models, 8, 1e-9, Meter()))
    met = finish(solving_steps(problem, models, 8, 1e-9, Meter(), start=start))
    assert met.tables[:, :, :2] == pytest.approx(every.tables[:, :, :2], abs=1e-7)
    assert (met.tables[:, :, 2] >= every.tables[:, :, 2] - 1e-7).all()
    assert (met.tables[:, :, 2] > every.tables[:, :, 2] + 1e-7).any()
