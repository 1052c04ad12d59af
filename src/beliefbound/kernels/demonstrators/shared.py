"""The prior that several demonstrators share, and a step that changes it: it needs no planning."""

import math

from numba import njit

from beliefbound.kernels.demonstrators.laws import accepts, log_prior, log_rational, reflected, step_size
from beliefbound.kernels.demonstrators.state import BETA
from beliefbound.kernels.options import EXACT
from beliefbound.kernels.out_of_line import out_of_line

kernel = njit(**EXACT)


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
