"""Memory in cache lines of its own. Loads that straddle two lines cost two; and a line that one thread writes has to be
fetched again by every other that reads or writes anything in it, at the price of some hundred operations."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

LINE = 64  # bytes of a cache line
_APART = 2 * LINE  # what processors fetch at once


def zeros(*shape: int) -> npt.NDArray[np.float64]:
    """Zeros `[shape]`, float64, in lines that hold nothing else."""
    return _zeros(shape, np.dtype(np.float64))


def copied(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A copy, in lines that hold nothing else."""
    copy = _zeros(array.shape, array.dtype)
    copy[...] = array
    return copy


def _zeros(shape: tuple[int, ...], kind: np.dtype[Any]) -> npt.NDArray[Any]:
    size = math.prod(shape) * kind.itemsize
    raw = np.zeros(size + 2 * _APART, dtype=np.uint8)
    first = -raw.ctypes.data % _APART
    return raw[first : first + size].view(kind).reshape(shape)
