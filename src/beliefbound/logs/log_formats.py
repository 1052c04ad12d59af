"""Formats of log files, by a registry: a format is one function from a file to blocks of rows.

A file is of the format whose mark it begins with; else of that whose ending its name has; else it is CSV. Formats of
ours are modules of `logs.formats`; others are registered by `--plugin`, or by an installed package as an entry point of
the group `beliefbound.logs`.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from beliefbound.base.errors import FileError
from beliefbound.base.plugins import Registry
from beliefbound.base.tables import pl

Blocks = Callable[[Path], Iterator[tuple[int, pl.DataFrame]]]

FORMATS = Registry("log format", group="beliefbound.logs", example="csv", package="beliefbound.logs.formats")
BLOCK_BYTES = 8 << 20
BLOCK_ROWS = 1 << 19
MARK_BYTES = 16
_DEFAULT = "csv"


class _Signs(NamedTuple):
    """How a file shows its format."""

    marks: tuple[bytes, ...]
    endings: tuple[str, ...]


_SIGNS: dict[str, _Signs] = {}


def log_format(
    name: str, *, summary: str, marks: tuple[bytes, ...] = (), endings: tuple[str, ...] = ()
) -> Callable[[Blocks], Blocks]:
    """Register a function that reads a log file in blocks: `(number of the first row, rows)`, rows counted from 1.

    Args:
      name: of the format.
      summary: one line about it.
      marks: bytes that a file begins with, at most 16; without, the ending of the name decides.
      endings: of names, such as `.parquet`, in small letters.

    Rows have the columns that `read_log` documents. A file that is damaged is a `FileError` with the row.
    """
    _SIGNS[name] = _Signs(marks, endings)
    return FORMATS.register(name, summary=summary)


def log_formats() -> dict[str, str]:
    """Every format, and one line about it.

    >>> log_formats()["parquet"]
    'Parquet'
    """
    return {family.name: family.summary for family in FORMATS.families().values()}


def format_of(file: Path, start: bytes) -> Blocks:
    """The function that reads a file which begins with `start`."""
    families, lower = FORMATS.families(), file.name.lower()
    for name, family in families.items():
        if start.startswith(_SIGNS[name].marks or (b"\0\0none",)):
            return family.build
    for name, family in families.items():
        if lower.endswith(_SIGNS[name].endings or ("\0",)):
            if _SIGNS[name].marks:
                kind = "gzip" if lower.endswith(".gz") else family.summary
                raise FileError(f"{file} is no {kind} file, as its name says; name it .csv if it is text")
            return family.build
    return families[_DEFAULT].build
