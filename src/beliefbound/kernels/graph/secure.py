"""Better vectors where the policy of a graph's lower bound leaves the graph.

Leaves have the best of a few dozen vectors (`kernels.graph.actions`), because each costs a look at every outcome that
is opened. The policy that looks ahead for the lower value alone leaves the graph at few of them: these are asked for
the best of *all* known vectors (`kernels.graph.alpha`), and every node on the way is tightened from below after those
that it leads to. An action that becomes better in this way is followed at once above, and here when it is next asked.
"""

import numpy as np
from numba import njit

from beliefbound.kernels.graph.alpha import after, best_vector
from beliefbound.kernels.graph.controller import secure_action
from beliefbound.kernels.graph.nodes import NOTED
from beliefbound.kernels.graph.search import contribution, take_children, total_of
from beliefbound.kernels.options import FAST, FAST_INLINE

_OUTSIDE, _MET = -1, -2  # what `stamp` says of a node


@njit(**FAST_INLINE)
def follow(problem, graph, x, depth):
    """Go down to a node, and on by its action of largest lower value."""
    batch, s = graph.batch, graph.state[x]
    base = problem.first[s, 0]
    take_children(graph, x, 0, problem.first[s, -1] - base)
    a = secure_action(problem, graph, x)
    graph.stamp[x], batch.way[depth] = _MET, x
    batch.row[depth], batch.end[depth] = problem.first[s, a] - base, problem.first[s, a + 1] - base


@njit(**FAST_INLINE)
def ask(problem, graph, vectors, x, i, n_policies):
    """Give an outcome of a node the best of all vectors, where that is better."""
    weight, s = vectors.belief, graph.state[x]
    for m in range(weight.size):
        weight[m] = 0.0
    for j in range(graph.begin[x], graph.begin[x + 1]):
        weight[graph.model[j]] = graph.weight[j]
    total, t = after(problem, s, i, weight, vectors.after), problem.arrive[problem.first[s, 0] + i]
    value, best = best_vector(vectors, t, vectors.after)
    if value > graph.below[x, i] * total:
        graph.below[x, i], graph.leaf[x, i] = value / total, n_policies + vectors.number[t, best]


@njit(**FAST)
def secure(problem, graph, vectors, roots, n_policies, most):
    """Ask all `vectors` where the policy of the lower bound leaves the graph, at `most` outcomes; at how many it was.
    Vectors are called by their number, counted from behind the `n_policies` of the pool."""
    batch, asked = graph.batch, 0
    batch.size[NOTED] = 0
    for root in roots:
        depth = -1
        if graph.stamp[root] != _MET:
            depth = 0
            follow(problem, graph, root, depth)
        while depth >= 0:
            x, i = batch.way[depth], batch.row[depth]
            if i == batch.end[depth]:
                raise_node(problem, graph, x)
                batch.node[batch.size[NOTED]] = x
                batch.size[NOTED] += 1
                depth -= 1
                continue
            batch.row[depth] = i + 1
            child = np.int64(graph.child[x, i])
            if child < 0:
                if graph.prob[x, i] > 0.0 and asked < most:
                    ask(problem, graph, vectors, x, i, n_policies)
                    asked += 1
            elif (
                graph.stamp[child] != _MET
                and depth + 1 < batch.way.size
                and batch.size[NOTED] + depth + 2 < batch.node.size
            ):
                depth += 1
                follow(problem, graph, child, depth)
    for n in range(batch.size[NOTED]):
        graph.stamp[batch.node[n]] = _OUTSIDE
    return asked


@njit(**FAST_INLINE)
def raise_node(problem, graph, x):
    """Tighten a node from below by its outcome rows, and what of its gap one leaf contributes."""
    s = graph.state[x]
    take_children(graph, x, 0, problem.first[s, -1] - problem.first[s, 0])
    for a in range(problem.available.shape[1]):
        if problem.available[s, a]:
            graph.lower[x] = max(graph.lower[x], total_of(problem, graph, x, a, graph.below))
    graph.share[x] = contribution(problem, graph, x, np.int64(graph.greedy[x]))[1]
