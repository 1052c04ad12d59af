"""Models that an agent draws and solves exactly, each on its own: `solve_each` is policy iteration, models in lanes.

`Q_m(s,a) = r_m(s,a) + γ Σ_t p_m(t|s,a) max_b Q_m(t,b)`, exact up to rounding whatever policy the search starts from.
Actions that are not offered have a value below all others. `greedy` reads an action off a model's values, ties – values
that differ by no more than rounding – to the lowest.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from beliefbound.kernels.lines import zeros
from beliefbound.kernels.options import EXACT, EXACT_INLINE
from beliefbound.kernels.planning.policy_iteration import GAIN, MOST_POLICIES, back_up, improved, value_of
from beliefbound.kernels.reference import by_reference

NEVER = -1e12  # reward of an action that is not offered


@by_reference
class SampledModels(NamedTuple):
    """Models, their optimal values, and scratch."""

    p: np.ndarray  # [s,a,t,m]
    r: np.ndarray  # [s,a,m]
    q: np.ndarray  # [pair,m] optimal values, pair = s·A + a
    v: np.ndarray  # [s,m]
    policy: np.ndarray  # int64 [s,m], optimal; where the next search starts
    rows: np.ndarray  # [pair,t + 1,m] scratch: chances, then the reward
    system: np.ndarray  # [s,s + 1,m] scratch
    available: np.ndarray  # bool [s,a]
    discount: float


def sampled_models(n: int, available: np.ndarray, discount: float) -> SampledModels:
    """Empty arrays for `n` models of the size of `available[s,a]`."""
    S, A = available.shape
    return SampledModels(
        p=zeros(S, A, S, n),
        r=zeros(S, A, n),
        q=zeros(S * A, n),
        v=zeros(S, n),
        policy=np.zeros((S, n), np.int64),
        rows=zeros(S * A, S + 1, n),
        system=zeros(S, S + 1, n),
        available=np.array(available),
        discount=float(discount),
    )


@njit(**EXACT)
def start_lowest(policy, available):
    """`policy[s,m]`: the lowest action that each state offers."""
    for s in range(policy.shape[0]):
        a = 0
        while not available[s, a]:
            a += 1
        for m in range(policy.shape[1]):
            policy[s, m] = a


@njit(**EXACT)
def gather_rows(p, r, available, rows):
    """`rows[pair,t + 1,m]` from `p[s,a,t,m]` and `r[s,a,m]`."""
    n_states, n_actions, _, n = p.shape
    for s in range(n_states):
        for a in range(n_actions):
            pair = s * n_actions + a
            for t in range(n_states):
                for m in range(n):
                    rows[pair, t, m] = p[s, a, t, m]
            for m in range(n):
                rows[pair, n_states, m] = r[s, a, m] if available[s, a] else NEVER


@njit(**EXACT)
def solve_each(models):
    """Optimal `q`, `v` and `policy` of every model."""
    discount, rows, policy, v, q, system = (
        models.discount,
        models.rows,
        models.policy,
        models.v,
        models.q,
        models.system,
    )
    gather_rows(models.p, models.r, models.available, rows)
    for _ in range(MOST_POLICIES):
        value_of(discount, rows, policy, v, system)
        back_up(discount, rows, v, q)
        if not improved(q, v, policy):
            break


@njit(**EXACT_INLINE)
def greedy(models, s, m):
    """The lowest action that is optimal in state `s` of model `m`."""
    n_actions = models.available.shape[1]
    chosen, best = -1, 0.0
    for a in range(n_actions):
        value = models.q[s * n_actions + a, m]
        if models.available[s, a] and (chosen < 0 or value > best + GAIN * (1.0 + abs(best))):
            chosen, best = a, value
    return chosen
