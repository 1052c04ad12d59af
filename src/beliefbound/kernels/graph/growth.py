"""Growth of a belief graph (`kernels.graph.search`) where the gap at its root comes from: the search of HSVI (Smith &
Simmons 2004) on a belief MDP whose hidden part never changes, with its work counted as it goes."""

from typing import NamedTuple

import numpy as np
from numba import njit

from beliefbound.kernels.graph.actions import open_action
from beliefbound.kernels.graph.nodes import NODES, OPENED
from beliefbound.kernels.graph.search import backup, contribution, make_child, renew, settle
from beliefbound.kernels.options import FAST
from beliefbound.kernels.reference import by_reference

IDLE = 100_000  # walks in a row that build nothing, after which the rest is rounding
_STEP = 12.0  # operations for each outcome row of a node that a walk passes
_NODE, _ROW = 500.0, 60.0  # operations of a new node, and of each of its outcome rows, besides those for its models
_CLOSED = 2.0  # operations for one model and one outcome row of actions that are closed
# A leaf's siblings are built with it where they contribute at least this share of what it does: a higher share walks
# down from the root for every leaf, a lower one builds leaves that are never needed.
_SIBLINGS = 0.3


@by_reference
class GrowthLimits(NamedTuple):
    """How far `grow` goes."""

    nodes: int  # in the graph: no more than these, or a few
    work: float  # operations
    unit: float  # operations for one model and one outcome row of a new node
    tolerance: float  # of the gap at the root
    max_stage: int
    forced: int  # the first action of every walk; −1: the greedy one
    idle: int  # walks in a row that have built nothing so far


@njit(inline="always", **FAST)
def add_children(problem, graph, node, a, row, least, most):
    """Build the child after `row` of an action, and up to `most` others whose share of the node's gap is `least` or
    more; false when full."""
    s = graph.state[node]
    base = problem.first[s, 0]
    begin, end = problem.first[s, a] - base, problem.first[s, a + 1] - base
    last = 0
    for k in range(begin - 1, end):  # `row` first; in one loop, as `make_child` is compiled anew wherever it is called
        i = row if k < begin else k
        gap = (graph.above[node, i] - graph.below[node, i]) * graph.prob[node, i] * problem.discount
        wanted = graph.child[node, i] < 0 and gap >= least and graph.size[NODES] < last
        if k < begin or wanted:
            if make_child(problem, graph, node, i) < 0:
                return False
            if k < begin:
                last = graph.size[NODES] + most
    return True


@njit(**FAST)
def grow(problem, graph, start, roots, limits):
    """Add nodes, those whose gap counts most at the root; `start[i]` weighs `roots[i]`.

    Under the greedy action everywhere, a leaf at stage `k` reached with probability `p` contributes `γ^k p gap` to the
    root's gap. Every node remembers the largest contribution below it, so the leaf is found by walking down; its
    siblings that count nearly as much are built with it, and the way back updates values and contributions. Where
    beliefs are merged the graph has circles, and a walk may only carry values around one. With `limits.forced ≥ 0` the
    first step of every walk is that action instead. A walk that ends at a node with leaf values of an earlier edition
    gives it those that there are now, and builds nothing.

    Returns `(idle, work)`: walks in a row that have built nothing, `IDLE` when nothing is left to gain or the graph is
    full; and the operations done, which end a call when they reach `limits.work`.
    """
    path = np.empty(limits.max_stage + 2, dtype=np.int64)
    idle, work = limits.idle, 0.0
    lazily = problem.cells.models.shape[0] > 0
    while graph.size[NODES] < limits.nodes and idle < IDLE and work < limits.work:
        before, opened = graph.size[NODES], graph.size[OPENED]
        x, widest, gap, renewed = np.int64(-1), 0.0, 0.0, False
        for i in range(roots.size):
            root = roots[i]
            gap += start[i] * (graph.upper[root] - graph.lower[root])
            a = limits.forced if limits.forced >= 0 else np.int64(graph.greedy[root])
            share = start[i] * contribution(problem, graph, root, a)[1]
            if share > widest:
                x, widest = root, share
        if x < 0 or (gap <= limits.tolerance and limits.forced < 0):
            return np.int64(IDLE), work
        n = 0
        while True:
            path[n] = x
            n += 1
            a = limits.forced if n == 1 and limits.forced >= 0 else np.int64(graph.greedy[x])
            if not graph.opened[x, a]:  # one that is forced
                open_action(problem, graph, x, a)
            row, most = contribution(problem, graph, x, a)
            if row < 0 or n > limits.max_stage:
                break
            if graph.child[x, row] < 0:
                entries = graph.begin[x + 1] - graph.begin[x]
                if graph.edition[x] < problem.edition:
                    renew(problem, graph, x)
                    renewed = True
                    break
                work += entries
                each = 1.0 + limits.unit * entries * graph.child.shape[1]
                if not add_children(problem, graph, x, a, row, _SIBLINGS * most, min((limits.work - work) / each, 1e9)):
                    return np.int64(IDLE), work
                break
            x = np.int64(graph.child[x, row])
        for i in range(n - 1, -1, -1):
            if i == 0 and limits.forced >= 0:  # whose children are not those of the greedy action
                backup(problem, graph, path[i])
            settle(problem, graph, path[i])
            if i >= limits.max_stage:
                graph.share[path[i]] = 0.0
            s = graph.state[path[i]]
            work += _STEP * (problem.first[s, -1] - problem.first[s, 0])
        here = graph.begin[path[n - 1] + 1] - graph.begin[path[n - 1]]
        entries = graph.begin[graph.size[NODES]] - graph.begin[before] + (here if renewed else 0)
        new_rows, each = (graph.size[NODES] - before) * graph.child.shape[1], limits.unit
        if lazily:
            each = _CLOSED
            work += limits.unit * here * (graph.size[OPENED] - opened)
        work += _NODE * (graph.size[NODES] - before) + _ROW * new_rows + each * entries * graph.child.shape[1]
        idle = 0 if renewed or graph.size[NODES] > before else idle + 1
    return np.int64(idle), work
