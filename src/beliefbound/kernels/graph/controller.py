"""What a policy on a frozen belief graph (`kernels.graph.search`) needs to take one step.

*Inside the graph*, the policy that looks ahead for the lower value alone is a finite-state controller: a node has one
action, and each outcome leads to another node or, out of the graph, to one policy of the pool, for ever.
`compile_controller` writes it down.

*Outside*, a policy that looks ahead carries one belief, the node that `make_child` would add to the graph, in a little
graph of its own. `join` gives it the values of the frozen graph it leads back into. So any number of policies walk on
one graph.
"""

import numpy as np
from numba import njit

from beliefbound.kernels.graph.nodes import DEEPEST, FROZEN_NODES
from beliefbound.kernels.graph.search import find, measure, total_of
from beliefbound.kernels.options import FAST

IMPOSSIBLE = -1
COMMIT = -2  # −2 − i: follow policy i of the pool


@njit(inline="always", **FAST)
def secure_action(problem, graph, node):
    """The action of largest lower value one step ahead (ties: lowest)."""
    best, chosen = -np.inf, -1
    for a in range(problem.available.shape[1]):
        if problem.available[graph.state[node], a]:
            x = total_of(problem, graph, node, a, graph.below)
            if chosen < 0 or x > best:
                best, chosen = x, a
    return chosen


@njit(inline="always", **FAST)
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
def compile_controller(problem, graph, begin, end, action, after):
    """`action` and `after[·,row]` of the nodes `begin … end − 1`: a node, `IMPOSSIBLE`, or `COMMIT − i`."""
    after[:] = IMPOSSIBLE
    for x in range(begin, end):
        action[x - begin] = secure_action(problem, graph, x)
        s = graph.state[x]
        for i in range(problem.first[s, -1] - problem.first[s, 0]):
            if graph.child[x, i] >= 0:
                after[x - begin, i] = graph.child[x, i]
            elif graph.prob[x, i] > 0.0:
                after[x - begin, i] = COMMIT - best_policy(problem, graph, x, i)


@njit(**FAST)
def join(problem, graph, own, node):
    """Point a node of `own` at its children in the frozen `graph`, and measure it by their values."""
    s, stage = own.state[node], own.stage[node]
    if stage >= graph.size[DEEPEST]:
        return
    base = problem.first[s, 0]
    for i in range(problem.first[s, -1] - base):
        if own.prob[node, i] > 0.0:
            key = own.key[node] + problem.keys[base + i]
            child, _ = find(graph, key, problem.arrive[base + i], stage + 1)
            if child >= 0:
                own.child[node, i] = child
                own.above[node, i] = graph.upper[child]
                own.below[node, i] = max(own.below[node, i], graph.lower[child])
    measure(problem, own, node)


@njit(**FAST)
def fill_table(graph):
    """Enter all frozen nodes but the roots, where no outcome leads, into an empty table."""
    for x in range(graph.size[FROZEN_NODES]):
        if graph.stage[x] > 0:
            node, slot = find(graph, graph.key[x], graph.state[x], graph.stage[x])
            if node < 0:
                graph.table[slot] = x
