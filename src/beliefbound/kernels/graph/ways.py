"""Leaves of a belief graph by all the ways that lead to them.

A descent (`kernels.graph.growth`) goes to a leaf one way, and chooses it by what it contributes to the root's gap that
way. But outcomes may come in many orders, and where equal beliefs are one node the ways to it add up: a leaf thirty
steps deep that no single way makes much of may count more than any other. What a leaf contributes is

    Σ over ways γ^k p gap  =  reach(x) γ p gap,      reach(y) = Σ_x reach(x) γ p(x → y)

with `x` the node that it is a leaf of. Under the greedy actions all reaches are found in one pass over the nodes that
these lead to, each before those below it. On the way back every one of these nodes is backed up once.

A pass goes over much of the graph, so it chooses thousands of leaves at once, and many of them for values that others
have changed by then. Descents see what has changed at once. So a search takes turns (`Certifier.grow`).

Where the graph has circles a way ends where it meets a node again: what goes round is left out, which makes some
reaches too small. Reaches decide where the graph grows, never what is true.
"""

import numpy as np
from numba import njit

from beliefbound.kernels.graph.growth import UNOPENED, await_leaf, choose, place_leaves, work_of
from beliefbound.kernels.graph.nodes import CHOSEN, NODES, OPENED, PLACED
from beliefbound.kernels.graph.search import renew, settle
from beliefbound.kernels.options import FAST, FAST_INLINE

PASSED = 600.0  # operations, in time, of a node that is met: it is looked at three times, and backed up
_OUTSIDE, _MET = -1, -2  # what `stamp` says of a node


@njit(**FAST_INLINE)
def follow(problem, graph, x, depth):
    """Go down to a node, and on by its greedy action."""
    batch, s, a = graph.batch, graph.state[x], graph.greedy[x]
    graph.stamp[x], batch.way[depth] = _MET, x
    batch.row[depth] = problem.first[s, a] - problem.first[s, 0]
    batch.end[depth] = problem.first[s, a + 1] - problem.first[s, 0]


@njit(**FAST)
def followed(problem, graph, roots, most, order):
    """Write the nodes that greedy actions lead to within `most` steps to `order`, each after those below it; how many
    there are."""
    batch, n = graph.batch, 0
    most = min(most, batch.way.size)
    for root in roots:
        depth = -1
        if graph.stamp[root] != _MET:
            depth = 0
            follow(problem, graph, root, depth)
        while depth >= 0:
            x, i = batch.way[depth], batch.row[depth]
            if i == batch.end[depth]:
                order[n] = x
                n += 1
                depth -= 1
                continue
            batch.row[depth] = i + 1
            child = np.int64(graph.child[x, i])
            if child >= 0 and graph.stamp[child] != _MET and depth + 1 < most:
                depth += 1
                follow(problem, graph, child, depth)
    for j in range(n):
        graph.stamp[order[j]] = _OUTSIDE
    return n


@njit(**FAST)
def spread(problem, graph, start, roots, order, reach):
    """Write `reach[node]` for the nodes in `order`, whatever stands there; how many leaves there are at them."""
    leaves = 0
    for x in order:
        reach[x] = 0.0
    for i in range(roots.size):
        reach[roots[i]] += start[i]
    for j in range(order.size - 1, -1, -1):
        x = order[j]
        s, a = graph.state[x], graph.greedy[x]
        base = problem.first[s, 0]
        for i in range(problem.first[s, a] - base, problem.first[s, a + 1] - base):
            child = np.int64(graph.child[x, i])
            if child >= 0:
                reach[child] += problem.discount * graph.prob[x, i] * reach[x]
            else:
                leaves += 1
    return leaves


@njit(**FAST)
def measure_leaves(problem, graph, order, reach, places, shares):
    """Write where the leaves at the nodes in `order` are – outcome `i` of node `x` is place `x · rows + i` – and what
    each contributes."""
    n, width = 0, graph.child.shape[1]
    for x in order:
        s, a = graph.state[x], graph.greedy[x]
        base = problem.first[s, 0]
        for i in range(problem.first[s, a] - base, problem.first[s, a + 1] - base):
            if graph.child[x, i] < 0:
                gap = graph.above[x, i] - graph.below[x, i]
                places[n], shares[n] = x * width + i, problem.discount * graph.prob[x, i] * reach[x] * gap
                n += 1


@njit(**FAST)
def build(problem, graph, places, order, unit, crew):
    """Build the nodes at these leaves, those of one node next to each other, and back up the nodes in `order`. A node
    whose leaf values are of an earlier edition is given new ones instead, and nothing is built there. Threads of the
    `crew` help with values of new nodes. Returns the operations done; `unit`: of one model and one outcome row of a
    new node."""
    batch, width, done, full = graph.batch, graph.child.shape[1], 0, False
    before, opened, here, work = graph.size[NODES], graph.size[OPENED], 0, PASSED * order.size
    renewing = (UNOPENED if problem.cells.models.shape[0] > 0 else unit) * width
    while done < places.size and not full:
        batch.size[CHOSEN], batch.size[PLACED] = 0, 0
        while done < places.size and batch.size[CHOSEN] < batch.parent.size:
            x, i = places[done] // width, places[done] % width
            here = graph.begin[x + 1] - graph.begin[x]
            done += 1
            if graph.edition[x] < problem.edition:
                renew(problem, graph, x)
                work += renewing * here
                while done < places.size and places[done] // width == x:
                    done += 1
            else:
                choose(problem, graph, x, i, 0)
                work += here
        place_leaves(problem, graph, crew, batch.size[CHOSEN])
        for n in range(batch.size[CHOSEN]):
            full |= batch.child[n] < 0
            await_leaf(problem, graph, crew, n)
    for x in order:
        settle(problem, graph, x)
    return work + work_of(problem, graph, unit, here, before, opened)
