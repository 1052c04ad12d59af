"""Posterior draws: product-Dirichlet transitions, and the means of Beta and Normal-Gamma reward beliefs.

A Dirichlet row is a normalised vector of Gamma draws. At small concentration all of them underflow, and 0/0
follows. Here `G(α) = G(α + 1) exp(−E/α)` for α < 1, E exponential, and the row is scaled by
`exp(min_t E_t/α_t)` before anything is exponentiated: the component of the minimum becomes an ordinary
number, so the sum is positive. No logarithm is taken, nothing is approximated, and no concentration needs a
path of its own. Meant for α ≤ 1e300; a positive α below 1e-300 counts as 1e-300.

All n models share α, so the loops over models are innermost: constants are computed once per component, and
exponentials and divisions are SIMD. Each family writes two layouts of C-ordered arrays, the model axis first
(`_models`) or last, as agents have it; from one stream both are the same models, bit for bit.
"""

import math

import numpy as np
from numba import njit

from beliefbound.kernels.options import EXACT, EXACT_INLINE
from beliefbound.kernels.out_of_line import out_of_line
from beliefbound.kernels.random import (
    boosted,
    draw_beta,
    draw_boost,
    draw_gamma,
    draw_normal,
    gamma_constants,
    load,
    save,
)

kernel = njit(**EXACT)
inlined = njit(**EXACT_INLINE)

LOG2_HIGH, LOG2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10  # log 2 in two doubles
TAYLOR = tuple(1.0 / math.factorial(j) for j in range(14))
EMPTY = 1e-300  # where sums start: lost beside a Gamma draw of shape 1 or more, and 0 / EMPTY is 0, not NaN
_BLOCK = 2048  # doubles: what is copied from one layout to the other stays in the fastest cache


@inlined
def exp_negative(x):
    """exp(x) for x ≤ 0 within two ulp, 0 below 1e-307. Branch-free, so that a loop over it is SIMD.

    `2^k e^r` with `|r| ≤ log(2)/2`, and the Taylor series of `e^r` to `r¹³`, even and odd terms side by side.
    """
    k = np.floor(x * (1.0 / math.log(2.0)) + 0.5)
    r = (x - k * LOG2_HIGH) - k * LOG2_LOW
    rr = r * r
    even, odd = TAYLOR[12], TAYLOR[13]
    for j in range(10, 0, -2):
        even = even * rr + TAYLOR[j]
        odd = odd * rr + TAYLOR[j + 1]
    scale = np.int64((np.int64(k) + 1023) << 52).view(np.float64)
    return (1.0 + (r + rr * (even + r * odd))) * scale if x > -707.0 else 0.0


@inlined
def dirichlet_row(stream, alpha, out):
    """One draw of a Dirichlet: `alpha[t] ≥ 0` to `out[t]`. Components with α = 0 are 0."""
    words = load(stream)
    least, total = np.inf, EMPTY
    for t in range(alpha.size):
        if alpha[t] > 0.0:
            out[t], words = draw_boost(alpha[t], words)
            least = min(least, out[t])
    for t in range(alpha.size):
        x = 0.0
        if alpha[t] > 0.0:
            x, words = draw_gamma(gamma_constants(boosted(alpha[t])), words)
            if alpha[t] < 1.0:
                x *= exp_negative(least - out[t])
        out[t] = x
        total += x
    for t in range(alpha.size):
        out[t] /= total
    save(stream, words)


@out_of_line
@kernel
def draw_lanes(stream, alpha, out, each):
    """n draws of each row of `alpha[row, t]`, models last: `out` is flat, `[row, t, m]`; `each[m]` is scratch.

    All boosts of a row are drawn, then all its Gammas, as in `dirichlet_row`, which does the work if n = 1. Draws are
    made in place: `each` holds the least boosts of a row, then its sums.
    """
    n_rows, n_next = alpha.shape
    n = out.size // alpha.size
    if n == 1:
        for row in range(n_rows):
            dirichlet_row(stream, alpha[row], out[row * n_next : (row + 1) * n_next])
        return
    words = load(stream)
    for row in range(n_rows):
        flat = out[row * n_next * n : (row + 1) * n_next * n]
        work = flat.reshape((n_next, n))
        any_boosted = False
        for m in range(n):
            each[m] = np.inf
        for t in range(n_next):
            shape = alpha[row, t]
            if shape > 0.0:
                any_boosted |= shape < 1.0
                for m in range(n):
                    boost, words = draw_boost(shape, words)
                    work[t, m] = boost
                    each[m] = min(each[m], boost)
            else:
                for m in range(n):
                    work[t, m] = np.inf
        if any_boosted:
            for t in range(n_next):
                for m in range(n):
                    work[t, m] = each[m] - work[t, m]
            for i in range(flat.size):
                flat[i] = exp_negative(flat[i])
        for m in range(n):
            each[m] = EMPTY
        for t in range(n_next):
            shape = alpha[row, t]
            if shape > 0.0:
                constants = gamma_constants(boosted(shape))
                for m in range(n):
                    x, words = draw_gamma(constants, words)
                    if shape < 1.0:
                        x *= work[t, m]
                    work[t, m] = x
                    each[m] += x
            else:
                for m in range(n):
                    work[t, m] = 0.0
        for t in range(n_next):
            for m in range(n):
                work[t, m] /= each[m]
    save(stream, words)


def dirichlet_models(stream: np.ndarray, alpha: np.ndarray, out: np.ndarray) -> None:
    """A draw of each row of `alpha[s, a, t]` per model, models first: `out[m, s, a, t]`."""
    n, T = out.shape[0], out.shape[-1]
    rows = np.array(alpha).reshape(-1, T)  # a copy, since what is read-only is another type
    if n == 1:  # either layout is the other
        draw_lanes(stream, rows, out.reshape(-1), np.empty(1))
    else:
        at_once = min(len(rows), max(1, _BLOCK // (T * n)))
        draw_models(stream, rows, out.reshape(-1), np.empty(n), np.empty(at_once * T * n))


@kernel
def draw_models(stream, rows, flat, each, lanes):
    """`dirichlet_models`, in so many `lanes` as fit: `each[m]` and `lanes[row, t, m]` are scratch."""
    n, (n_rows, T) = each.size, rows.shape
    at_once = lanes.size // (T * n)
    for first in range(0, n_rows, at_once):
        size = min(at_once, n_rows - first) * T
        draw_lanes(stream, rows[first : first + at_once], lanes[: size * n], each)
        place = first * T
        for i in range(size):
            for m in range(n):
                flat[place + i + m * rows.size] = lanes[i * n + m]


@out_of_line
@kernel
def draw_betas(stream, a, b, low, high, out, row_stride, model_stride):
    """n draws of low + (high − low) Beta(`a[row]`, `b[row]`) per row; `out` is flat and addressed by the
    strides of its axes."""
    words = load(stream)
    for row in range(a.size):
        a_row, b_row = a[row], b[row]
        for m in range(out.size // a.size):
            x, words = draw_beta(a_row, b_row, words)
            out[row * row_stride + m * model_stride] = min(low + (high - low) * x, high)
    save(stream, words)


def beta_models(stream: np.ndarray, a: np.ndarray, b: np.ndarray, low: float, high: float, out: np.ndarray) -> None:
    """Draws from Beta(`a[s, a]`, `b[s, a]`) stretched to [low, high], models first: `out[m, s, a]`."""
    draw_betas(stream, a.flatten(), b.flatten(), low, high, out.reshape(-1), 1, a.size)


@kernel
def draw_means(stream, parameters, out, row_stride, model_stride):
    """n draws of a Normal-Gamma's mean per row of `parameters = (mean, kappa, shape, rate)`, each `[row]`.

    Precision λ ~ Gamma(shape, rate), mean ~ N(mean, 1 / (kappa λ)): the standard deviation is
    `sqrt(rate / (kappa G)) exp(boost / 2)`, whose exponent is held below 600 so that draws at the smallest
    shapes, where the law has no mean, stay finite. `out` as in `draw_betas`.
    """
    means, kappas, shapes, rates = parameters
    words = load(stream)
    for row in range(means.size):
        mean, shape, variance = means[row], shapes[row], rates[row] / kappas[row]
        for m in range(out.size // means.size):
            boost, words = draw_boost(shape, words)
            precision, words = draw_gamma(gamma_constants(boosted(shape)), words)
            x, words = draw_normal(words)
            deviation = math.sqrt(variance / precision)
            if boost > 0.0:
                deviation *= math.exp(min(0.5 * boost, 600.0))
            out[row * row_stride + m * model_stride] = mean + x * deviation
    save(stream, words)


def normal_models(
    stream: np.ndarray, mean: np.ndarray, kappa: np.ndarray, shape: np.ndarray, rate: np.ndarray, out: np.ndarray
) -> None:
    """Draws of a Normal-Gamma belief's mean, parameters `[s, a]`, models first: `out[m, s, a]`."""
    parameters = mean.flatten(), kappa.flatten(), shape.flatten(), rate.flatten()
    draw_means(stream, parameters, out.reshape(-1), 1, mean.size)
