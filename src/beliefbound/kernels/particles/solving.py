"""Optimal values of particles, models in lanes: policy iteration for ever, backwards induction with a horizon.

For ever they are no less than the optimal ones, rounding included: with `V` the value of the last policy and `Q` from
it, `V* ≤ V + c` with `c = max_s (max_a Q − V)⁺ / (1 − γ)`, so `Q* ≤ Q + γc`, which falls under its own backup.

Models are rows of `draws[slot,t + 1,m]`, one slot per pair: probabilities of the next states, last the expected reward.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from beliefbound.kernels.borrow import borrowed
from beliefbound.kernels.options import FAST

_MOST_POLICIES = 1000
_TOGETHER = 128  # models solved side by side
_SWEEPS = 2  # from the mean of other models' values, for a policy to start from
_GAIN = 1e-11  # of the values: what policy iteration takes for an improvement
_NOISE = 1e-15  # of the largest of a model
_TERMS = 80  # of a sum, besides those for its states: rounding of rows and of what is done with it


@njit(**FAST)
def gather(draws, slots, first, p):
    """`p[pair,t + 1,i]`: rows of models `first, first + 1, …`, side by side."""
    for pair in range(slots.size):
        for t in range(p.shape[1]):
            source, out = draws[slots[pair], t], p[pair, t]
            for i in range(out.size):
                out[i] = source[first + i]


@njit(**FAST)
def back_up(discount, p, v, q):
    """`q[pair,m] = r + γ Σ_t P v[t,m]`."""
    n_next = v.shape[0]
    for pair in range(q.shape[0]):
        out, reward = q[pair], p[pair, n_next]
        for m in range(out.size):
            out[m] = 0.0
        for t in range(n_next):
            chance, later = p[pair, t], v[t]
            for m in range(out.size):
                out[m] += chance[m] * later[m]
        for m in range(out.size):
            out[m] = reward[m] + discount * out[m]


@njit(**FAST)
def choose(chosen, a, value, out):
    """`out[m] = value[m]` where `chosen[m] == a`."""
    for m in range(out.size):
        out[m] = value[m] if chosen[m] == a else out[m]


@njit(**FAST)
def value_of(discount, p, policy, v, system):
    """The value `v[s,m]` for ever of `policy[s,m]`: elimination in `I − γP`, which needs no pivots.

    `system[s,s + 1,m]` is scratch. Cost: `S³/3` multiply-adds a model.
    """
    n_states = v.shape[0]
    n_actions = p.shape[0] // n_states
    for s in range(n_states):
        for t in range(n_states + 1):
            out, first = system[s, t], p[s * n_actions, t]
            for m in range(out.size):
                out[m] = first[m]
            for a in range(1, n_actions):
                choose(policy[s], a, p[s * n_actions + a, t], out)
            if t < n_states:
                one = 1.0 if t == s else 0.0
                for m in range(out.size):
                    out[m] = one - discount * out[m]
    for k in range(n_states):
        pivot = system[k, k]
        for m in range(pivot.size):
            pivot[m] = 1.0 / pivot[m]
        for t in range(k + 1, n_states + 1):
            out = system[k, t]
            for m in range(pivot.size):
                out[m] *= pivot[m]
        for s in range(k + 1, n_states):
            factor = system[s, k]
            for t in range(k + 1, n_states + 1):
                out, above = system[s, t], system[k, t]
                for m in range(pivot.size):
                    out[m] -= factor[m] * above[m]
    for s in range(n_states - 1, -1, -1):
        out, right = v[s], system[s, n_states]
        for m in range(out.size):
            out[m] = right[m]
        for t in range(s + 1, n_states):
            factor, later = system[s, t], v[t]
            for m in range(out.size):
                out[m] -= factor[m] * later[m]


@njit(**FAST)
def best_of(q, v):
    """`v[s,m] = max_a q[s·A + a,m]`."""
    n_actions = q.shape[0] // v.shape[0]
    for s in range(v.shape[0]):
        out, first = v[s], q[s * n_actions]
        for m in range(out.size):
            out[m] = first[m]
        for a in range(1, n_actions):
            other = q[s * n_actions + a]
            for m in range(out.size):
                out[m] = max(out[m], other[m])


@njit(**FAST)
def improved(q, v, policy):
    """Whether `policy[s,m]`, of value `v[s,m]`, was not greedy for `q[s·A + a,m]`. It is afterwards; `v` has grown."""
    n_actions = q.shape[0] // policy.shape[0]
    changes = 0
    for s in range(policy.shape[0]):
        best, chosen = v[s], policy[s]
        for a in range(n_actions):
            value = q[s * n_actions + a]
            for m in range(chosen.size):
                better = value[m] > best[m] + _GAIN * (1.0 + abs(best[m]))
                best[m] = value[m] if better else best[m]
                chosen[m] = a if better else chosen[m]
                changes += better
    return changes > 0


@njit(**FAST)
def improves(q, v, policy, size):
    """As `improved`, for rewards of any scale: an action is better that is so by more than rounding of its model's
    values; `size[m]` is scratch."""
    n_states, n = policy.shape
    n_actions = q.shape[0] // n_states
    changes = 0
    for m in range(n):
        size[m] = 0.0
    for s in range(n_states):
        for m in range(n):
            size[m] = max(size[m], abs(v[s, m]))
    for s in range(n_states):
        best, chosen = v[s], policy[s]
        for a in range(n_actions):
            value = q[s * n_actions + a]
            for m in range(n):
                better = value[m] > best[m] + _GAIN * abs(best[m]) + _NOISE * size[m]
                best[m] = value[m] if better else best[m]
                chosen[m] = a if better else chosen[m]
                changes += better
    return changes > 0


@njit(**FAST)
def lift(discount, v, q):
    """Raise `q[s·A + a,m]` from the values `v[s,m]` of a policy to no less than the optimal values."""
    n_states, n = v.shape
    n_actions = q.shape[0] // n_states
    rounding = (n_states + _TERMS) * 2.0**-53
    for m in range(n):
        missing, size = 0.0, 0.0
        for s in range(n_states):
            best = -np.inf
            for a in range(n_actions):
                best = max(best, q[s * n_actions + a, m])
            missing = max(missing, best - v[s, m])
            size = max(size, max(abs(best), abs(v[s, m])))
        more = (missing + 3.0 * rounding * size) / (1.0 - discount)
        for i in range(q.shape[0]):
            q[i, m] += more


class Scratch(NamedTuple):
    """Arrays for so many models as are solved side by side."""

    p: np.ndarray  # [pair,t + 1,m]
    system: np.ndarray  # [s,t + 1,m]
    v: np.ndarray  # [s,m]
    q: np.ndarray  # [pair,m]
    policy: np.ndarray  # int64 [s,m]


def scratch_for(pairs: int, n_states: int, n: int) -> Scratch:
    """For at most `n` models."""
    size = min(n, _TOGETHER)
    return Scratch(
        np.empty((pairs, n_states + 1, size)),
        np.empty((n_states, n_states + 1, size)),
        np.empty((n_states, size)),
        np.empty((pairs, size)),
        np.empty((n_states, size), dtype=np.int64),
    )


def optimal(
    discount: float, draws: np.ndarray, slots: np.ndarray, left: int, policy: np.ndarray, q: np.ndarray
) -> None:
    """Optimal `q[i,pair,m]` of every model with `left − i` decisions to go; for ever where `left` is negative, and
    then `q` has one stage and `policy[s,m]`, where the search starts, is left optimal.

    Policy iteration for ever, lifted so that no value is below the optimal one; else backwards induction, exact up to
    rounding.
    """
    n_states, n = policy.shape
    solve(discount, draws, slots, left, policy, q, scratch_for(slots.size, n_states, n))


def values_of(
    discount: float, draws: np.ndarray, slots: np.ndarray, left: int, actions: np.ndarray, v: np.ndarray
) -> None:
    """The value `v[s,m]` of a stationary policy `actions[s]` on every model for `left` decisions; below 0, for ever."""
    n_states, n = v.shape
    follow(discount, draws, slots, left, actions, v, scratch_for(slots.size, n_states, n))


@njit(**FAST)
def solve(discount, draws, slots, left, policy, q, scratch):
    """`optimal` in the scratch given. It borrows arrays: the caller has to hold them, as Python does."""
    draws, slots, policy, q = borrowed((draws, slots, policy, q))
    solve_held(discount, draws, slots, left, policy, q, borrowed(scratch))


@njit(**FAST)
def solve_held(discount, draws, slots, left, policy, q, scratch):
    """`solve`, for compiled callers: nothing is borrowed."""
    p, system, v, here, own = scratch
    n, size = policy.shape[1], p.shape[2]
    for batch in range((n + size - 1) // size):
        first = min(batch * size, n - size)
        gather(draws, slots, first, p)
        if left < 0:
            if batch == 0:
                for s in range(own.shape[0]):
                    for i in range(size):
                        own[s, i] = policy[s, first + i]
            else:
                start_alike(discount, p, v, here, own)
            for _ in range(_MOST_POLICIES):
                value_of(discount, p, own, v, system)
                back_up(discount, p, v, here)
                if not improves(here, v, own, system[0, 0]):
                    break
            lift(discount, v, here)
            for s in range(own.shape[0]):
                for i in range(size):
                    policy[s, first + i] = own[s, i]
            keep(here, first, q[0])
            continue
        v.fill(0.0)
        here.fill(0.0)
        for stage in range(q.shape[0]):
            keep(here, first, q[stage])
        for decisions in range(1, left + 1):
            back_up(discount, p, v, here)
            best_of(here, v)
            if left - decisions < q.shape[0]:
                keep(here, first, q[left - decisions])


@njit(**FAST)
def keep(x, first, out):
    """`out[i,first + m] = x[i,m]`."""
    for i in range(x.shape[0]):
        for m in range(x.shape[1]):
            out[i, first + m] = x[i, m]


@njit(**FAST)
def start_alike(discount, p, v, q, policy):
    """A policy to start from: greedy after a few sweeps from the mean of the values `v[s,m]` of other models."""
    n = v.shape[1]
    for s in range(v.shape[0]):
        mean = v[s].sum() / n
        for m in range(n):
            v[s, m] = mean
    for _ in range(_SWEEPS):
        back_up(discount, p, v, q)
        best_of(q, v)
    back_up(discount, p, v, q)
    v.fill(-1e300)
    improved(q, v, policy)


@njit(**FAST)
def follow(discount, draws, slots, left, actions, v, scratch):
    """`values_of` in the scratch given. It borrows arrays: the caller has to hold them, as Python does."""
    draws, slots, actions, v = borrowed((draws, slots, actions, v))
    follow_held(discount, draws, slots, left, actions, v, borrowed(scratch))


@njit(**FAST)
def follow_held(discount, draws, slots, left, actions, v, scratch):
    """`follow`, for compiled callers: nothing is borrowed."""
    p, system, here, q, policy = scratch
    n_states, n = v.shape
    size, n_actions = p.shape[2], slots.size // n_states
    for s in range(n_states):
        for i in range(size):
            policy[s, i] = actions[s]
    for batch in range((n + size - 1) // size):
        first = min(batch * size, n - size)
        gather(draws, slots, first, p)
        if left < 0:
            value_of(discount, p, policy, here, system)
        else:
            here.fill(0.0)
            for _ in range(left):
                back_up(discount, p, here, q)
                for s in range(n_states):
                    for i in range(size):
                        here[s, i] = q[s * n_actions + actions[s], i]
        keep(here, first, v)
