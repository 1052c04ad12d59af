"""Growth of a belief graph (`kernels.graph.search`) where the gap at its root comes from: the search of HSVI (Smith &
Simmons 2004) on a belief MDP whose hidden part never changes, many leaves at a time, with its work counted as it goes.

Under the greedy action everywhere, a leaf at stage `k` reached with probability `p` contributes `γ^k p gap` to the
root's gap. Every node remembers the largest contribution below it (`share`), so leaves are found by going down. A batch
has three phases:

1. *Selection*. One depth-first descent from the roots to every leaf that contributes at least `_LEAST` of the largest
   contribution. Nodes on the way are noted when they are left, so each comes after those below it, and is noted once,
   however many ways lead to it. Where beliefs are merged the graph has circles: a way ends where it meets a node again.
2. *Expansion*. The leaves are built, or found where the same belief was built before. Nodes get their numbers, weights
   and places in the table one after the other; then each is given its values, which takes most of the time of growth
   and is nobody else's concern: a job, for whichever thread is free (`kernels.graph.crew`).
3. *Backups* of the nodes that were noted, in their order: values and contributions travel from the leaves to the roots,
   and around a circle once a batch. A node is backed up as soon as the leaves before it have their values, while others
   are still given theirs.

What ways have in common, most of all the upper levels of the graph, is visited once for all leaves of a batch. But a
leaf is chosen for the values before the batch: after the first few, others might have counted more.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from beliefbound.kernels.graph.actions import open_action
from beliefbound.kernels.graph.crew import CLOSED, counted_by, get, is_done, job_of, publish, report, take, wait
from beliefbound.kernels.graph.nodes import CHOSEN, NODES, NOTED, OPENED
from beliefbound.kernels.graph.search import backup, contribution, expand, meet, place_child, renew, settle, slot_of
from beliefbound.kernels.options import FAST, FAST_INLINE
from beliefbound.kernels.prefetch import prefetch
from beliefbound.kernels.reference import by_reference

IDLE = 100_000  # batches in a row that build nothing, after which the rest is rounding
_LEAST = 0.5  # of the largest contribution: leaves of a batch contribute as much
_STEP = 12.0  # operations for each outcome row of a node that is visited
_NODE, _ROW = 500.0, 60.0  # operations of a new node, and of each of its outcome rows, besides those for its models
_CLOSED = 2.0  # operations for one model and one outcome row of actions that are closed
_ask_for_node, _ask_for_rows, _ask_for_slot = prefetch(1), prefetch(4), prefetch(1)
_OUTSIDE, _INSIDE, _RENEWED = -1, -2, -3  # what `stamp` says: whether a node is part of the batch, or renewed by it


@by_reference
class GrowthLimits(NamedTuple):
    """How far `grow` goes."""

    nodes: int  # in the graph: no more than these
    work: float  # operations
    unit: float  # operations for one model and one outcome row of a new node
    tolerance: float  # of the gap at the root
    max_stage: int
    forced: int  # the first action of every way; −1: the greedy one
    idle: int  # batches in a row that have built nothing so far


@njit(inline="always", **FAST)
def first_action(graph, root, forced):
    """What ways from a root begin with."""
    return forced if forced >= 0 else np.int64(graph.greedy[root])


@njit(inline="always", **FAST)
def enter(problem, graph, x, a, factor, depth, max_stage):
    """Go down to a node, whose action `a` is looked into; what contributes to its gap contributes `factor` times as
    much at the root."""
    batch = graph.batch
    if not graph.opened[x, a]:  # one that is forced, or greedy since values were made consistent
        open_action(problem, graph, x, a)
    s = graph.state[x]
    base = problem.first[s, 0]
    graph.stamp[x] = _INSIDE
    batch.way[depth], batch.factor[depth] = x, factor
    batch.row[depth], batch.end[depth] = problem.first[s, a] - base, problem.first[s, a + 1] - base
    if graph.stage[x] + 1 >= problem.horizon or depth >= max_stage:
        batch.row[depth] = batch.end[depth]
    for i in range(batch.row[depth], batch.end[depth]):  # who is looked at next
        child = np.int64(graph.child[x, i])
        if child >= 0:
            _ask_for_node(graph.upper, child)
            _ask_for_rows(graph.prob, child)


@njit(inline="always", **FAST)
def select(problem, graph, root, weight, least, leaves, visits, limits):
    """Go from a root to the leaves that contribute `least` or more, and note these and the nodes on the way, until
    there are so many `leaves` or `visits`."""
    batch, depth = graph.batch, 0
    enter(problem, graph, root, first_action(graph, root, limits.forced), weight, depth, limits.max_stage)
    while depth >= 0:
        x, i = batch.way[depth], batch.row[depth]
        full = batch.size[CHOSEN] >= leaves or batch.size[NOTED] + depth + 1 >= visits
        if i == batch.end[depth] or full:
            n = batch.size[NOTED]
            batch.node[n], batch.depth[n], batch.below[n] = x, depth, batch.size[CHOSEN]
            batch.size[NOTED] = n + 1
            depth -= 1
            continue
        batch.row[depth] = i + 1
        factor, child = batch.factor[depth] * problem.discount * graph.prob[x, i], np.int64(graph.child[x, i])
        if child < 0:
            if factor * (graph.above[x, i] - graph.below[x, i]) >= least:
                n = batch.size[CHOSEN]
                batch.parent[n], batch.outcome[n] = x, i
                batch.size[CHOSEN] = n + 1
        elif graph.stamp[child] != _INSIDE and factor * graph.share[child] >= least:
            depth += 1
            enter(problem, graph, child, np.int64(graph.greedy[child]), factor, depth, limits.max_stage)


@njit(inline="always", **FAST)
def meet_leaves(problem, graph):
    """Which beliefs the leaves of a batch are. Where each is looked up is anywhere in memory, and asked for ahead."""
    batch = graph.batch
    for i in range(batch.size[CHOSEN]):
        x = batch.parent[i]
        if graph.edition[x] >= problem.edition:
            key, n = meet(problem, graph, x, batch.outcome[i], batch.model[i], batch.weight[i])
            batch.key[i], batch.n_weights[i] = key, n
            _ask_for_slot(graph.table, np.int64(slot_of(graph, key)))
    for i in range(batch.size[CHOSEN]):
        if graph.edition[batch.parent[i]] >= problem.edition:
            node = np.int64(graph.table[slot_of(graph, batch.key[i])]) - 1
            if node >= 0:
                _ask_for_node(graph.upper, node)
                _ask_for_slot(graph.begin, node)


@njit(**FAST_INLINE)
def do_job(problem, graph, crew):
    """Give one node its values; false where there is none to take. A job is a new node, or `~x` of one to renew."""
    n = take(crew)
    if n < 0:
        return False
    x, opened = job_of(crew, n), graph.size[OPENED]
    if x >= 0:
        expand(problem, graph, x)
    else:
        renew(problem, graph, ~x)
    report(crew, n, graph.size[OPENED] - opened)
    graph.size[OPENED] = opened  # is added up by whoever waits for the job
    return True


@njit(**FAST)
def help_growing(problem, graph, crew):
    """Take jobs of `grow`, which runs on another thread, until it is over; `graph` is the same, with `size` and scratch
    of its own."""
    spins = 0
    while True:
        if do_job(problem, graph, crew):
            spins = 0
        elif get(crew.word, CLOSED) > 0:
            return
        else:
            spins = wait(spins)


@njit(inline="always", **FAST)
def await_leaf(problem, graph, crew, i):
    """Take jobs until a leaf of the batch has its values."""
    batch, spins = graph.batch, 0
    x, row, n = batch.parent[i], batch.outcome[i], batch.job[i]
    if n >= 0:
        while not is_done(crew, n):
            spins = 0 if do_job(problem, graph, crew) else wait(spins)
        graph.size[OPENED] += counted_by(crew, n)
    child = np.int64(graph.child[x, row])
    if child >= 0:  # the vector known here may be worth more than what was known there
        graph.lower[child] = max(graph.lower[child], graph.below[x, row])


@njit(**FAST)
def grow(problem, graph, start, roots, limits, crew):
    """Add nodes, those whose gap counts most at the root; `start[i]` weighs `roots[i]`.

    With `limits.forced ≥ 0` the first step of every way is that action. A node at whose leaves a way ends is given new
    leaf values where its own are of an earlier edition, and nothing is built there.

    `crew`: of threads that help (`help_growing`), if any do. Values do not depend on it.

    Returns `(idle, work)`: batches in a row that have built nothing, `IDLE` when nothing is left to gain or the graph
    is full; and the operations done, which end a call when they reach `limits.work`.
    """
    batch, n_rows, full = graph.batch, graph.child.shape[1], False
    idle, work, lazily = limits.idle, 0.0, problem.cells.models.shape[0] > 0
    while graph.size[NODES] < limits.nodes and idle < IDLE and work < limits.work and not full:
        before, opened = graph.size[NODES], graph.size[OPENED]
        widest, gap = 0.0, 0.0
        for i in range(roots.size):
            x = roots[i]
            gap += start[i] * (graph.upper[x] - graph.lower[x])
            a = first_action(graph, x, limits.forced)
            widest = max(widest, start[i] * contribution(problem, graph, x, a)[1])
        if widest <= 0.0 or (gap <= limits.tolerance and limits.forced < 0):
            return np.int64(IDLE), work

        entries = graph.begin[roots[0] + 1] - graph.begin[roots[0]]
        each = _NODE + (_ROW + limits.unit * entries) * n_rows
        leaves = np.int64(min((limits.work - work) / each + 1.0, 1.0 * min(batch.parent.size, limits.nodes - before)))
        visits = np.int64(min((limits.work - work) / (_STEP * n_rows) + limits.max_stage + 2, 1.0 * batch.node.size))
        batch.size[CHOSEN], batch.size[NOTED], least = 0, 0, _LEAST * widest
        for i in range(roots.size):
            x = roots[i]
            most = start[i] * contribution(problem, graph, x, first_action(graph, x, limits.forced))[1]
            if most >= least and graph.stamp[x] != _INSIDE:
                select(problem, graph, x, start[i], least, leaves, visits, limits)

        meet_leaves(problem, graph)
        renewed = False
        for i in range(batch.size[CHOSEN]):
            x, known = batch.parent[i], graph.size[NODES]
            entries = graph.begin[x + 1] - graph.begin[x]
            batch.job[i] = -1
            if graph.stamp[x] == _RENEWED:
                continue
            if graph.edition[x] < problem.edition:
                renewed = True
                graph.stamp[x] = _RENEWED
                work += (_CLOSED if lazily else limits.unit) * entries * n_rows
                batch.job[i] = publish(crew, ~x)
                continue
            n = batch.n_weights[i]
            child = place_child(
                problem, graph, x, batch.outcome[i], batch.key[i], batch.model[i, :n], batch.weight[i, :n]
            )
            full |= child < 0
            work += entries
            if child >= known:
                batch.job[i] = publish(crew, child)
        ready = 0
        for i in range(batch.size[NOTED]):
            while ready < batch.below[i]:
                await_leaf(problem, graph, crew, ready)
                ready += 1
            x = batch.node[i]
            graph.stamp[x] = _OUTSIDE
            if batch.depth[i] == 0 and limits.forced >= 0:  # whose children are not those of the greedy action
                backup(problem, graph, x)
            settle(problem, graph, x)
            if batch.depth[i] >= limits.max_stage:
                graph.share[x] = 0.0
        work += _STEP * n_rows * batch.size[NOTED]

        new, entries = graph.size[NODES] - before, graph.begin[graph.size[NODES]] - graph.begin[before]
        work += new * (_NODE + _ROW * n_rows) + (_CLOSED if lazily else limits.unit) * entries * n_rows
        if lazily:
            here = graph.begin[batch.parent[0] + 1] - graph.begin[batch.parent[0]] if batch.size[CHOSEN] > 0 else 0
            work += limits.unit * here * (graph.size[OPENED] - opened)
        idle = 0 if renewed or new > 0 else idle + 1
    return np.int64(IDLE if full else idle), work
