"""Archives of plain arrays (NumPy `.npz`) that come from anywhere: nothing is unpickled, nothing is believed.

What an archive says of itself is checked before memory is asked for: an entry's shape must be that of the bytes it
has, and all of them together must fit into `FILE_BYTES`. `Shapes` then checks names, types and shapes against a table.
"""

import math
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from beliefbound.base.errors import FileError
from beliefbound.base.io.atomic import write_aside
from beliefbound.base.limits import FILE_BYTES

LARGEST = 1e300
_MAX_ENTRIES = 100
_KINDS = {"b": "booleans", "i": "whole numbers", "u": "whole numbers", "f": "numbers"}

Array = np.ndarray[Any, Any]


def write_arrays(path: Path, arrays: Mapping[str, Any]) -> None:
    """Write arrays as a compressed archive, aside and renamed. Equal arrays give equal bytes."""

    def write(aside: Path) -> None:
        # As `numpy.savez_compressed`, but quick: most of what is written are random digits, which do not compress.
        with zipfile.ZipFile(aside, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            for name, array in arrays.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                    np.lib.format.write_array(entry, np.asanyarray(array), allow_pickle=False)

    write_aside(path, write)


def read_arrays(path: Path, *, words: bool = False) -> dict[str, Array]:
    """All arrays of an archive: of numbers and, if asked for, of `words`.

    Raises:
      FileError: it is missing, no archive, damaged, too large, or holds something other than plain numbers.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            if len(entries) > _MAX_ENTRIES:
                raise FileError(f"{path} has {len(entries)} entries; at most {_MAX_ENTRIES} are read")
            if sum(entry.file_size for entry in entries) > FILE_BYTES:
                raise FileError(f"{path} would need more than {FILE_BYTES >> 30} GiB of memory")
            return {entry.filename.removesuffix(".npy"): _read(archive, entry, path, words) for entry in entries}
    except FileError:
        raise
    except OSError as cause:
        raise FileError(f"cannot read {path}: {cause.strerror or cause}") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError) as cause:
        raise FileError(f"{path} is damaged, or no archive of arrays: {cause}") from None


def _read(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, path: Path, words: bool) -> Array:
    fault = f"{path}, entry {entry.filename!r}"
    with archive.open(entry) as file:
        try:
            version = np.lib.format.read_magic(file)
            if version == (1, 0):
                shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
            elif version == (2, 0):
                shape, fortran, dtype = np.lib.format.read_array_header_2_0(file)
            else:
                raise ValueError(f"version {version} of the array format is not read")
        except (ValueError, SyntaxError, TypeError, RecursionError) as cause:
            raise FileError(f"{fault} is no array: {cause}") from None
        if (dtype.kind not in _KINDS and not (words and dtype.kind == "U")) or dtype.fields is not None:
            raise FileError(f"{fault} holds {dtype} values; only plain numbers{' and words' if words else ''} are read")
        if any(n < 0 for n in shape) or dtype.itemsize == 0:
            raise FileError(f"{fault} has the impossible shape {shape}")
        count = math.prod(shape)
        if count * dtype.itemsize != entry.file_size - file.tell():
            raise FileError(f"{fault} says its shape is {shape}, which is not what its bytes hold")
        values = np.frombuffer(file.read(), dtype=dtype)
    if len(values) != count:
        raise FileError(f"{fault} is cut short")
    array = values.reshape(shape[::-1]).T if fortran else values.reshape(shape)
    return np.array(array, dtype=dtype.newbyteorder("="), order="C")


class Shapes:
    """Arrays against a table of names, types and axes: `Shapes(path, arrays).take("prob", "f8", "node row")`.

    An axis has one length in all arrays that name it; `sizes` holds them. What is taken has the exact type asked for
    and is finite, with room for sums of it to be finite too.
    """

    def __init__(self, path: Path, arrays: Mapping[str, Array], **sizes: int) -> None:
        self.path, self.arrays, self.sizes = path, dict(arrays), sizes

    def take(self, name: str, dtype: str, axes: str = "", *, finite: bool = True) -> Array:
        """The array of a name, once its type and shape are right; not a number is refused in any case."""
        array, names = self.arrays.pop(name, None), axes.split()
        if array is None:
            raise FileError(f"{self.path} has no array {name!r}")
        wanted = np.dtype(dtype)
        if array.dtype != wanted or array.ndim != len(names):
            raise self.wrong(name, f"is {array.dtype} of shape {array.shape}; expected {wanted} [{', '.join(names)}]")
        for axis, length in zip(names, array.shape, strict=True):
            if self.sizes.setdefault(axis, length) != length:
                raise self.wrong(name, f"has {length} {axis}s where other arrays have {self.sizes[axis]}")
        if wanted.kind == "f":
            good = np.abs(array) <= LARGEST if finite else ~np.isnan(array)
            if not good.all():
                raise self.wrong(name, f"holds values that are not numbers up to {LARGEST:g}")
        return array

    def ids(self, name: str, dtype: str, axes: str, low: int, high: int) -> Array:
        """As `take`, every entry in `[low, high)`."""
        array = self.take(name, dtype, axes)
        if array.size and not (array.min() >= low and array.max() < high):
            raise self.wrong(name, f"holds numbers outside {low} to {high - 1}")
        return array

    def number(self, name: str, dtype: str, low: float, high: float) -> float:
        """One number in `[low, high]`, which may be infinite."""
        value = self.take(name, dtype, finite=False).item()
        if not low <= value <= high:
            raise self.wrong(name, f"is {value}; expected {low:g} to {high:g}")
        return value  # type: ignore[no-any-return]

    def wrong(self, name: str, fault: str) -> FileError:
        """The error that says what is wrong with an array."""
        return FileError(f"{self.path}: the array {name!r} {fault}")

    def done(self) -> None:
        """Every array has been taken."""
        if self.arrays:
            raise FileError(f"{self.path} has an unknown array {next(iter(self.arrays))!r}")
