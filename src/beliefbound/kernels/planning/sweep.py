"""One Bellman backup for a set of models, and the loops around it.

The backup is `Q[m,s,a] = r[m,s,a] + γ Σ_t P[m,s,a,t] V[m,t]`; the greedy step that makes it multi-MDP backwards
induction is `a*(s) = argmax_a Σ_m w[m] Q[m,s,a]` (ties: lowest action), `V[m,s] = Q[m,s,a*(s)]`. With one model
and `w = [1]` this is value iteration, so every planner shares these loops.

Three layouts of the same thing:

* *lanes*: `P[s,a,t,m]`, models last: small problems, one SIMD lane per model. Fused backup and greedy step.
* *rows*: `P[m,s,a,t]`, models first: large problems in the caller's own array, read once per stage; one core
  saturates the memory bus, so there are no threads.
* *csr*: rows over `(m,s,a)` in compressed form, `kernels.planning.csr_sweep`.

Cost of a stage: `M·S·A·S` multiply-adds (`nnz` for csr). Nothing is allocated inside a stage.

`ModelSet` sweeps by these, and so do agents that hold models (`kernels.planning.held_models`); what needs each model
solved on its own shares `kernels.planning.policy_iteration`.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from beliefbound.kernels.options import EXACT, EXACT_INLINE, FAST
from beliefbound.kernels.out_of_line import out_of_line
from beliefbound.kernels.planning.simd import backup_1, backup_4, backup_8, backup_16, copy_1, copy_8
from beliefbound.kernels.reference import by_reference

CHUNK = 512  # states whose mixed values stay in cache while models pass by


@njit(inline="always", **EXACT)
def backup_lanes(p, r, w, w_step, discount, v, q, mixed):
    """`q[s,a,m]` from `p[s,a,t,m]`, `r[s,a,m]`, `v[t,m]`, and `mixed[s,a] = Σ_m w_s[m] q[s,a,m]`, on explicit vectors.

    `w_step` is 0 when `w[m]` weighs every state alike, the number of models when each state has its own `w[s,m]`.
    """
    n_states, n_actions, _, n = p.shape
    for s in range(n_states):
        for a in range(n_actions):
            mixed[s, a] = 0.0
    m = 0
    while m + 16 <= n:
        backup_16(p, r, w, discount, v, q, mixed, n_states, n_actions, n, m, w_step)
        m += 16
    if m + 8 <= n:
        backup_8(p, r, w, discount, v, q, mixed, n_states, n_actions, n, m, w_step)
        m += 8
    if m + 4 <= n:
        backup_4(p, r, w, discount, v, q, mixed, n_states, n_actions, n, m, w_step)
        m += 4
    while m < n:
        backup_1(p, r, w, discount, v, q, mixed, n_states, n_actions, n, m, w_step)
        m += 1


@njit(inline="always", **EXACT)
def best_action(values, available, s):
    """`(a, values[s,a])` of the best action available in a state (ties: lowest)."""
    chosen, best = -1, -np.inf
    for a in range(values.shape[1]):
        if available[s, a] and values[s, a] > best:
            chosen, best = a, values[s, a]
    return chosen, best


@njit(inline="always", **EXACT)
def take_lanes(q, s, a, out):
    """`out[s,m] = q[s,a,m]`."""
    n_actions, n = q.shape[1:]
    source, target = (s * n_actions + a) * n, s * n
    m = 0
    while m + 8 <= n:
        copy_8(q, source + m, out, target + m)
        m += 8
    while m < n:
        copy_1(q, source + m, out, target + m)
        m += 1


@by_reference
class Lanes(NamedTuple):
    """Models, models last, and scratch of sweeps over them. Any tuple that has these fields will do."""

    p: np.ndarray  # [s,a,t,m]
    r: np.ndarray  # [s,a,m]
    w: np.ndarray  # [m]
    available: np.ndarray  # bool [s,a]
    discount: float
    q: np.ndarray  # [s,a,m]
    mixed: np.ndarray  # [s,a]
    vbar: np.ndarray  # [s]
    even: np.ndarray  # [s,m]
    odd: np.ndarray  # [s,m]


def lanes_of(p: np.ndarray, r: np.ndarray, w: np.ndarray, available: np.ndarray, discount: float) -> Lanes:
    """Models in arrays that are there, with scratch for them."""
    n_states, n_actions, n = r.shape
    values = np.empty((2, n_states, n))
    q, mixed, vbar = np.empty((n_states, n_actions, n)), np.empty((n_states, n_actions)), np.zeros(n_states)
    return Lanes(p, r, w, available, float(discount), q, mixed, vbar, values[0], values[1])


@njit(inline="always", **EXACT)
def choose_lanes(q, mixed, available, vbar, actions, out):
    """The greedy step: `actions[s]`, `out[s,m]` and `vbar[s]` from `q[s,a,m]` and `mixed[s,a]`.

    Returns `Σ_s |Σ_m w V_new − vbar_old|`, the change under the belief.
    """
    change, one = 0.0, q.shape[2] == 1
    for s in range(vbar.size):
        chosen, best = best_action(mixed, available, s)
        actions[s] = chosen
        if one:
            out[s, 0] = best
        else:
            take_lanes(q, s, chosen, out)
        change += abs(best - vbar[s])
        vbar[s] = best
    return change


@njit(**EXACT_INLINE)
def sweep_lanes(lanes, v, actions, out):
    """One fused stage from `v[t,m]`: `out[s,m]`, `lanes.vbar[s]` and `actions[s]` are written; the change, as above."""
    q, mixed = lanes.q, lanes.mixed
    backup_lanes(lanes.p, lanes.r, lanes.w, 0, lanes.discount, v, q, mixed)
    return choose_lanes(q, mixed, lanes.available, lanes.vbar, actions, out)


@out_of_line
@njit(**EXACT)
def induct_lanes(lanes, v, actions):
    """`len(actions)` stages backwards; `v[s,m]` holds the terminal values and receives the first stage's."""
    n_states, n_models = v.shape
    current, other = lanes.odd, lanes.even
    for s in range(n_states):
        for m in range(n_models):
            current[s, m] = v[s, m]
    for k in range(actions.shape[0] - 1, -1, -1):
        sweep_lanes(lanes, current, actions[k], other)
        current, other = other, current
    for s in range(n_states):
        for m in range(n_models):
            v[s, m] = current[s, m]


@njit(**FAST)
def backup_rows(p, r, discount, v, q):
    """`q[(m,s,a)]` from `p[(m,s,a),t]`, `r[(m,s,a)]`, `v[m,t]`: one core reads every probability once, in order."""
    n_next = p.shape[1]
    per_model = p.shape[0] // v.shape[0]
    for i in range(len(r)):
        row = p[i]
        values = v[i // per_model]
        total = 0.0
        for t in range(n_next):
            total += row[t] * values[t]
        q[i] = r[i] + discount * total


@njit(**FAST)
def greedy(q, w, available, actions, v, first, last):
    """`actions[s] = argmax_a Σ_m w[m] q[m,s,a]` over available actions, ties to the lowest; `v[m,s]` follows. Of states
    `first … last − 1`."""
    n_models, n_states, n_actions = q.shape
    mixed = np.empty((min(CHUNK, last - first), n_actions))
    for begin in range(first, last, CHUNK):
        end = min(begin + CHUNK, last)
        mixed[:] = 0.0
        for m in range(n_models):
            weight, flat, row = w[m], mixed.reshape(-1), q[m, begin:end].reshape(-1)
            for i in range(row.size):
                flat[i] += weight * row[i]
        offered = available[begin:end]
        for s in range(begin, end):
            actions[s] = best_action(mixed, offered, s - begin)[0]
        for m in range(n_models):
            for s in range(begin, end):
                v[m, s] = q[m, s, actions[s]]


@njit(**FAST)
def greedy_sweeps(p, r, discount, w, available, most, still, checkpoint, actions, v, q, before):
    """MMBI's sweeps over rows `p[(m,s,a),t]`, `r[(m,s,a)]` until the policy changes, values repeat – those of the sweep
    before, or of the checkpoint – or there were `most`: `(sweeps, by how much the last moved values, whether it was
    less than counts, the same from the checkpoint)`. Less than `still[0]` counts for nothing, if it is less than
    `still[1]` of the largest value as well; `before[m,s]` and `q[m,s,a]` are scratch."""
    n_models, n_states = v.shape
    sweeps, changed, last = 0, False, actions.copy()
    moved, settled, repeated = 0.0, False, False
    while sweeps < most and not (changed or settled or repeated):
        before[:] = v
        backup_rows(p, r, discount, v, q.reshape(-1))
        greedy(q, w, available, actions, v, 0, n_states)
        sweeps += 1
        for s in range(n_states):
            changed |= actions[s] != last[s]
        moved, off, largest = 0.0, 0.0, 0.0
        for m in range(n_models):
            for s in range(n_states):
                moved = max(moved, abs(v[m, s] - before[m, s]))
                off = max(off, abs(v[m, s] - checkpoint[m, s]))
                largest = max(largest, abs(v[m, s]))
        least = min(still[0], still[1] * largest)
        settled, repeated = moved <= least, off <= least
    return sweeps, moved, settled, repeated


@njit(**FAST)
def best_values(q, available, v, first, last):
    """`v[m,s] = max_a q[m,s,a]` for each model on its own, over available actions. Of states `first … last − 1`."""
    n_models, n_states, n_actions = q.shape
    for m in range(n_models):
        for s in range(first, last):
            best = -np.inf
            for a in range(n_actions):
                if available[s, a] and q[m, s, a] > best:
                    best = q[m, s, a]
            v[m, s] = best


@njit(**FAST)
def follow(q, probabilities, v, first, last):
    """`v[m,s] = Σ_a π(a|s) q[m,s,a]` for one stage of a policy `probabilities[s,a]`; of states `first … last − 1`."""
    n_models, n_states, n_actions = q.shape
    for m in range(n_models):
        for s in range(first, last):
            total = 0.0
            for a in range(n_actions):
                if probabilities[s, a] != 0.0:
                    total += probabilities[s, a] * q[m, s, a]
            v[m, s] = total
