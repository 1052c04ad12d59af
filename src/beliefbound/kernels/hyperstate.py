"""A policy followed under a product-Dirichlet belief itself, with a belief graph on particles as its adviser.

The hyperstate (counts, state) has closed-form predictive probabilities: `α_t / Σα` for the next state, and `successes
/ (successes + failures)` for a Bernoulli reward. A graph on particles, conditioned on the same outcomes, says what to
do and supplies a control variate: for any function `W` of history, action and outcome, `E[W | x,a] − W(outcome)` has
mean zero under the exact predictive. So the estimate is unbiased for the value of the policy under the belief,
however poor the particles are.
"""

import numpy as np
from numba import njit

from beliefbound.kernels.graph import make_child

_OPTIONS = {"cache": True, "nogil": True, "error_model": "numpy"}

ACT, LEAF, STALE = 0, 1, 2


@njit(**_OPTIONS)
def effective(graph, node):
    """Effective number of particles at a node: `1 / Σ w²`."""
    total = 0.0
    for j in range(graph.begin[node], graph.begin[node + 1]):
        total += graph.weight[j] ** 2
    return 1.0 / total


@njit(**_OPTIONS)
def pool_value(problem, graph, node):
    """What the best policy of the pool earns at a node."""
    v = problem.v[min(graph.stage[node], problem.v.shape[0] - 1)]
    s = graph.state[node]
    best = -np.inf
    for i in range(v.shape[2]):
        total = 0.0
        for j in range(graph.begin[node], graph.begin[node + 1]):
            total += graph.weight[j] * v[graph.model[j], s, i]
        best = max(best, total)
    return best


@njit(**_OPTIONS)
def look(problem, graph, node, k, powers, tolerance, least):
    """What the policy does at stage `k`: `LEAF` at the last stage, or where a policy of the pool is as good to within
    `tolerance` (discounted); `STALE` without a node or with fewer than `least` particles that count; else `ACT`."""
    if k >= powers.size - 1:
        return LEAF
    if node < 0:
        return STALE
    if powers[k] * (graph.upper[node] - pool_value(problem, graph, node)) <= tolerance:
        return LEAF
    return STALE if effective(graph, node) < least else ACT


@njit(**_OPTIONS)
def step_on(problem, graph, node, row):
    """The node after an outcome; −1 where no particle allows it, or the graph is full."""
    return make_child(problem, graph, node, row) if graph.prob[node, row] > 1e-280 else np.int64(-1)


@njit(**_OPTIONS)
def walk(problem, graph, node, sign, alpha, success, failure, known, low, high, u, k, powers, tolerance, least):
    """Follow the graph's policy from stage `k` until `look` says otherwise; `powers[k] = γ^k` up to the depth.

    `sign[row]` is 1 for a success, 0 for a failure, −1 when no reward is seen (rewards are then `known[s,a]`). The
    counts `alpha[s,a,t]`, `success[s,a]`, `failure[s,a]` are advanced in place. Returns `(LEAF or STALE, stage, state,
    value)`; the value, discounted to stage 0, is rewards plus `γ (E[W | x,a] − W)` at each step.
    """
    value = 0.0
    state = graph.state[node]
    probabilities = np.empty(graph.prob.shape[1])
    while True:
        status = look(problem, graph, node, k, powers, tolerance, least)
        if status != ACT:
            return status, k, state, value
        a = graph.action[node]
        base = problem.first[state, 0]
        i, j = problem.first[state, a] - base, problem.first[state, a + 1] - base
        rows = 0.0
        for t in range(alpha.shape[2]):
            rows += alpha[state, a, t]
        trials = success[state, a] + failure[state, a]
        expected = 0.0
        for row in range(i, j):
            p = alpha[state, a, problem.arrive[base + row]] / rows
            if sign[base + row] == 1:
                p *= success[state, a] / trials
            elif sign[base + row] == 0:
                p *= failure[state, a] / trials
            probabilities[row] = p
            expected += p * graph.above[node, row]
        row, reached = i, 0.0
        for other in range(i, j):
            if probabilities[other] > 0.0:
                row = other
                reached += probabilities[other]
                if u[k] < reached:
                    break
        reward = low + (high - low) * success[state, a] / trials if sign[base + row] >= 0 else known[state, a]
        value += powers[k] * (reward + problem.discount * (expected - graph.above[node, row]))
        t = problem.arrive[base + row]
        alpha[state, a, t] += 1.0
        if sign[base + row] == 1:
            success[state, a] += 1.0
        elif sign[base + row] == 0:
            failure[state, a] += 1.0
        k += 1
        state = t
        node = step_on(problem, graph, node, row)


@njit(**_OPTIONS)
def policy_value(p, r, actions, discount, horizon, out):
    """Value `out[m,s]` of a stationary policy on each model for `horizon` decisions (for ever when negative)."""
    n_models, n_states, _, _ = p.shape
    v, new = np.empty(n_states), np.empty(n_states)
    for m in range(n_models):
        if horizon < 0:
            system = np.zeros((n_states, n_states))
            for s in range(n_states):
                for t in range(n_states):
                    system[s, t] = -discount * p[m, s, actions[s], t]
                system[s, s] += 1.0
                new[s] = r[m, s, actions[s]]
            out[m] = np.linalg.solve(system, new)
            continue
        v[:] = 0.0
        for _ in range(horizon):
            for s in range(n_states):
                total = 0.0
                for t in range(n_states):
                    total += p[m, s, actions[s], t] * v[t]
                new[s] = r[m, s, actions[s]] + discount * total
            v, new = new, v
        out[m] = v
