"""Exact k-step look-ahead on a finite belief.

With unnormalised weights `b^o_m = b_m Pr_m(o | s,a)` over the outcomes `o` of a step (next state and what is seen of
the reward),

    U_k(b,s) = max_a Σ_m b_m r_m(s,a) + γ Σ_o U_{k−1}(b^o, s'),    U_0 = max_a Σ_m b_m Q*_m(s,a)
    L_k(b,s) = max( L_0(b,s), max_a Σ_m b_m r_m(s,a) + γ Σ_o L_{k−1}(b^o, s') ),    L_0 = max_π Σ_m b_m V^π_m(s)

`L_0 ≤ L_1 ≤ … ≤ V* ≤ … ≤ U_1 ≤ U_0`. Cost `(A · outcomes)^k` leaves.
"""

import numpy as np
from numba import njit

from beliefbound.kernels.options import FAST


@njit(**FAST)
def leaf(problem, weights, s, stage, above):
    """`U_0` or `L_0` of unnormalised weights."""
    best = -np.inf
    if above:
        q = problem.q[min(stage, problem.q.shape[0] - 1)]
        for a in range(q.shape[2]):
            if problem.available[s, a]:
                total = 0.0
                for m in range(weights.size):
                    total += weights[m] * q[m, s, a]
                best = max(best, total)
    else:
        v = problem.v[min(stage, problem.v.shape[0] - 1)]
        for i in range(v.shape[2]):
            total = 0.0
            for m in range(weights.size):
                total += weights[m] * v[m, s, i]
            best = max(best, total)
    return best


@njit(**FAST)
def look_ahead(problem, weights, s, stage, depth, above):
    """`U_depth` or `L_depth` at `weights[0]`, the remaining rows being scratch; also which action attains it."""
    if depth == 0 or stage >= problem.horizon:
        return (leaf(problem, weights[0], s, stage, above) if stage < problem.horizon else 0.0), -1
    b, child = weights[0], weights[1]
    best, chosen = -np.inf, -1
    for a in range(problem.available.shape[1]):
        if not problem.available[s, a]:
            continue
        total = 0.0
        for m in range(b.size):
            total += b[m] * problem.reward[m, s, a]
        base = problem.first[s, 0]
        n_rows = problem.first[s, -1] - base
        for k in range(problem.first[s, a], problem.first[s, a + 1]):
            mass = 0.0
            offset = base * b.size + k - base
            for m in range(b.size):
                child[m] = b[m] * problem.like[offset + m * n_rows]
                mass += child[m]
            if mass > 0.0:
                value, _ = look_ahead(problem, weights[1:], problem.arrive[k], stage + 1, depth - 1, above)
                total += problem.discount * value
        if total > best:
            best, chosen = total, a
    if not above:
        best = max(best, leaf(problem, b, s, stage, above))
    return best, chosen
