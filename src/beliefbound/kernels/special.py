"""Digamma and trigamma, the Beta and Student's law in compiled code, where SciPy cannot be called."""

import math

from numba import njit

from beliefbound.kernels.options import EXACT


@njit(**EXACT)
def digamma(x):
    """`ψ(x)` for x > 0: up by `ψ(x) = ψ(x + 1) − 1/x`, then the asymptotic series; relative error about 1e-14."""
    value = 0.0
    while x < 10.0:
        value -= 1.0 / x
        x += 1.0
    y = 1.0 / (x * x)
    series = y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y * (1 / 240 - y * (1 / 132 - y * (691 / 32760 - y / 12))))))
    return value + math.log(x) - 0.5 / x - series


@njit(**EXACT)
def trigamma(x):
    """`ψ'(x)` for x > 0, in the same way."""
    value = 0.0
    while x < 10.0:
        value += 1.0 / (x * x)
        x += 1.0
    y = 1.0 / (x * x)
    series = y * (1 / 6 - y * (1 / 30 - y * (1 / 42 - y * (1 / 30 - y * (5 / 66 - y * (691 / 2730 - y * 7 / 6))))))
    return value + 1.0 / x + 0.5 * y + series / x


@njit(**EXACT)
def shape_of(gap):
    """The Gamma shape a with `ln a − ψ(a) = gap` > 0: Minka's (2002) start, then Newton's method on `1/a`."""
    a = (3.0 - gap + math.sqrt((gap - 3.0) ** 2 + 24.0 * gap)) / (12.0 * gap)
    for _ in range(50):
        residual = math.log(a) - digamma(a) - gap
        change = residual / (1.0 / a - trigamma(a))
        a = a * a / (a + change)  # of 1/a, so that a stays positive
        if abs(change) <= 1e-14 * a:
            break
    return a


@njit(**EXACT)
def beta_fraction(x, a, b):
    """The continued fraction of the incomplete Beta function, by Lentz's method; fast for x < (a+1)/(a+b+2)."""
    tiny = 1e-300
    c, d = 1.0, 1.0 - (a + b) * x / (a + 1.0)
    d = 1.0 / (d if abs(d) > tiny else tiny)
    value = d
    for m in range(1, 100_000):
        for odd in range(2):
            if odd == 0:
                term = m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m))
            else:
                term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0))
            d = 1.0 + term * d
            d = 1.0 / (d if abs(d) > tiny else tiny)
            c = 1.0 + term / c
            c = c if abs(c) > tiny else tiny
            value *= c * d
        if abs(c * d - 1.0) < 1e-15:
            break
    return value


@njit(**EXACT)
def beta_cdf(x, a, b):
    """`P(θ ≤ x)` for `θ ~ Beta(a, b)`, `0 < x < 1`."""
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    if x < (a + 1.0) / (a + b + 2.0):
        return math.exp(log_front) * beta_fraction(x, a, b) / a
    return 1.0 - math.exp(log_front) * beta_fraction(1.0 - x, b, a) / b


@njit(**EXACT)
def student_density(z, freedom):
    """The density of Student's law."""
    scale = math.lgamma(0.5 * (freedom + 1.0)) - math.lgamma(0.5 * freedom) - 0.5 * math.log(freedom * math.pi)
    return math.exp(scale - 0.5 * (freedom + 1.0) * math.log1p(z * z / freedom))


@njit(**EXACT)
def student_cdf(z, freedom):
    """The distribution function of Student's law: `½ + ½ I_y(½, ν/2)` for z > 0, `y = z² / (ν + z²)`."""
    square = z * z
    y = square / (freedom + square)
    if y == 0.0:
        return 0.5
    if y < 0.5:
        tail = 0.5 - 0.5 * beta_cdf(y, 0.5, 0.5 * freedom)
    else:
        tail = 0.5 * beta_cdf(freedom / (freedom + square), 0.5 * freedom, 0.5)
    return 1.0 - tail if z > 0.0 else tail
