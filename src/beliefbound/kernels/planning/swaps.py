"""Exact effect of changing one action of a stationary policy, for every state and action at once.

With `N_m = (I − γ P_m^π)^{-1}`, stored transposed (`n[m,s]` is the column `N_m e_s`), Sherman–Morrison gives for `a`
in `s`

    V_m' = V_m + δ_m N_m e_s / κ_m,    δ_m = Q_m(s,a) − V_m(s),    κ_m = N_m(s,s) − γ P_m(s,a)·N_m e_s > 0

(`κ_m` is `1 − γ (P_m(s,a) − P_m^π(s)) N_m e_s` because `γ P_m^π N_m = N_m − I`), so the objective `Σ_m w_m p0·V_m`
gains `Σ_m w_m (p0·N_m e_s) δ_m / κ_m`. A round costs `2·M·S²·A` multiply-adds; a swap updates each `N_m` in `2·S²`.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from beliefbound.kernels.options import FAST
from beliefbound.kernels.planning.rows import two_dots
from beliefbound.kernels.reference import by_reference


@by_reference
class Objective(NamedTuple):
    """What swaps are priced for: the models but for their transitions, and the present policy's factors and values."""

    r: np.ndarray  # [m,s,a]
    w: np.ndarray  # [m]
    available: np.ndarray  # [s,a]
    discount: float
    p0: np.ndarray  # [s]
    n: np.ndarray  # [m,s,t]: column s of the inverse
    v: np.ndarray  # [m,s]


@njit(**FAST)
def gains(rows, objective, gain):
    """`gain[s,a]` for every swap; the current actions gain 0 up to rounding. `rows`: `kernels.planning.rows`."""
    r, w, available, discount, p0, n, v = objective
    n_models, n_states, n_actions = r.shape
    gain[:] = 0.0
    for m in range(n_models):
        if w[m] == 0.0:
            continue
        vm = v[m]
        for s in range(n_states):
            column = n[m, s]
            visits = 0.0
            for t in range(n_states):
                visits += p0[t] * column[t]
            for a in range(n_actions):
                if not available[s, a]:
                    continue
                ahead, back = two_dots(rows, (m * n_states + s) * n_actions + a, vm, column)
                kappa = column[s] - discount * back
                gain[s, a] += w[m] * visits * (r[m, s, a] + discount * ahead - vm[s]) / kappa


@njit(**FAST)
def swap(rows, rewards, discount, s, n, v):
    """Switch state `s` to the action with next-state rows `rows[m,t]` and `rewards[m]`: `n` and `v` in place.

    `N' = N + N e_s (γ P(s,a)ᵀN − e_sᵀN + e_sᵀ)/κ`, that is, column `j` gains `(γ P(s,a)·N e_j − N(s,j) + 1{j=s})/κ`
    times column `s`.
    """
    n_models, n_states, _ = n.shape
    pivot = np.empty(n_states)
    for m in range(n_models):
        ahead = 0.0
        back = 0.0
        for t in range(n_states):
            pivot[t] = n[m, s, t]
            ahead += rows[m, t] * v[m, t]
            back += rows[m, t] * pivot[t]
        kappa = pivot[s] - discount * back
        step = (rewards[m] + discount * ahead - v[m, s]) / kappa
        for t in range(n_states):
            v[m, t] += step * pivot[t]
        for j in range(n_states):
            column = n[m, j]
            total = 0.0
            for t in range(n_states):
                total += rows[m, t] * column[t]
            factor = (discount * total - column[s] + (1.0 if j == s else 0.0)) / kappa
            for t in range(n_states):
                column[t] += factor * pivot[t]
