"""Values of policies on models in compressed rows: `(I − γ P_π) V = r_π` by BiCGSTAB (van der Vorst 1992).

Products with `P_π` are taken from the rows of all pairs, weighed by the policy, so no chain is written out. An answer
is kept only where its true residual, recomputed, is at most `allowed`; then `‖V − V_π‖∞ ≤ allowed / (1 − γ)`.
"""

import numpy as np
from numba import njit

from beliefbound.kernels.options import EXACT

kernel = njit(**EXACT)


@kernel
def product(starts, indices, p, first, chances, discount, x, out):
    """`out = x − γ P_π x` for the model whose rows begin at `first`, policy `chances[s,a]`."""
    n_states, n_actions = chances.shape
    for s in range(n_states):
        total = 0.0
        for a in range(n_actions):
            if chances[s, a] > 0.0:
                row, own = first + s * n_actions + a, 0.0
                for j in range(starts[row], starts[row + 1]):
                    own += p[j] * x[indices[j]]
                total += chances[s, a] * own
        out[s] = x[s] - discount * total


@kernel
def dot(x, y):
    """`Σ x y`."""
    total = 0.0
    for i in range(x.size):
        total += x[i] * y[i]
    return total


@kernel
def solve_policies(starts, indices, p, chances, rewards, discount, allowed, most, values):
    """`values[m,s]`, which are where each model's search begins, for policies `chances[m,s,a]` and `rewards[m,s]`;
    returns `[m]`, whether a residual of `allowed[m]` was reached within so many steps."""
    n_models, n_states, n_actions = chances.shape
    done = np.zeros(n_models, np.bool_)
    work = np.zeros((6, n_states))
    r, shadow, d, v, e, t = work[0], work[1], work[2], work[3], work[4], work[5]
    for m in range(n_models):
        x, b, first = values[m], rewards[m], m * n_states * n_actions
        for _ in range(3):  # from the residual anew, where rounding or a breakdown ended a search
            product(starts, indices, p, first, chances[m], discount, x, t)
            largest = 0.0
            for s in range(n_states):
                r[s] = b[s] - t[s]
                shadow[s], d[s], v[s] = r[s], 0.0, 0.0
                largest = max(largest, abs(r[s]))
            if largest <= allowed[m]:
                done[m] = True
                break
            rho, alpha, omega = 1.0, 1.0, 1.0
            for _ in range(most):
                rho_next = dot(shadow, r)
                if rho_next == 0.0 or omega == 0.0 or rho == 0.0:
                    break
                beta = (rho_next / rho) * (alpha / omega)
                for s in range(n_states):
                    d[s] = r[s] + beta * (d[s] - omega * v[s])
                product(starts, indices, p, first, chances[m], discount, d, v)
                below = dot(shadow, v)
                if below == 0.0:
                    break
                rho, alpha = rho_next, rho_next / below
                for s in range(n_states):
                    e[s] = r[s] - alpha * v[s]
                product(starts, indices, p, first, chances[m], discount, e, t)
                square = dot(t, t)
                omega = dot(t, e) / square if square > 0.0 else 0.0
                for s in range(n_states):
                    x[s] += alpha * d[s] + omega * e[s]
                    r[s] = e[s] - omega * t[s]
                if not dot(r, r) > (0.5 * allowed[m]) ** 2:
                    break
            if not np.isfinite(x).all():
                x[:] = 0.0
    return done
