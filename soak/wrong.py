"""Wrong values: of every kind that a person, a program or a file might pass by mistake."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np

HUGE = (10**12, 2**63, 2**70, 1e300, 1e18)
SCALARS: tuple[Any, ...] = (
    None, True, False, -1, 0, 1, 2, 3, 0.5, 1.0, 1.5, -0.5, float("nan"), float("inf"), -float("inf"), 1e-300, 5e-324,
    -0.0, "", "0", "three", "known", b"\x00", 1 + 2j, (), [], {}, [[]], [[1, 2], [3]], ["a", None], object(), Ellipsis,
    np.float32(0.3), np.int8(-3), np.uint64(2**64 - 1), np.datetime64("2020-01-01"), np.array(None), np.array("x"),
    np.array([]), np.zeros((0, 3)), np.zeros((2, 0)), np.array([np.nan]), np.array([1, 0]), np.array([0.5, 0.5]),
    np.zeros((1, 1, 1, 1, 1)), np.ma.masked_array([0.5, 0.5], mask=[True, False]), range(3), range(0), slice(None),
    int, len, lambda *a: None, Exception("x"), 10**40, "é" * 50, "\ud800", "a\x00b",
)  # fmt: skip


def wrong_value(rng: random.Random, *, huge: bool) -> Any:
    """Something of any kind; very large numbers where they must be refused."""
    if huge and rng.random() < 0.2:
        return rng.choice(HUGE)
    return rng.choice(SCALARS)


def disturbed(value: Any, rng: random.Random) -> Any:
    """A value much like a good one, with one thing wrong, or only unusual: order, type, size, one entry."""
    if not isinstance(value, np.ndarray):
        return value
    try:
        with np.errstate(all="ignore"):
            return rng.choice(_DISTURBANCES)(value, rng)
    except (TypeError, ValueError, IndexError, OverflowError, np.exceptions.ComplexWarning):
        return None  # it was disturbed before, beyond what can be converted


def _entry(x: Any, rng: random.Random) -> Any:
    """One entry replaced."""
    out = np.array(x, dtype=np.float64 if x.dtype.kind in "biu" and rng.random() < 0.5 else x.dtype)
    if out.size:
        bad = [-1, 2, 10**9] if out.dtype.kind in "iu" else [np.nan, np.inf, -1.0, 1e308, 1e-308, 2.0, 0.0]
        out.flat[rng.randrange(out.size)] = rng.choice(bad)
    return out


_DISTURBANCES: tuple[Callable[[Any, random.Random], Any], ...] = (
    _entry,
    _entry,
    lambda x, rng: x.tolist(),
    lambda x, rng: x.astype(np.float32),
    lambda x, rng: x.astype(np.float16),
    lambda x, rng: x.astype(object),
    lambda x, rng: x.astype(str),
    lambda x, rng: x.astype(np.int64),
    lambda x, rng: x.astype(np.uint8),
    lambda x, rng: x.astype(bool),
    lambda x, rng: x.astype(complex),
    lambda x, rng: x.astype(">f8"),
    lambda x, rng: np.asfortranarray(x),
    lambda x, rng: x[::-1],
    lambda x, rng: x.T,
    lambda x, rng: x[None],
    lambda x, rng: x[..., None],
    lambda x, rng: x[:-1],
    lambda x, rng: x[..., :-1],
    lambda x, rng: np.concatenate([x, x]) if x.ndim else x,
    lambda x, rng: x.ravel(),
    lambda x, rng: x * rng.choice([0, -1, 1e-300, 1e300, 1 + 1e-6, 1e12]) if x.dtype.kind == "f" else x - 1,
    lambda x, rng: x + 1e-10 if x.dtype.kind == "f" else x + 1,
    lambda x, rng: np.full_like(x, np.nan) if x.dtype.kind == "f" else np.zeros_like(x),
    lambda x, rng: np.zeros((*x.shape, 0)),
    lambda x, rng: memoryview(np.ascontiguousarray(x)),
)
