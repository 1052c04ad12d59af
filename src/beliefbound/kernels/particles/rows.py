"""Particles at any posterior of a product-Dirichlet belief, and their optimal values, models in lanes.

Rows of transitions are independent under the belief, and what is counted at one pair (state, action) says nothing of
another. So the `n` particles at a posterior are put together from rows: the draws for a pair are a function of an
address, a *generation* and what has been counted at that pair, and are kept in `Rows`. Equal counts give equal
particles by whatever way they were reached; particles of different generations are independent; after one more
observation only one row is new. All particles weigh the same: none is ever used up.

A pair is `s·A + a`. A column of a pair is what a step shows: the next state, and with Bernoulli rewards a success
(columns `t`) or a failure (columns `T + t`). Arrays over models have them last, so that loops over models are SIMD.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from beliefbound.kernels.borrow import borrowed
from beliefbound.kernels.draws import beta_lanes, draw_rows
from beliefbound.kernels.options import FAST
from beliefbound.kernels.random import seed_stream

_MOST_POLICIES = 1000
_TOGETHER = 128  # models solved side by side
_SWEEPS = 2  # from the mean of other models' values, for a policy to start from
_GAIN = 1e-11  # of the values: what policy iteration takes for an improvement


class Prior(NamedTuple):
    """A Dirichlet belief with known or Bernoulli rewards, and the problem it is for."""

    alpha: np.ndarray  # [pair,t]; 0 marks what cannot happen
    success: np.ndarray  # [pair]: Beta counts of the rewards; unused where rewards are known
    failure: np.ndarray  # [pair]
    known: np.ndarray  # [pair]: expected rewards, where they are known
    low: float  # what a failure pays
    high: float  # what a success pays
    bernoulli: bool
    n_actions: int
    discount: float
    horizon: int  # decisions; −1 for ever
    address: np.ndarray  # uint64 [any]: where the particles come from


class Rows(NamedTuple):
    """Draws of rows, by generation, pair and counts."""

    size: np.ndarray  # int64 [1]: rows in use
    key: np.ndarray  # uint64 [row,2]
    table: np.ndarray  # int32 [2^j]: open addressing by key
    draws: np.ndarray  # [row,t + 1,m]: probabilities of the next states; last, the expected reward


def new_rows(prior: Prior, rows: int, n: int) -> Rows:
    """Room for `rows` rows of `n` models."""
    bits = max(4, int(np.ceil(np.log2(2 * rows))))
    return Rows(
        size=np.zeros(1, dtype=np.int64),
        key=np.empty((rows, 2), dtype=np.uint64),
        table=np.full(1 << bits, -1, dtype=np.int32),
        draws=np.empty((rows, prior.alpha.shape[1] + 1, n)),
    )


@njit(**FAST)
def clear(rows):
    """Forget all rows."""
    rows.size[0] = 0
    rows.table[:] = -1


@njit(**FAST)
def row_of(prior, rows, generation, pair, counts):
    """The draws of a pair after `counts[column]`: their index, −1 when there is no room."""
    words = np.empty(prior.address.size + 2 + counts.size, dtype=np.uint64)
    words[: prior.address.size] = prior.address
    words[prior.address.size] = np.uint64(generation)
    words[prior.address.size + 1] = np.uint64(pair)
    for c in range(counts.size):
        words[prior.address.size + 2 + c] = np.uint64(counts[c])
    stream = seed_stream(words)
    mask = np.uint64(rows.table.size - 1)
    slot = stream[0] & mask
    while rows.table[slot] >= 0:
        row = rows.table[slot]
        if rows.key[row, 0] == stream[0] and rows.key[row, 1] == stream[1]:
            return np.int64(row)
        slot = (slot + np.uint64(1)) & mask
    row = rows.size[0]
    if row == rows.draws.shape[0]:
        return np.int64(-1)
    rows.size[0] = row + 1
    rows.table[slot] = row
    rows.key[row, 0], rows.key[row, 1] = stream[0], stream[1]
    draw_row(prior, pair, counts, stream, rows.draws[row])
    return row


@njit(**FAST)
def draw_row(prior, pair, counts, stream, out):
    """Draws `out[t + 1,m]` from the posterior of one pair: transitions, then the expected reward."""
    n_next, n = prior.alpha.shape[1], out.shape[1]
    alpha = prior.alpha[pair : pair + 1].copy()
    for c in range(counts.size):
        alpha[0, c % n_next] += counts[c]
    draw_rows(stream, alpha, out[:n_next].reshape(n_next * n), n_next * n, n, 1)
    if prior.bernoulli:
        won, lost = prior.success[pair] + counts[:n_next].sum(), prior.failure[pair] + counts[n_next:].sum()
        rewards = out[n_next:].reshape((1, 1, n))
        beta_lanes(stream, np.full((1, 1), won), np.full((1, 1), lost), prior.low, prior.high, rewards)
    else:
        out[n_next] = prior.known[pair]


@njit(**FAST)
def particles_at(prior, rows, generation, counts, slots):
    """Rows `slots[pair]` of the particles after `counts[pair,column]`; false when there is no room."""
    for pair in range(slots.size):
        slots[pair] = row_of(prior, rows, generation, pair, counts[pair])
        if slots[pair] < 0:
            return False
    return True


@njit(**FAST)
def chances(prior, draws, slots, weights, pair, column, out):
    """`out[m] = weights[m] · Pr_m(column | pair)`; returns the sum."""
    n_next = prior.alpha.shape[1]
    row = draws[slots[pair]]
    p = row[column % n_next]
    total = 0.0
    if not prior.bernoulli:
        for m in range(out.size):
            out[m] = weights[m] * p[m]
            total += out[m]
        return total
    sign, end = (1.0, prior.low) if column < n_next else (-1.0, prior.high)
    scale = sign / (prior.high - prior.low)
    reward = row[n_next]
    for m in range(out.size):
        out[m] = weights[m] * p[m] * ((reward[m] - end) * scale)
        total += out[m]
    return total


@njit(**FAST)
def dot(x, y):
    """`Σ_m x[m] y[m]`."""
    total = 0.0
    for m in range(x.size):
        total += x[m] * y[m]
    return total


@njit(**FAST)
def gather(draws, slots, first, p):
    """`p[pair,t + 1,i]`: rows of models `first, first + 1, …`, side by side."""
    for pair in range(slots.size):
        for t in range(p.shape[1]):
            source, out = draws[slots[pair], t], p[pair, t]
            for i in range(out.size):
                out[i] = source[first + i]


@njit(**FAST)
def back_up(discount, p, v, q):
    """`q[pair,m] = r + γ Σ_t P v[t,m]`."""
    n_next = v.shape[0]
    for pair in range(q.shape[0]):
        out, reward = q[pair], p[pair, n_next]
        out[:] = 0.0
        for t in range(n_next):
            chance, later = p[pair, t], v[t]
            for m in range(out.size):
                out[m] += chance[m] * later[m]
        for m in range(out.size):
            out[m] = reward[m] + discount * out[m]


@njit(**FAST)
def choose(chosen, a, value, out):
    """`out[m] = value[m]` where `chosen[m] == a`."""
    for m in range(out.size):
        out[m] = value[m] if chosen[m] == a else out[m]


@njit(**FAST)
def value_of(discount, p, policy, v, system):
    """The value `v[s,m]` for ever of `policy[s,m]`: elimination in `I − γP`, which needs no pivots.

    `system[s,s + 1,m]` is scratch. Cost: `S³/3` multiply-adds a model.
    """
    n_states = v.shape[0]
    n_actions = p.shape[0] // n_states
    for s in range(n_states):
        for t in range(n_states + 1):
            out = system[s, t]
            out[:] = p[s * n_actions, t]
            for a in range(1, n_actions):
                choose(policy[s], a, p[s * n_actions + a, t], out)
            if t < n_states:
                one = 1.0 if t == s else 0.0
                for m in range(out.size):
                    out[m] = one - discount * out[m]
    for k in range(n_states):
        pivot = system[k, k]
        for m in range(pivot.size):
            pivot[m] = 1.0 / pivot[m]
        for t in range(k + 1, n_states + 1):
            out = system[k, t]
            for m in range(pivot.size):
                out[m] *= pivot[m]
        for s in range(k + 1, n_states):
            factor = system[s, k]
            for t in range(k + 1, n_states + 1):
                out, above = system[s, t], system[k, t]
                for m in range(pivot.size):
                    out[m] -= factor[m] * above[m]
    for s in range(n_states - 1, -1, -1):
        out = v[s]
        out[:] = system[s, n_states]
        for t in range(s + 1, n_states):
            factor, later = system[s, t], v[t]
            for m in range(out.size):
                out[m] -= factor[m] * later[m]


@njit(**FAST)
def best_of(q, v):
    """`v[s,m] = max_a q[s·A + a,m]`."""
    n_actions = q.shape[0] // v.shape[0]
    for s in range(v.shape[0]):
        out = v[s]
        out[:] = q[s * n_actions]
        for a in range(1, n_actions):
            other = q[s * n_actions + a]
            for m in range(out.size):
                out[m] = max(out[m], other[m])


@njit(**FAST)
def improved(q, v, policy):
    """Whether `policy[s,m]`, of value `v[s,m]`, was not greedy for `q[s·A + a,m]`. It is afterwards; `v` has grown."""
    n_actions = q.shape[0] // policy.shape[0]
    changes = 0
    for s in range(policy.shape[0]):
        best, chosen = v[s], policy[s]
        for a in range(n_actions):
            value = q[s * n_actions + a]
            for m in range(chosen.size):
                better = value[m] > best[m] + _GAIN * (1.0 + abs(best[m]))
                best[m] = value[m] if better else best[m]
                chosen[m] = a if better else chosen[m]
                changes += better
    return changes > 0


@njit(**FAST)
def room(pairs, n_states, n):
    """Arrays `p`, `system`, `v`, `q` and a policy for so many of `n` models as are solved side by side."""
    size = min(n, _TOGETHER)
    p, system = np.empty((pairs, n_states + 1, size)), np.empty((n_states, n_states + 1, size))
    return p, system, np.empty((n_states, size)), np.empty((pairs, size)), np.empty((n_states, size), dtype=np.int64)


@njit(**FAST)
def optimal(prior, draws, slots, left, policy, q):
    """Optimal `q[i,pair,m]` of every model with `left − i` decisions to go; for ever where there is no horizon, and
    then `q` has one stage and `policy[s,m]`, where the search starts, is left optimal.

    Exact up to rounding: policy iteration for ever, else backwards induction.
    """
    n_states, n = policy.shape
    solve(prior, draws, slots, left, policy, q, room(slots.size, n_states, n))


@njit(**FAST)
def solve(prior, draws, slots, left, policy, q, scratch):
    """`optimal` in the room given. A function of its own because it borrows the room, which the caller has to hold."""
    p, system, v, here, own = borrowed(scratch)
    draws, slots, policy, q = borrowed((draws, slots, policy, q))
    n, size = policy.shape[1], p.shape[2]
    for batch in range((n + size - 1) // size):
        first = min(batch * size, n - size)
        gather(draws, slots, first, p)
        if prior.horizon < 0:
            if batch == 0:
                own[:] = policy[:, first : first + size]
            else:
                start_alike(prior.discount, p, v, here, own)
            for _ in range(_MOST_POLICIES):
                value_of(prior.discount, p, own, v, system)
                back_up(prior.discount, p, v, here)
                if not improved(here, v, own):
                    break
            policy[:, first : first + size] = own
            q[0, :, first : first + size] = here
            continue
        v[:] = 0.0
        q[:, :, first : first + size] = 0.0
        for decisions in range(1, left + 1):
            back_up(prior.discount, p, v, here)
            best_of(here, v)
            if left - decisions < q.shape[0]:
                q[left - decisions, :, first : first + size] = here


@njit(**FAST)
def start_alike(discount, p, v, q, policy):
    """A policy to start from: greedy after a few sweeps from the mean of the values `v[s,m]` of other models."""
    for s in range(v.shape[0]):
        v[s] = v[s].sum() / v.shape[1]
    for _ in range(_SWEEPS):
        back_up(discount, p, v, q)
        best_of(q, v)
    back_up(discount, p, v, q)
    v[:] = -1e300
    improved(q, v, policy)


@njit(**FAST)
def values_of(prior, draws, slots, left, actions, v):
    """The value `v[s,m]` of a stationary policy `actions[s]` on every model for `left` decisions, or for ever."""
    n_states, n = v.shape
    p, system, here, q, policy = room(slots.size, n_states, n)
    size = p.shape[2]
    for s in range(n_states):
        policy[s] = actions[s]
    for batch in range((n + size - 1) // size):
        first = min(batch * size, n - size)
        gather(draws, slots, first, p)
        if prior.horizon < 0:
            value_of(prior.discount, p, policy, here, system)
        else:
            here[:] = 0.0
            for _ in range(left):
                back_up(prior.discount, p, here, q)
                for s in range(n_states):
                    here[s] = q[s * prior.n_actions + actions[s]]
        v[:, first : first + size] = here


@njit(**FAST)
def expected_rows(prior, counts, mean):
    """The posterior mean of all rows as one model, `mean[pair,t + 1,0]`."""
    n_next = prior.alpha.shape[1]
    for pair in range(counts.shape[0]):
        total = 0.0
        for t in range(n_next):
            mean[pair, t, 0] = prior.alpha[pair, t]
            for c in range(t, counts.shape[1], n_next):
                mean[pair, t, 0] += counts[pair, c]
            total += mean[pair, t, 0]
        for t in range(n_next):
            mean[pair, t, 0] /= total
        mean[pair, n_next, 0] = prior.known[pair]
        if prior.bernoulli:
            won = prior.success[pair] + counts[pair, :n_next].sum()
            lost = prior.failure[pair] + counts[pair, n_next:].sum()
            mean[pair, n_next, 0] = prior.low + (prior.high - prior.low) * won / (won + lost)
