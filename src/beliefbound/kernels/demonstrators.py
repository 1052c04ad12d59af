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
from typing import NamedTuple

import numpy as np
from numba import njit

from beliefbound.kernels.draws import dirichlet_row
from beliefbound.kernels.options import EXACT
from beliefbound.kernels.out_of_line import out_of_line
from beliefbound.kernels.planning.kept_optimum import (
    back_up_pairs,
    change_row,
    dot,
    greedy_where_better,
    improve,
    invert,
    is_better,
)
from beliefbound.kernels.random import below, normal, uniform
from beliefbound.kernels.reference import by_reference

kernel = njit(**EXACT)

REWARD, ROW, RATIONAL, LEVEL, SHARED = range(5)  # kinds of steps
BETA, NORMAL = range(2)  # families of rewards
EDGE = 1e-12  # how near a reward with a Beta prior comes to 0 and 1
_SIZES = 5  # of steps, each half of the one before
_REFRESH = 1000  # steps after which inverses are made anew


@by_reference
class Data(NamedTuple):
    """What is given: `F` parameters of rewards, `K` demonstrators."""

    discount: float
    alpha: np.ndarray  # [pair,t]: of each row, given all transitions
    rows: np.ndarray  # [i]: pairs whose row is unknown
    first: np.ndarray  # [j + 1]: where the column of each parameter begins
    pair: np.ndarray  # [i]: pairs of the columns
    times: np.ndarray  # [i]: what a pair has of the parameter
    level: bool  # whether all parameters raised by one raise all rewards by one
    visits: np.ndarray  # [k,pair]: how often each was chosen
    family: int  # BETA or NORMAL
    base: np.ndarray  # [j,2]: Beta(a, b), or Normal(mean, deviation), of a reward, or of the shared centre
    rational: np.ndarray  # [3]: shape and scale of η's Gamma; 1 where η is known and stays as it is
    shared: bool  # whether the prior of several demonstrators is unknown


@by_reference
class Walk(NamedTuple):
    """Where a chain is, what it tries, and its random numbers."""

    stream: np.ndarray
    p: np.ndarray  # [pair,t]
    w: np.ndarray  # [k,j]
    eta: np.ndarray  # [k]
    prior: np.ndarray  # [j,2]: as `base`, of the rewards as it is believed now
    centre: np.ndarray  # [j]: m
    hyper: np.ndarray  # [2]: h, and the log of the scale of η
    like: np.ndarray  # [2,k]: log likelihood of the choices, as it is and as tried
    r: np.ndarray  # [2,k,pair]
    q: np.ndarray  # [2,k,pair]
    v: np.ndarray  # [2,k,s]
    policy: np.ndarray  # [2,k,s]
    inverse: np.ndarray  # [2,k,s,t]
    side: np.ndarray  # [k]: which inverse holds
    moved: np.ndarray  # [k]: whether the other one is that of the trial
    wanted: np.ndarray  # [s], scratch, as the others
    d: np.ndarray  # [t]
    line: np.ndarray  # [t]
    old: np.ndarray  # [t]
    two: np.ndarray  # [2]
    tally: np.ndarray  # [kind,2]: steps tried and taken


@by_reference
class Kept(NamedTuple):
    """Draws of a chain, one in so many steps: `[i,…]`; of the dynamics, the last of every so many draws."""

    p: np.ndarray
    w: np.ndarray
    eta: np.ndarray
    like: np.ndarray
    prior: np.ndarray  # of the rewards of somebody new
    scale: np.ndarray  # and of their η


@out_of_line
@kernel
def copy(x, out):
    """`out[i,j] = x[i,j]`."""
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] = x[i, j]


@out_of_line
@kernel
def log_choices(visits, q, eta, n_actions):
    """`Σ_{s,a} N(s,a) log softmax_a(η Q(s,a))`."""
    total = 0.0
    for s in range(q.size // n_actions):
        first, count, top = s * n_actions, 0.0, -np.inf
        for a in range(first, first + n_actions):
            count += visits[a]
            top = max(top, q[a])
        if count > 0.0:
            mass = 0.0
            for a in range(first, first + n_actions):
                mass += math.exp(eta * (q[a] - top))
                total += visits[a] * eta * (q[a] - top)
            total -= count * math.log(mass)
    return total


@out_of_line
@kernel
def log_prior(family, w, one, two):
    """Log density of a reward, up to a constant that depends on neither."""
    if family == BETA:
        size = math.lgamma(one + two) - math.lgamma(one) - math.lgamma(two)
        return size + (one - 1.0) * math.log(w) + (two - 1.0) * math.log1p(-w)
    return -0.5 * ((w - one) / two) ** 2 - math.log(two)


@out_of_line
@kernel
def draw_row(stream, alpha, out):
    """A Dirichlet row; of two, the first is a Beta."""
    dirichlet_row(stream, alpha, out)


@out_of_line
@kernel
def pick(stream, n):
    """A whole number below `n`."""
    return below(stream, n)


@out_of_line
@kernel
def chance(stream):
    """A number between 0 and 1."""
    return uniform(stream)


@out_of_line
@kernel
def standard(stream):
    """A Normal number."""
    return normal(stream)


@kernel
def step_size(stream):
    """A Normal step of one of several sizes, each as likely."""
    return standard(stream) * 2.0 ** -float(pick(stream, _SIZES))


@out_of_line
@kernel
def draw_reward(stream, family, law, scratch):
    """A reward from its prior `law[2]`; `scratch[2]`."""
    if family == BETA:
        draw_row(stream, law, scratch)
        return min(max(scratch[0], EDGE), 1.0 - EDGE)
    return law[0] + law[1] * standard(stream)


@kernel
def reflected(x):
    """`x` folded into the unit interval, edges apart."""
    x = abs(x) % 2.0
    return min(max(2.0 - x if x > 1.0 else x, EDGE), 1.0 - EDGE)


@out_of_line
@kernel
def begin_trial(walk, k):
    """What is tried for a demonstrator starts from what is."""
    for i in range(walk.q.shape[2]):
        walk.q[1, k, i] = walk.q[0, k, i]
        walk.r[1, k, i] = walk.r[0, k, i]
    for s in range(walk.v.shape[2]):
        walk.v[1, k, s] = walk.v[0, k, s]
        walk.policy[1, k, s] = walk.policy[0, k, s]
    walk.moved[k] = 0


@out_of_line
@kernel
def inverse_to_change(walk, k):
    """Make the other inverse that of the trial, so that it may be changed."""
    if walk.moved[k] == 0:
        copy(walk.inverse[walk.side[k], k], walk.inverse[1 - walk.side[k], k])
        walk.moved[k] = 1


@out_of_line
@kernel
def settle(data, walk, k):
    """The optimum of a trial whose values are those of its policy."""
    r, q, v, policy = walk.r[1, k], walk.q[1, k], walk.v[1, k], walk.policy[1, k]
    back_up_pairs(data.discount, walk.p, r, v, q)
    if greedy_where_better(q, v, policy, walk.wanted) > 0:
        inverse_to_change(walk, k)
        inverse = walk.inverse[1 - walk.side[k], k]
        improve(data.discount, walk.p, r, policy, inverse, v, q, walk.wanted, walk.d, walk.line)


@out_of_line
@kernel
def finish_trial(walk, k):
    """What was tried is what is."""
    for i in range(walk.q.shape[2]):
        walk.q[0, k, i] = walk.q[1, k, i]
        walk.r[0, k, i] = walk.r[1, k, i]
    for s in range(walk.v.shape[2]):
        walk.v[0, k, s] = walk.v[1, k, s]
        walk.policy[0, k, s] = walk.policy[1, k, s]
    if walk.moved[k] == 1:
        walk.side[k] = 1 - walk.side[k]
    walk.moved[k] = 0
    walk.like[0, k] = walk.like[1, k]


@out_of_line
@kernel
def accepts(stream, log_ratio):
    """Whether a step is taken."""
    return math.log(1.0 - chance(stream)) < log_ratio


@out_of_line
@kernel
def move_reward(data, walk, k):
    """One parameter of one demonstrator's rewards."""
    stream, n_actions = walk.stream, walk.q.shape[2] // walk.v.shape[2]
    j = pick(stream, walk.w.shape[1])
    one, two, before = walk.prior[j, 0], walk.prior[j, 1], walk.w[k, j]
    ratio = 0.0
    if chance(stream) < 0.5:
        after = draw_reward(stream, data.family, walk.prior[j], walk.two)
    else:
        step = step_size(stream)
        after = reflected(before + step) if data.family == BETA else before + 2.0 * two * step
        ratio = log_prior(data.family, after, one, two) - log_prior(data.family, before, one, two)
    begin_trial(walk, k)
    inverse, r, v, policy = walk.inverse[walk.side[k], k], walk.r[1, k], walk.v[1, k], walk.policy[1, k]
    for i in range(data.first[j], data.first[j + 1]):
        pair, more = data.pair[i], data.times[i] * (after - before)
        s = pair // n_actions
        r[pair] += more
        if policy[s] == pair - s * n_actions:
            for t in range(v.size):
                v[t] += more * inverse[t, s]
    settle(data, walk, k)
    walk.like[1, k] = log_choices(data.visits[k], walk.q[1, k], walk.eta[k], n_actions)
    if not accepts(stream, ratio + walk.like[1, k] - walk.like[0, k]):
        return False
    walk.w[k, j] = after
    finish_trial(walk, k)
    return True


@out_of_line
@kernel
def move_row(data, walk):
    """One row of the dynamics, for all demonstrators."""
    stream, n_states = walk.stream, walk.v.shape[2]
    n_actions, n_demonstrators = walk.q.shape[2] // n_states, walk.w.shape[0]
    pair = data.rows[pick(stream, data.rows.size)]
    s = pair // n_actions
    row, ratio = walk.p[pair], 0.0
    for t in range(n_states):
        walk.old[t] = row[t]
    draw_row(stream, data.alpha[pair], row)
    for k in range(n_demonstrators):
        begin_trial(walk, k)
        if walk.policy[1, k, s] == pair - s * n_actions:
            inverse_to_change(walk, k)
            for t in range(n_states):
                walk.d[t] = row[t] - walk.old[t]
            change_row(data.discount, s, walk.d, 0.0, walk.inverse[1 - walk.side[k], k], walk.v[1, k], walk.line)
            settle(data, walk, k)
        else:
            value = walk.r[1, k, pair] + data.discount * dot(row, walk.v[1, k])
            walk.q[1, k, pair] = value
            if is_better(value, walk.v[1, k, s]):
                settle(data, walk, k)
        walk.like[1, k] = log_choices(data.visits[k], walk.q[1, k], walk.eta[k], n_actions)
        ratio += walk.like[1, k] - walk.like[0, k]
    if not accepts(stream, ratio):
        for t in range(n_states):
            row[t] = walk.old[t]
        return False
    for k in range(n_demonstrators):
        finish_trial(walk, k)
    return True


@out_of_line
@kernel
def log_rational(shape, scale, eta):
    """Log density of `log η`, `η ~ Gamma(shape, scale)`."""
    return shape * math.log(eta / scale) - eta / scale - math.lgamma(shape)


@out_of_line
@kernel
def move_rational(data, walk, k):
    """How rational one demonstrator is."""
    before = walk.eta[k]
    after = before * math.exp(2.0 * step_size(walk.stream))
    if not 1e-100 < after < 1e100:
        return False
    shape, scale = data.rational[0], math.exp(walk.hyper[1])
    n_actions = walk.q.shape[2] // walk.v.shape[2]
    like = log_choices(data.visits[k], walk.q[0, k], after, n_actions)
    ratio = log_rational(shape, scale, after) - log_rational(shape, scale, before)
    if not accepts(walk.stream, ratio + like - walk.like[0, k]):
        return False
    walk.eta[k], walk.like[0, k] = after, like
    return True


@out_of_line
@kernel
def rescaled(data, walk, k, factor, more):
    """Whether the rewards of one demonstrator may become `factor w + more`, and how their prior changes."""
    change = 0.0
    for j in range(walk.w.shape[1]):
        before = walk.w[k, j]
        after = factor * before + more
        if data.family == BETA and not EDGE <= after <= 1.0 - EDGE:
            return False, 0.0
        one, two = walk.prior[j, 0], walk.prior[j, 1]
        change += log_prior(data.family, after, one, two) - log_prior(data.family, before, one, two)
    return True, change


@out_of_line
@kernel
def move_level(data, walk, k):
    """The level or the scale of all rewards of one demonstrator: choices are as likely as before."""
    factor, more, ratio = 1.0, 0.0, 0.0
    known = data.rational[2] > 0.0
    if data.level and (known or chance(walk.stream) < 0.5):
        more = 0.5 * step_size(walk.stream)
    elif known:
        return False
    else:
        factor = math.exp(step_size(walk.stream))
        shape, scale, eta = data.rational[0], math.exp(walk.hyper[1]), walk.eta[k]
        ratio = log_rational(shape, scale, eta / factor) - log_rational(shape, scale, eta)
        ratio += walk.w.shape[1] * math.log(factor)
    allowed, change = rescaled(data, walk, k, factor, more)
    if not allowed or not accepts(walk.stream, ratio + change):
        return False
    later = more / (1.0 - data.discount)
    walk.eta[k] /= factor
    for j in range(walk.w.shape[1]):
        walk.w[k, j] = factor * walk.w[k, j] + more
    for i in range(walk.q.shape[2]):
        walk.q[0, k, i] = factor * walk.q[0, k, i] + later
        walk.r[0, k, i] = factor * walk.r[0, k, i] + more
    for s in range(walk.v.shape[2]):
        walk.v[0, k, s] = factor * walk.v[0, k, s] + later
    return True


@kernel
def write_prior(data, j, centre, h, out):
    """The prior of a reward with this centre and strength: Beta or Normal."""
    if data.family == BETA:
        strength = (data.base[j, 0] + data.base[j, 1]) * (1.0 + math.exp(h))
        out[0], out[1] = strength * centre, strength * (1.0 - centre)
    else:
        out[0], out[1] = centre, data.base[j, 1] * math.exp(h)


@out_of_line
@kernel
def log_rewards(data, walk, j, centre, h):
    """Log density of all demonstrators' `w_kj` and of its centre."""
    write_prior(data, j, centre, h, walk.two)
    total = log_prior(data.family, centre, data.base[j, 0], data.base[j, 1])
    for k in range(walk.w.shape[0]):
        total += log_prior(data.family, walk.w[k, j], walk.two[0], walk.two[1])
    return total


@out_of_line
@kernel
def move_shared(data, walk):
    """The prior that demonstrators share: each centre, the strength, and the scale of `η`; how many changed."""
    stream, h, n, taken = walk.stream, walk.hyper[0], walk.w.shape[1], 0
    for j in range(n):
        step, before = step_size(stream), walk.centre[j]
        after = reflected(before + step) if data.family == BETA else before + 2.0 * data.base[j, 1] * step
        if accepts(stream, log_rewards(data, walk, j, after, h) - log_rewards(data, walk, j, before, h)):
            walk.centre[j] = after
            taken += 1
    after = h + step_size(stream)
    ratio = 0.5 * h**2 - 0.5 * after**2
    for j in range(n):
        ratio += log_rewards(data, walk, j, walk.centre[j], after) - log_rewards(data, walk, j, walk.centre[j], h)
    if accepts(stream, ratio):
        walk.hyper[0] = after
        taken += 1
    for j in range(n):
        write_prior(data, j, walk.centre[j], walk.hyper[0], walk.prior[j])
    if data.rational[2] > 0.0:
        return taken
    before, usual = walk.hyper[1], math.log(data.rational[1])
    after = before + step_size(stream)
    ratio = 0.5 * (before - usual) ** 2 - 0.5 * (after - usual) ** 2
    for k in range(walk.eta.size):
        ratio += log_rational(data.rational[0], math.exp(after), walk.eta[k])
        ratio -= log_rational(data.rational[0], math.exp(before), walk.eta[k])
    if accepts(stream, ratio):
        walk.hyper[1] = after
        taken += 1
    return taken


@out_of_line
@kernel
def refresh(data, walk, k):
    """Rewards, inverse, values and likelihood of a demonstrator, made anew for its parameters."""
    n_actions = walk.q.shape[2] // walk.v.shape[2]
    begin_trial(walk, k)
    r, v, policy = walk.r[1, k], walk.v[1, k], walk.policy[1, k]
    for i in range(r.size):
        r[i] = 0.0
    for j in range(walk.w.shape[1]):
        for i in range(data.first[j], data.first[j + 1]):
            r[data.pair[i]] += data.times[i] * walk.w[k, j]
    invert(data.discount, walk.p, policy, walk.inverse[1 - walk.side[k], k])
    walk.moved[k] = 1
    for s in range(v.size):
        walk.d[s] = r[s * n_actions + policy[s]]
    for s in range(v.size):
        v[s] = dot(walk.inverse[1 - walk.side[k], k, s], walk.d)
    settle(data, walk, k)
    walk.like[1, k] = log_choices(data.visits[k], walk.q[1, k], walk.eta[k], n_actions)
    finish_trial(walk, k)


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
