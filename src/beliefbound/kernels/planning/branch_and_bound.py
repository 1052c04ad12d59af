"""Each model solved on its own, with some choices fixed: the bound of policy branch and bound, and where to branch.

`fixed[k,s]` is the action forced at stage `k` in state `s`, or −1. All arrays are dense, models first: `q[k,m,s,a]`
and `v[k,m,s]` (with `v[T] = 0`).

Every memoryless policy that agrees with `fixed` is worth at most `Σ_m w_m p0·v[0,m]`. `frontier` tightens this: as long
as every state that is met is fixed the occupancies are known, and at the next stage the models must share one action.
"""

import numpy as np
from numba import njit

from beliefbound.kernels.options import FAST


@njit(**FAST)
def solve_fixed(p, r, available, discount, fixed, last, m, v, q):
    """Backward induction of model `m` over the stages `last … 0`, from `v[last+1,m]`."""
    n_states, n_actions = r.shape[1:]
    for k in range(last, -1, -1):
        following = v[k + 1, m]
        for s in range(n_states):
            best = -np.inf
            for a in range(n_actions):
                if not available[s, a]:
                    continue
                row = p[m, s, a]
                total = 0.0
                for t in range(n_states):
                    total += row[t] * following[t]
                total = r[m, s, a] + discount * total
                q[k, m, s, a] = total
                if total > best:
                    best = total
            v[k, m, s] = best if fixed[k, s] < 0 else q[k, m, s, fixed[k, s]]


@njit(**FAST)
def frontier(p, r, w, available, discount, p0, fixed, last, solved, q, new_q, b, next_b):
    """The bound of a node: exact rewards up to the frontier, then one action for all models there, then each its own.

    Where every state that is met at a stage is fixed, occupancies are known. At the first stage where one is not,
    models are weighed by them: `Σ_s max_a Σ_m b_m(s) q_m(s,a)`. `new_q` holds the values of models with `solved[m]`
    up to stage `last`; all else is in `q`. `b[m,s]` and `next_b[m,s]` are scratch.
    """
    n_models, n_states, n_actions = r.shape
    for m in range(n_models):
        for s in range(n_states):
            b[m, s] = w[m] * p0[s]
    gained, scale = 0.0, 1.0
    for k in range(fixed.shape[0]):
        known = True
        for s in range(n_states):
            if fixed[k, s] < 0:
                for m in range(n_models):
                    if b[m, s] > 0.0:
                        known = False
        if not known:
            total = 0.0
            for s in range(n_states):
                best = -np.inf
                for a in range(n_actions):
                    if available[s, a] and (fixed[k, s] < 0 or fixed[k, s] == a):
                        mixed = 0.0
                        for m in range(n_models):
                            if b[m, s] > 0.0:
                                value = new_q[k, m, s, a] if solved[m] and k <= last else q[k, m, s, a]
                                mixed += b[m, s] * value
                        best = max(best, mixed)
                total += best
            return gained + scale * total
        next_b[:] = 0.0
        for m in range(n_models):
            for s in range(n_states):
                if b[m, s] > 0.0:
                    gained += scale * b[m, s] * r[m, s, fixed[k, s]]
                    row = p[m, s, fixed[k, s]]
                    for t in range(n_states):
                        next_b[m, t] += b[m, s] * row[t]
        b[:] = next_b
        scale *= discount
    return gained


@njit(**FAST)
def open_node(p, r, w, available, discount, p0, fixed, v, q, d, loss, rule, solved, b, next_b):
    """Solve every model under `fixed`; find a common policy and the place where the models disagree most.

    `d[k,s]` (scratch) is the occupancy of one model under its own optimal policy; `loss[k,s,a]` becomes
    `γ^k Σ_m w_m d_m(k,s) (v − q(a))`, what forcing `a` on everyone would cost to first order; `rule[k,s]` is the action
    of least loss. When the largest least loss is zero, `rule` is optimal for every model at once and attains the bound.

    Returns `(bound, stage, state)`; the stage is −1 when nothing is left to disagree about.
    """
    n_models, n_states, n_actions = r.shape
    horizon = fixed.shape[0]
    loss[:] = 0.0
    for m in range(n_models):
        solve_fixed(p, r, available, discount, fixed, horizon - 1, m, v, q)
        if w[m] == 0.0:
            continue
        d[0] = p0
        scale = w[m]
        for k in range(horizon):
            if k + 1 < horizon:
                d[k + 1] = 0.0
            for s in range(n_states):
                here = d[k, s]
                if here == 0.0:
                    continue
                chosen = fixed[k, s]
                for a in range(n_actions):
                    if available[s, a]:
                        gap = v[k, m, s] - q[k, m, s, a]
                        loss[k, s, a] += scale * here * gap
                        if chosen < 0 and gap == 0.0:
                            chosen = a
                if k + 1 < horizon:
                    row = p[m, s, chosen]
                    for t in range(n_states):
                        d[k + 1, t] += here * row[t]
            scale *= discount
    stage, state, most = -1, -1, 0.0
    for k in range(horizon):
        for s in range(n_states):
            rule[k, s] = fixed[k, s]
            if fixed[k, s] >= 0:
                continue
            best = -1
            for a in range(n_actions):
                if available[s, a] and (best < 0 or loss[k, s, a] < loss[k, s, best]):
                    best = a
            rule[k, s] = best
            if loss[k, s, best] > most:
                stage, state, most = k, s, loss[k, s, best]
    solved[:] = False
    bound = frontier(p, r, w, available, discount, p0, fixed, -1, solved, q, q, b, next_b)
    return bound, stage, state


@njit(**FAST)
def bound_child(
    p, r, w, available, discount, p0, fixed, stage, state, action, v, q, child_v, child_q, solved, b, next_b
):
    """The bound with `(stage, state) → action` forced as well, from the parent's `v` and `q`.

    Stages after `stage` are the parent's, and so is a model that takes this action anyway: only the others are solved
    again, over the stages up to `stage`. `child_v[k,m,s]` and `child_q[k,m,s,a]` are scratch.
    """
    n_models = r.shape[0]
    kept = fixed[stage, state]
    fixed[stage, state] = action
    for m in range(n_models):
        solved[m] = w[m] > 0.0 and q[stage, m, state, action] != v[stage, m, state]
        if not solved[m]:
            continue
        child_v[stage, m] = v[stage, m]
        child_q[stage, m] = q[stage, m]
        child_v[stage, m, state] = q[stage, m, state, action]
        solve_fixed(p, r, available, discount, fixed, stage - 1, m, child_v, child_q)
    bound = frontier(p, r, w, available, discount, p0, fixed, stage, solved, q, child_q, b, next_b)
    fixed[stage, state] = kept
    return bound


@njit(**FAST)
def value_of(p, r, w, discount, p0, actions, current, other):
    """`Σ_m w_m p0·V_m` of a time-indexed policy `actions[k,s]`; `current[s]`, `other[s]`: scratch."""
    n_models, n_states = r.shape[:2]
    total = 0.0
    for m in range(n_models):
        if w[m] == 0.0:
            continue
        current[:] = 0.0
        for k in range(actions.shape[0] - 1, -1, -1):
            for s in range(n_states):
                row = p[m, s, actions[k, s]]
                value = 0.0
                for t in range(n_states):
                    value += row[t] * current[t]
                other[s] = r[m, s, actions[k, s]] + discount * value
            current[:] = other
        for s in range(n_states):
            total += w[m] * p0[s] * current[s]
    return total
