"""Actions of a node that are looked into one by one."""

import numpy as np
import pytest

from beliefbound.bounds.finite.cells import Size, cell_steps, read_cells
from beliefbound.bounds.finite.pairs import gain_steps
from beliefbound.bounds.finite.pool import policies_of
from beliefbound.bounds.finite.problem import problem_of
from beliefbound.bounds.finite.relaxation import Certifier
from beliefbound.bounds.steps import Meter, finish
from beliefbound.kernels.graph.actions import close_actions, open_action
from beliefbound.kernels.graph.search import renew, settle
from beliefbound.planning.task import FiniteTask
from support import oracles
from support.beliefs import ROUNDING, SIGNALS, random_belief

DISCOUNT, HORIZON = 0.9, 3


def problem_with_cells(belief, size):
    task = FiniteTask.of(belief, discount=DISCOUNT, horizon=HORIZON)
    policies = policies_of(task)
    problem = problem_of(task, stages=HORIZON, policies=policies)
    gain = finish(gain_steps(problem, task, Meter()))
    cells, _ = finish(cell_steps(problem, gain, np.array(task.weights), np.array(task.start), size, Meter()))
    return task, policies, problem._replace(cells=cells)


@pytest.mark.parametrize("signal", SIGNALS)
def test_bounds_hold_at_every_size_of_a_graph_whose_actions_are_opened_when_they_are_greedy(signal):
    rng = np.random.default_rng(7)
    for _ in range(4):
        belief, (P, r, w, p0) = random_belief(rng, signal, n_models=4)
        exact = oracles.bayes_adaptive_value(P, r, w, p0, DISCOUNT, HORIZON, signal)
        task, policies, problem = problem_with_cells(belief, Size(2, 6, 0.0))
        certifier = Certifier(task, problem, policies)
        nodes, closed = certifier.n_nodes, 0
        while True:
            assert certifier.lower - ROUNDING <= exact <= certifier.upper + ROUNDING
            closed += int((~certifier.graph.opened[: certifier.n_nodes]).sum())
            nodes += 3
            if not certifier.grow(nodes):
                break
        assert closed > 0  # or there was nothing to test
        assert certifier.lower == pytest.approx(exact, abs=1e-9)
        assert certifier.upper == pytest.approx(exact, abs=1e-9)


@pytest.mark.parametrize("signal", SIGNALS)
def test_closed_actions_are_worth_what_cells_say_and_opened_ones_look_a_step_further(signal):
    belief, (P, r, w, p0) = random_belief(np.random.default_rng(8), signal, n_models=5)
    task, policies, problem = problem_with_cells(belief, Size(3, 5, 0.0))
    certifier = Certifier(task, problem, policies)
    graph, root = certifier.graph, int(certifier.roots[0])
    s = int(graph.state[root])
    base, weights = int(problem.first[s, 0]), np.array(task.weights)

    def worth(a):
        rows = slice(problem.first[s, a] - base, problem.first[s, a + 1] - base)
        return graph.reward[root, a] + DISCOUNT * float(graph.prob[root, rows] @ graph.above[root, rows])

    close_actions(problem, graph, root)
    told = [worth(a) for a in range(problem.available.shape[1])]
    assert max(told) == pytest.approx(read_cells(problem, problem.cells, weights)[s], rel=1e-12)
    assert (graph.mass == 0.0).all()
    for a in range(problem.available.shape[1]):
        open_action(problem, graph, root, a)
        high = graph.reward[root, a]
        for row in range(problem.first[s, a] - base, problem.first[s, a + 1] - base):
            n_rows = problem.first[s, -1] - base
            like = problem.like[base * len(weights) :][: len(weights) * n_rows].reshape(len(weights), n_rows)[:, row]
            after, t = weights * like, int(problem.arrive[base + row])
            if after.sum() > 0.0:
                later = problem.cells._replace(tables=problem.cells.tables[:, 1:])
                high += DISCOUNT * after.sum() * read_cells(problem, later, after / after.sum())[t]
                pool = after @ problem.v[1][:, t] / after.sum()
                assert graph.below[root, row] == pytest.approx(pool.max(), rel=1e-12)
                assert graph.leaf[root, row] == int(np.argmax(pool))
        assert worth(a) == pytest.approx(high, rel=1e-12)
    assert graph.opened[root].all()


def test_later_leaf_values_are_taken_where_they_are_better_and_no_child_is_lost():
    belief, (P, r, w, p0) = random_belief(np.random.default_rng(9), "known", n_models=4)
    exact = oracles.bayes_adaptive_value(P, r, w, p0, DISCOUNT, HORIZON, "known")
    task, policies, coarse = problem_with_cells(belief, Size(2, 2, 0.0))
    _, _, fine = problem_with_cells(belief, Size(4, 8, 0.0))
    certifier = Certifier(task, coarse, policies)
    certifier.grow(4)
    graph = certifier.graph
    child, above = graph.child[: certifier.n_nodes].copy(), graph.above[: certifier.n_nodes].copy()
    certifier.use(fine._replace(edition=1))
    graph = certifier.graph
    for x in range(certifier.n_nodes - 1, -1, -1):
        renew(certifier.problem, graph, x)
        settle(certifier.problem, graph, x)
    assert (graph.edition[: certifier.n_nodes] == 1).all()
    assert (graph.child[: certifier.n_nodes] == child).all()
    assert (graph.above[: certifier.n_nodes][child >= 0] <= above[child >= 0] + 1e-12).all()
    assert certifier.lower - ROUNDING <= exact <= certifier.upper + ROUNDING
