"""Values of each model by itself, from above, without a horizon.

Sweeps `V' = TV` from any `V`; after any number of them `V' + γ/(1−γ) max(V' − V)` (MacQueen) is at least `V*`, and
falls under its own backup.
"""

import numpy as np
from numba import njit

from beliefbound.kernels.options import EXACT
from beliefbound.kernels.planning.rows import dot


@njit(**EXACT)
def values_from_above(rows, r, available, discount, epsilon, max_sweeps, out):
    """`out[m,s] ≥ V*_m(s)` with `out ≥ T_m out`: sweeps from what is in `out` until the span of change is small, or
    `max_sweeps` of them.

    `rows`: `kernels.planning.rows`; `r[m,s,a]`. Model by model, so that its rows stay in cache.
    """
    n_models, n_states, n_actions = r.shape
    v, new = np.zeros(n_states), np.zeros(n_states)
    for m in range(n_models):
        most = 0.0
        for s in range(n_states):
            v[s] = out[m, s]
        for _ in range(max_sweeps):
            least, most = np.inf, -np.inf
            for s in range(n_states):
                best = -np.inf
                for a in range(n_actions):
                    if available[s, a]:
                        ahead = dot(rows, (m * n_states + s) * n_actions + a, v)
                        best = max(best, r[m, s, a] + discount * ahead)
                new[s] = best
                least = min(least, best - v[s])
                most = max(most, best - v[s])
            v, new = new, v
            if (most - least) * discount <= epsilon * (1.0 - discount):
                break
        for s in range(n_states):
            out[m, s] = v[s] + discount / (1.0 - discount) * most
