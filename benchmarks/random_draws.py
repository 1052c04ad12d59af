"""Nanoseconds per random draw on one core, beside numpy's Generator: `python -m benchmarks random_draws`."""

import time
from functools import partial

import numpy as np
from numba import njit

from beliefbound.kernels import draws as dirichlet
from beliefbound.kernels import random

SIZE = 8192


@njit
def fill_u64(stream, out):
    for i in range(out.size):
        out[i] = random.next_u64(stream)


@njit
def fill_uniform(stream, out):
    for i in range(out.size):
        out[i] = random.uniform(stream)


@njit
def fill_below(stream, out):
    for i in range(out.size):
        out[i] = random.below(stream, 5)


@njit
def fill_normal(stream, out):
    for i in range(out.size):
        out[i] = random.normal(stream)


@njit
def fill_exponential(stream, out):
    for i in range(out.size):
        out[i] = random.exponential(stream)


@njit
def fill_gamma(stream, shape, out):
    for i in range(out.size):
        out[i] = random.gamma(stream, shape)


@njit
def fill_beta(stream, a, b, out):
    for i in range(out.size):
        out[i] = random.beta(stream, a, b)


@njit
def fill_categorical(stream, weights, out):
    for i in range(out.size):
        out[i] = random.categorical(stream, weights)


@njit
def fill_rows(stream, alpha, out):
    for i in range(len(out)):
        dirichlet.dirichlet_row(stream, alpha, out[i])


@njit
def repeat_lanes(stream, rows, out, scratch, times):
    for _ in range(times):
        dirichlet.draw_lanes(stream, rows, out, scratch)


@njit
def repeat_models(stream, rows, out, scratch, block, times):
    for _ in range(times):
        if scratch.size == 1:  # as `dirichlet_models`
            dirichlet.draw_lanes(stream, rows, out, scratch)
        else:
            dirichlet.draw_models(stream, rows, out, scratch, block)


def numpy_rows(rng, rows, n):
    for alpha in rows:
        rng.dirichlet(alpha, size=n)


def nanoseconds(call, draws: int, repeats: int = 40) -> float:
    """The least time per draw over a few repeats, after one call to compile."""
    call()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times) / draws * 1e9


def main() -> None:
    stream, rng = random.seed_stream(np.array([2012], dtype=np.uint64)), np.random.default_rng(2012)
    out, words, index = np.empty(SIZE), np.empty(SIZE, np.uint64), np.empty(SIZE, np.int64)
    weights = np.full(5, 0.2)

    print(f"{'one draw':30}{'ns':>8}{'numpy':>9}{'ratio':>8}")
    laws = [
        ("64 bits", partial(fill_u64, stream, words), partial(rng.bit_generator.random_raw, SIZE)),
        ("uniform", partial(fill_uniform, stream, out), partial(rng.random, out=out)),
        ("below 5", partial(fill_below, stream, index), partial(rng.integers, 5, size=SIZE)),
        ("normal", partial(fill_normal, stream, out), partial(rng.standard_normal, out=out)),
        ("exponential", partial(fill_exponential, stream, out), partial(rng.standard_exponential, out=out)),
    ]
    laws += [
        (f"Gamma({a:g})", partial(fill_gamma, stream, a, out), partial(rng.standard_gamma, a, out=out))
        for a in (0.01, 0.2, 0.9, 1.0, 1.2, 5.0, 1e6)
    ]
    laws += [
        (f"Beta({a:g}, {b:g})", partial(fill_beta, stream, a, b, out), partial(rng.beta, a, b, SIZE))
        for a, b in ((0.2, 0.2), (1.0, 1.0), (3.5, 12.5))
    ]
    choice = partial(rng.choice, 5, SIZE, p=weights)
    laws.append(("categorical of 5", partial(fill_categorical, stream, weights, index), choice))
    for name, ours, theirs in laws:
        mine, numpys = nanoseconds(ours, SIZE), nanoseconds(theirs, SIZE)
        print(f"{name:30}{mine:8.1f}{numpys:9.1f}{numpys / mine:7.1f}x")

    S, A = 5, 2
    counts = rng.integers(0, 20, (S, A, S)) * (rng.random((S, A, S)) < 0.4) + 0.2
    print(f"\n{'Dirichlet component':30}{'ns':>8}{'numpy':>9}{'ratio':>8}{'M/s':>8}{'model-first ns':>16}")
    for name, alpha in [
        *[(f"alpha {a}", np.full((S, A, S), a)) for a in (0.2, 0.5, 1.0, 2.0, 5.0)],
        ("alpha 0.2 + counts", counts),
    ]:
        for n in (1, 8, 16, 64):
            lanes, models = np.empty((2, S * A * S * n))
            rows, scratch, block = alpha.reshape(-1, S), np.empty(n), np.empty(dirichlet._BLOCK)
            ours = nanoseconds(partial(repeat_lanes, stream, rows, lanes, scratch, 20), 20 * lanes.size)
            other = nanoseconds(partial(repeat_models, stream, rows, models, scratch, block, 20), 20 * lanes.size)
            numpys = nanoseconds(partial(numpy_rows, rng, alpha.reshape(-1, S), n), lanes.size)
            line = f"{f'{name}, n = {n}':30}{ours:8.1f}{numpys:9.1f}{numpys / ours:7.1f}x"
            print(f"{line}{1e3 / ours:8.0f}{other:16.1f}")
    rows = np.empty((SIZE // S, S))
    for a in (0.2, 5.0):
        ours = nanoseconds(partial(fill_rows, stream, np.full(S, a), rows), rows.size)
        print(f"{f'alpha {a}, dirichlet_row':30}{ours:8.1f}{'':17}{1e3 / ours:8.0f}")

    means, zeros, ones = np.empty(50 * A * 64), np.zeros(50 * A), np.ones(50 * A)
    print(f"\n{'reward mean, n = 64':30}{'ns':>8}")
    for name, draw in [
        ("Beta(1, 1)", partial(dirichlet.draw_betas, stream, ones, ones, 0.0, 1.0, means, 64, 1)),
        ("Beta(3, 7)", partial(dirichlet.draw_betas, stream, 3 * ones, 7 * ones, 0.0, 1.0, means, 64, 1)),
        ("Normal-Gamma(0, 1, 1, 1)", partial(dirichlet.draw_means, stream, (zeros, ones, ones, ones), means, 64, 1)),
    ]:
        print(f"{name:30}{nanoseconds(draw, means.size):8.1f}")


if __name__ == "__main__":
    main()
