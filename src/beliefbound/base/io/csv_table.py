"""A CSV file as named columns of text, numbers or ids, checked cell by cell: every error names file and line."""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from beliefbound.base.errors import FileError
from beliefbound.base.validation import FloatArray, IntArray


def separator_of(header: str) -> str:
    """What separates the cells of a header: a comma, else a semicolon, a tab or a bar.

    >>> separator_of("state;action")
    ';'
    """
    return next((mark for mark in ",;\t|" if mark in header), ",")


def read_table(file: Path, columns: list[str], *, optional: Sequence[str] = ()) -> pl.DataFrame:
    """The named columns as text, stripped, with `line`; blank lines are dropped. Those that are optional may be
    missing."""
    if not file.is_file():
        raise FileError(f"{file} is not a file")
    try:
        with file.open("rb") as opened:
            separator = separator_of(opened.readline(1 << 20).decode(errors="replace"))
        frame = pl.read_csv(file, infer_schema=False, separator=separator)
    except pl.exceptions.NoDataError:
        raise FileError(f"{file} is empty; expected the columns {', '.join(columns)}") from None
    except (pl.exceptions.ComputeError, OSError) as cause:
        reason = str(cause).splitlines()[0]
        raise FileError(f"{file} is not a table of comma-separated values: {reason}") from None
    headers = [name.strip() for name in frame.columns]
    columns = [name for name in columns if name in headers or name not in optional]
    for name in columns:
        if headers.count(name) != 1:
            how = "no column" if name not in headers else "more than one column"
            raise FileError(f"{file} has {how} {name!r}; its header is {', '.join(headers)!r}")
    frame = frame.rename(dict(zip(frame.columns, headers, strict=True))) if headers != frame.columns else frame
    if not columns:
        raise FileError(f"{file} has none of the columns {', '.join(optional)}; its header is {', '.join(headers)!r}")
    frame = frame.select(pl.col(name).str.strip_chars() for name in columns).with_columns(
        line=pl.int_range(2, pl.len() + 2)
    )
    frame = frame.filter(~pl.all_horizontal(pl.col(name).is_null() for name in columns))
    if frame.is_empty():
        raise FileError(f"{file} has a header but no rows")
    return frame


def numbers(frame: pl.DataFrame, name: str, file: Path) -> tuple[FloatArray, IntArray]:
    """A column of finite numbers, and the line of each."""
    parsed = frame[name].cast(pl.Float64, strict=False)
    lines = frame["line"].to_numpy().astype(np.int64)
    values = parsed.fill_null(float("nan")).to_numpy().astype(np.float64)
    bad = ~np.isfinite(values)
    if bad.any():
        i = int(np.argmax(bad))
        text = frame[name][i]
        shown = "empty" if text is None or text == "" else f"{text!r}"
        comma = " with a point for the decimal comma" if re.fullmatch(r"[+-]?\d+,\d+", text or "") else ""
        raise FileError(f"{file}, line {lines[i]}: {name} is {shown}; expected a finite number{comma}")
    return values, lines


def ids(frame: pl.DataFrame, name: str, file: Path) -> IntArray:
    """A column of whole numbers from 0."""
    values, lines = numbers(frame, name, file)
    bad = (values < 0) | (values != np.floor(values)) | (values > 2**31)
    if bad.any():
        i = int(np.argmax(bad))
        raise FileError(f"{file}, line {lines[i]}: {name} is {frame[name][i]}; ids are whole numbers from 0")
    return values.astype(np.int64)


def check_not_negative(values: FloatArray, lines: IntArray, name: str, file: Path) -> None:
    """No number of a column is below zero."""
    if (values < 0.0).any():
        i = int(np.argmax(values < 0.0))
        raise FileError(f"{file}, line {lines[i]}: {name} is {values[i]:g}; it cannot be negative")
