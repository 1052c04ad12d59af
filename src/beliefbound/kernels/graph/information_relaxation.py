"""One scenario of the information relaxation, and of a policy under the same scenario.

A scenario is a sequence of uniforms. At node `x`, stage `k`, action `a` the outcome is the inverse c.d.f. at `U_k` of
the *Bayesian predictive* distribution; the model itself is never drawn. With the frozen upper values `W` of a graph,

    loss(x,a) = W(x) − r(x,a) − γ E[W(x') | x,a] ≥ 0.

* From above: `W(root) − min over action sequences of Σ_k γ^k loss(x_k,a_k)`, whose mean over scenarios is at least
  `V*` (Brown, Smith & Sun 2010). Losses are non-negative, so it is a shortest path: uniform-cost search, ended by the
  first leaf taken from the queue. If the search is capped, the smallest cost in the queue is below the minimum:
  valid, only looser.
* From below: `W(root) − Σ_k γ^k loss(x_k,π(x_k)) − γ^d (W(x_d) − L(x_d))`, whose mean is the value of the policy `π`
  followed until the leaf `x_d`, and of the proven `L(x_d) ≤ V*(x_d)` from there.

The proven `L` of a leaf is attained by looking ahead for `L` inside the frozen graph, and by one policy of the pool,
for ever, from the first belief outside it (`bounds.finite.adaptive`). A leaf is a node at stage `depth`, or one where
`γ^k (W − L) ≤ tolerance`: the same rule on both sides, so in every scenario lower ≤ upper. Nodes built on the way stay
in the graph until the block of scenarios ends; then it is restored, so that a block's result depends on its address
only.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from beliefbound.kernels.graph.nodes import NODES
from beliefbound.kernels.graph.search import make_child, restore
from beliefbound.kernels.options import EXACT
from beliefbound.kernels.random import add_word, begin_address, end_address, inverse_cdf, uniform
from beliefbound.kernels.reference import by_reference


@by_reference
class ScenarioLimits(NamedTuple):
    """When scenarios end."""

    depth: int  # stages
    tolerance: float  # a node whose discounted gap is at most this is a leaf
    max_nodes: int  # expanded by one search from above; 0: the policy alone
    clip: float  # costs from above count at most this
    stop: float  # a policy that has lost more settles for what is proven


@njit(inline="always", **EXACT)
def push(keys, items, size, key, item):
    """Add an item to a binary heap, least key first; on equal keys the newer one first."""
    i = size
    while i > 0:
        above = (i - 1) >> 1
        if keys[above] < key:
            break
        keys[i] = keys[above]
        items[i] = items[above]
        i = above
    keys[i] = key
    items[i] = item
    return size + 1


@njit(inline="always", **EXACT)
def pop(keys, items, size):
    """Remove the least element: `(new size, key, item)`."""
    key, item = keys[0], items[0]
    size -= 1
    last, moved = keys[size], items[size]
    i = 0
    while True:
        below = 2 * i + 1
        if below >= size:
            break
        if below + 1 < size and keys[below + 1] < keys[below]:
            below += 1
        if keys[below] >= last:
            break
        keys[i] = keys[below]
        items[i] = items[below]
        i = below
    keys[i] = last
    items[i] = moved
    return size, key, item


@njit(inline="always", **EXACT)
def outcome(problem, graph, node, a, u):
    """The outcome row of an action at quantile `u` of the predictive distribution."""
    s = graph.state[node]
    base = problem.first[s, 0]
    i, j = problem.first[s, a] - base, problem.first[s, a + 1] - base
    return i + inverse_cdf(graph.prob[node, i:j], u)


@njit(inline="always", **EXACT)
def is_leaf(graph, node, powers, tolerance):
    """Whether a scenario ends at this node; `powers[k] = γ^k` up to the depth."""
    stage = graph.stage[node]
    return stage >= powers.size - 1 or powers[stage] * (graph.upper[node] - graph.lower[node]) <= tolerance


@njit(inline="always", **EXACT)
def goes_on(graph, node, cost, powers, tolerance, stop):
    """Whether the policy still acts by `graph.action` at this node, having lost `cost`; if not, it settles for the
    node's lower value."""
    return cost <= stop and not is_leaf(graph, node, powers, tolerance)


@njit(inline="always", **EXACT)
def cheapest(problem, graph, root, u, limits, stamp, scratch):
    """Least cost over all action sequences, or a lower bound on it after `max_nodes` nodes: `(cost, nodes)`."""
    tolerance, max_nodes, clip = limits.tolerance, limits.max_nodes, limits.clip
    powers, keys, items = scratch.powers, scratch.keys, scratch.items
    if is_leaf(graph, root, powers, tolerance):
        return 0.0, 0
    size, cost, node = 0, 0.0, root
    n_expanded, depth = 0, powers.size - 1
    width = graph.prob.shape[1]
    while True:
        if graph.stamp[node] != stamp:
            graph.stamp[node] = stamp
            n_expanded += 1
            stage = graph.stage[node]
            factor = powers[stage]
            s = graph.state[node]
            for a in range(problem.available.shape[1]):
                if problem.available[s, a]:
                    row = outcome(problem, graph, node, a, u[stage])
                    size = push(keys, items, size, cost + factor * graph.loss[node, a], node * width + row)
        size, cost, item = pop(keys, items, size)
        parent, row = item // width, item % width
        if cost >= clip:
            return clip, n_expanded
        if graph.stage[parent] + 1 >= depth or n_expanded >= max_nodes:
            return cost, n_expanded
        node = make_child(problem, graph, parent, row)
        if node < 0 or is_leaf(graph, node, powers, tolerance):
            return cost, n_expanded


@njit(inline="always", **EXACT)
def follow(problem, graph, root, u, powers, limits):
    """`(cost, node)` of the policy in the same scenario, including the leaf's gap. Past a cost of `stop` it settles for
    what is proven at the node reached, so no cost exceeds `stop` plus one loss and one gap. The node is −1 when the
    graph was full."""
    cost, node, depth = 0.0, root, powers.size - 1
    while goes_on(graph, node, cost, powers, limits.tolerance, limits.stop):
        stage = graph.stage[node]
        factor = powers[stage]
        a = graph.action[node]
        row = outcome(problem, graph, node, a, u[stage])
        cost += factor * graph.loss[node, a]
        if stage + 1 >= depth:
            return cost + factor * problem.discount * max(0.0, graph.above[node, row] - graph.below[node, row]), node
        child = make_child(problem, graph, node, row)
        if child < 0:
            return cost + factor * problem.discount * max(0.0, graph.above[node, row] - graph.below[node, row]), child
        node = child
    return cost + powers[graph.stage[node]] * max(0.0, graph.upper[node] - graph.lower[node]), node


@njit(**EXACT)
def scenario_uniforms(address, scenario, u):
    """The uniforms of a scenario: `u[0]` chooses the start state, the rest the outcomes. A function of the address."""
    stream = np.empty(4, np.uint64)
    begin_address(stream)
    for word in address:
        add_word(stream, word)
    add_word(stream, np.uint64(scenario))
    end_address(stream)
    for k in range(u.size):
        u[k] = uniform(stream)


@by_reference
class Scratch(NamedTuple):
    """Arrays of one block."""

    u: np.ndarray  # [stage + 1]: uniforms
    powers: np.ndarray  # [stage]: γ^k
    keys: np.ndarray  # [queue]: costs
    items: np.ndarray  # int64 [queue]: node · rows + row


def run_block(
    problem: Any,
    graph: Any,
    start: np.ndarray,
    roots: np.ndarray,
    limits: ScenarioLimits,
    address: np.ndarray,
    first: int,
    costs: np.ndarray,
    n_nodes: np.ndarray,
) -> None:
    """Scenarios `first, first + 1, …`: `costs[i] = (from above, from below)`, measured from the root's upper value, and
    `n_nodes[i]` = (expanded from above, built by the policy).

    `start[i]` weighs `roots[i]`. The graph is as it was when the block ends.
    """
    longest = (limits.max_nodes + 1) * problem.available.shape[1] + 2  # of the queue
    u, powers = np.empty((2, limits.depth + 1))
    scratch = Scratch(u, powers, np.empty(longest), np.empty(longest, dtype=np.int64))
    run_scenarios(problem, graph, limits, scratch, start, roots, address, first, costs, n_nodes)


@njit(**EXACT)
def run_scenarios(problem, graph, limits, scratch, start, roots, address, first, costs, n_nodes):
    """`run_block`."""
    u, powers = scratch.u, scratch.powers
    for k in range(powers.size):
        powers[k] = problem.discount ** np.float64(k)
    for i in range(costs.shape[0]):
        scenario_uniforms(address, first + i, u)
        root = roots[inverse_cdf(start, u[0])]
        for _ in range(2):
            before = graph.size[NODES]
            costs[i, 1], reached = follow(problem, graph, root, u[1:], powers, limits)
            if reached >= 0:
                break
            restore(graph)  # it was full of earlier scenarios, on which the policy must not depend
        n_nodes[i, 1] = graph.size[NODES] - before
        if limits.max_nodes > 0:
            cost, n_nodes[i, 0] = cheapest(problem, graph, root, u[1:], limits, first + i, scratch)
            costs[i, 0] = min(cost, costs[i, 1])
        else:
            costs[i, 0] = 0.0
            n_nodes[i, 0] = 0
    restore(graph)
