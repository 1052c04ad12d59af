"""Leaves by all the ways that lead to them."""

from itertools import product

import numpy as np
import pytest

from beliefbound.base.executors.team import Team
from beliefbound.beliefs import FiniteBelief
from beliefbound.bounds.finite import relaxation
from beliefbound.bounds.finite.cells import Size, cell_steps
from beliefbound.bounds.finite.pool import policies_of
from beliefbound.bounds.finite.problem import problem_of
from beliefbound.bounds.finite.relaxation import Certifier
from beliefbound.bounds.steps import Meter, finish
from beliefbound.kernels.graph import growth, ways
from beliefbound.kernels.graph.crew import new_crew
from beliefbound.planning.task import FiniteTask
from support import oracles
from support.beliefs import ROUNDING, random_belief

DISCOUNT = 0.6


def bandit(seed=0, models=4, arms=2):
    """Coins that are tossed: a belief is what has come up, in whatever order."""
    rng = np.random.default_rng(seed)
    heads = rng.uniform(0.2, 0.8, (models, arms))
    P = np.stack([1.0 - heads, heads], axis=-1)[:, None].repeat(2, axis=1)
    R = np.zeros((models, 2, arms))
    R[:, 1] = 1.0
    return FiniteBelief(P, R, reward_signal="known")


def begun(belief, discount=0.9, cells=False):
    """A graph of its root alone."""
    task = FiniteTask.of(belief, discount=discount, initial=0)
    policies = policies_of(task)
    problem = problem_of(task, stages=1, policies=policies)._replace(merged=True)
    if cells:
        n, weights = task.models.n_models, np.array(task.weights)
        size = Size(2, 4, 0.0)
        found, _ = finish(cell_steps(problem, np.ones((n, n)), weights, np.array(task.start), size, Meter()))
        problem = problem._replace(cells=found)
    return Certifier(task, problem, policies, core_nodes=3000, max_nodes=1)


def descended(certifier, nodes):
    """The graph after descents alone."""
    until = growth.GrowthLimits(nodes, np.inf, certifier.node_work, 0.0, certifier.depth - 1, -1, 0)
    growth.grow(certifier.problem, certifier.graph, certifier.weights, certifier.roots, until, new_crew())


def passed(certifier, most=1000):
    """`(order, reach, places, shares)` of one pass."""
    problem, graph, n = certifier.problem, certifier.graph, certifier.n_nodes
    order, reach = np.empty(n, dtype=np.int64), np.zeros(n)
    order = order[: ways.followed(problem, graph, certifier.roots, most, order)]
    count = ways.spread(problem, graph, certifier.weights, certifier.roots, order, reach)
    places, shares = np.empty(count, dtype=np.int64), np.empty(count)
    ways.measure_leaves(problem, graph, order, reach, places, shares)
    return order, reach, places, shares


def rows_of_greedy(certifier, x):
    """Outcomes of the greedy action of a node."""
    s, a = int(certifier.graph.state[x]), int(certifier.graph.greedy[x])
    first = certifier.problem.first[s]
    return range(first[a] - first[0], first[a + 1] - first[0])


def by_ways(certifier, x, factor, depth, found):
    """What leaves contribute, one way after another: by the definition."""
    graph = certifier.graph
    for i in rows_of_greedy(certifier, x):
        here, child = factor * certifier.problem.discount * graph.prob[x, i], int(graph.child[x, i])
        if child >= 0 and depth > 1:
            by_ways(certifier, child, here, depth - 1, found)
        elif child < 0:
            place = x * graph.child.shape[1] + i
            share, n = found.get(place, (0.0, 0))
            found[place] = share + here * (graph.above[x, i] - graph.below[x, i]), n + 1


@pytest.mark.parametrize("cells", [False, True])
def test_a_leaf_counts_as_much_as_all_ways_to_it_together(cells):
    certifier = begun(bandit(), cells=cells)
    descended(certifier, 150)
    _, _, places, shares = passed(certifier)
    found = dict[int, tuple[float, int]]()
    by_ways(certifier, int(certifier.roots[0]), 1.0, 1000, found)
    assert sorted(found) == sorted(places)
    for place, share in zip(places, shares, strict=True):
        assert share == pytest.approx(found[place][0], rel=1e-10)
    assert max(n for _, n in found.values()) > 3  # ways, to one leaf
    assert shares.sum() >= certifier.upper - certifier.lower - ROUNDING


def test_a_pass_meets_every_node_of_greedy_actions_once_and_after_those_below_it():
    certifier = begun(bandit(models=6, arms=3))
    descended(certifier, 200)
    order, _, _, _ = passed(certifier)
    place = {int(x): n for n, x in enumerate(order)}
    assert len(place) == len(order) > 20
    assert place[int(certifier.roots[0])] == len(order) - 1
    for x in place:
        children = {int(certifier.graph.child[x, i]) for i in rows_of_greedy(certifier, x)} - {-1}
        assert all(place[child] < place[x] for child in children)
    assert (certifier.graph.stamp[: certifier.n_nodes] == -1).all()
    assert len(passed(certifier, most=3)[0]) < len(order)


@pytest.mark.parametrize("signal", ["known", "bernoulli", "unobserved"])
def test_what_is_built_keeps_bounds_valid_and_makes_them_no_wider(signal):
    for seed, cells in product(range(2), (False, True)):
        belief, (P, r, w, _) = random_belief(np.random.default_rng(seed), signal)
        certifier = begun(belief, discount=DISCOUNT, cells=cells)
        exact = oracles.bayes_adaptive_value(P, r, w, np.eye(2)[0], DISCOUNT, 4, signal)
        most = DISCOUNT**4 * np.abs(r).max() / (1.0 - DISCOUNT) + ROUNDING
        for _ in range(6):
            order, _, places, shares = passed(certifier)
            before, n = (certifier.lower, certifier.upper), certifier.n_nodes
            chosen = places[shares > 0.0]
            done = ways.build(*certifier._here, chosen, order, certifier.node_work, new_crew())
            assert done > 0.0
            assert n < certifier.n_nodes <= n + len(chosen)
            assert before[0] <= certifier.lower <= exact + most
            assert before[1] >= certifier.upper >= exact - most
        assert certifier.upper - certifier.lower < 0.9 * (before[1] - before[0]) + 0.1


def test_a_node_of_an_earlier_edition_is_given_new_values_and_nothing_is_built_there():
    certifier = begun(bandit(models=6, arms=3))
    descended(certifier, 100)
    certifier.use(certifier.problem._replace(edition=1))
    order, _, places, shares = passed(certifier)
    n, chosen = certifier.n_nodes, places[shares > 0.0]
    ways.build(*certifier._here, chosen, order, certifier.node_work, new_crew())
    assert certifier.n_nodes == n
    assert (certifier.graph.edition[chosen // certifier.graph.child.shape[1]] == 1).all()
    ways.build(*certifier._here, chosen, order, certifier.node_work, new_crew())
    assert certifier.n_nodes > n


def test_a_graph_that_is_full_stays_as_it_is():
    certifier = begun(bandit())
    certifier.core_nodes = 10**9
    certifier.grow(10**9, work=1e9)
    graph = certifier.graph
    full = certifier.n_nodes
    order, _, places, shares = passed(certifier)
    ways.build(*certifier._here, places[shares > 0.0], order, certifier.node_work, new_crew())
    assert certifier.n_nodes == full == len(graph.state)


def test_any_number_of_threads_builds_the_same():
    found = []
    for threads in (1, 2, 3):
        certifier = begun(bandit(models=6, arms=3), cells=True)
        with Team(threads) as team:
            certifier.grow(2500, team=team)
        graph, n = certifier.graph, certifier.n_nodes
        found.append([getattr(graph, name)[:n].copy() for name in ("key", "lower", "upper", "share", "greedy")])
    assert len(found[0][0]) >= 2000
    for other in found[1:]:
        assert all(np.array_equal(x, y) for x, y in zip(found[0], other, strict=True))


def test_bounds_are_closer_with_as_many_nodes(monkeypatch):
    widths = []
    for share in (relaxation._WIDE, (-1.0, -1.0)):
        monkeypatch.setattr(relaxation, "_WIDE", share)
        certifier = begun(bandit(seed=1, models=12, arms=3), discount=0.95)
        certifier.grow(2500)
        widths.append(certifier.upper - certifier.lower)
    assert widths[0] < widths[1]
