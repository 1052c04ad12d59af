"""Rows of Dirichlet draws in compressed form: what was seen by its Gammas, the rest by sticks.

A row of parameters has *seen* entries, whose counts differ, and `U` others that all have the concentration `c`: they
are exchangeable. By aggregation, the probabilities of the seen ones and of all others together are a Dirichlet with
parameters `α_1, …, α_k, U c`. By the same token the split of the others is a symmetric Dirichlet, and its components in
*size-biased* order have a closed form: the j-th of them is a state chosen uniformly among those not yet chosen, and
takes `1 − X_j` of what is left, `X_j ~ Beta((U − j) c, 1 + c)` independent (McCloskey 1965; Pitman 1996). Sticks are
broken until less than `LEFT = 1e-12` is left, which goes to one more state. So a row is a draw from the posterior up to
a mass of 1e-12, and holds about `k + 1 + 27.6 U c` entries: under a concentration of 1 in all, some thirty, however
many states there are. Dense rows have S entries, each with a Gamma draw.

`Beta(a, 1 + c)` for a small c is nearly `Beta(a, 1)`, the law of `exp(−E/a)` with E exponential: a proposal x from it
is kept with probability `(1 − x)^c`, almost always. As `(1 − x)^c ≥ 1 − c x / (1 − x)`, almost none needs a logarithm.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from beliefbound.kernels.draws import dirichlet_row, exp_negative
from beliefbound.kernels.options import EXACT, EXACT_INLINE
from beliefbound.kernels.random import draw_below, draw_beta, draw_exponential, draw_uniform, load, save
from beliefbound.kernels.reference import by_reference

LEFT = 1e-12  # mass of a row that is not split any further
SMALL, TINY = 1e-4, 1e-8  # masses of a row that are kept apart
PARTS = 3  # of a row: what holds all but SMALL of it, all but TINY, and the rest
NEARLY_ONE = 0.1  # the largest c for which 1 + c is nearly 1
BLOCK = 32  # proposals made together: most rows need no more


@by_reference
class CompressedRows(NamedTuple):
    """A draw of every row, and scratch. Part k of a row has the entries `cuts[i] … cuts[i+1]`, `i = row·PARTS + k`."""

    p: np.ndarray  # [entry]
    next_state: np.ndarray  # uint16 [entry]
    cuts: np.ndarray  # int64 [row·PARTS + part]
    common: np.ndarray  # [row]: the concentration that entries not seen share
    states: np.ndarray  # uint16 [row,t]: those not seen, in any order, …, those seen
    unseen: np.ndarray  # int64 [row]: how many were not
    seen: np.ndarray  # int64 [row]: and how many were
    shape: np.ndarray  # [t + 1] scratch, and the next three
    mass: np.ndarray  # [t + 1]
    sticks: np.ndarray  # [t]
    block: np.ndarray  # [2,BLOCK]


def compressed_rows(common: np.ndarray, n_states: int) -> CompressedRows:
    """Empty arrays for a draw of rows with the concentrations `common[row]`: most of it is never touched."""
    n_rows = common.size
    return CompressedRows(
        p=np.empty(n_rows * n_states),
        next_state=np.empty(n_rows * n_states, np.uint16),
        cuts=np.zeros(n_rows * PARTS + 1, np.int64),
        common=common,
        states=np.zeros((n_rows, n_states), np.uint16),
        unseen=np.zeros(n_rows, np.int64),
        seen=np.zeros(n_rows, np.int64),
        shape=np.zeros(n_states + 1),
        mass=np.zeros(n_states + 1),
        sticks=np.zeros(n_states),
        block=np.zeros((2, BLOCK)),
    )


def expected_entries(alpha: np.ndarray, common: np.ndarray) -> np.ndarray:
    """About how many entries a draw of each row of `alpha[row,t]` holds, from above: what exchangeable ones share is
    split down to `LEFT`, and is 1 at most."""
    alike = (alpha == common[:, None]).sum(axis=1)
    shared = alike * np.where(np.isfinite(common), common, 0.0)  # a row may be empty
    sticks = np.minimum(alike, 1.0 - np.log(LEFT) * shared)
    entries: np.ndarray = sticks + (alpha > common[:, None]).sum(axis=1)
    return entries


@njit(**EXACT)
def tell_apart(alpha, rows):
    """`states`, `unseen` and `seen` of the rows of `alpha[row,t]`."""
    n_states = alpha.shape[1]
    for row in range(alpha.shape[0]):
        u, k = 0, 0
        for t in range(n_states):
            if alpha[row, t] == rows.common[row]:
                rows.states[row, u] = t
                u += 1
            elif alpha[row, t] > 0.0:
                k += 1
                rows.states[row, n_states - k] = t
        rows.unseen[row], rows.seen[row] = u, k


@njit(**EXACT)
def draw_compressed(stream, alpha, rows):
    """A draw of every row of `alpha[row,t]`, of which `tell_apart` knows: `p`, `next_state` and `cuts`."""
    p, index, states, cuts = rows.p, rows.next_state, rows.states, rows.cuts
    shape, mass, sticks, block = rows.shape, rows.mass, rows.sticks, rows.block
    n_states, at = alpha.shape[1], 0
    for row in range(alpha.shape[0]):
        u, k, c = rows.unseen[row], rows.seen[row], rows.common[row]
        for i in range(k):
            shape[i] = alpha[row, states[row, n_states - 1 - i]]
        shape[k] = u * c
        parts = k + 1 if u > 0 else k
        dirichlet_row(stream, shape[:parts], mass[:parts])
        for i in range(k):
            p[at + i], index[at + i] = mass[i], states[row, n_states - 1 - i]
        at += k
        left = mass[k] if u > 0 else 0.0
        made = break_sticks(stream, left, c, states[row, :u], sticks, block)
        large = small = 0
        for i in range(made):
            large += left >= SMALL
            small += left >= TINY
            left -= sticks[i]
            p[at + i], index[at + i] = sticks[i], states[row, u - 1 - i]
        cut = row * PARTS
        cuts[cut + 1], cuts[cut + 2], cuts[cut + 3] = at + large, at + small, at + made
        at += made


@njit(**EXACT)
def break_sticks(stream, mass, c, states, sticks, block):
    """`mass` split over exchangeable `states` to `sticks`; returns how many. The states that have them are moved to the
    end of `states`, the first stick's last. `block[2,BLOCK]` is scratch."""
    left, size, made = mass, states.size, 0
    waits, stays = block[0], block[1]
    inverse = 1.0 / c
    words = load(stream)
    while size > 1 and left >= LEFT:
        for k in range(BLOCK):
            waits[k], words = draw_exponential(words)
        for k in range(BLOCK):  # apart from the draws, so that it is SIMD
            stays[k] = exp_negative(-waits[k] * min(inverse / max(size - 1 - k, 1), 1e300))
        for k in range(min(BLOCK, size - 1)):
            if left < LEFT:
                break
            i, words = draw_below(size, words)
            size -= 1
            states[i], states[size] = states[size], states[i]
            x, words = finish_stick(stays[k], size * c, c, words)
            sticks[made] = left * (1.0 - x)
            left *= x
            made += 1
    if size > 0:
        i, words = draw_below(size, words)
        states[i], states[size - 1] = states[size - 1], states[i]
        sticks[made] = left
        made += 1
    save(stream, words)
    return made


@njit(**EXACT_INLINE)
def finish_stick(x, a, c, words):
    """`Beta(a, 1 + c)`: the proposal x from `Beta(a, 1)` if it is kept, or else another."""
    u, words = draw_uniform(words)
    if u * (1.0 - x) <= 1.0 - x - c * x and c <= NEARLY_ONE:
        return x, words
    return finish_slowly(x, u, a, c, words)


@njit(**EXACT)
def finish_slowly(x, u, a, c, words):
    """`finish_stick` where the bound does not decide: proposals until one is kept; Gammas where few would be."""
    if c > NEARLY_ONE:
        return draw_beta(a, 1.0 + c, words)
    while x == 1.0 or u > (1.0 - x) ** c:
        e, words = draw_exponential(words)
        u, words = draw_uniform(words)
        x = math.exp(-e * min(1.0 / a, 1e300))
    return x, words
