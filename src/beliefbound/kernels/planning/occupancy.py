"""Occupancies of a policy, and backward improvement conditioned on them: one sweep of coordinate ascent (CADP).

`b[k,m,s]` is the weight of model `m` times the chance that it is in state `s` at stage `k` under the policy,
`b[0,m,s] = w[m] p0[s]` and `b[k+1,m,t] = Σ_s b[k,m,s] P[m,s,π_k(s),t]`; `mass[k,s] = Σ_m b[k,m,s]`. Forward reads
only the rows of the chosen actions, so it costs `1/A` of a backup; it starts at the first stage whose choices have
changed. Where `mass[k,s]` is below `NEGLIGIBLE` the state counts as never met: its choice cannot move the value by a
rounding error.

The improvement picks `argmax_a Σ_m b[k,m,s] Q[m,s,a]` (with `w[m]` instead of `b` in states never met) but keeps the
incumbent unless the gain exceeds `rounding · Σ_m b[k,m,s]`; among better actions the lowest of the best wins.

Layouts as in `kernels.planning.sweep`: lanes `b[k,s,m]` for small problems; rows and csr `b[k,m,s]`, one model at a
time, so that a model's transitions stay in cache for the whole horizon.
"""

from numba import njit

from beliefbound.kernels.options import EXACT, FAST
from beliefbound.kernels.planning.simd import (
    carry_lanes_1,
    carry_lanes_8,
    carry_lanes_16,
    carry_rows_1,
    carry_rows_8,
    carry_rows_48,
)
from beliefbound.kernels.planning.sweep import backup_lanes, best_action, take_lanes

NEGLIGIBLE = 1e-200


@njit(**EXACT)
def forward_lanes(p, w, actions, first, b, mass):
    """Occupancies `b[k,s,m]` of stages after `first` from `p[s,a,t,m]` and `actions[k,s]`; `mass[k,s]` follows.

    Where a state is never met its mass is 0 and its weights are `w[m]` instead, so that `b` is what the improvement
    mixes with.
    """
    n_states, _, _, n = p.shape
    for k in range(first, actions.shape[0] - 1):
        m = 0
        while m + 16 <= n:
            carry_lanes_16(p, actions, b, mass, k, m)
            m += 16
        if m + 8 <= n:
            carry_lanes_8(p, actions, b, mass, k, m)
            m += 8
        while m < n:
            carry_lanes_1(p, actions, b, mass, k, m)
            m += 1
        following = k + 1
        for s in range(n_states):
            if mass[following, s] <= NEGLIGIBLE:
                mass[following, s] = 0.0
                for m in range(n):
                    b[following, s, m] = w[m]


@njit(inline="always", **EXACT)
def improve_lanes(lanes, v, b, mass, rounding, actions, k, out):
    """Stage `k`: `out[s,m]` from `v[t,m]`, `actions[k,s]` in place where another one gains more than `rounding` per
    unit of mass; true if any changed."""
    q, mixed = lanes.q, lanes.mixed
    backup_lanes(lanes.p, lanes.r, b[k], lanes.w.size, lanes.discount, v, q, mixed)
    changed = False
    for s in range(mixed.shape[0]):
        chosen, best = best_action(mixed, lanes.available, s)
        if best > mixed[s, actions[k, s]] + rounding * (mass[k, s] if mass[k, s] > 0.0 else 1.0):
            actions[k, s] = chosen
            changed = True
        take_lanes(q, s, actions[k, s], out)
    return changed


@njit(**EXACT)
def ascend_lanes(lanes, start, rounding, first, b, mass, actions, v):
    """Forward from stage `first`, then improve every stage backwards: `actions[k,s]` in place, `v[s,m]` written. The
    models are `kernels.planning.sweep.Lanes`, or alike; `start[s]` is where they begin.

    Returns the first stage where a choice changed (the horizon when none did) and the new objective `Σ_m w start·v`.
    """
    n_states, n_models = v.shape
    forward_lanes(lanes.p, lanes.w, actions, first, b, mass)
    changed = actions.shape[0]
    current, other = lanes.even, lanes.odd
    for s in range(n_states):
        for m in range(n_models):
            current[s, m] = 0.0
    for k in range(actions.shape[0] - 1, -1, -1):
        if improve_lanes(lanes, current, b, mass, rounding, actions, k, other):
            changed = k
        current, other = other, current
    rho = 0.0
    for s in range(n_states):
        for m in range(n_models):
            v[s, m] = current[s, m]
            rho += start[s] * lanes.w[m] * current[s, m]
    return changed, rho


@njit(**EXACT)
def forward_rows(p, actions, first, b):
    """Occupancies `b[k,m,s]` after stage `first`, from `p[m,s,a,t]` and `actions[k,s]`; model by model."""
    n_models, n_states = p.shape[:2]
    for m in range(n_models):
        for k in range(first, actions.shape[0] - 1):
            t = 0
            while t + 48 <= n_states:
                carry_rows_48(p, actions, b, m, k, t)
                t += 48
            if n_states < 8:
                for t in range(n_states):
                    carry_rows_1(p, actions, b, m, k, t)
            else:
                while t < n_states:  # the last eight overlap those before
                    carry_rows_8(p, actions, b, m, k, min(t, n_states - 8))
                    t += 8


@njit(**FAST)
def forward_csr(indptr, indices, data, n_actions, actions, first, model, b):
    """Occupancies `b[k,m,s]` after stage `first`, of models from `model` on, whose rows over `(m,s,a)` are given."""
    horizon, _, n_states = b.shape
    for m in range((indptr.size - 1) // (n_states * n_actions)):
        for k in range(first, horizon - 1):
            following = b[k + 1, model + m]
            following[:] = 0.0
            for s in range(n_states):
                here = b[k, model + m, s]
                if here == 0.0:
                    continue
                row = (m * n_states + s) * n_actions + actions[k, s]
                for i in range(indptr[row], indptr[row + 1]):
                    following[indices[i]] += here * data[i]


@njit(**FAST)
def improve_stage(q, w, available, b, rounding, mixed, mass, actions, v):
    """The improvement of one stage from `q[m,s,a]` and `b[m,s]`: `actions[s]` in place, `v[m,s]` follows.

    Returns whether any choice changed. `mixed[s,a]` and `mass[s]` are scratch.
    """
    n_models, n_states, n_actions = q.shape
    mixed[:] = 0.0
    mass[:] = 0.0
    for m in range(n_models):
        for s in range(n_states):
            mass[s] += b[m, s]
            for a in range(n_actions):
                mixed[s, a] += b[m, s] * q[m, s, a]
    for s in range(n_states):
        if mass[s] <= NEGLIGIBLE:
            mass[s] = 0.0
            for a in range(n_actions):
                mixed[s, a] = 0.0
                for m in range(n_models):
                    mixed[s, a] += w[m] * q[m, s, a]
    changed = False
    for s in range(n_states):
        chosen, best = best_action(mixed, available, s)
        slack = rounding * mass[s] if mass[s] > 0.0 else rounding
        if best > mixed[s, actions[s]] + slack:
            actions[s] = chosen
            changed = True
    for m in range(n_models):
        for s in range(n_states):
            v[m, s] = q[m, s, actions[s]]
    return changed


@njit(**FAST)
def own_actions(q, available, actions, v):
    """Each model on its own: `actions[m,s] = argmax_a q[m,s,a]` (ties: lowest), `v[m,s]` the maximum."""
    n_models, n_states, n_actions = q.shape
    for m in range(n_models):
        for s in range(n_states):
            actions[m, s], v[m, s] = best_action(q[m], available, s)
