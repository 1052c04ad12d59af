"""Models of a Dirichlet posterior in compressed rows: drawn by what was seen and by sticks, swept entry by entry.

A row of parameters has *seen* entries, whose counts differ, and `U` others that all have the concentration `c`: they
are exchangeable. By aggregation, the probabilities of the seen ones and of all others together are a Dirichlet with
parameters `α_1, …, α_k, U c`. By the same token the split of the others is a symmetric Dirichlet, and its components in
*size-biased* order have a closed form: the j-th of them is a state chosen uniformly among those not yet chosen, and
takes `1 − X_j` of what is left, `X_j ~ Beta((U − j) c, 1 + c)` independent (McCloskey 1965; Pitman 1996). Sticks are
broken until less than `LEFT = 1e-12` is left, which goes to one more state. So a row is a draw from the posterior up to
a mass of 1e-12, and holds about `k + 1 + 27.6 U c` entries: under a concentration of 1 in all, some thirty, however
many states there are. Dense rows have S entries, each with a Gamma draw.

MMBI's sweep over compressed models is that of `kernels.planning.sweep`, with one difference: states that hold less than
`SMALL = 1e-6` of a row together are looked at in every tenth sweep, and in the first of each step, and count as they
were then in between. The fixed points are the same, and a sweep differs from the full one by at most 1e-6 of what
values have moved since. Sums are in an order of their own, the same on every machine.

`compresses` says when it pays: at least 64 states, and rows that are expected to hold at most a third of them. Smaller
problems are always dense.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from beliefbound.kernels.draws import dirichlet_row
from beliefbound.kernels.options import EXACT, EXACT_INLINE
from beliefbound.kernels.posterior import Posterior
from beliefbound.kernels.random import below, beta

LEFT = 1e-12  # mass of a row that is not split any further
SMALL = 1e-6  # mass of a row that is looked at now and then
OFTEN = 10  # sweeps from one look at it to the next
SHARE = 1.0 / 3.0  # of the states that a row may be expected to hold
LEAST_STATES = 64  # below, dense rows are faster or as fast
MOST_STATES = 2**16  # numbers of states are kept in 16 bits

ONE, TWO, THREE, FOUR = (np.uint64(i) for i in range(1, 5))  # unsigned: as an index it needs no test for its sign


class CompressedModels(NamedTuple):
    """Models, their values, and scratch.

    Model m of a pair, `i = pair·n + m`, has the entries `first[i] … first[i+1]`, padded with zeros to fours, and of
    small ones `small[i] … small[i+1]`, which are kept from the end of the arrays backwards.
    """

    p: np.ndarray  # [entry]
    next_state: np.ndarray  # uint16 [entry]: next states
    first: np.ndarray  # uint64 [i]
    small: np.ndarray  # uint64 [i]: distance from the end
    common: np.ndarray  # [row]: the concentration that entries not seen share
    r: np.ndarray  # [s,a,m]
    gain: np.ndarray  # [s,a,m]: with what follows from the small entries
    even: np.ndarray  # [m,s] values, current where `side` is 0
    odd: np.ndarray  # [m,s] values, current where `side` is 1
    side: np.ndarray  # int64 [1]
    q: np.ndarray  # [a,m] scratch
    vbar: np.ndarray  # [s] mean value over the models
    actions: np.ndarray  # int64 [s], chosen by the last sweep
    available: np.ndarray  # bool [s,a]
    discount: float


def common_concentrations(posterior: Posterior) -> np.ndarray:
    """The smallest positive prior concentration of each row: what entries have that are neither seen nor expected."""
    alpha = posterior.prior_alpha
    smallest: np.ndarray = np.where(alpha > 0.0, alpha, np.inf).min(axis=1)
    return smallest


def compresses(posterior: Posterior) -> bool:
    """Whether models of this posterior are better held in compressed rows."""
    alpha, common = posterior.prior_alpha, common_concentrations(posterior)[:, None]
    if posterior.tied or posterior.paid.ndim > 2 or not LEAST_STATES <= alpha.shape[1] < MOST_STATES:
        return False
    alike = (alpha == common).sum(axis=1)
    sticks = np.minimum(alike, 1.0 - np.log(LEFT) * alike * common[:, 0])
    entries = float((sticks + (alpha > common).sum(axis=1)).mean())
    return bool(entries <= SHARE * alpha.shape[1])


def compressed_models(posterior: Posterior, n: int, available: np.ndarray, discount: float) -> CompressedModels:
    """Room for `n` models of the size of `available[s,a]`: as much as dense rows take, most of it never touched."""
    S, A = available.shape
    return CompressedModels(
        p=np.empty(S * A * n * (S + 3)),
        next_state=np.empty(S * A * n * (S + 3), np.uint16),
        first=np.zeros(S * A * n + 1, np.uint64),
        small=np.zeros(S * A * n + 1, np.uint64),
        common=common_concentrations(posterior),
        r=np.zeros((S, A, n)),
        gain=np.zeros((S, A, n)),
        even=np.zeros((n, S)),
        odd=np.zeros((n, S)),
        side=np.zeros(1, np.int64),
        q=np.zeros((A, n)),
        vbar=np.zeros(S),
        actions=np.zeros(S, np.int64),
        available=available,
        discount=discount,
    )


@njit(**EXACT)
def draw_compressed(stream, alpha, models):
    """Draws of every row of `alpha[row,t]` for each model: `p`, `next_state`, `first` and `small`."""
    p, index, common = models.p, models.next_state, models.common
    n_rows, n_states = alpha.shape
    n = models.r.shape[2]
    seen, others, sticks = np.empty(n_states, np.int64), np.empty(n_states, np.int64), np.empty(n_states)
    shape, drawn = np.empty(n_states + 1), np.empty(n_states + 1)
    at, end = 0, p.size
    for row in range(n_rows):
        k, u = 0, 0
        for t in range(n_states):
            if alpha[row, t] == common[row]:
                others[u] = t
                u += 1
            elif alpha[row, t] > 0.0:
                seen[k], shape[k] = t, alpha[row, t]
                k += 1
        shape[k] = u * common[row]
        parts = k + 1 if u > 0 else k
        for m in range(n):
            dirichlet_row(stream, shape[:parts], drawn[:parts])
            for i in range(k):
                p[at], index[at] = drawn[i], seen[i]
                at += 1
            left = drawn[k] if u > 0 else 0.0
            for i in range(break_sticks(stream, left, common[row], others[:u], sticks)):
                t = others[u - 1 - i]
                if left >= SMALL:
                    p[at], index[at] = sticks[i], t
                    at += 1
                else:
                    end -= 1
                    p[end], index[end] = sticks[i], t
                left -= sticks[i]
            while at % 4 > 0:
                p[at], index[at] = 0.0, 0
                at += 1
            models.first[row * n + m + 1], models.small[row * n + m + 1] = at, p.size - end


@njit(**EXACT)
def break_sticks(stream, mass, c, states, sticks):
    """`mass` split over exchangeable `states` to `sticks`; returns how many. The states that have them are moved to the
    end of `states`, the first stick's last."""
    left, size, made = mass, states.size, 0
    while size > 0:
        i = below(stream, size)
        size -= 1
        states[i], states[size] = states[size], states[i]
        if left < LEFT or size == 0:
            sticks[made] = left
            return made + 1
        stays = beta(stream, size * c, 1.0 + c)
        sticks[made] = left * (1.0 - stays)
        left *= stays
        made += 1
    return made


@njit(**EXACT_INLINE)
def dot(p, index, begin, end, v, m):
    """`Σ p[k] v[m,index[k]]` over entries in fours, in four sums: a processor keeps them going together."""
    a = b = c = d = 0.0
    k = begin
    while k < end:
        a += p[k] * v[m, index[k]]
        b += p[k + ONE] * v[m, index[k + ONE]]
        c += p[k + TWO] * v[m, index[k + TWO]]
        d += p[k + THREE] * v[m, index[k + THREE]]
        k += FOUR
    return (a + b) + (c + d)


@njit(**EXACT)
def look_at_small(models, v):
    """`gain` from the values `v[m,s]`."""
    p, index, small = models.p, models.next_state, models.small
    n_states, n_actions, n = models.r.shape
    last, i = np.uint64(p.size), 0
    for s in range(n_states):
        for a in range(n_actions):
            for m in range(n):
                total, k = 0.0, last - small[i + 1]
                while k < last - small[i]:
                    total += p[k] * v[m, index[k]]
                    k += ONE
                models.gain[s, a, m] = models.r[s, a, m] + models.discount * total
                i += 1


@njit(**EXACT)
def sweep_compressed(models, v, out):
    """One stage of MMBI from `v[m,s]`: `out[m,s]`, `vbar[s]` and `actions[s]`; returns `Σ_s |Δ vbar[s]|`."""
    p, index, first, q = models.p, models.next_state, models.first, models.q
    n_states, n_actions, n = models.r.shape
    change = 0.0
    for s in range(n_states):
        chosen, best = -1, -np.inf
        for a in range(n_actions):
            if models.available[s, a]:
                total = 0.0
                for m in range(n):
                    i = (s * n_actions + a) * n + m
                    q[a, m] = models.gain[s, a, m] + models.discount * dot(p, index, first[i], first[i + 1], v, m)
                    total += q[a, m]
                if total / n > best:
                    chosen, best = a, total / n
        models.actions[s] = chosen
        for m in range(n):
            out[m, s] = q[chosen, m]
        change += abs(best - models.vbar[s])
        models.vbar[s] = best
    return change
