"""Several models merged into one MDP that is as good as the best mixture of them: the planner of BOSS and SBOSS.

The merged MDP has an action `(a, k)` for every model k: in state s it follows row `(s, a)` of model k, and k may change
from state to state. So `V(s) = max_{a,k} r_k(s,a) + γ Σ_t p_k(t|s,a) V(t)`, at least the optimal value of every model.
A pair may be offered the first `copies[s,a]` models only; 0 means that the action is not offered.

`solve_merged` is policy iteration, exact up to rounding: the merged MDP has S states however many models there are, so
an evaluation costs `S³/3` multiply-adds, an improvement `K·A·S²`. Models are lanes.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from beliefbound.kernels.lines import zeros
from beliefbound.kernels.options import EXACT, FAST
from beliefbound.kernels.planning.policy_iteration import GAIN, MOST_POLICIES, value_of
from beliefbound.kernels.reference import by_reference


@by_reference
class MergedModels(NamedTuple):
    """Models, which of them each pair may use, the merged optimum, and scratch."""

    p: np.ndarray  # [s,a,t,k]
    r: np.ndarray  # [s,a,k]
    copies: np.ndarray  # int64 [s,a]
    v: np.ndarray  # [s,1] merged optimal values
    actions: np.ndarray  # int64 [s]: the lowest optimal action
    action: np.ndarray  # int64 [s]: action and model of the policy in hand
    model: np.ndarray  # int64 [s]
    chosen: np.ndarray  # [s,t + 1,1] scratch: its rows and rewards
    system: np.ndarray  # [s,s + 1,1] scratch
    only: np.ndarray  # int64 [s,1], zeros: the one action of the rows chosen
    totals: np.ndarray  # [k] scratch
    discount: float


def merged_models(n: int, n_states: int, n_actions: int, discount: float) -> MergedModels:
    """Empty arrays for `n` models; nothing is offered yet."""
    S, A = n_states, n_actions
    return MergedModels(
        p=zeros(S, A, S, n),
        r=zeros(S, A, n),
        copies=np.zeros((S, A), np.int64),
        v=zeros(S, 1),
        actions=np.zeros(S, np.int64),
        action=np.zeros(S, np.int64),
        model=np.zeros(S, np.int64),
        chosen=zeros(S, S + 1, 1),
        system=zeros(S, S + 1, 1),
        only=np.zeros((S, 1), np.int64),
        totals=zeros(n),
        discount=float(discount),
    )


@njit(**FAST)
def values_in(p, r, discount, v, s, a, n, totals):
    """`totals[k] = r_k(s,a) + γ p_k(·|s,a)·v` for the first `n` models."""
    for k in range(n):
        totals[k] = 0.0
    for t in range(v.shape[0]):
        later = v[t, 0]
        for k in range(n):
            totals[k] += p[s, a, t, k] * later
    for k in range(n):
        totals[k] = r[s, a, k] + discount * totals[k]


@njit(**EXACT)
def improve_merged(models):
    """Whether the policy in hand was not greedy. It is afterwards."""
    p, r, copies, v, totals = models.p, models.r, models.copies, models.v, models.totals
    changed = False
    for s in range(copies.shape[0]):
        best = v[s, 0]
        for a in range(copies.shape[1]):
            values_in(p, r, models.discount, v, s, a, copies[s, a], totals)
            for k in range(copies[s, a]):
                if totals[k] > best + GAIN * (1.0 + abs(best)):
                    best = totals[k]
                    models.action[s], models.model[s] = a, k
                    changed = True
    return changed


@njit(**EXACT)
def lowest_optimal(models, s):
    """The lowest action that is optimal in `s` for some model."""
    v, totals = models.v, models.totals
    for a in range(models.copies.shape[1]):
        values_in(models.p, models.r, models.discount, v, s, a, models.copies[s, a], totals)
        for k in range(models.copies[s, a]):
            if totals[k] >= v[s, 0] - GAIN * (1.0 + abs(v[s, 0])):
                return a
    return models.action[s]


@njit(**EXACT)
def solve_merged(models):
    """The merged optimum: `v` and `actions`."""
    n_states = models.copies.shape[0]
    p, r, chosen = models.p, models.r, models.chosen
    for s in range(n_states):
        a = 0
        while models.copies[s, a] == 0:
            a += 1
        models.action[s], models.model[s] = a, 0
    for _ in range(MOST_POLICIES):
        for s in range(n_states):
            a, k = models.action[s], models.model[s]
            for t in range(n_states):
                chosen[s, t, 0] = p[s, a, t, k]
            chosen[s, n_states, 0] = r[s, a, k]
        value_of(models.discount, chosen, models.only, models.v, models.system)
        if not improve_merged(models):
            break
    for s in range(n_states):
        models.actions[s] = lowest_optimal(models, s)
