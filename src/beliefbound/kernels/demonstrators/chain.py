"""Metropolis–Hastings over what demonstrators want, how the world works and how rational they are.

Demonstrator `k` has rewards `r_k = Φ w_k` and takes actions with chances `∝ exp(η_k Q*_k(s,a))`, `Q*_k` of its rewards
and of the dynamics that all share. Rows of the dynamics are `Dirichlet(alpha)` given all transitions, so that a row
redrawn from there leaves only the ratio of the choices' likelihoods. One step is one of

    a reward        one `w_kj`: half of the time redrawn from its prior, else a step of one of several sizes, reflected
    a row           redrawn from its posterior given the transitions
    a rationality   `log η_k`, a step of one of several sizes
    shift, scale    `w_k + c` where all rewards rise by `c`, and `(c w_k, log η_k − log c)`, which stretches volume by
                    `c^F`: the likelihood stays as it is, and only the prior decides
    shared          the centre of each reward, the strength, and the scale of `η`, of several demonstrators' prior

`Q*` follows each change by rank-one updates (`kernels.planning.kept_optimum`).

One demonstrator: `w_j ~ Beta(a, b)` or `Normal(m, τ)`, `η ~ Gamma(shape, scale)`. Several share a prior that is
unknown: `w_kj ~ Beta(c m_j, c (1 − m_j))`, `m_j ~ Beta(a, b)`, `c = (a + b)(1 + e^h)`, or `w_kj ~ Normal(m_j, τ e^h)`,
`m_j ~ Normal(m, τ)`; `h ~ Normal(0, 1)`; and the log of the scale of `η` is Normal around its own, with deviation 1.
"""

import math

from numba import njit

from beliefbound.kernels.demonstrators.laws import chance, draw_reward, draw_row, pick, standard
from beliefbound.kernels.demonstrators.moves import move_level, move_rational, move_reward, move_row
from beliefbound.kernels.demonstrators.shared import move_shared, write_prior
from beliefbound.kernels.demonstrators.trial import copy, refresh
from beliefbound.kernels.options import EXACT
from beliefbound.kernels.out_of_line import out_of_line

kernel = njit(**EXACT)

REWARD, ROW, RATIONAL, LEVEL, SHARED = range(5)  # kinds of steps
_REFRESH = 1000  # steps after which inverses are made anew


@out_of_line
@kernel
def begin(data, walk):
    """A start: rewards from their prior, rows given the transitions alone, rationality around the mean of its prior."""
    if data.shared:
        for i in range(2):
            walk.hyper[i] += standard(walk.stream)
        for j in range(walk.w.shape[1]):
            walk.centre[j] = draw_reward(walk.stream, data.family, data.base[j], walk.two)
            write_prior(data, j, walk.centre[j], walk.hyper[0], walk.prior[j])
    for k in range(walk.w.shape[0]):
        for j in range(walk.w.shape[1]):
            walk.w[k, j] = draw_reward(walk.stream, data.family, walk.prior[j], walk.two)
        if not data.rational[2] > 0.0:
            walk.eta[k] = data.rational[0] * math.exp(walk.hyper[1] + standard(walk.stream))
    for i in range(data.rows.size):
        draw_row(walk.stream, data.alpha[data.rows[i]], walk.p[data.rows[i]])


@kernel
def walk_on(data, walk, skipped, every, kept):
    """Walk `skipped` steps, then keep one state in `every` steps until `kept` is full."""
    n_demonstrators, n_kept = walk.w.shape[0], kept.w.shape[0]
    fewer = n_kept // kept.p.shape[0]
    begin(data, walk)
    rewards = 0.4 if data.rows.size > 0 else 0.8  # the share of their steps; with rows, 0.8
    for step in range(skipped + every * n_kept):
        if step % _REFRESH == 0:
            for k in range(n_demonstrators):
                refresh(data, walk, k)
        k = pick(walk.stream, n_demonstrators)
        u = chance(walk.stream)
        if u < 0.8:
            kind = REWARD if u < rewards else ROW
        elif data.shared and u < 0.88:
            kind = SHARED
        else:
            kind = RATIONAL if chance(walk.stream) < 0.5 and not data.rational[2] > 0.0 else LEVEL
        taken = False
        if kind == REWARD:
            taken = move_reward(data, walk, k)
        elif kind == ROW:
            taken = move_row(data, walk)
        elif kind == RATIONAL:
            taken = move_rational(data, walk, k)
        elif kind == LEVEL:
            taken = move_level(data, walk, k)
        else:
            taken = move_shared(data, walk) > 0
        walk.tally[kind, 0] += 1
        walk.tally[kind, 1] += taken
        done = step + 1 - skipped
        if done > 0 and done % every == 0:
            i = done // every - 1
            if (i + 1) % fewer == 0:
                copy(walk.p, kept.p[i // fewer])
            copy(walk.w, kept.w[i])
            copy(walk.prior, kept.prior[i])
            for k in range(n_demonstrators):
                kept.eta[i, k], kept.like[i, k] = walk.eta[k], walk.like[0, k]
            kept.scale[i] = math.exp(walk.hyper[1])
