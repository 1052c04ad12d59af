"""Leaf values of a node whose actions are looked into one by one, when they are wanted.

Where cells of models give the leaf values from above (`kernels.graph.cells`), reading them takes most of the time of a
node, and most of its actions never matter. But the cells read *at the node* already say of every action that it is
worth at most `Q_a = Σ_c b_c Q_c(p_c,s,a)`: told the cell after the action. So

* a new node has its actions *closed*: every outcome of `a` stands at `(Q_a − r_a)/γ` from above, one number for all, so
  that the action is worth `Q_a` by the sum that every backup takes, and from below at the first policy of the pool;
* `open_action` gives the outcomes of one action values of their own: from above by cells, told after the outcome, from
  below the best of the pool. Only then may a child be built there: the number of a closed action bounds the sum over
  its outcomes, none of them by itself.

An action that is not the greedy one from above does not count in the node's upper value, so whoever backs a node up
opens its greedy action, until that is open (`kernels.graph.search.settle`). With fewer rows to read, a node of 36
models and six actions costs a third.
"""

import numpy as np
from numba import njit

from beliefbound.kernels.graph.cells import told_cell
from beliefbound.kernels.graph.heavy import heavy_models
from beliefbound.kernels.graph.nodes import OPENED
from beliefbound.kernels.options import FAST
from beliefbound.kernels.out_of_line import out_of_line

_SPARE = 2.0**-50  # of the numbers that meet in one of a closed action: more than rounding takes from it


@out_of_line
@njit(**FAST)
def close_actions(problem, graph, node):
    """Expected rewards, outcome probabilities and the values of closed actions of a node; nothing is linked."""
    s = graph.state[node]
    n_actions = problem.available.shape[1]
    base = problem.first[s, 0]
    n_rows = problem.first[s, n_actions] - base
    v = problem.v[min(graph.stage[node] + 1, problem.v.shape[0] - 1)]
    block = base * problem.reward.shape[0]
    sums, begin, end = graph.sums, graph.begin[node], graph.begin[node + 1]
    for i in range(n_rows):
        graph.prob[node, i] = 0.0
        sums[i, 0] = 0.0
    for a in range(n_actions):
        graph.reward[node, a] = 0.0
    for j in range(begin, end):
        m, w = graph.model[j], graph.weight[j]
        graph.mass[m] = w
        for a in range(n_actions):
            graph.reward[node, a] += w * problem.reward[m, s, a]
        for i in range(n_rows):
            p = w * problem.like[block + m * n_rows + i]
            graph.prob[node, i] += p
            sums[i, 0] += p * v[m, problem.arrive[base + i], 0]
    told_cell(problem, graph, s, graph.stage[node])
    for j in range(begin, end):
        graph.mass[graph.model[j]] = 0.0
    for a in range(n_actions):
        graph.opened[node, a] = not problem.available[s, a]
        high, reward = graph.told[a], graph.reward[node, a]
        if problem.discount > 0.0:
            high = (high - reward + _SPARE * (abs(high) + abs(reward))) / problem.discount
        for i in range(problem.first[s, a] - base, problem.first[s, a + 1] - base):
            p = graph.prob[node, i]
            graph.child[node, i] = -1
            graph.leaf[node, i] = problem.number[problem.arrive[base + i], 0]
            graph.above[node, i] = high if p > 0.0 else 0.0
            graph.below[node, i] = sums[i, 0] / p if p > 0.0 else 0.0


@out_of_line
@njit(**FAST)
def open_action(problem, graph, node, a):
    """Values of their own for the outcomes of an action, but for those that have a child."""
    s, n_pool = graph.state[node], problem.v.shape[3]
    base = problem.first[s, 0]
    n_rows = problem.first[s, -1] - base
    stage = graph.stage[node] + 1
    v = problem.v[min(stage, problem.v.shape[0] - 1)]
    begin, end, low = graph.begin[node], graph.begin[node + 1], graph.sums[0]
    graph.opened[node, a] = True
    for i in range(problem.first[s, a] - base, problem.first[s, a + 1] - base):
        p, t = graph.prob[node, i], problem.arrive[base + i]
        if graph.child[node, i] >= 0 or p <= 0.0:
            continue
        graph.size[OPENED] += 1
        offset = base * problem.reward.shape[0] + i
        for j in range(begin, end):
            m = graph.model[j]
            graph.mass[m] = graph.weight[j] * problem.like[offset + m * n_rows]
        for pi in range(n_pool):
            low[pi] = 0.0
        n = heavy_models(graph.mass, problem.scale, graph.heavy)
        for j in range(0, n, 4):  # four models at a time: a sum is read and written once for all of them
            m, m1 = graph.heavy[j], graph.heavy[min(j + 1, n - 1)]
            m2, m3 = graph.heavy[min(j + 2, n - 1)], graph.heavy[min(j + 3, n - 1)]
            w, w1 = graph.mass[m], graph.mass[m1] if j + 1 < n else 0.0
            w2, w3 = graph.mass[m2] if j + 2 < n else 0.0, graph.mass[m3] if j + 3 < n else 0.0
            for pi in range(n_pool):
                low[pi] += (w * v[m, t, pi] + w1 * v[m1, t, pi]) + (w2 * v[m2, t, pi] + w3 * v[m3, t, pi])
        graph.above[node, i] = told_cell(problem, graph, t, stage) / p
        best = 0
        for pi in range(1, n_pool):
            if low[pi] > low[best]:
                best = pi
        value = 0.0
        for j in range(begin, end):
            m = graph.model[j]
            value += graph.mass[m] * v[m, t, best]
            graph.mass[m] = 0.0
        graph.below[node, i], graph.leaf[node, i] = value / p, problem.number[t, best]


@njit(**FAST)
def told_at(problem, graph, begin, end):
    """The sum of the upper values by cells of the nodes `begin … end − 1`."""
    total = 0.0
    for x in range(begin, end):
        for j in range(graph.begin[x], graph.begin[x + 1]):
            graph.mass[graph.model[j]] = graph.weight[j]
        total += told_cell(problem, graph, np.int64(graph.state[x]), np.int64(graph.stage[x]))
        for j in range(graph.begin[x], graph.begin[x + 1]):
            graph.mass[graph.model[j]] = 0.0
    return total
