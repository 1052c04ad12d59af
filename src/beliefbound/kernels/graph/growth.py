"""Growth of a belief graph (`kernels.graph.search`) where the gap at its root comes from: the search of HSVI (Smith &
Simmons 2004) on a belief MDP whose hidden part never changes, with its work counted as it goes.

Nodes are added in *batches*, so that several threads can look at them: walks choose leaves one after the other
(`choose`), as if those chosen before had no gap; their nodes are looked at, each by itself (`look_at`); then values and
contributions are carried back along all walks (`carry_back`), once for each node. How many walks make a batch follows
from the size of the graph: one at first, which is the plain search, so it does not depend on threads.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from beliefbound.kernels.graph.actions import open_action
from beliefbound.kernels.graph.nodes import NODES
from beliefbound.kernels.graph.search import add_child, backup, contribution, renew, set_leaves, settle
from beliefbound.kernels.options import FAST
from beliefbound.kernels.out_of_line import out_of_line
from beliefbound.kernels.reference import by_reference

IDLE = 100_000  # walks in a row that build nothing, after which the rest is rounding
_STEP = 12.0  # operations for each outcome row of a node that a walk passes
_NODE, _ROW = 500.0, 60.0  # operations of a new node, and of each of its outcome rows, besides those for its models
_CLOSED = 2.0  # operations for one model and one outcome row of actions that are closed
# A leaf's siblings are built with it where they contribute at least this share of what it does: a higher share walks
# down from the root for every leaf, a lower one builds leaves that are never needed.
_SIBLINGS = 0.3
_WALKS, _OF_NODES = 64, 64  # of a batch, at most; as one for so many nodes of the graph


@by_reference
class GrowthLimits(NamedTuple):
    """How far `grow` goes."""

    nodes: int  # in the graph: no batch begins when there are as many
    work: float  # operations
    unit: float  # operations for one model and one outcome row of a new node
    tolerance: float  # of the gap at the root
    max_stage: int
    forced: int  # the first action of every walk; −1: the greedy one


@by_reference
class Walks(NamedTuple):
    """The walks of a batch."""

    node: np.ndarray  # int64 [walk,step]
    length: np.ndarray  # int64 [walk]
    stale: np.ndarray  # bool [walk]: whether it ends at a node of an earlier edition, and builds nothing


def new_walks(max_stage: int) -> Walks:
    """Space for a batch."""
    node, length = np.empty((_WALKS, max_stage + 2), dtype=np.int64), np.zeros(_WALKS, dtype=np.int64)
    return Walks(node, length, np.zeros(_WALKS, dtype=np.bool_))


@njit(inline="always", **FAST)
def add_children(problem, graph, node, a, row, least, most):
    """Add the child after `row` of an action, and up to `most` others whose share of the node's gap is `least` or
    more; false when full. Nodes that are new have no share of any gap before they are looked at."""
    s = graph.state[node]
    base = problem.first[s, 0]
    begin, end = problem.first[s, a] - base, problem.first[s, a + 1] - base
    last = 0
    for k in range(begin - 1, end):  # `row` first; in one loop, as `add_child` is called in one place then
        i = row if k < begin else k
        gap = (graph.above[node, i] - graph.below[node, i]) * graph.prob[node, i] * problem.discount
        wanted = graph.child[node, i] < 0 and gap >= least and graph.size[NODES] < last
        if k < begin or wanted:
            new = graph.size[NODES]
            child = add_child(problem, graph, node, i)
            if child < 0:
                return False
            if child == new:
                graph.share[child] = 0.0
            if k < begin:
                last = graph.size[NODES] + most
    return True


@out_of_line
@njit(**FAST)
def choose(problem, graph, start, roots, limits, walks, idle, left):
    """Choose the leaves of a batch, and add them to the graph with those of their siblings that count nearly as much.
    `idle`: walks in a row that have added nothing so far; `left`: operations.

    Returns `(walks, idle, work)`: how many walks there are, those in a row that have added nothing (`IDLE` when nothing
    is left to gain or the graph is full), and the operations that the batch takes, but for those of opened actions.
    """
    work, count = 0.0, np.int64(0)
    each = _CLOSED if problem.cells.models.shape[0] > 0 else limits.unit
    most_walks = min(max(graph.size[NODES] // _OF_NODES, 1), walks.length.size)
    while count < most_walks and idle < IDLE and work < left:
        before = graph.size[NODES]
        x, widest, gap = np.int64(-1), 0.0, 0.0
        for i in range(roots.size):
            root = roots[i]
            gap += start[i] * (graph.upper[root] - graph.lower[root])
            a = limits.forced if limits.forced >= 0 else np.int64(graph.greedy[root])
            share = start[i] * contribution(problem, graph, root, a)[1]
            if share > widest:
                x, widest = root, share
        if x < 0 or (gap <= limits.tolerance and limits.forced < 0):
            if count == 0:
                idle = np.int64(IDLE)
            break
        path, n, full, stale = walks.node[count], 0, False, False
        while True:
            path[n] = x
            n += 1
            a = limits.forced if n == 1 and limits.forced >= 0 else np.int64(graph.greedy[x])
            if not graph.opened[x, a]:  # one that is forced
                work += limits.unit * open_action(problem, graph, x, a)
            row, most = contribution(problem, graph, x, a)
            if row < 0 or n > limits.max_stage:
                break
            if graph.child[x, row] < 0:
                entries = graph.begin[x + 1] - graph.begin[x]
                if graph.edition[x] < problem.edition:
                    graph.edition[x], stale = problem.edition, True
                    work += each * entries * graph.child.shape[1]
                    break
                work += entries
                more = min((left - work) / (1.0 + limits.unit * entries * graph.child.shape[1]), 1e9)
                full = not add_children(problem, graph, x, a, row, _SIBLINGS * most, more)
                break
            x = np.int64(graph.child[x, row])
        built = stale or graph.size[NODES] > before
        for i in range(n - 1, -1, -1):
            if not built:  # it has only carried values around a circle
                work += limits.unit * settle(problem, graph, path[i])
            share = contribution(problem, graph, path[i], np.int64(graph.greedy[path[i]]))[1]
            graph.share[path[i]] = share if i < limits.max_stage and not (stale and i == n - 1) else 0.0
            s = graph.state[path[i]]
            work += _STEP * (problem.first[s, -1] - problem.first[s, 0])
        for x in range(before, graph.size[NODES]):
            s = graph.state[x]
            n_rows = problem.first[s, -1] - problem.first[s, 0]
            work += _NODE + n_rows * (_ROW + each * (graph.begin[x + 1] - graph.begin[x]))
        idle = np.int64(0) if built else idle + 1
        if built:
            walks.length[count], walks.stale[count] = n, stale
            count += 1
        if full:
            idle = np.int64(IDLE)
    return count, idle, work


@out_of_line
@njit(**FAST)
def look_at(problem, graph, begin, end):
    """Leaf values and values of new nodes, each by itself."""
    for x in range(begin, end):
        set_leaves(problem, graph, x)
        backup(problem, graph, x)
        settle(problem, graph, x)


@out_of_line
@njit(**FAST)
def renew_ends(problem, graph, walks, begin, end):
    """Leaf values and values of the nodes where walks `begin … end − 1` have ended, if they are of an earlier edition,
    each by itself."""
    for w in range(begin, end):
        if walks.stale[w]:
            x = walks.node[w, walks.length[w] - 1]
            renew(problem, graph, x)


@njit(inline="always", **FAST)
def opened_in(problem, graph, node):
    """Outcomes of the open actions of a node, times its models."""
    s, rows = graph.state[node], 0
    for a in range(problem.available.shape[1]):
        if graph.opened[node, a]:
            rows += problem.first[s, a + 1] - problem.first[s, a]
    return float(rows * (graph.begin[node + 1] - graph.begin[node]))


@out_of_line
@njit(**FAST)
def carry_back(problem, graph, begin, walks, count, limits):
    """The values of all nodes that the walks have passed, the deepest first. Returns the operations of actions that
    were opened, also in the new nodes, from `begin` on, and in those of an earlier edition."""
    opened, deepest = 0.0, 0
    if problem.cells.models.shape[0] > 0:
        for x in range(begin, graph.size[NODES]):
            opened += opened_in(problem, graph, x)
    for w in range(count):
        deepest = max(deepest, walks.length[w])
        if walks.stale[w]:
            opened += opened_in(problem, graph, walks.node[w, walks.length[w] - 1])
    for step in range(deepest - 1, -1, -1):
        for w in range(count):
            if step < walks.length[w]:
                x = walks.node[w, step]
                if graph.stamp[x] != step:
                    graph.stamp[x] = step
                    if step == 0 and limits.forced >= 0:  # whose children are not those of the greedy action
                        backup(problem, graph, x)
                    opened += settle(problem, graph, x)
                    if step >= limits.max_stage:
                        graph.share[x] = 0.0
    for w in range(count):
        for step in range(walks.length[w]):
            graph.stamp[walks.node[w, step]] = -1
    return limits.unit * opened


@njit(**FAST)
def grow(problem, graph, start, roots, limits, walks, idle):
    """Add nodes, those whose gap counts most at the root, batch by batch; `start[i]` weighs `roots[i]`.

    Under the greedy action everywhere, a leaf at stage `k` reached with probability `p` contributes `γ^k p gap` to the
    root's gap. Every node remembers the largest contribution below it, so the leaf is found by walking down; its
    siblings that count nearly as much are built with it, and the way back updates values and contributions. Where
    beliefs are merged the graph has circles, and a walk may only carry values around one. With `limits.forced ≥ 0` the
    first step of every walk is that action instead. A walk that ends at a node with leaf values of an earlier edition
    gives it those that there are now, and builds nothing. `idle`: walks in a row that have done nothing so far.

    Returns `(idle, work)`: walks in a row that have done nothing, `IDLE` when nothing is left to gain or the graph is
    full; and the operations done, which end a call when they reach `limits.work`.
    """
    work = 0.0
    while graph.size[NODES] < limits.nodes and idle < IDLE and work < limits.work:
        begin = graph.size[NODES]
        count, idle, done = choose(problem, graph, start, roots, limits, walks, idle, limits.work - work)
        look_at(problem, graph, begin, graph.size[NODES])
        renew_ends(problem, graph, walks, 0, count)
        work += done + carry_back(problem, graph, begin, walks, count, limits)
    return idle, work
