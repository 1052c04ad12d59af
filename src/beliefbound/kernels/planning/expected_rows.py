"""The expected MDP of a Dirichlet posterior in compressed rows, exact: what was seen, and one number for all the rest.

Under a prior that gives every next state of a row the same concentration `c`, the expected row is
`p(t) = c/α0 + (α_t − c)/α0`, `α0` the sum of the row's parameters. The second part is zero but for the states that were
seen, so `p·V = (c/α0) Σ_t V(t) + Σ_seen (α_t − c)/α0 V(t)`: a sweep of value iteration costs the sum of V once, and of
each row what was seen of it.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from beliefbound.kernels.options import EXACT
from beliefbound.kernels.planning.compressed_models import compresses
from beliefbound.kernels.posterior import Posterior
from beliefbound.kernels.reference import by_reference


@by_reference
class ExpectedRows(NamedTuple):
    """One model, its values, and scratch. Arrays of values have the axis of models first, of size 1."""

    p: np.ndarray  # [pair,i]: `(α_t − c)/α0` of the i-th state seen, `i < seen[pair]`
    next_state: np.ndarray  # uint16 [pair,i]: that state
    seen: np.ndarray  # int64 [pair]
    rest: np.ndarray  # [pair]: c/α0
    common: np.ndarray  # [pair]: c
    r: np.ndarray  # [s,a,1]
    even: np.ndarray  # [1,s] values, current where `side` is 0
    odd: np.ndarray  # [1,s] values, current where `side` is 1
    side: np.ndarray  # int64 [1]
    vbar: np.ndarray  # [s]
    actions: np.ndarray  # int64 [s], chosen by the last sweep
    q: np.ndarray  # [a] scratch
    available: np.ndarray  # bool [s,a]
    discount: float


def is_alike(posterior: Posterior) -> bool:
    """Whether the expected MDP is better held in compressed rows: a large problem, and every next state alike."""
    alpha = posterior.prior_alpha
    return compresses(posterior) and bool((alpha == alpha[:, :1]).all())


def expected_rows(posterior: Posterior, available: np.ndarray, discount: float) -> ExpectedRows:
    """Empty arrays for the expected MDP of a posterior that `is_alike`."""
    (S, A), pairs = available.shape, available.size
    return ExpectedRows(
        p=np.zeros((pairs, S)),
        next_state=np.zeros((pairs, S), np.uint16),
        seen=np.zeros(pairs, np.int64),
        rest=np.full(pairs, 1.0 / S),
        common=posterior.prior_alpha[:, 0].copy(),
        r=np.zeros((S, A, 1)),
        even=np.zeros((1, S)),
        odd=np.zeros((1, S)),
        side=np.zeros(1, np.int64),
        vbar=np.zeros(S),
        actions=np.zeros(S, np.int64),
        q=np.zeros(A),
        available=available,
        discount=discount,
    )


@njit(**EXACT)
def see_nothing(models):
    """The rows of the prior: every next state has the chance `1/S`."""
    for pair in range(models.seen.size):
        models.seen[pair], models.rest[pair] = 0, 1.0 / models.vbar.size


@njit(**EXACT)
def see(models, alpha, pair, t):
    """The row of a pair after an arrival in `t`, with the parameters `alpha[pair]` that follow from it."""
    c, total, known = models.common[pair], 0.0, False
    for u in range(alpha.shape[1]):
        total += alpha[pair, u]
    for i in range(models.seen[pair]):
        known |= models.next_state[pair, i] == t
    if not known:
        models.next_state[pair, models.seen[pair]] = t
        models.seen[pair] += 1
    for i in range(models.seen[pair]):
        models.p[pair, i] = (alpha[pair, models.next_state[pair, i]] - c) / total
    models.rest[pair] = c / total


@njit(**EXACT)
def sweep_expected(models, v, actions, out):
    """One stage of value iteration from `v[0,s]`: `out[0,s]`, `vbar[s]`, `actions[s]`; returns `Σ_s |Δ vbar[s]|`."""
    p, index, seen, rest, r = models.p, models.next_state, models.seen, models.rest, models.r
    available, vbar, discount = models.available, models.vbar, models.discount
    n_states, n_actions = available.shape
    everything, change = 0.0, 0.0
    for t in range(n_states):
        everything += v[0, t]
    for s in range(n_states):
        chosen, best = -1, -np.inf
        for a in range(n_actions):
            if available[s, a]:
                pair = s * n_actions + a
                total = rest[pair] * everything
                for i in range(seen[pair]):
                    total += p[pair, i] * v[0, index[pair, i]]
                value = r[s, a, 0] + discount * total
                if value > best:
                    chosen, best = a, value
        actions[s] = chosen
        out[0, s] = best
        change += abs(best - vbar[s])
        vbar[s] = best
    return change


@njit(**EXACT)
def values_expected(models, v, s):
    """`Q(s, ·)` of a stage from `v[0,s]`: `q[a]`, which the next call fills anew."""
    everything = 0.0
    for t in range(v.shape[1]):
        everything += v[0, t]
    for a in range(models.q.size):
        pair = s * models.q.size + a
        total = models.rest[pair] * everything
        for i in range(models.seen[pair]):
            total += models.p[pair, i] * v[0, models.next_state[pair, i]]
        models.q[a] = models.r[s, a, 0] + models.discount * total
    return models.q
