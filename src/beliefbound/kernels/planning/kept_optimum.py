"""The optimal policy of a model that changes a little at a time, kept by rank-one updates.

With `G = (I − γP_π)⁻¹` at hand, one more row for state `s`, which differs by `d` and pays `c` more, has

    line = γ dᵀG,   G' = G + G[:,s] lineᵀ/(1 − line[s]),   V' = V + G[:,s] (c + γ d·V)/(1 − line[s])

(Sherman & Morrison 1950); the denominator is the ratio of two determinants of `I − γP`, hence positive. A change of
reward moves `V` along columns of `G`. Policy iteration from the last optimum then switches few states or none: a step
costs a backup, `S²A`, and `S²` for each switch, in place of sweeps or of an elimination. The optimum is exact up to
rounding; `invert` renews `G` now and then.

Arrays: `p[pair,t]`, `pair = s·A + a`, `r[pair]`, `policy[s]` (actions), `v[s]`, `q[pair]`.
"""

from numba import njit

from beliefbound.kernels.options import FAST
from beliefbound.kernels.out_of_line import out_of_line
from beliefbound.kernels.planning.policy_iteration import GAIN, MOST_POLICIES


@out_of_line
@njit(**FAST)
def invert(discount, p, policy, inverse):
    """`inverse[s,t] = (I − γP_π)⁻¹`, by Gauss–Jordan in place: diagonally dominant, it needs no pivots."""
    n_states = policy.size
    n_actions = p.shape[0] // n_states
    for s in range(n_states):
        row = p[s * n_actions + policy[s]]
        for t in range(n_states):
            inverse[s, t] = -discount * row[t]
        inverse[s, s] += 1.0
    for k in range(n_states):
        pivot = 1.0 / inverse[k, k]
        inverse[k, k] = 1.0
        for t in range(n_states):
            inverse[k, t] *= pivot
        for s in range(n_states):
            if s != k:
                factor = inverse[s, k]
                inverse[s, k] = 0.0
                for t in range(n_states):
                    inverse[s, t] -= factor * inverse[k, t]


@njit(**FAST)
def dot(x, y):
    """`Σ_t x[t] y[t]`."""
    total = 0.0
    for t in range(x.size):
        total += x[t] * y[t]
    return total


@out_of_line
@njit(**FAST)
def change_row(discount, s, d, more, inverse, v, line):
    """State `s` has a row that differs by `d[t]` and pays `more`: `inverse` and `v` follow. `line[t]` is scratch."""
    n_states = v.size
    for t in range(n_states):
        line[t] = 0.0
    for i in range(n_states):
        if d[i] != 0.0:
            factor = discount * d[i]
            for t in range(n_states):
                line[t] += factor * inverse[i, t]
    scale = 1.0 / (1.0 - line[s])
    gain = (more + discount * dot(d, v)) * scale
    for i in range(n_states):
        column = inverse[i, s]
        if column != 0.0:
            v[i] += column * gain
            factor = column * scale
            for t in range(n_states):
                inverse[i, t] += factor * line[t]


@out_of_line
@njit(**FAST)
def back_up_pairs(discount, p, r, v, q):
    """`q[pair] = r + γ Σ_t P v[t]`."""
    for pair in range(q.size):
        q[pair] = r[pair] + discount * dot(p[pair], v)


@njit(**FAST)
def is_better(q, v):
    """Whether an action of value `q` is better than `v` beyond rounding."""
    return q > v + GAIN * (1.0 + abs(v))


@out_of_line
@njit(**FAST)
def greedy_where_better(q, v, policy, wanted):
    """Write `wanted[s]`, greedy where another action is better beyond rounding, else as it was; how many changed."""
    n_actions = q.size // v.size
    changes = 0
    for s in range(v.size):
        wanted[s] = policy[s]
        best = v[s]
        for a in range(n_actions):
            if is_better(q[s * n_actions + a], best):
                best = q[s * n_actions + a]
                wanted[s] = a
        changes += wanted[s] != policy[s]
    return changes


@out_of_line
@njit(**FAST)
def improve(discount, p, r, policy, inverse, v, q, wanted, d, line):
    """Policy iteration from `policy`, whose value is `v` and whose inverse is `inverse`, until it is optimal; `q` holds
    its backup already. `wanted[s]`, `d[t]` and `line[t]` are scratch."""
    n_states = v.size
    n_actions = q.size // n_states
    for _ in range(MOST_POLICIES):
        if greedy_where_better(q, v, policy, wanted) == 0:
            return
        for s in range(n_states):
            if wanted[s] != policy[s]:
                new, old = s * n_actions + wanted[s], s * n_actions + policy[s]
                for t in range(n_states):
                    d[t] = p[new, t] - p[old, t]
                change_row(discount, s, d, r[new] - r[old], inverse, v, line)
                policy[s] = wanted[s]
        back_up_pairs(discount, p, r, v, q)
