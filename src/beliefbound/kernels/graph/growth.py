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
   and around a circle once a batch.

Nobody waits for a phase to end. A leaf is placed soon after it is chosen, so that its values are made during the
descent already; a node is backed up as soon as the leaves before it have theirs. What a job writes is read by no other,
and not by the descent: new nodes are linked when they are waited for, and nodes are renewed once they are left. So the
graph is the same on any number of threads.

What ways have in common, most of all the upper levels of the graph, is visited once for all leaves of a batch. But a
leaf is chosen for the values before the batch: after the first few, others might have counted more.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from beliefbound.kernels.graph.actions import open_action
from beliefbound.kernels.graph.crew import CLOSED, counted_by, get, is_done, job_of, publish, report, take, wait
from beliefbound.kernels.graph.nodes import CHOSEN, NODES, NOTED, OPENED, PLACED
from beliefbound.kernels.graph.search import backup, contribution, expand, meet, place_child, renew, settle, slot_of
from beliefbound.kernels.options import FAST, FAST_INLINE
from beliefbound.kernels.prefetch import prefetch
from beliefbound.kernels.reference import by_reference

IDLE = 100_000  # batches in a row that build nothing, after which the rest is rounding
_LEAST = 0.5  # of the largest contribution: leaves of a batch contribute as much
_STEP = 12.0  # operations for each outcome row of a node that is visited
NODE, ROW = 500.0, 60.0  # operations of a new node, and of each of its outcome rows, besides those for its models
UNOPENED = 2.0  # operations for one model and one outcome row of actions that are closed
_AHEAD = 2  # leaves: those chosen last are not placed yet
_ask_for_node, _ask_for_rows, _ask_for_slot = prefetch(1), prefetch(4), prefetch(1)
_OUTSIDE, _INSIDE = -1, -2  # what `stamp` says: whether a node is part of the batch


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
    batch.way[depth], batch.factor[depth], batch.renewed[depth] = x, factor, -1
    batch.row[depth], batch.end[depth] = problem.first[s, a] - base, problem.first[s, a + 1] - base
    if graph.stage[x] + 1 >= problem.horizon or depth >= max_stage:
        batch.row[depth] = batch.end[depth]
    for i in range(batch.row[depth], batch.end[depth]):  # who is looked at next
        child = np.int64(graph.child[x, i])
        if child >= 0:
            _ask_for_node(graph.upper, child)
            _ask_for_rows(graph.prob, child)


@njit(inline="always", **FAST)
def choose(problem, graph, x, row, depth):
    """Note a leaf. Where it is looked up is anywhere in memory, and asked for ahead: the slot now, the node that it
    leads to when the next leaf is chosen."""
    batch = graph.batch
    n = batch.size[CHOSEN]
    batch.parent[n], batch.outcome[n], batch.child[n], batch.job[n] = x, row, -1, -1
    batch.size[CHOSEN] = n + 1
    if n > 0 and batch.n_weights[n - 1] >= 0:
        node = np.int64(graph.table[slot_of(graph, batch.key[n - 1])]) - 1
        if node >= 0:
            _ask_for_node(graph.upper, node)
            _ask_for_slot(graph.begin, node)
    if graph.edition[x] < problem.edition:
        batch.n_weights[n] = -1
        if batch.renewed[depth] < 0:
            batch.renewed[depth] = n
    else:
        key, n_weights = meet(problem, graph, x, row, batch.model[n], batch.weight[n])
        batch.key[n], batch.n_weights[n] = key, n_weights
        _ask_for_slot(graph.table, np.int64(slot_of(graph, key)))


@njit(inline="always", **FAST)
def place_leaves(problem, graph, crew, end):
    """Give leaves their nodes, in the order in which they were chosen, up to number `end`."""
    batch = graph.batch
    for i in range(batch.size[PLACED], end):
        n, known = batch.n_weights[i], graph.size[NODES]
        if n >= 0:
            model, weight = batch.model[i, :n], batch.weight[i, :n]
            child = place_child(problem, graph, batch.parent[i], batch.outcome[i], batch.key[i], model, weight)
            batch.child[i] = child
            if child >= known:
                batch.job[i] = publish(crew, child)
    batch.size[PLACED] = max(batch.size[PLACED], end)


@njit(inline="always", **FAST)
def select(problem, graph, crew, root, weight, least, leaves, visits, limits):
    """Go from a root to the leaves that contribute `least` or more, and note these and the nodes on the way, until
    there are so many `leaves` or `visits`."""
    batch, depth = graph.batch, 0
    enter(problem, graph, root, first_action(graph, root, limits.forced), weight, depth, limits.max_stage)
    while depth >= 0:
        x, i = batch.way[depth], batch.row[depth]
        full = batch.size[CHOSEN] >= leaves or batch.size[NOTED] + depth + 1 >= visits
        if i == batch.end[depth] or full:
            if batch.renewed[depth] >= 0:
                batch.job[batch.renewed[depth]] = publish(crew, ~x)
            n = batch.size[NOTED]
            batch.node[n], batch.depth[n], batch.below[n] = x, depth, batch.size[CHOSEN]
            batch.size[NOTED] = n + 1
            depth -= 1
            continue
        batch.row[depth] = i + 1
        factor, child = batch.factor[depth] * problem.discount * graph.prob[x, i], np.int64(graph.child[x, i])
        if child < 0:
            if factor * (graph.above[x, i] - graph.below[x, i]) >= least:
                choose(problem, graph, x, i, depth)
                place_leaves(problem, graph, crew, batch.size[CHOSEN] - _AHEAD)
        elif graph.stamp[child] != _INSIDE and factor * graph.share[child] >= least:
            depth += 1
            enter(problem, graph, child, np.int64(graph.greedy[child]), factor, depth, limits.max_stage)


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
    """Take jobs until a leaf of the batch has its values, and link it."""
    batch, spins = graph.batch, 0
    x, row, n = batch.parent[i], batch.outcome[i], batch.job[i]
    if n >= 0:
        while not is_done(crew, n):
            spins = 0 if do_job(problem, graph, crew) else wait(spins)
        graph.size[OPENED] += counted_by(crew, n)
    child = batch.child[i]
    if child >= 0:  # the vector known here may be worth more than what was known there
        graph.child[x, row] = child
        graph.lower[child] = max(graph.lower[child], graph.below[x, row])


@njit(inline="always", **FAST)
def work_of(problem, graph, unit, here, nodes, opened):
    """Operations of the nodes built since there were so many, and of the outcome rows `opened` since, each of about
    `here` models."""
    n_rows, lazily = graph.child.shape[1], problem.cells.models.shape[0] > 0
    new, entries = graph.size[NODES] - nodes, graph.begin[graph.size[NODES]] - graph.begin[nodes]
    work = new * (NODE + ROW * n_rows) + (UNOPENED if lazily else unit) * entries * n_rows
    if lazily:
        work += unit * here * (graph.size[OPENED] - opened)
    return work


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
        each = NODE + (ROW + limits.unit * entries) * n_rows
        leaves = np.int64(min((limits.work - work) / each + 1.0, 1.0 * min(batch.parent.size, limits.nodes - before)))
        visits = np.int64(min((limits.work - work) / (_STEP * n_rows) + limits.max_stage + 2, 1.0 * batch.node.size))
        batch.size[CHOSEN], batch.size[PLACED], batch.size[NOTED], least = 0, 0, 0, _LEAST * widest
        for i in range(roots.size):
            x = roots[i]
            most = start[i] * contribution(problem, graph, x, first_action(graph, x, limits.forced))[1]
            if most >= least and graph.stamp[x] != _INSIDE:
                select(problem, graph, crew, x, start[i], least, leaves, visits, limits)
        place_leaves(problem, graph, crew, batch.size[CHOSEN])

        renewed = False
        for i in range(batch.size[CHOSEN]):
            entries = graph.begin[batch.parent[i] + 1] - graph.begin[batch.parent[i]]
            if batch.n_weights[i] >= 0:
                full |= batch.child[i] < 0
                work += entries
            elif batch.job[i] >= 0:
                renewed = True
                work += (UNOPENED if lazily else limits.unit) * entries * n_rows
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

        here = graph.begin[batch.parent[0] + 1] - graph.begin[batch.parent[0]] if batch.size[CHOSEN] > 0 else 0
        work += work_of(problem, graph, limits.unit, here, before, opened)
        new = graph.size[NODES] - before
        idle = 0 if renewed or new > 0 else idle + 1
    return np.int64(IDLE if full else idle), work
