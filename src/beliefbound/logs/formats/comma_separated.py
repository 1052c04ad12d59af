"""CSV: bytes are read a few megabytes at a time and cut where a row ends, so that text that is not UTF-8, lines without
end and rows of the wrong length are told by their row. A file may be compressed by gzip. Cells are separated by what
the header has: commas, else semicolons, tabs or bars.
"""

import csv
import gzip
import io
import itertools
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, cast

from beliefbound.base.errors import FileError
from beliefbound.base.io.csv_table import separator_of
from beliefbound.base.tables import pl
from beliefbound.logs.log_formats import BLOCK_BYTES, log_format

LINE_BYTES = 1 << 20  # a longer line is refused: nobody logs megabytes a step
_QUOTE, _END, _GZIP = b'"', b"\n", b"\x1f\x8b"


@log_format("csv", summary="comma-separated values, also compressed by gzip", endings=(".csv",))
def comma_separated(file: Path) -> Iterator[tuple[int, pl.DataFrame]]:
    """Rows of text."""
    return _csv(file, packed=False)


@log_format("csv.gz", summary="the same, compressed", marks=(_GZIP,), endings=(".gz",))
def compressed(file: Path) -> Iterator[tuple[int, pl.DataFrame]]:
    """Rows of text, unpacked as they are read."""
    return _csv(file, packed=True)


def _csv(file: Path, *, packed: bool) -> Iterator[tuple[int, pl.DataFrame]]:
    first = 1
    try:
        with gzip.open(file, "rb") if packed else file.open("rb") as opened:
            header, types = b"", None
            for text in _pieces(file, cast(IO[bytes], opened)):
                if not header:
                    end = text.index(_END) + 1
                    header, text = text[:end].removeprefix(b"\xef\xbb\xbf"), text[end:]
                    if not text.strip():
                        continue
                frame = _parsed(file, header, text, first, types)
                types = types or dict(zip(frame.columns, frame.dtypes, strict=True))
                yield first, frame
                first += len(frame)
    except (OSError, EOFError, zlib.error) as cause:
        raise FileError(f"cannot read {file} after row {first - 1}: {getattr(cause, 'strerror', 0) or cause}") from None


def _pieces(file: Path, opened: IO[bytes]) -> Iterator[bytes]:
    """Whole rows, a block at a time: a row ends where a line does and every quote is closed."""
    kept, row = b"", 0
    while True:
        more = opened.read(BLOCK_BYTES)
        kept += more
        if not more:
            if kept:
                _check_text(file, kept + _END, row)
                _check_quotes(file, kept, row)
                yield kept if kept.endswith(_END) else kept + _END
            return
        _check_lines(file, kept, row)
        end = kept.rfind(_END) + 1
        text = kept[:end]
        if not end or (_QUOTE in text and text.count(_QUOTE) % 2):
            if len(kept) > 4 * BLOCK_BYTES:
                _check_quotes(file, text, row)
            continue
        _check_text(file, text, row)
        kept = kept[end:]
        row += text.count(_END)
        yield text


def _check_lines(file: Path, text: bytes, row: int) -> None:
    """No stretch of `LINE_BYTES` without an end of line."""
    for first in range(0, len(text) - LINE_BYTES + 1, LINE_BYTES):
        if text.find(_END, first, first + LINE_BYTES) < 0:
            at = row + text.count(_END, 0, first)
            raise FileError(f"{file}, row {at}: the line has more than a million characters; is this a log of steps?")


def _check_quotes(file: Path, text: bytes, row: int) -> None:
    if text.count(_QUOTE) % 2:
        at = row + text.count(_END, 0, text.rfind(_QUOTE))
        raise FileError(f"{file}, row {at}: a quote is opened and never closed; close it, or double it in a name")


def _check_text(file: Path, text: bytes, row: int) -> None:
    if text.isascii() and b"\0" not in text:
        return
    try:
        text.decode()
        place = text.find(b"\0")
        what = "a zero byte"
        if place < 0:
            return
    except UnicodeDecodeError as fault:
        place, what = fault.start, f"the byte {text[fault.start]:#04x}, which is not UTF-8 text"
    at, begin = row + text.count(_END, 0, place), text.rfind(_END, 0, place) + 1
    column = max(text.count(mark, begin, place) for mark in (b",", b";", b"\t", b"|")) + 1
    raise FileError(f"{file}, row {at}, column {column}: there is {what}; save the file as UTF-8")


def _parsed(file: Path, header: bytes, text: bytes, first: int, types: Any) -> pl.DataFrame:
    """One block as a frame; columns that do not hold what the first block held come as text."""
    separator = separator_of(header.decode())
    options: dict[str, Any] = {"schema_overrides": types} if types else {"infer_schema_length": None}
    for attempt in (options, {"infer_schema": False}):
        try:
            frame = pl.read_csv(io.BytesIO(header + text), separator=separator, **attempt)
            return frame.filter(~pl.all_horizontal(pl.all().is_null())) if b"\n\n" in text else frame
        except pl.exceptions.PolarsError as cause:
            fault = str(cause).splitlines()[0]
    _check_width(file, header, text, first)
    raise FileError(f"{file}, row {first}: cannot be read as comma-separated values: {fault}")


def _check_width(file: Path, header: bytes, text: bytes, first: int) -> None:
    """Name the first row that has more cells than the header."""
    try:
        separator = separator_of(header.decode())
        names = next(csv.reader([header.decode()], delimiter=separator))
        for row, cells in zip(itertools.count(first), csv.reader(io.StringIO(text.decode()), delimiter=separator)):
            if len(cells) > len(names):
                raise FileError(
                    f"{file}, row {row}, column {len(names) + 1}: the row has {len(cells)} cells, the header "
                    f"{len(names)}; quote cells that contain {separator!r}, decimal commas too"
                )
    except csv.Error as fault:
        raise FileError(f"{file}: cannot be read as comma-separated values: {fault}") from None
