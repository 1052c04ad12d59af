"""The graph of beliefs that can be reached from a finite belief, with a lower and an upper value at every node.

A node is a pair (state, posterior weights over models), at a stage; it is determined by the *counts* of outcomes seen
on the way, in whatever order, so histories with equal counts share one node. Without a horizon nodes may be *merged*:
weights that are equal (each to its share `SAME`) in the same state are one node, whenever they are met: a share of
itself, because a model of little weight may have a large value (`planning.rounding`). Where outcomes rule models out
for certain, as in a search for a hidden goal, the graph is then finite, and the search ends with the exact value. An
outcome of a step is a next state together with what the agent sees of the reward. Outcome rows `k` of the pair `(s,a)`
are `first[s,a] ≤ k < first[s,a+1]`, `like[m,k]` is their likelihood under model `m` and `arrive[k]` their next state.
With unnormalised `b^k_m = b_m like[m,k]`,

    upper(b,s) = max_a Σ_m b_m r_m(s,a) + γ Σ_k upper(b^k, arrive_k)      leaves: pairs, cells (`kernels.graph.cells`)
    lower(b,s) = max_a Σ_m b_m r_m(s,a) + γ Σ_k lower(b^k, arrive_k)      leaves: α-pool, max_π Σ_m b_m V^π_m(s)

and both hold at every node however much of the graph has been built: `lower ≤ V* ≤ upper`. `kernels.graph.growth`
builds it where the gap at the root comes from.

Nodes are found again by a 64-bit key, the start's plus the sum of random words per outcome seen. Two different nodes
share a key with probability 2⁻⁶⁴ a pair; states and stages are compared as well. (Merged nodes: a key of the weights,
which are compared.) Cost of a node: `models left · rows ·
(A + |pool|)` multiply-adds. A node keeps only the models that still have weight.
"""

import numpy as np
from numba import njit

from beliefbound.kernels.graph.actions import close_actions, open_action
from beliefbound.kernels.graph.nodes import (
    DEEPEST,
    ENTRIES,
    FROZEN_ENTRIES,
    FROZEN_NODES,
    LOGGED_LINKS,
    LOGGED_SLOTS,
    NODES,
)
from beliefbound.kernels.graph.pairs import best_sum, least_of_pairings
from beliefbound.kernels.options import FAST, FAST_INLINE
from beliefbound.kernels.out_of_line import out_of_line
from beliefbound.kernels.prefetch import prefetch
from beliefbound.kernels.random import GOLDEN, mix

_SWEEPS = 10  # over a graph with circles until its values are consistent; they are valid after any number
_SOON = 4  # nodes ahead: whose children are asked for
_ask_for_node = prefetch(1)
QUANTUM = 2.0**-40  # of weights in keys of beliefs
SAME = 2.0**-47  # of a weight: weights that differ by less are the same weight, where beliefs are merged


@njit(inline="always", **FAST)
def slot_of(graph, key):
    """Where a key is looked up first."""
    return (key ^ (key >> np.uint64(29))) & np.uint64(graph.table.size - 1)


@njit(inline="always", **FAST)
def find(graph, key, state, stage):
    """`(node or −1, slot of the table)`."""
    mask, slot = np.uint64(graph.table.size - 1), slot_of(graph, key)
    while True:
        node = np.int64(graph.table[slot]) - 1
        if node < 0:
            return node, np.int64(slot)
        if graph.key[node] == key and graph.state[node] == state and graph.stage[node] == stage:
            return node, np.int64(slot)
        slot = (slot + np.uint64(1)) & mask


@njit(inline="always", **FAST)
def find_belief(graph, key, state, model, weight):
    """As `find`, for weights: the node of this state whose weights are the same to rounding."""
    mask, slot = np.uint64(graph.table.size - 1), slot_of(graph, key)
    while True:
        node = np.int64(graph.table[slot]) - 1
        if node < 0:
            return node, np.int64(slot)
        begin = graph.begin[node]
        if graph.key[node] == key and graph.state[node] == state and graph.begin[node + 1] - begin == model.size:
            same = True
            for j in range(model.size):
                same &= graph.model[begin + j] == model[j]
                same &= abs(graph.weight[begin + j] - weight[j]) <= SAME * graph.weight[begin + j]
            if same:
                return node, np.int64(slot)
        slot = (slot + np.uint64(1)) & mask


@njit(inline="always", **FAST)
def posterior(problem, graph, parent, row, model, weight):
    """Write the weights after outcome `row` of `parent`, those above 0; how many there are."""
    s = graph.state[parent]
    n_rows = problem.first[s, -1] - problem.first[s, 0]
    offset = problem.first[s, 0] * problem.reward.shape[0] + row
    scale = 1.0 / graph.prob[parent, row]
    n, total = 0, 0.0
    for j in range(graph.begin[parent], graph.begin[parent + 1]):
        m = graph.model[j]
        w = graph.weight[j] * problem.like[offset + m * n_rows] * scale
        if w > 0.0:
            model[n], weight[n] = m, w
            total += w
            n += 1
    for j in range(n):
        weight[j] /= total
    return n


@njit(inline="always", **FAST)
def belief_key(state, model, weight):
    """A key of weights in a state."""
    key = np.uint64(state + 1) * GOLDEN
    for j in range(model.size):
        word = np.uint64(np.int64(weight[j] / QUANTUM + 0.5)) + np.uint64(model[j] + 1) * GOLDEN
        key += mix(word)
    return key


@out_of_line
@njit(**FAST)
def meet(problem, graph, parent, row, model, weight):
    """`(key, count)` of the belief after outcome `row` of `parent`. Where beliefs are merged its weights are written,
    so many, and it is known by them; else by the outcomes seen, and the count is 0."""
    k = problem.first[graph.state[parent], 0] + row
    if not problem.merged:
        return graph.key[parent] + problem.keys[k], 0
    n = posterior(problem, graph, parent, row, model, weight)
    return belief_key(problem.arrive[k], model[:n], weight[:n]), n


@out_of_line
@njit(**FAST)
def make_child(problem, graph, parent, row):
    """The node after outcome `row` of `parent`, found or built; −1 when the graph is full."""
    known, before = graph.child[parent, row], graph.size[NODES]
    if known >= 0:
        return np.int64(known)
    model, weight = graph.batch.model[0], graph.batch.weight[0]
    key, n = meet(problem, graph, parent, row, model, weight)
    node = place_child(problem, graph, parent, row, key, model[:n], weight[:n])
    if node >= 0:
        note_link(graph, parent, row, node)
    if node >= before:
        expand(problem, graph, node)
    return node


@out_of_line
@njit(**FAST)
def place_child(problem, graph, parent, row, key, model, weight):
    """The node after outcome `row` of `parent`, which has no child yet: the belief that is met there (`meet`), found or
    given a place; −1 when the graph is full. It is not linked, and where it is new still is to be expanded. Values of
    nodes that there are stay as they are: others may be giving them theirs (`kernels.graph.growth`)."""
    t = problem.arrive[problem.first[graph.state[parent], 0] + row]
    stage = np.int64(0) if problem.merged else graph.stage[parent] + 1
    if problem.merged:
        found, slot = find_belief(graph, key, t, model, weight)
    else:
        found, slot = find(graph, key, t, stage)
    if found >= 0:
        return found
    node, first = graph.size[NODES], graph.size[ENTRIES]
    most = model.size if problem.merged else graph.begin[parent + 1] - graph.begin[parent]
    if node >= graph.state.size or first + most > graph.weight.size:
        return np.int64(-1)
    n = model.size
    if problem.merged:
        for j in range(n):
            graph.model[first + j], graph.weight[first + j] = model[j], weight[j]
    else:
        n = posterior(problem, graph, parent, row, graph.model[first:], graph.weight[first:])
    graph.size[NODES] = node + 1
    graph.size[ENTRIES] = first + n
    graph.begin[node + 1] = first + n
    graph.state[node] = t
    graph.stage[node] = stage
    graph.key[node] = key
    graph.upper[node] = graph.above[parent, row]
    graph.lower[node] = graph.below[parent, row]
    graph.table[slot] = node + 1
    if graph.size[FROZEN_NODES] > 0:
        graph.slots[graph.size[LOGGED_SLOTS]] = slot
        graph.size[LOGGED_SLOTS] += 1
    return node


@njit(inline="always", **FAST)
def note_link(graph, parent, row, node):
    """Remember the child; in a frozen parent only as long as `restore` can undo it."""
    if graph.size[FROZEN_NODES] > 0 and parent < graph.size[FROZEN_NODES]:
        if graph.size[LOGGED_LINKS] >= graph.links.size:
            return
        graph.links[graph.size[LOGGED_LINKS]] = parent * graph.child.shape[1] + row
        graph.size[LOGGED_LINKS] += 1
    graph.child[parent, row] = node


@out_of_line
@njit(**FAST)
def set_leaves(problem, graph, node):
    """Expected rewards, outcome probabilities and the children's leaf values of a node, none of which is linked."""
    graph.edition[node] = problem.edition
    if problem.cells.models.shape[0] > 0:
        close_actions(problem, graph, node)
        return
    s, n_pool = graph.state[node], problem.v.shape[3]
    n_models, _, n_actions = problem.reward.shape
    base = problem.first[s, 0]
    n_rows = problem.first[s, n_actions] - base
    stage = graph.stage[node] + 1
    q = problem.q[min(stage, problem.q.shape[0] - 1)]
    v = problem.v[min(stage, problem.v.shape[0] - 1)]
    like, arrive, rewards = problem.like[base * n_models :], problem.arrive[base:], problem.reward[:, s]
    sums, reward = graph.sums, graph.reward[node]
    for i in range(n_rows):
        for a in range(1 + n_actions + n_pool):
            sums[i, a] = 0.0
    for a in range(n_actions):
        reward[a] = 0.0
    for j in range(graph.begin[node], graph.begin[node + 1]):
        m, w = graph.model[j], graph.weight[j]
        for a in range(n_actions):
            reward[a] += w * rewards[m, a]
        for i in range(n_rows):
            p = w * like[m * n_rows + i]
            if p > 0.0:
                t = arrive[i]
                sums[i, 0] += p
                for a in range(n_actions):
                    sums[i, 1 + a] += p * q[m, t, a]
                for a in range(n_pool):
                    sums[i, 1 + n_actions + a] += p * v[m, t, a]
    for i in range(n_rows):
        p = sums[i, 0]
        graph.prob[node, i] = p
        graph.child[node, i] = -1
        if p <= 0.0:
            graph.above[node, i] = 0.0
            graph.below[node, i] = 0.0
            continue
        low, chosen = -np.inf, 0
        for a in range(n_pool):
            if sums[i, 1 + n_actions + a] > low:
                low, chosen = sums[i, 1 + n_actions + a], problem.number[problem.arrive[base + i], a]
        graph.leaf[node, i] = chosen
        graph.above[node, i] = best_sum(problem, sums, i, problem.arrive[base + i]) / p
        graph.below[node, i] = low / p
    for a in range(n_actions):
        graph.opened[node, a] = True
    if problem.partner.shape[0] > 0:
        least_of_pairings(problem, graph, node)


@out_of_line
@njit(**FAST)
def expand(problem, graph, node):
    """The values of a new node."""
    set_leaves(problem, graph, node)
    graph.stamp[node] = -1
    if graph.size[FROZEN_NODES] == 0:
        backup(problem, graph, node)
        settle(problem, graph, node)
    else:
        if graph.stage[node] < graph.size[DEEPEST]:
            link(problem, graph, node)
        measure(problem, graph, node)


@njit(inline="always", **FAST)
def total_of(problem, graph, node, a, values):
    """`r + γ Σ_rows p values` of one action."""
    s = graph.state[node]
    base = problem.first[s, 0]
    total = 0.0
    for i in range(problem.first[s, a] - base, problem.first[s, a + 1] - base):
        total += graph.prob[node, i] * values[node, i]
    return graph.reward[node, a] + problem.discount * total


@njit(inline="always", **FAST)
def take_children(graph, node, begin, end):
    """Tighten the outcome rows `begin … end − 1` of a node by the values of its children."""
    for i in range(begin, end):
        child = graph.child[node, i]
        if child >= 0:
            graph.above[node, i] = min(graph.above[node, i], graph.upper[child])
            graph.below[node, i] = max(graph.below[node, i], graph.lower[child])


@njit(**FAST_INLINE)
def take_best(problem, graph, node):
    """Tighten a node by its outcome rows, and find the action of largest upper value (ties: lowest)."""
    s = graph.state[node]
    base, high, low, chosen = problem.first[s, 0], -np.inf, -np.inf, -1
    for a in range(problem.available.shape[1]):
        if problem.available[s, a]:
            above, below = 0.0, 0.0
            for i in range(problem.first[s, a] - base, problem.first[s, a + 1] - base):
                above += graph.prob[node, i] * graph.above[node, i]
                below += graph.prob[node, i] * graph.below[node, i]
            above = graph.reward[node, a] + problem.discount * above
            if above > high:
                high, chosen = above, a
            low = max(low, graph.reward[node, a] + problem.discount * below)
    graph.upper[node] = min(graph.upper[node], high)
    graph.lower[node] = max(graph.lower[node], low)
    graph.greedy[node] = chosen


@out_of_line
@njit(**FAST)
def backup(problem, graph, node):
    """Tighten a node by all of its children."""
    s = graph.state[node]
    take_children(graph, node, 0, problem.first[s, -1] - problem.first[s, 0])
    take_best(problem, graph, node)


@out_of_line
@njit(**FAST)
def settle(problem, graph, node):
    """Tighten a node that was backed up before by the children of its greedy action, which is opened, until it stays
    the greedy one: values of other actions only fall, so no other child counts. And what of its gap one leaf
    contributes."""
    s = graph.state[node]
    base = problem.first[s, 0]
    while True:
        a = np.int64(graph.greedy[node])
        if not graph.opened[node, a]:
            open_action(problem, graph, node, a)
        take_children(graph, node, problem.first[s, a] - base, problem.first[s, a + 1] - base)
        take_best(problem, graph, node)
        if graph.greedy[node] == a:
            break
    graph.share[node] = contribution(problem, graph, node, a)[1]


@njit(**FAST_INLINE)
def contribution(problem, graph, node, a):
    """`(row, share)`: the outcome of an action through which most of the node's gap under it comes, and how much."""
    s = graph.state[node]
    base = problem.first[s, 0]
    row, most = -1, 0.0
    if graph.stage[node] + 1 < problem.horizon:
        for i in range(problem.first[s, a] - base, problem.first[s, a + 1] - base):
            child = graph.child[node, i]
            gap = graph.share[child] if child >= 0 else graph.above[node, i] - graph.below[node, i]
            gap *= graph.prob[node, i] * problem.discount
            if gap > most:
                row, most = i, gap
    return row, most


@out_of_line
@njit(**FAST)
def renew(problem, graph, node):
    """Give a node the leaf values of `problem` where it has no child and they are better than what was there."""
    n_rows, n_actions = graph.child.shape[1], problem.available.shape[1]
    above, below = graph.above[node].copy(), graph.below[node].copy()
    child, leaf, opened = graph.child[node].copy(), graph.leaf[node].copy(), graph.opened[node].copy()
    set_leaves(problem, graph, node)
    for i in range(n_rows):
        graph.child[node, i] = child[i]
    s = graph.state[node]
    base = problem.first[s, 0]
    for a in range(n_actions):
        if opened[a] and not graph.opened[node, a]:
            open_action(problem, graph, node, a)
        for i in range(problem.first[s, a] - base, problem.first[s, a + 1] - base):
            if child[i] >= 0 or above[i] < graph.above[node, i]:
                graph.above[node, i] = above[i]
            if child[i] >= 0 or below[i] >= graph.below[node, i]:
                graph.below[node, i], graph.leaf[node, i] = below[i], leaf[i]


@out_of_line
@njit(**FAST)
def link(problem, graph, node):
    """Point every outcome at its node where that exists; a frozen child's upper value replaces the leaf's."""
    s = graph.state[node]
    base = problem.first[s, 0]
    for i in range(problem.first[s, -1] - base):
        if graph.child[node, i] < 0 and graph.prob[node, i] > 0.0:
            key = graph.key[node] + problem.keys[base + i]
            child, _ = find(graph, key, problem.arrive[base + i], graph.stage[node] + 1)
            if child >= 0:
                graph.child[node, i] = child
                if graph.size[FROZEN_NODES] > 0 and child < graph.size[FROZEN_NODES]:
                    graph.above[node, i] = graph.upper[child]
                    graph.below[node, i] = max(graph.below[node, i], graph.lower[child])


@out_of_line
@njit(**FAST)
def measure(problem, graph, node):
    """`loss[a] = upper − (r + γ Σ p above)` of a node whose `upper` is frozen, its lower value, and the policy's
    action.

    The action maximises the mean of the lower and the upper look-ahead: from below it earns what is proven, from above
    it is drawn to what may still be learnt.
    """
    s = graph.state[node]
    best, chosen, low = -np.inf, -1, graph.lower[node]
    for a in range(problem.available.shape[1]):
        if not problem.available[s, a]:
            graph.loss[node, a] = np.inf
            continue
        high = total_of(problem, graph, node, a, graph.above)
        x = total_of(problem, graph, node, a, graph.below)
        graph.loss[node, a] = max(0.0, graph.upper[node] - high)
        low = max(low, x)
        mixed = x + problem.mix * (high - x)
        if mixed > best:
            best, chosen = mixed, a
    graph.lower[node] = low
    graph.action[node] = chosen


@njit(inline="always", **FAST)
def due(problem, graph, x, changed, sweep):
    """Whether a child has changed since a node was last backed up, in sweeps from the last node to the first."""
    s = graph.state[x]
    for i in range(problem.first[s, -1] - problem.first[s, 0]):
        child = np.int64(graph.child[x, i])
        if child >= 0 and changed[child] >= (sweep - 1 if child <= x else sweep):
            return True
    return False


@njit(**FAST)
def make_consistent(problem, graph, order, changed, tolerance):
    """Back up the nodes in `order`, which has the deepest stage first; where beliefs are merged, the last node, and
    sweeps end when no gap falls by more than `tolerance`. After the first sweep a node is looked at where one of its
    children has changed: `changed[n]`, zeros, has the last sweep in which each did."""
    for sweep in range(1, _SWEEPS + 1 if problem.merged else 2):
        moved = 0.0
        for n in range(order.size):
            if sweep == 1 and n + _SOON < order.size:
                for child in graph.child[order[n + _SOON]]:  # wherever that is: it is not looked at
                    _ask_for_node(graph.upper, np.int64(child))
            x = order[n]
            if sweep > 1 and not due(problem, graph, x, changed, sweep):
                continue
            upper, lower, share = graph.upper[x], graph.lower[x], graph.share[x]
            if not problem.merged:
                link(problem, graph, x)
            backup(problem, graph, x)
            graph.share[x] = contribution(problem, graph, x, np.int64(graph.greedy[x]))[1]
            if graph.upper[x] != upper or graph.lower[x] != lower or graph.share[x] != share:
                changed[x] = sweep
                moved = max(moved, (upper - lower) - (graph.upper[x] - graph.lower[x]))
        if moved <= tolerance:
            break


@njit(**FAST)
def freeze_values(problem, graph):
    """Freeze values that are consistent: `upper` is from here on one fixed function of the node (its leaf value outside
    the graph), with `upper ≥ r + γ E upper` everywhere."""
    n = graph.size[NODES]
    graph.size[DEEPEST] = 0
    for x in range(n):
        s = graph.state[x]
        for i in range(problem.first[s, -1] - problem.first[s, 0]):
            child = graph.child[x, i]
            if child >= 0:
                graph.above[x, i] = graph.upper[child]
        graph.stamp[x] = -1
        measure(problem, graph, x)
        graph.size[DEEPEST] = max(graph.size[DEEPEST], graph.stage[x])
    graph.size[FROZEN_NODES] = n
    graph.size[FROZEN_ENTRIES] = graph.size[ENTRIES]
    graph.size[LOGGED_SLOTS] = 0
    graph.size[LOGGED_LINKS] = 0


@out_of_line
@njit(**FAST)
def restore(graph):
    """Forget every node built since `freeze_values`."""
    for i in range(graph.size[LOGGED_SLOTS] - 1, -1, -1):
        graph.table[graph.slots[i]] = 0
    width = graph.child.shape[1]
    for i in range(graph.size[LOGGED_LINKS]):
        graph.child[graph.links[i] // width, graph.links[i] % width] = -1
    graph.size[NODES] = graph.size[FROZEN_NODES]
    graph.size[ENTRIES] = graph.size[FROZEN_ENTRIES]
    graph.size[LOGGED_SLOTS] = 0
    graph.size[LOGGED_LINKS] = 0
    for i in range(graph.size[FROZEN_NODES]):
        graph.stamp[i] = -1


@njit(**FAST)
def add_products(graph, begin, end, out):
    """Add the products of the weights of every two models at the nodes `begin … end − 1` to `out[m,n]`."""
    for x in range(begin, end):
        for j in range(graph.begin[x], graph.begin[x + 1]):
            here = out[graph.model[j]]
            for i in range(graph.begin[x], graph.begin[x + 1]):
                here[graph.model[i]] += graph.weight[j] * graph.weight[i]
