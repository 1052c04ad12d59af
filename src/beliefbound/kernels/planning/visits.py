"""Planning by visits: optimal within a visit of a state, given what other states are worth.

A *visit* of a state s lasts from arriving in it to the next transition to another state. While it lasts, all that is
learnt of transitions is how often each action of s stayed. Action a has Dirichlet weights with the sum `A` and `x` on
staying; after k stays under it in this visit it stays once more with the chance `q = (x + k) / (A + k)`, and a stay
pays `ρ`. Where it leads when it leaves is not changed by stays (neutrality of the Dirichlet distribution), so that
leaving is worth

    R = Σ_{t≠s} α_t (r_t + γ V(t)) / Σ_{t≠s} α_t

throughout. A play of a neither moves the other actions nor says anything about them: they are arms of a bandit whose
play ends when one of them leaves. Of such a bandit it is optimal to play the arm of the largest index (Gittins 1979;
with ends, Sonin 2008), with `S_j` the chance of j stays in a row,

    index = sup_{n≥1} Σ_{j<n} γ^j S_j ((1 − q_j) R + q_j ρ) / (1 − γ^n S_n).

*The index in closed form.* It is the largest average of `m_j = ((1 − q_j) R + q_j ρ) / (1 − γ q_j)` over the first n
plays, with the weights `γ^j S_j (1 − γ q_j)`. Now `m_j = R + d q_j / (1 − γ q_j)` with `d = ρ − (1 − γ) R`: what a stay
pays beyond the interest on leaving. `q_j` rises. So where `d ≤ 0` every play is worth less than the one before it, the
first play alone is best, and `index = R + d q / (1 − γ q)`. Where `d > 0` each is worth more, the best is to play for
ever, and

    index = R + d H,    H = Σ_{j≥0} γ^j S_{j+1} = (F(x, 1; A; γ) − 1) / γ

with Gauss's hypergeometric function, from its continued fraction: a number of the counts alone. An arm of the second
kind whose index is the largest stays the largest, so the value of a visit is a sum over plays of the first kind, then
one index.

*Values.* `V(s)` is what the index policy earns from the present counts on: a fixed point, found by Gauss–Seidel sweeps
from the last state to the first and back, in turns. A visit is left with at least one discount, so the sweep contracts
by γ. What a visit has taught is forgotten when it ends: V is the value of a policy for somebody who comes back to s
with the present counts. Where no row can stay, this is value iteration on the expected MDP.

A visit is followed until what is left of it has the weight `LEFT`, or for `PLAYS` plays; the rest counts as worth the
largest index, which is no less than it is. Rewards are those expected now: what a visit teaches about them is left out.
Rows that pairs share count as rows of their own within a visit, and rows of unknown support as Dirichlet rows with the
counts that predict (`kernels.sparse_rows`).

Rows are held compressed, exactly: `α_t − c` where that is not zero, and the smallest weight `c` for all states at once.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from beliefbound.kernels.actions import ActionLists, action_lists, natural
from beliefbound.kernels.options import EXACT, EXACT_INLINE
from beliefbound.kernels.out_of_line import out_of_line
from beliefbound.kernels.planning.policy_iteration import GAIN
from beliefbound.kernels.posterior import arrival_of, mean_reward, on_arrival, paid_for, row_of
from beliefbound.kernels.reference import by_reference

LEFT = 1e-3  # weight of what a visit may still bring, from which on it counts as worth the largest index
PLAYS = 100  # most plays that are followed in a visit
TERMS = 2000  # most terms of the continued fraction: enough for discounts up to 0.9999
PRECISION = 1e-12  # of the continued fraction, elsewhere


@by_reference
class Visits(NamedTuple):
    """The expected MDP as visits see it, its values, and scratch. A pair that cannot leave leaves at once for what
    staying is worth."""

    weight: np.ndarray  # [pair,i]: `γ (α_t − c) / (A − x)` of the i-th next state, `i < entries[pair]`
    next_state: np.ndarray  # int32 [pair,i]: that state
    entries: np.ndarray  # int64 [pair]
    common: np.ndarray  # [pair]: `γ c / (A − x)`
    pay: np.ndarray  # [pair]: expected reward of leaving
    reward: np.ndarray  # [pair]: ρ, expected reward of staying
    stay: np.ndarray  # [pair]: x
    total: np.ndarray  # [pair]: A
    ever: np.ndarray  # [pair]: H
    v: np.ndarray  # [s]
    leave: np.ndarray  # [a] scratch: R
    excess: np.ndarray  # [a] scratch: d
    stays: np.ndarray  # [a] scratch: x + k
    plays: np.ndarray  # [a] scratch: A + k
    indices: np.ndarray  # [a] scratch
    lists: ActionLists
    discount: float
    left: float  # LEFT
    most: int  # PLAYS
    terms: int  # of the continued fraction


def visits_model(available: np.ndarray, discount: float, *, left: float = LEFT, most: int = PLAYS) -> Visits:
    """Empty arrays for a model of the size of `available[s,a]`."""
    S, A = available.shape
    return Visits(
        weight=np.zeros((S * A, S)),
        next_state=np.zeros((S * A, S), np.int32),
        entries=np.zeros(S * A, np.int64),
        common=np.zeros(S * A),
        pay=np.zeros(S * A),
        reward=np.zeros(S * A),
        stay=np.zeros(S * A),
        total=np.ones(S * A),
        ever=np.zeros(S * A),
        v=np.zeros(S),
        leave=np.zeros(A),
        excess=np.zeros(A),
        stays=np.zeros(A),
        plays=np.zeros(A),
        indices=np.zeros(A),
        lists=action_lists(available),
        discount=float(discount),
        left=float(left),
        most=most,
        terms=terms_for(discount),
    )


def terms_for(discount: float) -> int:
    """Terms of the continued fraction. Its coefficients go to γ/4, so that each term leaves the share
    `(1 − √(1−γ)) / (1 + √(1−γ))` of the error.

    >>> terms_for(0.0), terms_for(0.95), terms_for(0.9999)
    (2, 61, 1382)
    """
    root = math.sqrt(1.0 - discount)
    share = (1.0 - root) / (1.0 + root)
    return 2 if share <= 0.0 else min(TERMS, max(2, math.ceil(math.log(PRECISION) / math.log(share))))


@njit(**EXACT)
def stays_for_ever(x, total, discount, terms):
    """`H = Σ_{j≥0} γ^j S_{j+1}`: the discounted number of stays of an action that is played until it leaves.

    `F(x, 1; A; γ) = 1 / (1 − γ d₁ / f)` with `f = 1 − γ d₂ / (1 − γ d₃ / …)`, `d₁ = x / A`, and for n = 1, 2, …
    `d_{2n} = n (A − x + n − 1) / ((A + 2n − 2) (A + 2n − 1))` and
    `d_{2n+1} = (x + n) (A + n − 1) / ((A + 2n − 1) (A + 2n))` (Gauss); the rest of it as if its coefficients
    were their limit.
    """
    f = 0.5 * (1.0 + math.sqrt(1.0 - discount))
    for n in range((terms + 1) // 2, 0, -1):
        f = 1.0 - discount * (x + n) * (total + n - 1.0) / ((total + 2.0 * n - 1.0) * (total + 2.0 * n) * f)
        f = 1.0 - discount * n * (total - x + n - 1.0) / ((total + 2.0 * n - 2.0) * (total + 2.0 * n - 1.0) * f)
    first = x / total
    return first / (f - discount * first)


@njit(**EXACT_INLINE)
def mean_paid(posterior, pair, j):
    """The expected reward of a pair with outcome `j`."""
    counts, n_values = posterior.reward, posterior.reward.shape[0]
    total, reward = 0.0, 0.0
    for k in range(n_values):
        share = counts[k, pair] if n_values > 1 else 1.0
        total += share
        reward += share * paid_for(posterior, k, pair, j)
    return reward / total


@out_of_line
@njit(**EXACT)
def look_again(posterior, model, pair):
    """A pair as its counts are now."""
    alpha, row = posterior.alpha, row_of(posterior, pair)
    s, discount, n_outcomes = pair // posterior.n_actions, model.discount, posterior.alpha.shape[1]
    smallest = np.inf
    for j in range(n_outcomes):
        smallest = min(smallest, alpha[row, j])
    if posterior.tied:
        smallest = 0.0
    varies, same = on_arrival(posterior), 0.0
    if not varies:
        same = mean_reward(posterior, pair, model.v)  # which it does not look at
    leaving, stay, reward, paid, entries = 0.0, 0.0, 0.0, 0.0, 0
    for j in range(n_outcomes):
        t = arrival_of(posterior, pair, j)
        if t < 0 or alpha[row, j] <= 0.0:
            continue
        r = mean_paid(posterior, pair, j) if varies else same
        if t == s:
            stay, reward = alpha[row, j], r
        else:
            leaving += alpha[row, j]
            paid += alpha[row, j] * r
            if alpha[row, j] > smallest:
                model.weight[pair, entries], model.next_state[pair, entries] = alpha[row, j] - smallest, t
                entries += 1
    if leaving <= 0.0:
        paid, leaving, stay, smallest = reward / (1.0 - discount), 1.0, 0.0, 0.0
    for i in range(entries):
        model.weight[pair, i] *= discount / leaving
    model.entries[pair], model.common[pair] = entries, discount * smallest / leaving
    model.pay[pair], model.reward[pair] = paid / leaving, reward
    model.stay[pair], model.total[pair] = stay, stay + leaving
    model.ever[pair] = stays_for_ever(stay, stay + leaving, discount, model.terms) if stay > 0.0 else 0.0


@njit(**EXACT)
def look_at_all(posterior, model):
    """All pairs as their counts are now."""
    for pair in range(model.stay.size):
        look_again(posterior, model, pair)


@njit(**EXACT_INLINE)
def index_of(excess, leave, stays, plays, discount):
    """The index of an arm that is worth less with each stay, and of one that cannot stay."""
    return leave + excess * stays / (plays - discount * stays)


@njit(**EXACT_INLINE)
def arrive(model, s, others):
    """Indices of the actions that s offers, in order; `others` is the sum of the values of all other states. Returns
    how many they are."""
    offered, n_actions, discount, v = model.lists.offered, model.lists.offered.shape[1], model.discount, model.v
    n = model.lists.counts[s]
    for i in range(n):
        pair = s * n_actions + natural(offered[s, i])
        leave = model.pay[pair] + model.common[pair] * others
        for e in range(model.entries[pair]):
            leave += model.weight[pair, e] * v[natural(np.int64(model.next_state[pair, e]))]
        stay, total = model.stay[pair], model.total[pair]
        excess = model.reward[pair] - (1.0 - discount) * leave
        model.leave[i], model.excess[i], model.stays[i], model.plays[i] = leave, excess, stay, total
        if excess > 0.0:
            model.indices[i] = leave + excess * model.ever[pair]
        else:
            model.indices[i] = index_of(excess, leave, stay, total, discount)
    return n


@njit(**EXACT)
def value_of_visit(model, s, others):
    """What the index policy earns from an arrival in s on."""
    n, discount, left = arrive(model, s, others), model.discount, model.left
    index, leave, excess, stays, plays = model.indices, model.leave, model.excess, model.stays, model.plays
    value, weight = 0.0, 1.0
    for k in range(model.most + 1):
        i = natural(0)
        for other in range(1, n):
            if index[other] > index[i]:
                i = natural(other)
        if excess[i] > 0.0 or stays[i] <= 0.0 or weight <= left or k == model.most:
            break
        q = stays[i] / plays[i]
        value += weight * (leave[i] + q * (excess[i] - discount * leave[i]))
        weight *= discount * q
        stays[i] += 1.0
        plays[i] += 1.0
        index[i] = index_of(excess[i], leave[i], stays[i], plays[i], discount)
    return value + weight * index[i]


@njit(**EXACT)
def sum_of_values(v):
    """`Σ_s V(s)`, in order."""
    total = 0.0
    for s in range(v.size):
        total += v[s]
    return total


@njit(**EXACT)
def sweep(model, backwards):
    """One Gauss–Seidel sweep, backwards or forwards; returns the largest change of a value, and how far values are
    apart."""
    v, n_states, change, lowest, highest = model.v, model.v.size, 0.0, np.inf, -np.inf
    total = sum_of_values(v)
    for k in range(n_states):
        s = natural(n_states - 1 - k if backwards else k)
        others = total - v[s]
        value = value_of_visit(model, s, others)
        change, lowest, highest = max(change, abs(value - v[s])), min(lowest, value), max(highest, value)
        v[s] = value
        total = others + value
    return change, highest - lowest


@out_of_line
@njit(**EXACT)
def solve(model, sweeps, tolerance):
    """Sweep at most so many times, until no value changes by more than a share `tolerance` of how far values are
    apart; returns how often."""
    made = 0
    while made < sweeps:
        made += 1
        change, apart = sweep(model, made % 2 == 1)
        if change <= tolerance * apart:
            break
    return made


@njit(**EXACT)
def best_now(model, s):
    """The action of the largest index in s, ties to the lowest."""
    n = arrive(model, s, sum_of_values(model.v) - model.v[s])
    best = 0
    for i in range(1, n):
        if model.indices[i] > model.indices[best] + GAIN * (1.0 + abs(model.indices[best])):
            best = i
    return model.lists.offered[s, best]
