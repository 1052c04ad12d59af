"""Better vectors where the policy of a graph's lower bound leaves the graph.

Leaves have the best of a few dozen vectors (`kernels.graph.actions`), because each costs a look at every outcome that
is opened. The policy that looks ahead for the lower value alone leaves the graph at few of them: these are asked for
the best of *all* known vectors (`kernels.graph.alpha`), by any number of threads, and every node on the way is backed
up after those that it leads to. An action that becomes better in this way is followed when it is next asked.
"""

import numpy as np
from numba import njit

from beliefbound.kernels.graph.alpha import after, best_vector
from beliefbound.kernels.graph.controller import secure_action
from beliefbound.kernels.graph.nodes import NOTED
from beliefbound.kernels.graph.search import take_children
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


@njit(**FAST)
def leaves_below(problem, graph, roots, places):
    """Find where the policy of the lower bound leaves the graph, and note the nodes on the way, each after those below
    it. Outcome `i` of node `x` is place `x · rows + i`; returns how many are in `places`, at most all that it has."""
    batch, found, width = graph.batch, 0, graph.child.shape[1]
    batch.size[NOTED] = 0
    for root in roots:
        depth = -1
        if graph.stamp[root] != _MET:
            depth = 0
            follow(problem, graph, root, depth)
        while depth >= 0:
            x, i = batch.way[depth], batch.row[depth]
            if i == batch.end[depth]:
                batch.node[batch.size[NOTED]] = x
                batch.size[NOTED] += 1
                depth -= 1
                continue
            batch.row[depth] = i + 1
            child = np.int64(graph.child[x, i])
            if child < 0:
                if graph.prob[x, i] > 0.0 and found < places.size:
                    places[found] = x * width + i
                    found += 1
            elif (
                graph.stamp[child] != _MET
                and depth + 1 < batch.way.size
                and batch.size[NOTED] + depth + 2 < batch.node.size
            ):
                depth += 1
                follow(problem, graph, child, depth)
    for n in range(batch.size[NOTED]):
        graph.stamp[batch.node[n]] = _OUTSIDE
    return found


@njit(**FAST)
def ask(problem, graph, vectors, places, n_policies):
    """Give outcomes the best of all vectors, where that is better. These are called by their number, counted from
    behind the `n_policies` of the pool."""
    weight = vectors.belief
    for place in places:
        x, i = place // graph.child.shape[1], place % graph.child.shape[1]
        s = graph.state[x]
        for m in range(weight.size):
            weight[m] = 0.0
        for j in range(graph.begin[x], graph.begin[x + 1]):
            weight[graph.model[j]] = graph.weight[j]
        total, t = after(problem, s, i, weight, vectors.after), problem.arrive[problem.first[s, 0] + i]
        value, best = best_vector(vectors, t, vectors.after)
        if value > graph.below[x, i] * total:
            graph.below[x, i], graph.leaf[x, i] = value / total, n_policies + vectors.number[t, best]
