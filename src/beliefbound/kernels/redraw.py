"""One row of parameters drawn again in models that an agent holds, without drawing, or allocating, anything else.

Rows are independent, so a model whose row is replaced by a draw from the present posterior of that row is a draw from
the present posterior, if it was one before something was seen of that row. All pairs that share the row get the same
draw, each in its own places: rows of one model always come from one joint draw.
"""

from numba import njit

from beliefbound.kernels.draws import dirichlet_row
from beliefbound.kernels.options import EXACT
from beliefbound.kernels.posterior import paid_on

inlined = njit(inline="always", **EXACT)  # as in `posterior`


@inlined
def redraw(posterior, stream, row, first, last, p, r, theta, rho):
    """Draw a row again in models first … last − 1, for every pair that has it: `p[s,a,t,m]` and rewards `r[s,a,m]`.

    `theta[outcome]` and `rho[value]` are scratch.
    """
    for m in range(first, last):
        dirichlet_row(stream, posterior.alpha[row], theta)
        if posterior.tied:
            for pair in range(posterior.row.size):
                if posterior.row[pair] == row:
                    place(posterior, stream, pair, m, p, r, theta, rho)
        else:
            place(posterior, stream, row, m, p, r, theta, rho)


@inlined
def place(posterior, stream, pair, m, p, r, theta, rho):
    """Write a row of parameters where a pair's outcomes lead, and draw the pair's reward."""
    s, a = pair // posterior.n_actions, pair % posterior.n_actions
    if posterior.tied:
        for t in range(p.shape[2]):
            p[s, a, t, m] = 0.0
        for j in range(theta.size):
            t = posterior.arrive[pair, j]
            if t >= 0:
                p[s, a, t, m] = theta[j]
    else:
        for t in range(theta.size):
            p[s, a, t, m] = theta[t]
    n_values = posterior.reward.shape[0]
    rho[0] = 1.0
    if n_values > 1:
        dirichlet_row(stream, posterior.reward[:, pair], rho)
    total = 0.0
    for k in range(n_values):
        total += rho[k] * paid_on(posterior, k, pair, p[s, a, :, m])
    r[s, a, m] = total


@inlined
def redraw_all(posterior, stream, n, p, r, theta, rho):
    """Draw models 0 … n − 1 anew."""
    for row in range(posterior.alpha.shape[0]):
        redraw(posterior, stream, row, 0, n, p, r, theta, rho)
