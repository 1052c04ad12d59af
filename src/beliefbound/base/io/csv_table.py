"""A CSV file as named columns of text, numbers or ids, checked cell by cell: every error names file and line."""

import csv
import io
import math
import re
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from beliefbound.base.errors import FileError
from beliefbound.base.validation import FloatArray, IntArray

_BLOCK = 50_000  # rows that are held as they were read


def separator_of(header: str) -> str:
    """What separates the cells of a header: a comma, else a semicolon, a tab or a bar.

    >>> separator_of("state;action")
    ';'
    """
    return next((mark for mark in ",;\t|" if mark in header), ",")


class CsvTable:
    """Columns of cells, stripped; `None` where a cell is empty. `line[i]`: the line of row `i` in the file."""

    def __init__(self, columns: Mapping[str, list[str | None]], line: list[int]) -> None:
        self.columns, self.line = columns, line

    def __getitem__(self, name: str) -> list[str | None]:
        return self.columns[name]


def read_table(file: Path, columns: list[str], *, optional: Sequence[str] = ()) -> CsvTable:
    """The named columns; blank lines are dropped. Those that are optional may be missing."""
    if not file.is_file():
        raise FileError(f"{file} is not a file")
    try:
        with file.open(newline="", encoding="utf-8-sig") as opened:
            separator = separator_of(opened.readline(1 << 20))
            opened.seek(0)
            rows = csv.reader(opened, delimiter=separator, strict=True)
            header = [name.strip() for name in next(rows, [])]
            if not header:
                raise FileError(f"{file} is empty; expected the columns {', '.join(columns)}")
            named = _chosen(header, columns, optional, file)
            return _cells(rows, header, named, file)
    except (csv.Error, OSError, UnicodeDecodeError) as cause:
        raise FileError(f"{file} is not a table of comma-separated values: {cause}") from None


def read_header(file: Path) -> list[str]:
    """The names of all columns."""
    if not file.is_file():
        raise FileError(f"{file} is not a file")
    try:
        with file.open(newline="", encoding="utf-8-sig") as opened:
            line = opened.readline(1 << 20)
            return [name.strip() for name in next(csv.reader([line], delimiter=separator_of(line), strict=True), [])]
    except (csv.Error, OSError, UnicodeDecodeError) as cause:
        raise FileError(f"{file} is not a table of comma-separated values: {cause}") from None


def _chosen(header: list[str], columns: list[str], optional: Sequence[str], file: Path) -> list[str]:
    """The columns that are there, each of them once."""
    named = [name for name in columns if name in header or name not in optional]
    for name in named:
        if header.count(name) != 1:
            how = "no column" if name not in header else "more than one column"
            raise FileError(f"{file} has {how} {name!r}; its header is {', '.join(header)!r}")
    if not named:
        raise FileError(f"{file} has none of the columns {', '.join(optional)}; its header is {', '.join(header)!r}")
    return named


def _cells(rows: Any, header: list[str], named: list[str], file: Path) -> CsvTable:
    """All rows, in blocks; equal cells of a block are one object."""
    places, line = [header.index(name) for name in named], list[int]()
    held: list[list[str | None]] = [[] for _ in named]
    while True:
        before, block = rows.line_num, list(islice(rows, _BLOCK))
        if not block:
            break
        if {*map(len, block)} == {len(header)} and rows.line_num - before == len(block):
            line += range(before + 1, rows.line_num + 1)
        else:
            block = _filled(block, before, len(header), line, file)
        columns, one = list(zip(*block, strict=True)), _Stripped()
        for cells, place in zip(held, places, strict=True):
            cells += map(one.__getitem__, columns[place] if columns else ())
    kept = [any(cells) for cells in zip(*held, strict=True)] if all(None in cells for cells in held) else []
    if not line or (kept and not any(kept)):
        raise FileError(f"{file} has a header but no rows")
    if not all(kept):
        held = [[text for text, keep in zip(cells, kept, strict=True) if keep] for cells in held]
        line = [at for at, keep in zip(line, kept, strict=True) if keep]
    return CsvTable(dict(zip(named, held, strict=True)), line)


class _Stripped(dict[str, str | None]):
    """Cells without what is blank around them, by what they were; `None`: nothing is left."""

    def __missing__(self, text: str) -> str | None:
        cell = self[text] = text.strip() or None
        return cell


def _filled(block: list[list[str]], before: int, width: int, line: list[int], file: Path) -> list[list[str]]:
    """Rows with a cell for each column, whose lines, the last of each row, are noted; blank ones are left out."""
    filled, at = [], before
    for row in block:
        at += max(1, sum(cell.count("\n") for cell in row) + 1)
        if len(row) > width:
            fix = "put cells that hold a separator into quotation marks"
            raise FileError(f"{file}, line {at} has {len(row)} cells, its header {width}; {fix}")
        if row:
            line.append(at)
            filled.append(row if len(row) == width else row + [""] * (width - len(row)))
    return filled


def csv_text(columns: Mapping[str, Any]) -> str:
    """Columns as comma-separated values; numbers are read back bit for bit.

    >>> csv_text({"state": ["dry", "wet, cold"], "value": np.array([0.5, 2.0])})
    'state,value\\ndry,0.5\\n"wet, cold",2.0\\n'
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    held = [values.tolist() if isinstance(values, np.ndarray) else values for values in columns.values()]
    writer.writerows(zip(*held, strict=True))
    return text.getvalue()


def number_of(text: str | None) -> float:
    """A finite number; NaN where a cell holds none.

    >>> number_of("1e-3"), number_of("1_000")
    (0.001, nan)
    """
    try:
        value = math.nan if text is None or "_" in text else float(text)
    except ValueError:
        return math.nan
    return value if math.isfinite(value) else math.nan


def as_numbers(cells: Sequence[str | None]) -> FloatArray:
    """Cells as numbers, NaN where they hold none."""
    try:
        if "_" not in "".join(cells):  # type: ignore[arg-type]
            values = np.fromiter(map(float, cells), np.float64, len(cells))  # type: ignore[arg-type]
            return np.where(np.isfinite(values), values, np.nan)
    except (TypeError, ValueError):  # some cell is empty, or no number
        pass
    return np.fromiter(map(number_of, cells), np.float64, len(cells))


def numbers(table: CsvTable, name: str, file: Path) -> tuple[FloatArray, IntArray]:
    """A column of finite numbers, and the line of each."""
    values, lines = as_numbers(table[name]), np.array(table.line, dtype=np.int64)
    bad = np.isnan(values)
    if bad.any():
        i = int(np.argmax(bad))
        text = table[name][i]
        shown = "empty" if text is None else f"{text!r}"
        comma = " with a point for the decimal comma" if re.fullmatch(r"[+-]?\d+,\d+", text or "") else ""
        raise FileError(f"{file}, line {lines[i]}: {name} is {shown}; expected a finite number{comma}")
    return values, lines


def ids(table: CsvTable, name: str, file: Path) -> IntArray:
    """A column of whole numbers from 0."""
    values, lines = numbers(table, name, file)
    bad = (values < 0) | (values != np.floor(values)) | (values > 2**31)
    if bad.any():
        i = int(np.argmax(bad))
        raise FileError(f"{file}, line {lines[i]}: {name} is {table[name][i]}; ids are whole numbers from 0")
    return values.astype(np.int64)


def check_not_negative(values: FloatArray, lines: IntArray, name: str, file: Path) -> None:
    """No number of a column is below zero."""
    if (values < 0.0).any():
        i = int(np.argmax(values < 0.0))
        raise FileError(f"{file}, line {lines[i]}: {name} is {values[i]:g}; it cannot be negative")
