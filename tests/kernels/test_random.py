"""The generator is xoshiro256++, and every law is the law it says.

Statistical tests have fixed seeds. Under others each comparison would fail with probability at most 1e-6.
"""

import math

import numpy as np
import pytest
from numba import njit
from scipy import stats

from beliefbound.kernels import random

ALARM = 1e-6
MASK = 2**64 - 1


def stream_at(*address):
    return random.seed_stream(np.array(address, dtype=np.uint64))


def sample(size, law, *args, seed=1):
    stream = stream_at(seed, size)
    return np.fromiter((law(stream, *args) for _ in range(size)), dtype=float, count=size)


def agrees(values, cdf):
    """Kolmogorov–Smirnov between distinct values, so that draws may round to the ends of their range."""
    x, counts = np.unique(values, return_counts=True)
    distance = np.abs(np.cumsum(counts) / values.size - cdf(x))[1:].max()
    return stats.kstwo.sf(distance, values.size) > ALARM


# ------------------------------------------------------------------------------------------- bits and streams


def rotate(x, k):
    return ((x << k) | (x >> (64 - k))) & MASK


def xoshiro(s):
    """xoshiro256++ in Python integers, as published."""
    result = (rotate((s[0] + s[3]) & MASK, 23) + s[0]) & MASK
    t = (s[1] << 17) & MASK
    s[2] ^= s[0]
    s[3] ^= s[1]
    s[1] ^= s[2]
    s[0] ^= s[3]
    s[2] ^= t
    s[3] = rotate(s[3], 45)
    return result


def mix(z):
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
    return z ^ (z >> 31)


def seed(words):
    stream = []
    for salt in random.SALTS.tolist():
        z = salt
        for word in words:
            z = mix(mix((z + int(random.GOLDEN)) & MASK) ^ (word * salt & MASK))
        stream.append(z)
    return stream


def test_bits_are_those_of_xoshiro256plusplus():
    stream = np.array([1, 2, 3, 4], dtype=np.uint64)
    published = [41943041, 58720359, 3588806011781223, 3591011842654386, 9228616714210784205]
    assert [random.next_u64(stream) for _ in published] == published

    stream, twin = stream_at(7), seed([7])
    assert [random.next_u64(stream) for _ in range(1000)] == [xoshiro(twin) for _ in range(1000)]
    assert stream.tolist() == twin


def test_seeding_agrees_with_its_twin():
    for address in [(), (0,), (1, 2), (MASK, 0, 5), tuple(range(9))]:
        assert stream_at(*address).tolist() == seed(address)


def test_addresses_that_differ_in_one_word_differ_in_all_four_state_words():
    rng = np.random.default_rng(0)
    for length in (1, 4):
        address = rng.integers(0, 2**64, size=length, dtype=np.uint64)
        for place in range(length):
            for bit in range(64):
                other = address.copy()
                other[place] ^= np.uint64(1) << np.uint64(bit)
                assert np.all(random.seed_stream(address) != random.seed_stream(other))


def test_addresses_give_unrelated_streams():
    streams = {}
    for address in [
        (),
        (0,),
        (0, 0),
        (0, 0, 0),
        *((a, b, c) for a in range(9) for b in range(40) for c in range(40)),
    ]:
        streams[tuple(stream_at(*address).tolist())] = address
    assert len(streams) == 4 + 9 * 40 * 40 - 1  # (0, 0, 0) is there twice
    first = np.array([random.uniform(np.array(s, dtype=np.uint64)) for s in streams])
    assert agrees(first, stats.uniform.cdf)
    assert abs(np.corrcoef(first[:-1], first[1:])[0, 1]) < 5 / math.sqrt(first.size)
    changed = [bin(int(x)).count("1") for x in stream_at(3, 0) ^ stream_at(3, 1)]
    assert all(12 <= bits <= 52 for bits in changed)  # 5 standard deviations round 32


def test_a_stream_from_a_generator_is_reproducible():
    streams = [random.stream_from(np.random.default_rng(s)) for s in (3, 3, 4)]
    assert streams[0].tolist() == streams[1].tolist() != streams[2].tolist()
    assert streams[0].dtype == np.uint64
    assert streams[0].shape == (4,)


@njit
def fill_carried(stream, out):
    words = random.load(stream)
    for i in range(out.size):
        out[i], words = random.draw_normal(words)
    random.save(stream, words)


def test_a_carried_state_gives_the_draws_of_the_array():
    stream, other, draws = stream_at(5), stream_at(5), np.empty(2000)
    fill_carried(stream, draws)
    assert draws.tolist() == [random.normal(other) for _ in draws]
    assert stream.tolist() == other.tolist()


# ------------------------------------------------------------------------------------------------------- laws


def test_uniforms():
    u = sample(200_000, random.uniform)
    assert u.min() >= 0.0
    assert u.max() < 1.0
    assert agrees(u, stats.uniform.cdf)
    assert np.all(u * 2.0**53 == np.floor(u * 2.0**53))


@pytest.mark.parametrize("n", [2, 5, 1000])
def test_integers_below(n):
    counts = np.bincount(sample(60_000, random.below, n).astype(int))
    assert counts.size == n
    assert stats.chisquare(counts).pvalue > ALARM


def test_integers_below_are_unbiased_at_the_largest_ranges():
    n = 3 * 2**30  # without rejection every third number would come twice as often
    draws = sample(60_000, random.below, n)
    assert draws.max() < n
    assert stats.chisquare(np.bincount((draws % 3).astype(int))).pvalue > ALARM
    assert agrees(draws, stats.uniform(0, n).cdf)
    assert random.below(stream_at(1), 1) == 0


@njit
def fill_normal(stream, out):
    for i in range(out.size):
        out[i] = random.normal(stream)


@njit
def fill_exponential(stream, out):
    for i in range(out.size):
        out[i] = random.exponential(stream)


NORMAL = (random.NORMAL_SCALE * 2.0**52, random.NORMAL_HEIGHT, random.NORMAL_EDGE)
EXPONENTIAL = (random.EXPONENTIAL_SCALE * 2.0**53, random.EXPONENTIAL_HEIGHT, random.EXPONENTIAL_EDGE)


@pytest.mark.parametrize(
    ("x", "height", "edge", "law", "published"),
    [(*NORMAL, stats.halfnorm, 3.6541528853610088), (*EXPONENTIAL, stats.expon, 7.69711747013104972)],
    ids=["normal", "exponential"],
)
def test_the_layers_have_one_area_and_the_published_edge(x, height, edge, law, published):
    assert edge == pytest.approx(published, abs=1e-14)
    area = edge * height[1] + law.sf(edge) / law.pdf(0.0)
    assert x[0] * height[1] == pytest.approx(area, rel=1e-13)
    assert x[1:] * np.diff(height[1:]) == pytest.approx(np.full(255, area), rel=1e-11)


@pytest.mark.parametrize(
    ("fill", "x", "edge", "law"),
    [
        (fill_normal, NORMAL[0], NORMAL[2], stats.halfnorm),
        (fill_exponential, EXPONENTIAL[0], EXPONENTIAL[2], stats.expon),
    ],
    ids=["normal", "exponential"],
)
def test_ziggurats(fill, x, edge, law):
    draws = np.empty(4_000_000)
    fill(stream_at(11), draws)
    if law is stats.halfnorm:
        assert stats.binomtest(int((draws < 0).sum()), draws.size).pvalue > ALARM
        assert agrees(draws[:500_000], stats.norm.cdf)
    draws = np.abs(draws)
    # Wedges: counts between the edges of the layers, about 15 000 each. The last cell is the tail.
    cells = np.append(np.append(0.0, x[:0:-1]), np.inf)
    observed = np.bincount(np.searchsorted(cells, draws, side="right") - 1, minlength=256)
    assert stats.chisquare(observed, np.diff(law.cdf(cells)) * draws.size).pvalue > ALARM
    assert observed[-1] > 900
    assert agrees(draws[draws > edge], lambda t: 1.0 - law.sf(t) / law.sf(edge))
    # Draws do not depend on the one before.
    assert abs(np.corrcoef(draws[:-1], draws[1:])[0, 1]) < 5 / math.sqrt(draws.size)


@njit
def fill_tail(stream, out):
    words = random.load(stream)
    for i in range(out.size):
        out[i], words = random.finish_normal(np.uint64(0), -1.0, words)


def test_the_tail_of_the_normal_alone():
    tail = np.empty(1_000_000)
    fill_tail(stream_at(12), tail)
    assert tail.max() < -random.NORMAL_EDGE
    assert agrees(tail, lambda x: stats.norm.cdf(x) / stats.norm.cdf(-random.NORMAL_EDGE))


@pytest.mark.parametrize("shape", [1e-2, 0.2, 0.5, 0.999, 1.0, 1.2, 2.0, 5.0, 50.0, 1e3, 1e6])
def test_gamma(shape):
    draws = sample(200_000, random.gamma, shape)
    assert agrees(draws, stats.gamma(shape).cdf)
    assert abs(draws.mean() - shape) < 5 * math.sqrt(shape / draws.size)


def test_the_squeeze_of_gamma_lies_under_the_acceptance_probability():
    y = np.linspace(-1, 3, 200_001)[1:]
    with np.errstate(under="ignore"):
        for shape in [1.0, 1.001, 1.2, 2.0, 5.0, 100.0, 1e5]:
            d, c, squeeze = random.gamma_constants(shape)
            assert 1.0 - squeeze * (-1.0 / c) ** 4 < 0.0
            log_acceptance = d * (4.5 * y**2 + 1 - (1 + y) ** 3 + 3 * np.log1p(y))
            assert np.all(1.0 - squeeze * (y / c) ** 4 <= np.exp(log_acceptance) + 1e-9)


@pytest.mark.parametrize(
    ("a", "b"), [(1e-2, 2e-2), (0.2, 0.2), (0.2, 3.0), (1.0, 1.0), (2.5, 0.7), (40.0, 7.0), (1e6, 2e6)]
)
def test_beta(a, b):
    draws = sample(100_000, random.beta, a, b)
    assert draws.min() >= 0.0
    assert draws.max() <= 1.0
    assert agrees(draws, stats.beta(a, b).cdf)


@pytest.mark.parametrize(("a", "b"), [(1e-4, 3e-4), (1e-9, 1e-9), (1e-300, 1e-300), (5e-324, 1)])
def test_beta_at_tiny_parameters_is_a_coin(a, b):
    draws = sample(20_000, random.beta, a, b)
    assert np.all((draws >= 0.0) & (draws <= 1.0))
    mean = a / (a + b)
    assert abs(draws.mean() - mean) < 5 * math.sqrt(mean * (1 - mean) / draws.size) + 1e-12


def test_inverse_cdf():
    weights = np.array([0.0, 2.0, 0.0, 1.0, 1.0, 0.0])
    almost_one = 1.0 - 2.0**-53
    quantiles = {0.0: 1, 0.49999: 1, 0.5: 3, 0.74999: 3, 0.75: 4, almost_one: 4, 1.0: 4}
    assert {u: random.inverse_cdf(weights, u) for u in quantiles} == quantiles
    assert random.inverse_cdf(weights * 1e-300, 0.5) == 3  # u is scaled by the total
    assert random.inverse_cdf(np.array([3.0]), almost_one) == 0
    rng = np.random.default_rng(0)
    for _ in range(2000):  # sums that round never lead to an index of zero weight
        weights = rng.random(7) * (rng.random(7) < 0.5)
        weights[rng.integers(7)] = rng.random()
        for u in (0.0, rng.random(), almost_one, 1.0):
            assert weights[random.inverse_cdf(weights, u)] > 0.0


def test_categorical_uses_one_uniform():
    weights = np.array([0.5, 0.0, 2.0, 1.5])
    stream, other = stream_at(2), stream_at(2)
    draws = np.array([random.categorical(stream, weights) for _ in range(50_000)])
    assert [random.inverse_cdf(weights, random.uniform(other)) for _ in range(50_000)] == draws.tolist()
    observed = np.bincount(draws, minlength=4)
    assert observed[1] == 0
    assert stats.chisquare(observed[[0, 2, 3]], np.array([0.125, 0.5, 0.375]) * draws.size).pvalue > ALARM
