"""A log file as blocks of rows, so that memory stays that of a block however long the file is."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from beliefbound.base.errors import FileError
from beliefbound.base.tables import pl
from beliefbound.logs.log_formats import MARK_BYTES, format_of

_MARKS = {
    b"\xff\xfe\0\0": "UTF-32",
    b"\0\0\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}


def blocks(file: Path) -> Iterator[tuple[int, pl.DataFrame]]:
    """`(number of the first row, rows)` one after the other; rows count from 1, without the header.

    Raises:
      FileError: the file is missing, empty, neither CSV nor Parquet, damaged, or a row of it cannot be read.
    """
    if not file.exists():
        raise FileError(f"{file} does not exist; give a log of transitions as CSV or Parquet")
    if file.is_dir():
        raise FileError(f"{file} is a folder; give one file, CSV or Parquet")
    try:
        with file.open("rb") as opened:
            start = opened.read(MARK_BYTES)
    except OSError as cause:
        raise FileError(f"cannot read {file}: {cause.strerror or cause}") from None
    if not start:
        raise FileError(f"{file} is empty; expected a header and rows, one per transition")
    for mark, coding in _MARKS.items():
        if start.startswith(mark):
            raise FileError(f"{file}, row 0: the text is {coding}; save it as UTF-8")
    yield from format_of(file, start)(file)


def ahead(each: Iterator[tuple[int, pl.DataFrame]]) -> Iterator[tuple[int, pl.DataFrame]]:
    """The same, the next one being read by another thread while somebody works on the last."""
    with ThreadPoolExecutor(max_workers=1) as reader:
        coming = reader.submit(next, each, None)
        while (block := coming.result()) is not None:
            coming = reader.submit(next, each, None)
            yield block
