"""What a policy on a frozen belief graph (`kernels.graph.search`) needs to take one step.

*Inside the graph*, the policy that looks ahead for the lower value alone is a finite-state controller: a node has one
action, and each outcome leads to another node or, out of the graph, to one policy of the pool, for ever. `compile`
writes it down.

*Outside*, a policy that looks ahead carries one belief, which `descend` replaces by the one after an outcome: the
nodes that `make_child` would add to the graph, built apart from it, so that any number of policies walk on one graph.
"""

import numpy as np
from numba import njit

from beliefbound.kernels.graph.search import find, make_child, measure, total_of
from beliefbound.kernels.options import FAST

IMPOSSIBLE = -1
COMMIT = -2  # −2 − i: follow policy i of the pool
HERE = 1  # where `descend` leaves the belief in its own graph


@njit(**FAST)
def secure_action(problem, graph, node):
    """The action of largest lower value one step ahead (ties: lowest)."""
    best, chosen = -np.inf, -1
    for a in range(problem.available.shape[1]):
        if problem.available[graph.state[node], a]:
            x = total_of(problem, graph, node, a, graph.below)
            if chosen < 0 or x > best:
                best, chosen = x, a
    return chosen


@njit(**FAST)
def best_policy(problem, graph, node, row):
    """The policy of the pool of largest value after outcome `row` of a node (ties: the first)."""
    s = graph.state[node]
    base = problem.first[s, 0]
    n_rows = problem.first[s, -1] - base
    t = problem.arrive[base + row]
    v = problem.v[min(graph.stage[node] + 1, problem.v.shape[0] - 1)]
    best, chosen = -np.inf, 0
    for i in range(v.shape[2]):
        total = 0.0
        for j in range(graph.begin[node], graph.begin[node + 1]):
            m = graph.model[j]
            like = problem.like[base * problem.reward.shape[0] + m * n_rows + row]
            total += graph.weight[j] * like * v[m, t, i]
        if total > best:
            best, chosen = total, i
    return chosen


@njit(**FAST)
def compile_controller(problem, graph, action, after):
    """`action[n]` and `after[n,row]` of every frozen node: a node, `IMPOSSIBLE`, or `COMMIT − i`."""
    n = graph.size[2]
    after[:] = IMPOSSIBLE
    for x in range(n):
        action[x] = secure_action(problem, graph, x)
        s = graph.state[x]
        for i in range(problem.first[s, -1] - problem.first[s, 0]):
            child = graph.child[x, i]
            if 0 <= child < n:
                after[x, i] = child
            elif graph.prob[x, i] > 0.0:
                after[x, i] = COMMIT - best_policy(problem, graph, x, i)


@njit(**FAST)
def carry(source, node, own):
    """Make node 0 of `own` what a node of `source` is, as far as its children depend on it. `source` may be `own`."""
    begin, n = source.begin[node], source.begin[node + 1] - source.begin[node]
    for j in range(n):
        own.model[j] = source.model[begin + j]
        own.weight[j] = source.weight[begin + j]
    own.state[0], own.stage[0], own.key[0] = source.state[node], source.stage[node], source.key[node]
    for i in range(own.prob.shape[1]):
        own.prob[0, i] = source.prob[node, i]
        own.above[0, i] = source.above[node, i]
        own.below[0, i] = source.below[node, i]
        own.child[0, i] = -1
    own.table[:] = -1
    own.begin[1] = n
    own.size[:] = 0
    own.size[0], own.size[1], own.size[2], own.size[3] = 1, n, 1, n


@njit(**FAST)
def descend(problem, graph, source, node, row, own):
    """Node `HERE` of `own`, a graph of two nodes: the belief after outcome `row` of a node of `source`, which is the
    frozen `graph` or `own`. Its children point into the frozen graph where that holds them."""
    carry(source, node, own)
    make_child(problem, own, 0, row)
    s, stage = own.state[HERE], own.stage[HERE]
    if stage >= graph.size[6]:
        return
    base = problem.first[s, 0]
    for i in range(problem.first[s, -1] - base):
        if own.prob[HERE, i] > 0.0:
            key = own.key[HERE] + problem.keys[base + i]
            child, _ = find(graph, key, problem.arrive[base + i], stage + 1)
            if child >= 0:
                own.child[HERE, i] = child
                own.above[HERE, i] = graph.upper[child]
                own.below[HERE, i] = max(own.below[HERE, i], graph.lower[child])
    measure(problem, own, HERE)


@njit(**FAST)
def fill_table(graph):
    """Enter all frozen nodes but the roots, where no outcome leads, into an empty table."""
    for x in range(graph.size[2]):
        if graph.stage[x] > 0:
            node, slot = find(graph, graph.key[x], graph.state[x], graph.stage[x])
            if node < 0:
                graph.table[slot] = x
