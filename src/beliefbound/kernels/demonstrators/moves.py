"""Steps of a chain: a reward, a row of the dynamics, rationality, and the level and scale of all rewards."""

import math

from numba import njit

from beliefbound.kernels.demonstrators.laws import (
    EDGE,
    accepts,
    chance,
    draw_reward,
    draw_row,
    log_choices,
    log_prior,
    log_rational,
    pick,
    reflected,
    step_size,
)
from beliefbound.kernels.demonstrators.state import BETA
from beliefbound.kernels.demonstrators.trial import begin_trial, finish_trial, inverse_to_change, settle
from beliefbound.kernels.options import EXACT
from beliefbound.kernels.out_of_line import out_of_line
from beliefbound.kernels.planning.kept_optimum import change_row, dot, is_better

kernel = njit(**EXACT)


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
