"""What a hidden-model problem is, whatever file it came from: an observed state, and a model that never changes.

A POMDP is one when its state is a pair `(s, m)`, `s` is always seen, `m` never is and never changes. Then a belief is a
distribution over models, and the arrays here are all there is to say.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from beliefbound.base.errors import FileError
from beliefbound.base.limits import TEXT_BYTES, check_size
from beliefbound.base.validation import TOLERANCE, FloatArray

LOOSE = 1e-6  # sums off by more are an error, by more than TOLERANCE rescaled
Names = tuple[str, ...] | None


@dataclass(frozen=True, eq=False)
class HiddenModel:
    """Models, their weights and where they start. `rewards` are `[m,s,a]`, or on arrival `[m,s,a,t]`.

    `reward_signal` and `reward_range`: where the file says what is seen of rewards. `notes`: what was assumed.
    """

    transitions: FloatArray
    rewards: FloatArray
    weights: FloatArray
    initial: FloatArray
    discount: float
    states: Names = None
    actions: Names = None
    models: Names = None
    reward_signal: str | None = None
    reward_range: tuple[float, float] | None = None
    notes: tuple[str, ...] = ()


def read_text(path: Path) -> bytes:
    """The bytes of a file that is not too large to be a problem in words."""
    try:
        if path.stat().st_size > TEXT_BYTES:
            raise FileError(f"{path} is larger than {TEXT_BYTES >> 20} MiB; give the problem as arrays (.npz)")
        return path.read_bytes()
    except OSError as cause:
        raise FileError(f"cannot read {path}: {cause.strerror or cause}") from None
    except ValueError as cause:
        if isinstance(cause, FileError):
            raise
        raise FileError(f"{str(path)!a} is no name of a file: {cause}") from None


def as_number(word: str) -> float:
    """A finite number; a `ValueError` otherwise."""
    number = float(word) if "_" not in word else np.nan
    if not abs(number) <= 1e300:
        raise ValueError(word)
    return number


def to_distributions(
    table: FloatArray, path: Path, place: Callable[[tuple[int, ...]], str], notes: list[str], what: str
) -> FloatArray:
    """A table whose last axis sums to one: rescaled where rounding in the file has left it a little off.

    `place(index)` names a row for the error; `what` names the table for the note.
    """
    if table.size and table.min() < 0.0:
        index = tuple(int(i) for i in np.argwhere(table < 0.0)[0])
        raise FileError(f"{path}: {place(index[:-1])} has the negative probability {table[index]:g}")
    sums = table.sum(axis=-1)
    off = np.abs(sums - 1.0)
    if (off > LOOSE).any():
        index = tuple(int(i) for i in np.argwhere(off > LOOSE)[0])
        raise FileError(
            f"{path}: the probabilities of {place(index)} sum to {sums[index]:.12g}, expected 1; "
            f"complete or rescale them"
        )
    rescale = off > 0.9 * TOLERANCE
    if not rescale.any():
        return table
    notes.append(f"{what}: {int(rescale.sum())} of {sums.size} rows of probabilities were rescaled to sum to 1")
    return np.where(rescale[..., None], table / sums[..., None], table)


def check_cells(shape: Sequence[int], path: Path, what: str) -> None:
    """A table of this shape fits into memory."""
    check_size(shape, f"{path}: {what}", FileError, fix="the file describes a problem too large to be written out")
