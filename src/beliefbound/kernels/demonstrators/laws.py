"""Densities and draws that the steps of a chain are made of."""

import math

import numpy as np
from numba import njit

from beliefbound.kernels.demonstrators.state import BETA
from beliefbound.kernels.draws import dirichlet_row
from beliefbound.kernels.options import EXACT
from beliefbound.kernels.out_of_line import out_of_line
from beliefbound.kernels.random import below, normal, uniform

kernel = njit(**EXACT)

EDGE = 1e-12  # how near a reward with a Beta prior comes to 0 and 1
_SIZES = 5  # of steps, each half of the one before


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
def log_rational(shape, scale, eta):
    """Log density of `log η`, `η ~ Gamma(shape, scale)`."""
    return shape * math.log(eta / scale) - eta / scale - math.lgamma(shape)


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
def accepts(stream, log_ratio):
    """Whether a step is taken."""
    return math.log(1.0 - chance(stream)) < log_ratio
