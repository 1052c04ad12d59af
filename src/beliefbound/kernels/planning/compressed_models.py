"""Models of a Dirichlet posterior in compressed rows (`compressed_rows` has their law), and MMBI's sweep over them.

The sweep is that of `kernels.planning.sweep`, with one difference: states that hold less than 1e-4 of a row together
are looked at in every tenth sweep and in the first of each step, those that hold less than 1e-8 at every tenth such
look, and count as they were then in between; at new models all are looked at. The fixed points are the same, and a
sweep differs from the full one by at most these masses times what values have moved since. Sums are in an order of
their own, the same on every machine.

A sweep reads one model after the other, whose values then stay in the nearest cache. Rows are sorted by their length
and stand side by side in slices of `WIDTH`: one loop adds up a slice, its length is that of the slices around it, and
hardly an entry is padding (Kreutzer, Hager, Wellein, Fehske & Bishop 2014 call this SELL-C-σ).

`compresses` says when it pays: at least 64 states, and rows that are expected to hold at most a third of them. Smaller
problems are always dense.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from beliefbound.kernels.options import EXACT
from beliefbound.kernels.planning.compressed_rows import (
    PARTS,
    CompressedRows,
    compressed_rows,
    draw_compressed,
    expected_entries,
    tell_apart,
)
from beliefbound.kernels.planning.simd import gather_16
from beliefbound.kernels.posterior import Posterior, SparsePosterior
from beliefbound.kernels.reference import by_reference

WIDTH = 16  # rows side by side
OFTEN = 10  # sweeps from one look at small entries to the next, and looks from one at tiny ones to the next
SHARE = 1.0 / 3.0  # of the states that a row may be expected to hold
LEAST_STATES = 64  # below, dense rows are faster or as fast
MOST_STATES = 2**16  # numbers of states are kept in 16 bits
LARGE, SMALL, TINY = range(PARTS)  # parts of a row


@by_reference
class CompressedModels(NamedTuple):
    """Models as they are swept, as they were drawn, their values, and scratch.

    Slice g of a part of model m holds the rows of `pair[part,m,g·WIDTH …]`, entries side by side, `length[part,m,g]`
    of each, padded with zeros; where there are no more rows, `pair` is the number of pairs. Slices follow one another.
    """

    p: np.ndarray  # [entry]
    next_state: np.ndarray  # uint16 [entry]
    pair: np.ndarray  # uint32 [part,m,row]
    length: np.ndarray  # int64 [part,m,slice]
    begin: np.ndarray  # int64 [part,m]: first entries
    looks: np.ndarray  # int64 [1]: at small entries, since models were drawn
    drawn: CompressedRows  # of one model
    places: np.ndarray  # int64 [length] scratch: where the next row of a length goes
    r: np.ndarray  # [s,a,m]
    base: np.ndarray  # [m,pair]: reward, with what follows from the tiny entries
    gain: np.ndarray  # [m,pair]: and from the small ones
    q: np.ndarray  # [m,pair] scratch
    mixed: np.ndarray  # [pair] scratch
    totals: np.ndarray  # [WIDTH] scratch
    even: np.ndarray  # [m,s] values, current where `side` is 0
    odd: np.ndarray  # [m,s] values, current where `side` is 1
    side: np.ndarray  # int64 [1]
    vbar: np.ndarray  # [s] mean value over the models
    actions: np.ndarray  # int64 [s], chosen by the last sweep
    available: np.ndarray  # bool [s,a]
    discount: float


def smallest_positive(alpha: np.ndarray) -> np.ndarray:
    """The smallest positive concentration of each row: what entries have that are neither seen nor expected."""
    smallest: np.ndarray = np.where(alpha > 0.0, alpha, np.inf).min(axis=1)
    return smallest


def compresses(posterior: Posterior) -> bool:
    """Whether models of this posterior are better held in compressed rows."""
    alpha = posterior.prior_alpha
    if (
        posterior.tied
        or isinstance(posterior, SparsePosterior)
        or len(posterior.reward) > 2
        or posterior.paid.shape[2] > 1
        or not LEAST_STATES <= alpha.shape[1] < MOST_STATES
    ):
        return False
    entries = expected_entries(alpha, smallest_positive(alpha))
    return bool(entries.mean() <= SHARE * alpha.shape[1])


def compressed_models(posterior: Posterior, n: int, available: np.ndarray, discount: float) -> CompressedModels:
    """Empty arrays for `n` models of the size of `available[s,a]`: as much as dense rows take, most of it never
    touched."""
    S, A = available.shape
    slices = -(-S * A // WIDTH)
    padded = n * S * (S * A + 2 * PARTS * WIDTH)  # no row of a slice is longer than any of the next
    return CompressedModels(
        p=np.empty(padded),
        next_state=np.empty(padded, np.uint16),
        pair=np.zeros((PARTS, n, slices * WIDTH), np.uint32),
        length=np.zeros((PARTS, n, slices), np.int64),
        begin=np.zeros((PARTS, n), np.int64),
        looks=np.zeros(1, np.int64),
        drawn=compressed_rows(smallest_positive(posterior.prior_alpha), S),
        places=np.zeros(S + 2, np.int64),
        r=np.zeros((S, A, n)),
        base=np.zeros((n, S * A + 1)),
        gain=np.zeros((n, S * A + 1)),
        q=np.zeros((n, S * A + 1)),
        mixed=np.zeros(S * A),
        totals=np.zeros(WIDTH),
        even=np.zeros((n, S)),
        odd=np.zeros((n, S)),
        side=np.zeros(1, np.int64),
        vbar=np.zeros(S),
        actions=np.zeros(S, np.int64),
        available=available,
        discount=discount,
    )


@njit(**EXACT)
def draw_models(stream, alpha, models):
    """Draws of every row of `alpha[row,t]` for each model, ready to be swept."""
    tell_apart(alpha, models.drawn)
    models.looks[0] = 0
    end = 0
    for m in range(models.q.shape[0]):
        draw_compressed(stream, alpha, models.drawn)
        for part in range(PARTS):
            models.begin[part, m] = end
            end = arrange(models, part, m, end)


@njit(**EXACT)
def arrange(models, part, m, end):
    """Slices of a part of the rows drawn, as model m, from the entry `end` on; returns where they end."""
    p, state, cuts, order = models.p, models.next_state, models.drawn.cuts, models.pair[part, m]
    drawn_p, drawn_state = models.drawn.p, models.drawn.next_state
    n_pairs = models.mixed.size
    sort_rows(cuts, part, models.places, order)
    for g in range(order.size // WIDTH):
        i = np.int64(order[min((g + 1) * WIDTH, n_pairs) - 1]) * PARTS + part
        longest = cuts[i + 1] - cuts[i]
        models.length[part, m, g] = longest
        for lane in range(WIDTH):
            i, at = np.int64(order[g * WIDTH + lane]) * PARTS + part, end + lane
            if i < n_pairs * PARTS:
                for k in range(cuts[i], cuts[i + 1]):
                    p[at], state[at] = drawn_p[k], drawn_state[k]
                    at += WIDTH
            while at < end + longest * WIDTH:
                p[at], state[at] = 0.0, 0
                at += WIDTH
        end += longest * WIDTH
    return end


@njit(**EXACT)
def sort_rows(cuts, part, places, order):
    """Pairs in order of the lengths of a part of their rows; then padding. `places` is scratch."""
    n_pairs = cuts.size // PARTS
    places.fill(0)
    for i in range(part, n_pairs * PARTS, PARTS):
        places[cuts[i + 1] - cuts[i] + 1] += 1
    for k in range(1, places.size):
        places[k] += places[k - 1]
    for pair in range(n_pairs):
        k = cuts[pair * PARTS + part + 1] - cuts[pair * PARTS + part]
        order[places[k]] = pair
        places[k] += 1
    for j in range(n_pairs, order.size):
        order[j] = n_pairs


@njit(**EXACT)
def add_products(models, part, v, before, out):
    """`out[m,pair] = before[m,pair] + γ Σ p v[m,next_state]` over a part of the rows."""
    p, state, discount, totals = models.p, models.next_state, models.discount, models.totals
    n, n_states = v.shape
    for m in range(n):
        pair, length, at = models.pair[part, m], models.length[part, m], models.begin[part, m]
        for g in range(length.size):
            gather_16(p, state, at, length[g], v, m * n_states, totals)
            at += WIDTH * length[g]
            for lane in range(WIDTH):
                i = pair[g * WIDTH + lane]
                out[m, i] = before[m, i] + discount * totals[lane]


@njit(**EXACT)
def look_at_small(models, v):
    """`gain` from the values `v[m,s]`; now and then `base` before it."""
    n_states, n_actions, n = models.r.shape
    base = models.base
    if models.looks[0] % OFTEN == 0:
        for s in range(n_states):
            for a in range(n_actions):
                for m in range(n):
                    base[m, s * n_actions + a] = models.r[s, a, m]
        add_products(models, TINY, v, base, base)
    add_products(models, SMALL, v, base, models.gain)
    models.looks[0] += 1


@njit(**EXACT)
def sweep_compressed(models, v, out):
    """One stage of MMBI from `v[m,s]`: `out[m,s]`, `vbar[s]` and `actions[s]`; returns `Σ_s |Δ vbar[s]|`."""
    q, mixed = models.q, models.mixed
    n_states, n_actions, n = models.r.shape
    add_products(models, LARGE, v, models.gain, q)
    mixed.fill(0.0)
    for m in range(n):
        for i in range(mixed.size):
            mixed[i] += q[m, i]
    change = 0.0
    for s in range(n_states):
        chosen, best = -1, -np.inf
        for a in range(n_actions):
            value = mixed[s * n_actions + a] / n
            if models.available[s, a] and value > best:
                chosen, best = a, value
        models.actions[s] = chosen
        change += abs(best - models.vbar[s])
        models.vbar[s] = best
    for m in range(n):
        for s in range(n_states):
            out[m, s] = q[m, s * n_actions + models.actions[s]]
    return change
