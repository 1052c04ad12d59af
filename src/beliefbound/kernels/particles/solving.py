"""Optimal values of particles, models in lanes: policy iteration for ever, backwards induction with a horizon.

For ever they are no less than the optimal ones, rounding included: with `V` the value of the last policy and `Q` from
it, `V* ≤ V + c` with `c = max_s (max_a Q − V)⁺ / (1 − γ)`, so `Q* ≤ Q + γc`, which falls under its own backup.

Models are rows of `draws[slot,t + 1,m]`, one slot per pair: probabilities of the next states, last the expected reward.
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
    lift,
    start_alike,
    value_of,
)
from beliefbound.kernels.reference import by_reference

_TOGETHER = 128  # models solved side by side


@out_of_line
@njit(**FAST)
def gather(draws, slots, first, p):
    """`p[pair,t + 1,i]`: rows of models `first, first + 1, …`, side by side."""
    for pair in range(slots.size):
        for t in range(p.shape[1]):
            source, out = draws[slots[pair], t], p[pair, t]
            for i in range(out.size):
                out[i] = source[first + i]


@by_reference
class Scratch(NamedTuple):
    """Arrays for so many models as are solved side by side."""

    p: np.ndarray  # [pair,t + 1,m]
    system: np.ndarray  # [s,t + 1,m]
    v: np.ndarray  # [s,m]
    q: np.ndarray  # [pair,m]
    policy: np.ndarray  # int64 [s,m]


@by_reference
class Models(NamedTuple):
    """Models to be solved, what is optimal in them, and scratch."""

    draws: np.ndarray  # [slot,t + 1 or more,m]
    slots: np.ndarray  # int64 [pair]
    policy: np.ndarray  # int64 [s,m]
    q: np.ndarray  # [stage,pair,m]
    scratch: Scratch


def scratch_for(pairs: int, n_states: int, size: int) -> Scratch:
    """To solve so many models side by side."""
    return Scratch(
        np.empty((pairs, n_states + 1, size)),
        np.empty((n_states, n_states + 1, size)),
        np.empty((n_states, size)),
        np.empty((pairs, size)),
        np.empty((n_states, size), dtype=np.int64),
    )


def models_in(draws: np.ndarray, slots: np.ndarray, policy: np.ndarray, q: np.ndarray) -> Models:
    """Models in arrays that are there, with scratch for them; `policy` and `q` may have no models."""
    return Models(draws, slots, policy, q, scratch_for(len(slots), len(policy), min(draws.shape[2], _TOGETHER)))


def optimal(
    discount: float, draws: np.ndarray, slots: np.ndarray, left: int, policy: np.ndarray, q: np.ndarray
) -> None:
    """Optimal `q[i,pair,m]` of every model with `left − i` decisions to go; for ever where `left` is negative, and
    then `q` has one stage and `policy[s,m]`, where the search starts, is left optimal.

    Policy iteration for ever, lifted so that no value is below the optimal one; else backwards induction, exact up to
    rounding.
    """
    solve(discount, left, models_in(draws, slots, policy, q))


def values_of(
    discount: float, draws: np.ndarray, slots: np.ndarray, left: int, actions: np.ndarray, v: np.ndarray
) -> None:
    """The value `v[s,m]` of a stationary policy `actions[s]` on every model for `left` decisions; below 0, for ever."""
    models = models_in(draws, slots, np.empty((len(v), 0), np.int64), np.empty((0, 0, 0)))
    follow(discount, left, models, actions, v)


@out_of_line
@njit(**FAST)
def solve_for_ever(discount, p, scratch):
    """Optimal `scratch.q[pair,m]` of models `p[pair,t + 1,m]`, from `scratch.policy`, which is optimal afterwards."""
    system, v, here, own = scratch.system, scratch.v, scratch.q, scratch.policy
    for _ in range(MOST_POLICIES):
        value_of(discount, p, own, v, system)
        back_up(discount, p, v, here)
        if not improves(here, v, own, system[0, 0], system[0, 1]):
            break
    else:  # `improves` has raised `v`, and `lift` needs the value of a policy
        value_of(discount, p, own, v, system)
        back_up(discount, p, v, here)
    lift(discount, v, here, system[0, 0], system[0, 1])


@out_of_line
@njit(**FAST)
def solve(discount, left, models):
    """`optimal`."""
    draws, slots, policy, q = models.draws, models.slots, models.policy, models.q
    p, v, here, own = models.scratch.p, models.scratch.v, models.scratch.q, models.scratch.policy
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
            solve_for_ever(discount, p, models.scratch)
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


@out_of_line
@njit(**FAST)
def follow(discount, left, models, actions, v):
    """`values_of`."""
    draws, slots = models.draws, models.slots
    p, system, here, q, policy = models.scratch
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
