"""Values of an agent that is told which of two models it is in: upper values for the leaves of a belief graph.

Tell the agent the *pair* that holds its model, and leave the rest for it to learn. It can do no worse than before, so
for any way of pairing the models, with `p` the weight of the second model of a pair `c` and `b_c` that of both,

    V*(b,s) ≤ Σ_c b_c W_c(p_c,s),      W_c(p,s) = max_a Q_c(p,s,a),
    Q_c(p,s,a) = r_p(s,a) + γ Σ_k Pr_p(k | s,a) W_c(p^k, arrive_k).

QMDP is the same bound with each model told by itself. `W_c` is a function of a state and of *one* number, so it is
solved on a grid `p = g/(G−1)` and read between grid points on straight lines. What is read

1. is above the true `W_c`: that is convex in `p`, and a convex function lies below its chords;
2. falls under its own backups, `W ≥ max_a r + γ E W`, between grid points too. Read values are convex (grid values of a
   convex function are), so is `Q_c(·,s,a)` computed from them, and thus it lies below *its* chords. With `Q` the
   chords, `W(b,s) = max_a Σ_c b_c Q_c(p_c,s,a)` is at most `Σ_c b_c W_c(p_c,s)` and at least the backup of the latter.

That is what `kernels.graph.information_relaxation` asks of leaf values. With `G = 2` all this is QMDP to the letter.

Of the two models of a pair the first is the one of smaller index; a model left over is paired with itself, and its
second weight is 0. `table[stage,s,g,a]` of a pair holds `Q`.

*Rounding.* What is allowed for it (`planning.rounding`) asks that every weight is right up to a share of itself: where
a model is all but ruled out, what it does not matter for may be a billion times as large. So both shares of a place
between two grid points come from the weights, neither as one minus the other, and chords are sums of two products:
`l + x (h − l)`, with `l = −10⁹` and `x = 1`, has lost nine digits of `h`.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from beliefbound.kernels.options import FAST, FAST_INLINE
from beliefbound.kernels.out_of_line import out_of_line
from beliefbound.kernels.planning.sweep import best_action
from beliefbound.kernels.posterior import copy_into


@njit(**FAST_INLINE)
def position(first, second, last):
    """Grid interval of the pair of weights, one of them positive, and the shares of its two ends; the grid is
    `0..last`."""
    x, y = second / (first + second) * last, first / (first + second) * last
    g = min(np.int64(x), last - 1)
    return g, max(y - (last - 1 - g), 0.0), x - g


class Outcomes(NamedTuple):
    """What outcome row k does to grid point g of two models."""

    chance: np.ndarray  # [k,g]
    interval: np.ndarray  # int64 [k,g]: where it leads, on the grid
    share: np.ndarray  # [k,g,2]: of the ends of the interval


def solve_pair(
    problem: Any, i: int, j: int, n_grid: int, max_sweeps: int, epsilon: float, table: np.ndarray
) -> np.ndarray:
    """Fill `table[stage,s,g,a]` of models `i` and `j` (none is kept where it has no stages) and return the values
    `[s,g]` at stage 0.

    It begins with the values of the two models by themselves, told apart, at the last stage there is, and goes
    backwards; without a horizon it sweeps until values change by `epsilon` or less, and is valid after any number.
    """
    shape, (n_states, n_actions) = (len(problem.arrive), n_grid), problem.available.shape
    outcomes = Outcomes(np.zeros(shape), np.zeros(shape, np.int64), np.zeros((*shape, 2)))
    values, q = np.zeros((n_states, n_grid)), np.zeros((n_states, n_grid, n_actions))
    solve(problem, int(i), int(j), outcomes, values, q, max_sweeps, epsilon, table)
    return values


@out_of_line
@njit(**FAST)
def set_outcomes(problem, i, j, outcomes):
    """The outcomes of models `i` and `j`, written where there are zeros."""
    chance, interval, share = outcomes
    n_states, n_models, last = problem.available.shape[0], problem.reward.shape[0], chance.shape[1] - 1
    for s in range(n_states):
        base = problem.first[s, 0]
        n_rows = problem.first[s, -1] - base
        for k in range(base, base + n_rows):
            one = problem.like[base * n_models + i * n_rows + k - base]
            two = problem.like[base * n_models + j * n_rows + k - base]
            for g in range(last + 1):
                first, second = (last - g) / last * one, g / last * two
                chance[k, g] = first + second
                if chance[k, g] > 0.0:
                    interval[k, g], share[k, g, 0], share[k, g, 1] = position(first, second, last)


@out_of_line
@njit(**FAST)
def sweep_pair(problem, i, j, outcomes, values, q):
    """`q[s,g,a]` from the values `[s,g]` of the next stage, which become those of this one; the largest change."""
    chance, interval, share = outcomes
    (n_states, n_grid), last = values.shape, values.shape[1] - 1
    for s in range(n_states):
        for a in range(problem.available.shape[1]):
            if not problem.available[s, a]:
                continue
            one, two = problem.reward[i, s, a], problem.reward[j, s, a]
            for g in range(n_grid):
                total = 0.0
                for k in range(problem.first[s, a], problem.first[s, a + 1]):
                    t, h = problem.arrive[k], interval[k, g]
                    total += chance[k, g] * (share[k, g, 0] * values[t, h] + share[k, g, 1] * values[t, h + 1])
                q[s, g, a] = (last - g) / last * one + g / last * two + problem.discount * total
    change = 0.0
    for s in range(n_states):
        for g in range(n_grid):
            _, best = best_action(q[:, g], problem.available, s)
            change = max(change, abs(best - values[s, g]))
            values[s, g] = best
    return change


@njit(**FAST)
def solve(problem, i, j, outcomes, values, q, max_sweeps, epsilon, table):
    """`solve_pair`, in arrays of zeros."""
    n_stages, (n_states, n_grid, n_actions) = problem.q.shape[0], q.shape
    told, last = problem.q[n_stages - 1], n_grid - 1
    for s in range(n_states):
        _, one = best_action(told[i], problem.available, s)
        _, two = best_action(told[j], problem.available, s)
        for g in range(n_grid):
            values[s, g] = (last - g) / last * one + g / last * two
            for a in range(n_actions):
                q[s, g, a] = (last - g) / last * told[i, s, a] + g / last * told[j, s, a]
    set_outcomes(problem, i, j, outcomes)
    if n_stages == 1:
        for _ in range(max_sweeps):
            if sweep_pair(problem, i, j, outcomes, values, q) <= epsilon:
                break
    for k in range(n_stages - 1, -1, -1):
        if k < n_stages - 1:
            sweep_pair(problem, i, j, outcomes, values, q)
        if k < table.shape[0]:
            for s in range(n_states):
                copy_into(table[k, s], q[s])


@njit(inline="always", **FAST)
def best_sum(problem, sums, i, t):
    """The largest `sums[i,1 + a]` of the actions available in `t`."""
    best = -np.inf
    for a in range(problem.available.shape[1]):
        if problem.available[t, a]:
            best = max(best, sums[i, 1 + a])
    return best


@out_of_line
@njit(**FAST)
def least_of_pairings(problem, graph, node):
    """Lower the children's upper values to those by pairs: for each pairing, the best action by the sum over pairs."""
    s = graph.state[node]
    base = problem.first[s, 0]
    n_rows = problem.first[s, -1] - base
    n_actions = problem.available.shape[1]
    block = base * problem.reward.shape[0]
    sums, parts = graph.sums, graph.parts
    begin, end = graph.begin[node], graph.begin[node + 1]
    for j in range(begin, end):
        m = graph.model[j]
        parts[m, -1] = graph.weight[j]
        for i in range(n_rows):
            parts[m, i] = graph.weight[j] * problem.like[block + m * n_rows + i]
    for pairing in range(problem.partner.shape[0]):
        pairs = problem.pairs[pairing]
        stage, last = min(graph.stage[node] + 1, pairs.shape[1] - 1), pairs.shape[3] - 1
        for i in range(n_rows):
            for a in range(n_actions):
                sums[i, 1 + a] = 0.0
        for j in range(begin, end):
            m = graph.model[j]
            one, two = m, problem.partner[pairing, m]
            if two < one:
                if parts[two, -1] > 0.0:  # the pair has been met
                    continue
                one, two = two, one
            c = problem.cell[pairing, m]
            for i in range(n_rows):
                both = parts[one, i] + parts[two, i]
                if both > 0.0:
                    g, left, right = position(parts[one, i], parts[two, i], last)
                    left, right, t = both * left, both * right, problem.arrive[base + i]
                    for a in range(n_actions):
                        sums[i, 1 + a] += left * pairs[c, stage, t, g, a] + right * pairs[c, stage, t, g + 1, a]
        for i in range(n_rows):
            if sums[i, 0] > 0.0:
                high = best_sum(problem, sums, i, problem.arrive[base + i])
                graph.above[node, i] = min(graph.above[node, i], high / sums[i, 0])
    for j in range(begin, end):
        for i in range(parts.shape[1]):
            parts[graph.model[j], i] = 0.0
