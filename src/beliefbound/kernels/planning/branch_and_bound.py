"""Each model solved on its own, with some choices fixed: the bound of policy branch and bound, and where to branch.

`fixed[k,s]` is the action forced at stage `k` in state `s`, or −1. All arrays are dense, models first: `q[k,m,s,a]`
and `v[k,m,s]` (with `v[T] = 0`).

Every memoryless policy that agrees with `fixed` is worth at most `Σ_m w_m p0·v[0,m]`. `frontier` tightens this: as long
as every state that is met is fixed the occupancies are known, and at the next stage the models must share one action.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from beliefbound.kernels.options import FAST
from beliefbound.kernels.posterior import copy_into
from beliefbound.kernels.reference import by_reference


@by_reference
class WeightedModels(NamedTuple):
    """The models, their weights, and where they start."""

    p: np.ndarray  # [m,s,a,t]
    r: np.ndarray  # [m,s,a]
    w: np.ndarray  # [m]
    available: np.ndarray  # [s,a]
    discount: float
    p0: np.ndarray  # [s]


@by_reference
class Solved(NamedTuple):
    """Each model solved on its own under the choices of a node."""

    v: np.ndarray  # [k,m,s], one stage more than there are decisions
    q: np.ndarray  # [k,m,s,a]


@by_reference
class Scratch(NamedTuple):
    """What the functions below write on the way."""

    d: np.ndarray  # [k,s]: occupancy of one model
    loss: np.ndarray  # [k,s,a]: what forcing an action on everyone costs, to first order
    again: np.ndarray  # bool [m]: models solved again for a child
    b: np.ndarray  # [m,s]: occupancies times weights
    next_b: np.ndarray  # [m,s]
    current: np.ndarray  # [s]
    other: np.ndarray  # [s]


def new_solved(problem: WeightedModels, horizon: int) -> Solved:
    """Arrays for a node, with zeros after the last decision."""
    return Solved(np.zeros((horizon + 1, *problem.r.shape[:2])), np.zeros((horizon, *problem.r.shape)))


def new_scratch(problem: WeightedModels, horizon: int) -> Scratch:
    """Arrays to work with."""
    n_models, n_states, n_actions = problem.r.shape
    return Scratch(
        d=np.empty((horizon, n_states)),
        loss=np.empty((horizon, n_states, n_actions)),
        again=np.zeros(n_models, dtype=np.bool_),
        b=np.empty((n_models, n_states)),
        next_b=np.empty((n_models, n_states)),
        current=np.empty(n_states),
        other=np.empty(n_states),
    )


@njit(**FAST)
def solve_fixed(problem, fixed, last, m, solved):
    """Backward induction of model `m` over the stages `last … 0`, from `v[last+1,m]`.

    A loop of its own: actions are fixed in some pairs of stage and state, and a node asks for few models.
    """
    p, r, _, available, discount, _ = problem
    v, q = solved
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
def frontier(problem, fixed, last, q, new_q, scratch):
    """The bound of a node: exact rewards up to the frontier, then one action for all models there, then each its own.

    Where every state that is met at a stage is fixed, occupancies are known. At the first stage where one is not,
    models are weighed by them: `Σ_s max_a Σ_m b_m(s) q_m(s,a)`. `new_q` holds the values of the models solved `again`,
    up to stage `last`; all else is in `q`.
    """
    p, r, w, available, discount, p0 = problem
    again, b, next_b = scratch.again, scratch.b, scratch.next_b
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
                                value = new_q[k, m, s, a] if again[m] and k <= last else q[k, m, s, a]
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
        for m in range(n_models):
            for s in range(n_states):
                b[m, s] = next_b[m, s]
        scale *= discount
    return gained


@njit(**FAST)
def open_node(problem, fixed, solved, rule, scratch):
    """Solve every model under `fixed`; find a common policy and the place where the models disagree most.

    `scratch.d[k,s]` is the occupancy of one model under its own optimal policy; `scratch.loss[k,s,a]` becomes
    `γ^k Σ_m w_m d_m(k,s) (v − q(a))`, what forcing `a` on everyone would cost to first order; `rule[k,s]` is the action
    of least loss. When the largest least loss is zero, `rule` is optimal for every model at once and attains the bound.

    Returns `(bound, stage, state)`; the stage is −1 when nothing is left to disagree about.
    """
    p, r, w, available, discount, p0 = problem
    v, q = solved
    d, loss = scratch.d, scratch.loss
    n_models, n_states, n_actions = r.shape
    horizon = fixed.shape[0]
    loss[:] = 0.0
    for m in range(n_models):
        solve_fixed(problem, fixed, horizon - 1, m, solved)
        if w[m] == 0.0:
            continue
        copy_into(d[0], p0)
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
    scratch.again[:] = False
    return frontier(problem, fixed, -1, q, q, scratch), stage, state


@njit(**FAST)
def bound_child(problem, fixed, stage, state, action, parent, child, scratch):
    """The bound with `(stage, state) → action` forced as well, from the parent's values; those of `child` are written.

    Stages after `stage` are the parent's, and so is a model that takes this action anyway: only the others are solved
    again, over the stages up to `stage`.
    """
    v, q = parent
    again = scratch.again
    kept = fixed[stage, state]
    fixed[stage, state] = action
    for m in range(problem.r.shape[0]):
        again[m] = problem.w[m] > 0.0 and q[stage, m, state, action] != v[stage, m, state]
        if not again[m]:
            continue
        copy_into(child.v[stage, m], v[stage, m])
        copy_into(child.q[stage, m], q[stage, m])
        child.v[stage, m, state] = q[stage, m, state, action]
        solve_fixed(problem, fixed, stage - 1, m, child)
    bound = frontier(problem, fixed, stage, q, child.q, scratch)
    fixed[stage, state] = kept
    return bound


@njit(**FAST)
def objective(problem, actions, scratch):
    """`Σ_m w_m p0·V_m` of a time-indexed policy `actions[k,s]`."""
    p, r, w, _, discount, p0 = problem
    current, other = scratch.current, scratch.other
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
            for s in range(n_states):
                current[s] = other[s]
        for s in range(n_states):
            total += w[m] * p0[s] * current[s]
    return total
