"""Particles of which a few rows are new, solved from what they were worth before; models in lanes, for ever.

Let `V = max_a Q` for values `Q` that are no less than the optimal ones and fall under their own backup
(`kernels.particles.solving`). A model whose greedy pairs have old rows, and of which no new pair, backed up from `V`,
is worth more than `V`, still has `V ≥ TV`: so `V` is no less than the new optimal values either, nor is `Q`, its new
pairs backed up from `V`. The other models are solved by policy iteration from their old policies; those that have
converged take no part in the next round, so that a batch is never held up by its slowest model.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from beliefbound.kernels.options import FAST
from beliefbound.kernels.out_of_line import out_of_line
from beliefbound.kernels.planning.policy_iteration import (
    MOST_POLICIES,
    back_up,
    best_of,
    improves,
    largest,
    rounding_of,
    shortfall,
    value_of,
)
from beliefbound.kernels.reference import by_reference


@by_reference
class Changed(NamedTuple):
    """Arrays for all models, and for so many as are solved side by side, i."""

    v: np.ndarray  # [s,m]: what they were worth
    policy: np.ndarray  # int64 [s,m]
    size: np.ndarray  # [m]: the largest of their values
    touched: np.ndarray  # bool [m]: whether it is solved
    lanes: np.ndarray  # int64 [m]: those that have not converged
    p: np.ndarray  # [pair,t + 1,i]
    system: np.ndarray  # [s,t + 1,i]
    values: np.ndarray  # [s,i]
    q: np.ndarray  # [pair,i]
    own: np.ndarray  # int64 [s,i]
    lane: np.ndarray  # int64 [i]
    scratch: np.ndarray  # [3,i]


_TOGETHER = 64  # models solved side by side


def new_changed(n_states: int, pairs: int, n: int) -> Changed:
    """For `n` models."""
    size = min(n, _TOGETHER)
    return Changed(
        v=np.empty((n_states, n)),
        policy=np.empty((n_states, n), np.int64),
        size=np.empty(n),
        touched=np.empty(n, np.bool_),
        lanes=np.empty(n, np.int64),
        p=np.empty((pairs, n_states + 1, size)),
        system=np.empty((n_states, n_states + 1, size)),
        values=np.empty((n_states, size)),
        q=np.empty((pairs, size)),
        own=np.empty((n_states, size), np.int64),
        lane=np.empty(size, np.int64),
        scratch=np.empty((3, size)),
    )


@out_of_line
@njit(**FAST)
def solve_again(discount, draws, before, slots, old, changed, q):
    """Optimal values `q[pair,m]`, or no less, of models in rows `slots[pair]` that were worth `old[pair,m]` in rows
    `before[pair]`."""
    keep_old(discount, draws, before, slots, old, changed, q)
    n_states = changed.v.shape[0]
    n_actions, left = slots.size // n_states, 0
    for m in range(changed.touched.size):
        if not changed.touched[m]:
            continue
        changed.lanes[left] = m
        left += 1
        for s in range(n_states):
            chosen = 0
            for a in range(1, n_actions):
                if old[s * n_actions + a, m] > old[s * n_actions + chosen, m]:
                    chosen = a
            changed.policy[s, m] = chosen
    for _ in range(MOST_POLICIES):
        if left == 0:
            break
        left = improve(discount, draws, slots, changed, left, q)


@out_of_line
@njit(**FAST)
def keep_old(discount, draws, before, slots, old, changed, q):
    """`q[pair,m]`: of old rows as it was, of new ones backed up from the old values, rounded up. Writes `changed.v` and
    `changed.touched`: where a new row is part of a model's greedy policy, or better than that."""
    v, size, touched = changed.v, changed.size, changed.touched
    n_states = v.shape[0]
    n_actions, rounding = slots.size // n_states, rounding_of(n_states)
    best_of(old, v)
    touched.fill(False)
    largest(v, size)
    for pair in range(slots.size):
        out, was, best = q[pair], old[pair], v[pair // n_actions]
        if slots[pair] == before[pair]:
            for m in range(out.size):
                out[m] = was[m]
            continue
        row = draws[slots[pair]]
        reward = row[n_states]
        out.fill(0.0)
        for t in range(n_states):
            chance, later = row[t], v[t]
            for m in range(out.size):
                out[m] += chance[m] * later[m]
        for m in range(out.size):
            out[m] = reward[m] + discount * out[m] + rounding * (size[m] + abs(reward[m]))
            touched[m] |= (was[m] >= best[m]) | (out[m] > best[m])


@out_of_line
@njit(**FAST)
def improve(discount, draws, slots, changed, left, q):
    """One round of policy iteration on the first `left` of `changed.lanes`: writes `q[pair,m]`, no less than the
    optimal values whether a model has converged or not. Returns how many have not, which are the first then."""
    lanes, lane, own, p = changed.lanes, changed.lane, changed.own, changed.p
    values, here, policy = changed.values, changed.q, changed.policy
    size, more, rises = changed.scratch
    n_states, together, next_left = own.shape[0], lane.size, 0
    for first in range(0, left, together):
        used = min(together, left - first)
        for i in range(together):
            lane[i] = lanes[first + min(i, used - 1)]
        for pair in range(slots.size):
            for t in range(n_states + 1):
                source, out = draws[slots[pair], t], p[pair, t]
                for i in range(together):
                    out[i] = source[lane[i]]
        for s in range(n_states):
            for i in range(together):
                own[s, i] = policy[s, lane[i]]
        value_of(discount, p, own, values, changed.system)
        back_up(discount, p, values, here)
        shortfall(discount, values, here, size, more)
        for pair in range(slots.size):
            for i in range(used):
                q[pair, lane[i]] = here[pair, i] + more[i]
        if not improves(here, values, own, size, rises):
            continue
        for i in range(used):
            if rises[i] > 0.0:
                lanes[next_left] = lane[i]
                next_left += 1
                for s in range(n_states):
                    policy[s, lane[i]] = own[s, i]
    return next_left
