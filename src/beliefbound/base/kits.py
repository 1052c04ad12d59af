"""What the kits share for other people's classes: `check_agent`, `check_belief`, `check_rewards`, `check_policy`.

A right class fails by chance less than once in a million checks: means of samples are compared within `SIGMAS` standard
errors, and a little for tails that no sample has shown.
"""

import random
from typing import Any

import numpy as np

from beliefbound.base.validation import FloatArray

SIGMAS = 7.0
CLOSE = 1e-9
_TAIL = 1e-3  # of the largest sample


def global_state() -> tuple[Any, ...]:
    """Of the global generators of `random` and NumPy."""
    name, keys, *rest = np.random.get_state(legacy=True)  # noqa: NPY002
    return random.getstate(), name, np.asarray(keys).tobytes(), tuple(rest)


def assert_mean(
    said: Any, drawn: FloatArray, what: str, *, where: Any = None, weights: FloatArray | None = None
) -> None:
    """What a class says `[…]` is the mean of samples `[m,…]`, weighed, where booleans `where` say so."""
    w = np.full(len(drawn), 1.0 / len(drawn)) if weights is None else weights
    said, mean = np.asarray(said, dtype=np.float64), np.tensordot(w, drawn, axes=1)
    assert said.shape == mean.shape, f"{what} has shape {said.shape}; samples have {mean.shape}"
    error = np.sqrt(np.tensordot(w**2, (drawn - mean) ** 2, axes=1))
    off = np.abs(said - mean) / (error + _TAIL * np.abs(drawn).max() / np.sqrt(len(drawn)) + CLOSE)
    off = np.where(np.isfinite(said), off, np.inf)
    if where is not None:
        off = np.where(where.reshape(*where.shape, *[1] * (off.ndim - where.ndim)), off, 0.0)
    place = np.unravel_index(int(off.argmax()), off.shape)
    index = f"[{', '.join(str(int(i)) for i in place)}]" if place else ""
    assert off.max() <= SIGMAS, f"{what}{index} is {said[place]:.6g}; {len(drawn)} samples say {mean[place]:.6g}"
