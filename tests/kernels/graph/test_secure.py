"""All vectors, where the policy of the lower bound leaves the graph."""

import numpy as np
import pytest

from beliefbound.base.executors.team import ALONE, Team
from beliefbound.bounds.finite.first_actions import model_values
from beliefbound.bounds.finite.pool import policies_of
from beliefbound.bounds.finite.problem import problem_of
from beliefbound.bounds.finite.relaxation import SECURED, Certifier, work_of_asking
from beliefbound.kernels.graph.alpha import Points, back_up_points, copied, keep_used, new_vectors
from beliefbound.kernels.graph.search import backup, contribution, make_child
from beliefbound.planning.task import FiniteTask
from support import oracles
from support.beliefs import ROUNDING, random_belief

DISCOUNT = 0.6


def grown(signal, seed, nodes):
    """A graph whose leaves know the policies of the pool alone, and vectors."""
    rng = np.random.default_rng(seed)
    belief, arrays = random_belief(rng, signal)
    task = FiniteTask.of(belief, discount=DISCOUNT, initial=0)
    policies = policies_of(task)
    problem = problem_of(task, stages=1, policies=policies)._replace(merged=True)
    vectors = new_vectors(problem, problem.v[0], 3000)
    points = Points(rng.integers(0, 2, 300).astype(np.int32), rng.dirichlet(np.ones(3), 300), np.zeros(300, np.int32))
    for _ in range(4):
        back_up_points(problem, vectors, points, np.arange(300), 1e-6)
    keep_used(vectors, points, len(policies))
    certifier = Certifier(task, problem, policies, core_nodes=1000, max_nodes=1, vectors=vectors)
    certifier.grow(nodes)
    return certifier, vectors, arrays


def leaves_of_policy(problem, graph, root):
    """`(nodes met, leaves)` of the policy that looks ahead for the lower value alone, by its definition."""
    met, leaves, waiting = {root}, [], [root]
    while waiting:
        x = waiting.pop()
        s = int(graph.state[x])
        first = problem.first[s] - problem.first[s, 0]
        below = np.where(graph.child[x] >= 0, np.maximum(graph.below[x], graph.lower[graph.child[x]]), graph.below[x])
        rows = [slice(first[a], first[a + 1]) for a in range(len(first) - 1)]
        worth = [graph.reward[x, a] + DISCOUNT * graph.prob[x, k] @ below[k] for a, k in enumerate(rows)]
        a = int(np.argmax(worth))
        for i in range(first[a], first[a + 1]):
            child = int(graph.child[x, i])
            if child < 0 and graph.prob[x, i] > 0.0:
                leaves.append((x, i))
            elif child >= 0 and child not in met:
                met.add(child)
                waiting.append(child)
    return met, leaves


def asked(certifier, vectors, most, team=ALONE):
    """Ask these vectors at `most` leaves; at how many that was."""
    each = work_of_asking(vectors)
    certifier.work = (most + 0.5) * each / SECURED
    return round(certifier.secure(copied(vectors), team) / each)


@pytest.mark.parametrize("signal", ["known", "bernoulli", "unobserved"])
def test_leaves_of_the_policy_have_the_best_of_all_vectors_and_it_earns_what_is_promised(signal):
    for seed in range(2):
        certifier, vectors, (P, r, w, _) = grown(signal, seed, 40)
        problem, graph, n_models = certifier.problem, certifier.graph, len(w)
        _, leaves = leaves_of_policy(problem, graph, int(certifier.roots[0]))
        before, lower = graph.below.copy(), certifier.lower
        assert asked(certifier, vectors, 10_000) == len(leaves) > 0
        for x, i in leaves:
            s = int(graph.state[x])
            base = problem.first[s, 0]
            like = problem.like[base * n_models :][: n_models * (problem.first[s, -1] - base)].reshape(n_models, -1)
            b = np.zeros(n_models)
            b[graph.model[graph.begin[x] : graph.begin[x + 1]]] = graph.weight[graph.begin[x] : graph.begin[x + 1]]
            b *= like[:, i]
            t = int(problem.arrive[base + i])
            best = (vectors.known[t][:, : vectors.known_count[t]].T @ b).max() / b.sum()
            assert graph.below[x, i] == pytest.approx(max(best, before[x, i]), rel=1e-12)
        assert certifier.lower > lower
        assert (graph.stamp[: certifier.n_nodes] == -1).all()
        exact = oracles.bayes_adaptive_value(P, r, w, np.eye(2)[0], DISCOUNT, 4, signal)
        assert certifier.lower <= exact + DISCOUNT**4 * np.abs(r).max() / (1.0 - DISCOUNT) + ROUNDING
        assert certifier.weights @ [w @ model_values(certifier)] >= certifier.lower - ROUNDING


def test_no_more_leaves_are_asked_than_there_is_time_for():
    certifier, vectors, _ = grown("known", 1, 40)
    below = certifier.graph.below[: certifier.n_nodes].copy()
    assert asked(certifier, vectors, 1) == 1
    leaves = certifier.graph.child[: certifier.n_nodes] < 0
    assert ((certifier.graph.below[: certifier.n_nodes] > below) & leaves).sum() <= 1


def test_any_number_of_threads_asks_the_same():
    found = []
    for threads in (1, 2, 3):
        certifier, vectors, _ = grown("known", 1, 400)
        with Team(threads) as team:
            n = asked(certifier, vectors, 10_000, team)
        graph, nodes = certifier.graph, certifier.n_nodes
        values = [getattr(graph, name)[:nodes].copy() for name in ("lower", "upper", "share", "greedy", "stamp")]
        leaves = graph.prob[:nodes] > 0.0
        found.append((n, *values, *(getattr(graph, name)[:nodes][leaves] for name in ("below", "above", "leaf"))))
    assert found[0][0] > 2 * 16  # several tasks
    for other in found[1:]:
        assert all(np.array_equal(x, y) for x, y in zip(found[0], other, strict=True))


def test_values_are_consistent_as_if_every_node_were_looked_at_in_every_sweep():
    moved = 0
    for seed in range(3):
        certifier, _, _ = grown("known", seed, 300)
        graph, nodes, problem = certifier.graph, certifier.n_nodes, certifier.problem
        rows = graph.prob[:nodes] > 0.0
        graph.above[:nodes] -= 0.1 * np.random.default_rng(seed).random(rows.shape) * (graph.child[:nodes] < 0)
        values = {name: getattr(graph, name) for name in ("lower", "upper", "share", "greedy", "above", "below")}
        before = {name: field[:nodes].copy() for name, field in values.items()}
        certifier.make_consistent()
        found = {name: field[:nodes].copy() for name, field in values.items()}
        for name, field in values.items():
            field[:nodes] = before[name]
        for _ in range(10):
            for x in range(nodes - 1, -1, -1):
                backup(problem, graph, x)
                graph.share[x] = contribution(problem, graph, x, int(graph.greedy[x]))[1]
        for name, field in values.items():
            some = rows if field.ndim > 1 else slice(None)
            assert np.allclose(field[:nodes][some], found[name][some], rtol=1e-11)
        moved += int((found["upper"] != before["upper"]).sum())
    assert moved > 100


def linked(certifier):
    """`(node, row, child)` of all outcomes that lead to a node."""
    graph, n = certifier.graph, certifier.n_nodes
    rows = certifier.problem.first[graph.state[:n], -1] - certifier.problem.first[graph.state[:n], 0]
    inside = np.arange(graph.child.shape[1]) < rows[:, None]
    x, row = np.nonzero(inside & (graph.child[:n] >= 0))
    return x, row, graph.child[x, row]


def test_who_finds_a_node_leaves_its_values_to_those_who_may_be_giving_them():
    certifier, _, _ = grown("known", 1, 40)
    graph, n = certifier.graph, certifier.n_nodes
    for x, row, child in list(zip(*linked(certifier), strict=True))[:20]:
        graph.child[x, row], graph.below[x, row] = -1, graph.lower[child] + 1.0
        lower, upper = graph.lower[:n].copy(), graph.upper[:n].copy()
        assert make_child(certifier.problem, graph, x, row) == child
        assert (graph.lower[:n] == lower).all()
        assert (graph.upper[:n] == upper).all()


def test_no_outcome_promises_more_than_the_node_that_it_leads_to():
    for seed in range(3):
        certifier, vectors, _ = grown("known", seed, 20)
        for nodes in (40, 80, 160, 320):
            asked(certifier, vectors, 10_000)
            certifier.grow(nodes)
            x, row, child = linked(certifier)
            assert (certifier.graph.below[x, row] <= certifier.graph.lower[child]).all()
        assert len(np.unique(child)) < len(child)  # beliefs are met on several ways
