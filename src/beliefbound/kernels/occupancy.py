"""Occupancies of a policy, and backward improvement conditioned on them: one sweep of coordinate ascent (CADP).

`b[k,m,s]` is the weight of model `m` times the chance that it is in state `s` at stage `k` under the policy,
`b[0,m,s] = w[m] p0[s]` and `b[k+1,m,t] = Σ_s b[k,m,s] P[m,s,π_k(s),t]`; `mass[k,s] = Σ_m b[k,m,s]`. Forward reads
only the rows of the chosen actions, so it costs `1/A` of a backup; it starts at the first stage whose choices have
changed. Where `mass[k,s]` is below `NEGLIGIBLE` the state counts as never met: its choice cannot move the value by a
rounding error.

The improvement picks `argmax_a Σ_m b[k,m,s] Q[m,s,a]` (with `w[m]` instead of `b` in states never met) but keeps the
incumbent unless the gain exceeds `rounding · Σ_m b[k,m,s]`; among better actions the lowest of the best wins.

Layouts as in `kernels.sweep`: lanes `b[k,s,m]` for small problems; rows and csr `b[m,k,s]`, one model at a time, so
that a model's transitions stay in cache for the whole horizon.
"""

import numpy as np
from numba import njit

from beliefbound.kernels.simd import spread_1, spread_8, spread_16
from beliefbound.kernels.sweep import _OPTIONS, backup_lanes, take_lanes

NEGLIGIBLE = 1e-200


@njit(cache=True, nogil=True)
def forward_lanes(p, w, actions, first, b, mass):
    """Occupancies `b[k,s,m]` of stages after `first` from `p[s,a,t,m]` and `actions[k,s]`; `mass[k,s]` follows.

    Where a state is never met its weights are `w[m]` instead, so that `b` is what the improvement mixes with.
    """
    n_states, n_actions, _, n = p.shape
    for k in range(first, actions.shape[0] - 1):
        b[k + 1] = 0.0
        after = (k + 1) * n_states * n
        for s in range(n_states):
            if mass[k, s] == 0.0:
                continue
            here = (k * n_states + s) * n
            rows = (s * n_actions + actions[k, s]) * n_states * n
            m = 0
            while m + 16 <= n:
                spread_16(b, here + m, p, rows + m, after + m, n_states, n)
                m += 16
            if m + 8 <= n:
                spread_8(b, here + m, p, rows + m, after + m, n_states, n)
                m += 8
            while m < n:
                spread_1(b, here + m, p, rows + m, after + m, n_states, n)
                m += 1
        weigh(b[k + 1], w, mass[k + 1])


@njit(**_OPTIONS)
def weigh(b, w, mass):
    """`mass[s] = Σ_m b[s,m]`; a state never met has mass 0 and the weights `w`."""
    for s in range(b.shape[0]):
        total = 0.0
        here = b[s]
        for m in range(b.shape[1]):
            total += here[m]
        if total > NEGLIGIBLE:
            mass[s] = total
        else:
            mass[s] = 0.0
            for m in range(b.shape[1]):
                here[m] = w[m]


@njit(cache=True, nogil=True)
def _improve_lanes(p, r, available, discount, v, q, mixed, b, mass, rounding, actions, out):
    """One stage: `out[s,m]` from `v[t,m]`, `actions[s]` in place; true if any changed. `q`, `mixed`: scratch."""
    n_states, n_actions, _, n_models = p.shape
    backup_lanes(p, r, b, n_models, discount, v, q, mixed)
    changed = False
    for s in range(n_states):
        best = -np.inf
        chosen = -1
        for a in range(n_actions):
            if available[s, a] and mixed[s, a] > best:
                best = mixed[s, a]
                chosen = a
        if best > mixed[s, actions[s]] + rounding * (mass[s] if mass[s] > 0.0 else 1.0):
            actions[s] = chosen
            changed = True
        take_lanes(q, s, actions[s], out)
    return changed


@njit(**_OPTIONS)
def sweep_lanes(p, r, w, available, discount, rounding, p0, first, b, mass, actions, v):
    """Forward from stage `first`, then improve every stage backwards: `actions[k,s]` in place, `v[s,m]` written.

    Returns the first stage where a choice changed (the horizon when none did) and the new objective.
    """
    n_states, n_actions, _, n_models = p.shape
    forward_lanes(p, w, actions, first, b, mass)
    changed = actions.shape[0]
    q, mixed = np.empty((n_states, n_actions, n_models)), np.empty((n_states, n_actions))
    current, other = np.zeros((n_states, n_models)), np.empty((n_states, n_models))
    for k in range(actions.shape[0] - 1, -1, -1):
        if _improve_lanes(p, r, available, discount, current, q, mixed, b[k], mass[k], rounding, actions[k], other):
            changed = k
        current, other = other, current
    return changed, _finish(current, w, p0, v)


@njit(**_OPTIONS)
def _finish(values, w, p0, v):
    """Copy the first stage's values to `v[s,m]` and return `Σ_m w p0·v`."""
    rho = 0.0
    for s in range(v.shape[0]):
        for m in range(v.shape[1]):
            v[s, m] = values[s, m]
            rho += p0[s] * w[m] * values[s, m]
    return rho


@njit(**_OPTIONS)
def forward_rows(p, actions, first, b):
    """Occupancies `b[m,k,s]` after stage `first`, from `p[m,s,a,t]`; model by model, four states at a time."""
    n_models, n_states = p.shape[:2]
    quads = n_states - n_states % 4
    for m in range(n_models):
        for k in range(first, actions.shape[0] - 1):
            here = b[m, k]
            following = b[m, k + 1]
            chosen = actions[k]
            following[:] = 0.0
            for s in range(0, quads, 4):
                b0, b1, b2, b3 = here[s], here[s + 1], here[s + 2], here[s + 3]
                if b0 == 0.0 and b1 == 0.0 and b2 == 0.0 and b3 == 0.0:
                    continue
                p0 = p[m, s, chosen[s]]
                p1 = p[m, s + 1, chosen[s + 1]]
                p2 = p[m, s + 2, chosen[s + 2]]
                p3 = p[m, s + 3, chosen[s + 3]]
                for t in range(n_states):
                    following[t] += (b0 * p0[t] + b1 * p1[t]) + (b2 * p2[t] + b3 * p3[t])
            for s in range(quads, n_states):
                row = p[m, s, chosen[s]]
                for t in range(n_states):
                    following[t] += here[s] * row[t]


@njit(**_OPTIONS)
def forward_csr(indptr, indices, data, n_actions, actions, first, b):
    """Occupancies `b[m,k,s]` after stage `first`, from compressed rows over `(m,s,a)`."""
    n_models, horizon, n_states = b.shape
    for m in range(n_models):
        for k in range(first, horizon - 1):
            following = b[m, k + 1]
            following[:] = 0.0
            for s in range(n_states):
                here = b[m, k, s]
                if here == 0.0:
                    continue
                row = (m * n_states + s) * n_actions + actions[k, s]
                for i in range(indptr[row], indptr[row + 1]):
                    following[indices[i]] += here * data[i]


@njit(**_OPTIONS)
def total_mass(b, first, mass):
    """`mass[k,s] = Σ_m b[m,k,s]` for stages from `first` on, zero where negligible."""
    n_models, horizon, n_states = b.shape
    mass[first:] = 0.0
    for m in range(n_models):
        for k in range(first, horizon):
            for s in range(n_states):
                mass[k, s] += b[m, k, s]
    for k in range(first, horizon):
        for s in range(n_states):
            if mass[k, s] <= NEGLIGIBLE:
                mass[k, s] = 0.0


@njit(**_OPTIONS)
def improve_stage(q, w, available, b, k, mass, rounding, mixed, actions, v):
    """The improvement of stage `k` from `q[m,s,a]`: `actions[s]` in place, `v[m,s]` follows; whether any changed.

    `mixed[s,a]` is scratch.
    """
    n_models, n_states, n_actions = q.shape
    mixed[:] = 0.0
    for m in range(n_models):
        here = b[m, k]
        for s in range(n_states):
            for a in range(n_actions):
                mixed[s, a] += here[s] * q[m, s, a]
    for s in range(n_states):
        if mass[s] == 0.0:
            for a in range(n_actions):
                mixed[s, a] = 0.0
                for m in range(n_models):
                    mixed[s, a] += w[m] * q[m, s, a]
    changed = False
    for s in range(n_states):
        best = -np.inf
        chosen = -1
        for a in range(n_actions):
            if available[s, a] and mixed[s, a] > best:
                best = mixed[s, a]
                chosen = a
        slack = rounding * mass[s] if mass[s] > 0.0 else rounding
        if best > mixed[s, actions[s]] + slack:
            actions[s] = chosen
            changed = True
    for m in range(n_models):
        for s in range(n_states):
            v[m, s] = q[m, s, actions[s]]
    return changed


@njit(**_OPTIONS)
def own_actions(q, available, actions, v):
    """Each model on its own: `actions[m,s] = argmax_a q[m,s,a]` (ties: lowest), `v[m,s]` the maximum."""
    n_models, n_states, n_actions = q.shape
    for m in range(n_models):
        for s in range(n_states):
            best = -np.inf
            chosen = -1
            for a in range(n_actions):
                if available[s, a] and q[m, s, a] > best:
                    best = q[m, s, a]
                    chosen = a
            actions[m, s] = chosen
            v[m, s] = best
