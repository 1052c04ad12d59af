"""What models held by an agent (`held_models`) are worth: each by itself from above, a policy from below, and CADP.

Rewards are in [0, 1], so sweeps that start at `1/(1−γ)` fall to the optimal values and never below them, and the value
of a policy for finitely many decisions is at most its value for ever: both ends are on the right side however few
sweeps are made.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from beliefbound.kernels.lines import zeros
from beliefbound.kernels.options import EXACT
from beliefbound.kernels.planning.occupancy import ascend_lanes
from beliefbound.kernels.planning.sweep import backup_lanes, induct_lanes, take_lanes
from beliefbound.kernels.reference import by_reference

ROUNDING = 1e-12  # of the largest value: a gain below it is none


@by_reference
class Optimum(NamedTuple):
    """What each model is worth by itself, from above."""

    q: np.ndarray  # [s,a,m] ≥ Q*_m
    mean: np.ndarray  # [s,a]: its mean over models
    v: np.ndarray  # [s,m] scratch
    out: np.ndarray  # [s,m] scratch


def new_optimum(n_states: int, n_actions: int, n: int) -> Optimum:
    """Empty arrays for `n` models."""
    return Optimum(zeros(n_states, n_actions, n), zeros(n_states, n_actions), zeros(n_states, n), zeros(n_states, n))


@njit(inline="always", **EXACT)
def begin_above(models, v):
    """`v[s,m]` that no model is worth more than."""
    for s in range(v.shape[0]):
        for m in range(v.shape[1]):
            v[s, m] = 1.0 / (1.0 - models.discount)


@njit(inline="always", **EXACT)
def best_of_each(q, available, v, out):
    """`out[s,m]`, the largest of `q[s,a,m]`, model by model; how far a value has fallen from `v[s,m]` at most."""
    n_states, n_actions, n = q.shape
    fall = 0.0
    for s in range(n_states):
        for m in range(n):
            out[s, m] = -np.inf
        for a in range(n_actions):
            if available[s, a]:
                for m in range(n):
                    out[s, m] = max(out[s, m], q[s, a, m])
        for m in range(n):
            fall = max(fall, v[s, m] - out[s, m])
    return fall


@njit(**EXACT)
def optimum_from_above(models, optimum, sweeps, tolerance):
    """At most `sweeps` sweeps of value iteration on each model by itself, from above, until no value falls by more than
    `tolerance`."""
    v, out, q = optimum.v, optimum.out, optimum.q
    begin_above(models, v)
    for _ in range(sweeps):
        backup_lanes(models.p, models.r, models.w, 0, models.discount, v, q, optimum.mean)
        fall = best_of_each(q, models.available, v, out)
        v, out = out, v
        if fall <= tolerance:
            break


@njit(**EXACT)
def value_below(models, table, decisions, s):
    """What the policy `table[k,s]` (its last line for ever) earns from `s` in so many decisions, mean over models;
    values are scratch."""
    p, r, w, q, mixed = models.p, models.r, models.w, models.q, models.mixed
    n_states, _, n = r.shape
    v, out = models.even, models.odd
    for t in range(n_states):
        for m in range(n):
            v[t, m] = 0.0
    for k in range(decisions - 1, -1, -1):
        backup_lanes(p, r, w, 0, models.discount, v, q, mixed)
        line = min(k, table.shape[0] - 1)
        for t in range(n_states):
            take_lanes(q, t, table[line, t], out)
        v, out = out, v
    total = 0.0
    for m in range(n):
        total += w[m] * v[s, m]
    return total


@by_reference
class PolicyOccupancies(NamedTuple):
    """A time-indexed policy and its occupancies."""

    actions: np.ndarray  # int64 [k,s]
    b: np.ndarray  # [k,s,m]
    mass: np.ndarray  # [k,s]
    v: np.ndarray  # [s,m]
    start: np.ndarray  # [s]


def new_occupancies(decisions: int, n_states: int, n: int) -> PolicyOccupancies:
    """Empty arrays for policies of so many decisions on `n` models."""
    return PolicyOccupancies(
        actions=np.zeros((decisions, n_states), np.int64),
        b=zeros(decisions, n_states, n),
        mass=np.zeros((decisions, n_states)),
        v=zeros(n_states, n),
        start=np.zeros(n_states),
    )


@njit(**EXACT)
def ascend(models, ascent, s, sweeps):
    """CADP (`planning.cadp`) from state `s`: at most `sweeps` sweeps of coordinate ascent from MMBI; returns the value
    on these models. The values of the models are scratch."""
    n_states, _, n = models.r.shape
    for t in range(n_states):
        ascent.start[t] = 1.0 if t == s else 0.0
        ascent.mass[0, t] = ascent.start[t]
        for m in range(n):
            ascent.b[0, t, m] = models.w[m]
            ascent.v[t, m] = 0.0
    induct_lanes(models, ascent.v, ascent.actions)
    rounding = ROUNDING / (1.0 - models.discount)
    first, before = 0, -np.inf
    for _ in range(sweeps):
        first, value = ascend_lanes(
            models, ascent.start, rounding, first, ascent.b, ascent.mass, ascent.actions, ascent.v
        )
        if first == ascent.actions.shape[0] or value <= before + rounding:
            before = max(before, value)
            break
        before = value
    return before
