"""A random generator that is an array, so that a stream is an address and compiled code can carry it.

A *stream* is the state of xoshiro256++ (Blackman & Vigna 2021): `uint64[4]`, never all zero, advanced in
place by every draw. `seed_stream` hashes an address such as (root seed, cell, run, purpose) to a stream:
equal addresses give equal streams, on every machine and whatever ran before.

Each law has two faces. `normal(stream)` reads and writes the array. `draw_normal(words)`, for compiled code,
takes the four words as a tuple and returns `(value, words)`: a loop over it between `load` and `save` keeps
the state in registers. Both are always inlined, so neither costs a call or a reference count.

Normal and exponential draws are ziggurats and Gamma draws are rejections from a cubed normal (Marsaglia &
Tsang 2000, both), with a squeeze that tightens as the shape grows. All laws are exact up to rounding.
"""

import math

import numpy as np
from numba import njit

from beliefbound.kernels.options import EXACT, EXACT_INLINE

kernel = njit(**EXACT)
inlined = njit(**EXACT_INLINE)
bits = njit(inline="always", **EXACT)  # by numba itself: whole numbers only, so callers cannot round differently

# ------------------------------------------------------------------------------------------- bits and streams

GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2⁶⁴ / golden ratio: the increment of splitmix64
SALTS = np.array(  # an odd multiplier per state word: the fractional parts of √2 (+1), √3, √5, √7
    [0x6A09E667F3BCC909, 0xBB67AE8584CAA73B, 0x3C6EF372FE94F82B, 0xA54FF53A5F1D36F1],
    dtype=np.uint64,
)


@bits
def mix(z):
    """The finaliser of splitmix64: a bijection of 64-bit words that moves every bit with every other."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@kernel
def seed_stream(words):
    """The stream at an address: `uint64[any]` to `uint64[4]`.

    Each word of the state is its own hash of the address, by a chain of bijections. Addresses that differ in
    one word therefore differ in all four words of the state, for certain; any others collide with probability
    2⁻²⁵⁶.
    """
    stream = np.empty(4, np.uint64)
    begin_address(stream)
    for word in words:
        add_word(stream, word)
    end_address(stream)
    return stream


@bits
def begin_address(stream):
    """The stream of an address without words, to be given some by `add_word` and finished by `end_address`: the same
    as `seed_stream` of all of them, without an array that holds them."""
    for k in range(4):
        stream[k] = SALTS[k]


@inlined
def add_word(stream, word):
    """One more word of an address."""
    for k in range(4):
        stream[k] = mix(mix(stream[k] + GOLDEN) ^ (np.uint64(word) * SALTS[k]))


@bits
def end_address(stream):
    """There are no more words. A stream is never all zero."""
    if stream[0] == 0 and stream[1] == 0 and stream[2] == 0 and stream[3] == 0:
        stream[0] = GOLDEN


def stream_from(rng: np.random.Generator) -> np.ndarray:
    """A stream seeded by 256 bits of a numpy generator, which it advances."""
    stream: np.ndarray = seed_stream(rng.integers(0, 2**64, size=4, dtype=np.uint64))
    return stream


@bits
def load(stream):
    """The state as a tuple, to be carried in registers until `save`."""
    return stream[0], stream[1], stream[2], stream[3]


@bits
def save(stream, words):
    """Write the carried state back."""
    stream[0], stream[1], stream[2], stream[3] = words


@bits
def draw_u64(words):
    """64 random bits: one step of xoshiro256++."""
    s0, s1, s2, s3 = words
    z = s0 + s3
    z = ((z << np.uint64(23)) | (z >> np.uint64(41))) + s0
    t = s1 << np.uint64(17)
    s2 ^= s0
    s3 ^= s1
    s1 ^= s2
    s0 ^= s3
    s2 ^= t
    s3 = (s3 << np.uint64(45)) | (s3 >> np.uint64(19))
    return z, (s0, s1, s2, s3)


@inlined
def draw_uniform(words):
    """Uniform on the multiples of 2⁻⁵³ in [0, 1)."""
    z, words = draw_u64(words)
    return np.float64(z >> np.uint64(11)) * 2.0**-53, words


@bits
def draw_below(n, words):
    """A uniform integer in 0 … n − 1, for 1 ≤ n < 2³² (Lemire 2019: unbiased, almost never divides)."""
    m = np.uint64(n)
    z, words = draw_u64(words)
    product = (z >> np.uint64(32)) * m
    if product & np.uint64(0xFFFFFFFF) < m:
        threshold = (np.uint64(0x100000000) - m) % m
        while product & np.uint64(0xFFFFFFFF) < threshold:
            z, words = draw_u64(words)
            product = (z >> np.uint64(32)) * m
    return np.int64(product >> np.uint64(32)), words


# -------------------------------------------------------------------------------------------------- ziggurats


def ziggurat(density, inverse, tail_area, *, low, high):
    """Cover a decreasing density on [0, ∞) with `density(0) = 1` by 256 layers of one area.

    With r the edge of the lowest layer, the area is `v = r f(r) + ∫_r^∞ f` (the tail belongs to the lowest
    layer) and the other edges follow from `x_1 = r`, `x_{i+1} = f⁻¹(f(x_i) + v / x_i)`. The right r closes
    the 256th layer at height 1; bisection in [low, high] finds it. `x_0 = v / f(r)` is the width that the
    lowest layer would have as a rectangle.

    Returns `r`, the edges `x[257]` with `x[256] = 0`, and the heights `f(x)[257]`.
    """

    def layers(r):
        area = r * density(r) + tail_area(r)
        x, top = [area / density(r), r], 0.0
        while top < 1.0 and len(x) <= 256:
            top = density(x[-1]) + area / x[-1]
            x.append(inverse(min(top, 1.0)))
        return x, top

    while low < (r := 0.5 * (low + high)) < high:
        x, top = layers(r)
        low, high = (r, high) if len(x) < 257 or top > 1.0 else (low, r)
    x = np.array(layers(high)[0])
    x[256] = 0.0
    return high, x, np.array([density(edge) for edge in x])


NORMAL_EDGE, _x, NORMAL_HEIGHT = ziggurat(
    lambda x: math.exp(-0.5 * x * x),
    lambda y: math.sqrt(-2.0 * math.log(y)),
    lambda r: math.sqrt(math.pi / 2.0) * math.erfc(r / math.sqrt(2.0)),
    low=3.65415288536,
    high=3.65415288537,
)
NORMAL_SCALE, NORMAL_INSIDE = _x[:-1] * 2.0**-52, _x[1:].copy()

EXPONENTIAL_EDGE, _x, EXPONENTIAL_HEIGHT = ziggurat(
    lambda x: math.exp(-x),
    lambda y: -math.log(y),
    lambda r: math.exp(-r),
    low=7.69711747013,
    high=7.69711747014,
)
EXPONENTIAL_SCALE, EXPONENTIAL_INSIDE = _x[:-1] * 2.0**-53, _x[1:].copy()


@inlined
def propose_exponential(words):
    """A point of a random layer: the low 8 of 64 bits choose the layer, the high 53 the abscissa."""
    z, words = draw_u64(words)
    layer = z & np.uint64(255)
    return layer, np.float64(z >> np.uint64(11)) * EXPONENTIAL_SCALE[layer], words


@inlined
def draw_exponential(words):
    """Exponential of mean 1. One 64-bit word and one comparison in 98.9% of draws."""
    layer, x, words = propose_exponential(words)
    if x < EXPONENTIAL_INSIDE[layer]:
        return x, words
    return finish_exponential(layer, x, words)


@kernel
def finish_exponential(layer, x, words):
    """The 1.1%: the wedge of a layer by rejection, the tail by forgetting the past."""
    past = 0.0
    while True:
        if layer == 0:
            past += EXPONENTIAL_EDGE
        else:
            u, words = draw_uniform(words)
            low = EXPONENTIAL_HEIGHT[layer]
            if low + u * (EXPONENTIAL_HEIGHT[layer + np.uint64(1)] - low) < math.exp(-x):
                return past + x, words
        layer, x, words = propose_exponential(words)
        if x < EXPONENTIAL_INSIDE[layer]:
            return past + x, words


@inlined
def propose_normal(words):
    """As `propose_exponential`, the abscissa signed."""
    z, words = draw_u64(words)
    layer = z & np.uint64(255)
    return layer, np.float64(np.int64(z) >> 11) * NORMAL_SCALE[layer], words


@inlined
def draw_normal(words):
    """Standard normal. One 64-bit word and one comparison in 98.8% of draws."""
    layer, x, words = propose_normal(words)
    if abs(x) < NORMAL_INSIDE[layer]:
        return x, words
    return finish_normal(layer, x, words)


@inlined
def finish_normal(layer, x, words):
    """The 1.2%: the wedge of a layer by rejection, the tail by Marsaglia's (1964) two exponentials."""
    while True:
        if layer == 0:
            while True:
                excess, words = draw_exponential(words)
                excess /= NORMAL_EDGE
                e, words = draw_exponential(words)
                if 2.0 * e > excess * excess:
                    return math.copysign(NORMAL_EDGE + excess, x), words
        u, words = draw_uniform(words)
        low = NORMAL_HEIGHT[layer]
        if low + u * (NORMAL_HEIGHT[layer + np.uint64(1)] - low) < math.exp(-0.5 * x * x):
            return x, words
        layer, x, words = propose_normal(words)
        if abs(x) < NORMAL_INSIDE[layer]:
            return x, words


# ------------------------------------------------------------------------------------------- Gamma and others


@inlined
def gamma_constants(shape):
    """`(d, c, squeeze)` of `draw_gamma` for a shape of at least 1: needed once if draws share a shape."""
    d = shape - 1.0 / 3.0
    return d, 1.0 / math.sqrt(9.0 * d), 0.0331 * (2.0 / 3.0) / d


@inlined
def draw_gamma(constants, words):
    """Gamma of shape at least 1 and scale 1 (Marsaglia & Tsang 2000).

    With x normal and `y = c x`, `d (1 + y)³` is kept with probability `exp(d φ(y))`, where
    `φ(y) = 9y²/2 + 1 − (1+y)³ + 3 log(1+y) ≤ 0`, and with probability 0 if y ≤ −1. They show that
    `1 − exp(d φ) ≤ 0.0331 x⁴` for d ≥ 2/3. As `x⁴ = 81 d² y⁴` and `(1 − exp(−d q)) / d` decreases in d for
    every q ≥ 0, the constant may be taken as `0.0331 (2/3) / d`: at shape 5 that leaves the logarithms to
    1.4% of draws instead of 10%. At y ≤ −1 the bound is above 1, so the squeeze need not test the sign.
    """
    d, c, squeeze = constants
    while True:
        x, words = draw_normal(words)
        u, words = draw_uniform(words)
        v = 1.0 + c * x
        v = v * v * v
        xx = x * x
        if u < 1.0 - squeeze * xx * xx:
            return d * v, words
        if v > 0.0 and math.log(u) < 0.5 * xx + d * (1.0 - v + math.log(v)):
            return d * v, words


@inlined
def draw_boost(shape, words):
    """`E / shape` for a shape below 1, else 0: then `G(shape) = G(boosted(shape)) exp(−boost)`.

    A boost is a logarithm: it cannot underflow, and it is finite for every shape > 0.
    """
    if shape >= 1.0:
        return 0.0, words
    e, words = draw_exponential(words)
    return e * min(1.0 / shape, 1e300), words


@inlined
def boosted(shape):
    """The shape to draw from beside `draw_boost`: one more if it is below 1."""
    return shape if shape >= 1.0 else shape + 1.0


@inlined
def draw_beta(a, b, words):
    """`X / (X + Y)`, X and Y Gamma draws of shapes a and b > 0, the smaller boost taken out of both."""
    boost_x, words = draw_boost(a, words)
    boost_y, words = draw_boost(b, words)
    x, words = draw_gamma(gamma_constants(boosted(a)), words)
    y, words = draw_gamma(gamma_constants(boosted(b)), words)
    if boost_x > boost_y:
        x *= math.exp(boost_y - boost_x)
    elif boost_y > boost_x:
        y *= math.exp(boost_x - boost_y)
    return x / (x + y), words


@inlined
def inverse_cdf(weights, u):
    """The index at quantile u in [0, 1] of unnormalised `weights[n]`, not all zero. Never one of zero weight.

    Sums are taken from the left, and an index counts those at most `u Σ weights`: no branch depends on u.
    """
    total = 0.0
    for w in weights:
        total += w
    target = u * total
    reached, index = 0.0, 0
    for w in weights:
        reached += w
        index += reached <= target
    if index == weights.size:  # u = 1, or rounded to it
        index -= 1
        while index > 0 and weights[index] <= 0.0:
            index -= 1
    return index


# ---------------------------------------------------------------------------- the same on a stream: uint64[4]


@inlined
def next_u64(stream):
    """64 random bits."""
    z, words = draw_u64(load(stream))
    save(stream, words)
    return z


@inlined
def uniform(stream):
    """Uniform in [0, 1), 53 bits."""
    u, words = draw_uniform(load(stream))
    save(stream, words)
    return u


@bits
def below(stream, n):
    """A uniform integer in 0 … n − 1, for 1 ≤ n < 2³²."""
    i, words = draw_below(n, load(stream))
    save(stream, words)
    return i


@inlined
def normal(stream):
    """Standard normal."""
    x, words = draw_normal(load(stream))
    save(stream, words)
    return x


@inlined
def exponential(stream):
    """Exponential of mean 1."""
    x, words = draw_exponential(load(stream))
    save(stream, words)
    return x


@inlined
def gamma(stream, shape):
    """Gamma of any shape > 0 and scale 1; 0 where the draw is below the least double."""
    boost, words = draw_boost(shape, load(stream))
    x, words = draw_gamma(gamma_constants(boosted(shape)), words)
    save(stream, words)
    return x * math.exp(-boost) if shape < 1.0 else x


@inlined
def beta(stream, a, b):
    """Beta(a, b) for any a, b > 0: in [0, 1] and never NaN, however small the parameters."""
    x, words = draw_beta(a, b, load(stream))
    save(stream, words)
    return x


@inlined
def categorical(stream, weights):
    """An index with probability proportional to `weights[n]`, from one uniform."""
    return inverse_cdf(weights, uniform(stream))
