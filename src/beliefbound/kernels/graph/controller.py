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
                after[x - begin, i] = COMMIT - graph.leaf[x, i]


@njit(**FAST)
def reached(problem, state, action, after, roots, order):
    """Write the nodes that a controller reaches from its roots to `order`, those first met first; returns how many."""
    met = np.zeros(state.size, dtype=np.bool_)
    n = 0
    for root in roots:
        if not met[root]:
            met[root] = True
            order[n] = root
            n += 1
    i = 0
    while i < n:
        x = order[i]
        i += 1
        s = state[x]
        base = problem.first[s, 0]
        for row in range(problem.first[s, action[x]] - base, problem.first[s, action[x] + 1] - base):
            y = after[x, row]
            if y >= 0 and not met[y]:
                met[y] = True
                order[n] = y
                n += 1
    return n


@njit(**FAST)
def follow_once(problem, state, stage, action, after, order, values, out):
    """`out[x,m]`: the value on each model of one step of a controller at the nodes in `order`, and of `values[x,m]`
    from there; the last node first, so that `out` may be `values`. Where an outcome is impossible for the models that
    the controller was made for, but not for another, it follows the first policy of the pool. Returns the largest
    change."""
    n_models = values.shape[1]
    here, change = np.empty(n_models), 0.0
    for i in range(order.size - 1, -1, -1):
        x = order[i]
        s, a = state[x], action[x]
        base = problem.first[s, 0]
        n_rows = problem.first[s, -1] - base
        v = problem.v[min(stage[x] + 1, problem.v.shape[0] - 1)]
        for m in range(n_models):
            here[m] = problem.reward[m, s, a]
        for k in range(problem.first[s, a], problem.first[s, a + 1]):
            y, t = after[x, k - base], problem.arrive[k]
            for m in range(n_models):
                p = problem.discount * problem.like[base * n_models + m * n_rows + k - base]
                here[m] += p * (values[y, m] if y >= 0 else v[m, t, 0 if y == IMPOSSIBLE else COMMIT - y])
        for m in range(n_models):
            change = max(change, abs(here[m] - values[x, m]))
            out[x, m] = here[m]
    return change


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
                graph.table[slot] = x + 1
