"""Value iteration on one model with optimism: the solver that the optimistic agents share.

A sweep is `V'(s) = max_a min(cap, r(s,a) + γ O(s,a))`, ties to the lowest action, where `r` holds whatever bonus the
agent adds and the *outlook* `O` is, by `kind`, with a row `p = p(·|s,a)` and a number `w = width[s,a]`,

* `MEAN`: `p·V`;
* `BALL`: `max q·V` over distributions with `‖q − p‖₁ ≤ w`;
* `BOX`: `max q·V` over distributions with `|q_t − p_t| ≤ factor · (2 sqrt(p_t (1 − p_t) w) + 6 w)` for every t;
* `SHIFT`: `(1 − w) p·V + w max V(t)` over the states t with `p(t) > 0`.

A row of zeros leads nowhere: with `r = cap` a pair is worth the cap, which is how agents write "unknown".

`solve` repeats the sweep until the largest change of V is at most the tolerance; the values then are within
`tolerance · γ / (1 − γ)` of the fixed point. Where `relative`, V is shifted to minimum 0 after every sweep and the
span of the changes counts instead: average rewards (γ = 1), whose gain lies between the least and the largest change.

A sweep costs `S²A` multiply-adds, less those of rows that are `blank`. Nothing is allocated. It is a scalar loop, apart
from `kernels.planning.sweep`: a ball orders the states, a cap and a relative shift look at every value, and there is
one model, so no lane to fill.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from beliefbound.kernels.actions import natural
from beliefbound.kernels.options import EXACT, EXACT_INLINE
from beliefbound.kernels.reference import by_reference

MEAN, BALL, SHIFT, BOX = range(4)
LEAST, LARGEST = range(2)  # the entries of `change`


@by_reference
class OptimisticModel(NamedTuple):
    """A model, its values, and scratch."""

    p: np.ndarray  # [s,a,t]: distributions, perhaps with some mass left out (MEAN), or rows of zeros
    r: np.ndarray  # [s,a], bonuses included
    width: np.ndarray  # [s,a]: radius of the ball, w of the box, or weight of the shift; unused for MEAN
    v: np.ndarray  # [s] values
    next_v: np.ndarray  # [s] scratch
    order: np.ndarray  # int64 [s]: states by value, worst first (BALL and BOX only)
    change: np.ndarray  # [2]: least and largest change of the last sweep
    actions: np.ndarray  # int64 [s], chosen by the last sweep
    available: np.ndarray  # bool [s,a]
    blank: np.ndarray  # bool [s,a]: rows known to be all zeros, which are not read (but for BOX)
    discount: float
    cap: float
    kind: int
    relative: bool
    factor: float  # of the sides of the box


def optimistic_model(
    available: np.ndarray,
    *,
    kind: int,
    discount: float,
    cap: float = np.inf,
    relative: bool = False,
    factor: float = 1.0,
) -> OptimisticModel:
    """Empty arrays for one model of the size of `available[s,a]`; all zero."""
    S, A = available.shape
    return OptimisticModel(
        p=np.zeros((S, A, S)),
        r=np.zeros((S, A)),
        width=np.zeros((S, A)),
        v=np.zeros(S),
        next_v=np.zeros(S),
        order=np.arange(S),
        change=np.zeros(2),
        actions=np.zeros(S, np.int64),
        available=np.array(available),
        blank=np.zeros((S, A), np.bool_),
        discount=float(discount),
        cap=float(cap),
        kind=kind,
        relative=relative,
        factor=float(factor),
    )


@njit(**EXACT)
def sort_states(v, order):
    """`order` becomes the states by rising value. By insertion: between sweeps the order hardly changes."""
    for i in range(1, order.size):
        state = order[i]
        j = i
        while j > 0 and v[order[j - 1]] > v[state]:
            order[j] = order[j - 1]
            j -= 1
        order[j] = state


@njit(**EXACT_INLINE)
def mean_of(row, v):
    """`row·v`, in eight sums of their own: a processor keeps them going together, and every machine rounds alike."""
    n = natural(v.size)
    whole = n - n % 8
    x0 = x1 = x2 = x3 = x4 = x5 = x6 = x7 = 0.0
    for t in range(0, whole, 8):
        x0 += row[t] * v[t]
        x1 += row[t + 1] * v[t + 1]
        x2 += row[t + 2] * v[t + 2]
        x3 += row[t + 3] * v[t + 3]
        x4 += row[t + 4] * v[t + 4]
        x5 += row[t + 5] * v[t + 5]
        x6 += row[t + 6] * v[t + 6]
        x7 += row[t + 7] * v[t + 7]
    total = ((x0 + x1) + (x2 + x3)) + ((x4 + x5) + (x6 + x7))
    for t in range(whole, n):
        total += row[t] * v[t]
    return total


@njit(**EXACT_INLINE)
def best_in_ball(row, v, order, radius, blank):
    """`max q·v` over distributions `q` with `‖q − row‖₁ ≤ radius`; `order` has the states by rising value.

    Half the radius goes to the best state, as far as it can take it, and is taken from the worst upwards. A row of
    zeros has nothing that could be taken: with a radius of 2 it leads to the best state. It is not read if it is said
    to be `blank`.
    """
    last = order.size - 1
    best = natural(order[last])
    if blank:
        return min(0.5 * radius, 1.0) * v[best]
    given = min(0.5 * radius, 1.0 - row[best])
    value = mean_of(row, v) + given * v[best]
    i, left = 0, given
    while left > 0.0 and i < last:
        t = natural(order[i])
        if row[t] > 0.0:
            taken = min(row[t], left)
            value -= taken * v[t]
            left -= taken
        i += 1
    return value


@njit(**EXACT)
def best_in_box(row, v, order, w, factor):
    """`max q·v` over distributions `q` with `|q_t − p_t| ≤ factor · (2 sqrt(p_t (1 − p_t) w) + 6 w)`, `p` the
    row; `order` has the states by rising value.

    Every state gets the least that it may; what is left goes to the best ones, as far as they can take it. A row of
    zeros needs a box as wide as 1: then it leads to the best state.
    """
    value, left = 0.0, 1.0
    for t in range(v.size):
        least = max(0.0, row[t] - factor * side(row[t], w))
        value += least * v[t]
        left -= least
    for i in range(order.size - 1, -1, -1):
        t = order[i]
        reach = factor * side(row[t], w)
        given = min(left, min(1.0, row[t] + reach) - max(0.0, row[t] - reach))
        value += given * v[t]
        left -= given
        if left <= 0.0:
            break
    return value


@njit(**EXACT_INLINE)
def side(p, w):
    """How far a chance may be from `p` in a box of `w`."""
    return 2.0 * math.sqrt(max(0.0, p * (1.0 - p)) * w) + 6.0 * w


@njit(**EXACT_INLINE)
def best_possible(row, v):
    """The largest `v[t]` with `row[t] > 0`; 0 for a row of zeros."""
    best = -np.inf
    for t in range(v.size):
        if row[t] > 0.0:
            best = max(best, v[t])
    return best if best > -np.inf else 0.0


@njit(**EXACT)
def sweep(model):
    """One sweep: `v`, `actions` and `change`."""
    p, r, width, v, next_v, order = model.p, model.r, model.width, model.v, model.next_v, model.order
    available, blank, kind = model.available, model.blank, model.kind
    actions, discount, cap = model.actions, model.discount, model.cap
    n_states, n_actions = r.shape
    if kind in (BALL, BOX):
        sort_states(v, order)
    least, largest = np.inf, -np.inf
    for s in range(n_states):
        chosen, best = -1, -np.inf
        for a in range(n_actions):
            if available[s, a]:
                if kind == BALL:
                    outlook = best_in_ball(p[s, a], v, order, width[s, a], blank[s, a])
                elif kind == BOX:
                    outlook = best_in_box(p[s, a], v, order, width[s, a], model.factor)
                else:
                    outlook = 0.0 if blank[s, a] else mean_of(p[s, a], v)
                    if kind == SHIFT:
                        outlook += width[s, a] * (best_possible(p[s, a], v) - outlook)
                value = min(cap, r[s, a] + discount * outlook)
                if value > best:
                    chosen, best = a, value
        actions[s] = chosen
        next_v[s] = best
        least = min(least, best - v[s])
        largest = max(largest, best - v[s])
    for s in range(n_states):
        v[s] = next_v[s]
    model.change[LEAST], model.change[LARGEST] = least, largest


@njit(**EXACT)
def solve(model, sweeps, tolerance):
    """Sweep until the values converge, at most `sweeps` times; returns how many were made."""
    made = 0
    while made < sweeps:
        made += 1
        sweep(model)
        least, largest = model.change[LEAST], model.change[LARGEST]
        if (largest - least if model.relative else max(largest, -least)) <= tolerance:
            break
        if model.relative:
            lowest = model.v.min()
            for s in range(model.v.size):
                model.v[s] -= lowest
    return made
