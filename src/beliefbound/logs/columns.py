"""The columns of a log, checked: what a step is, and in which row something is not one.

state, action, next_state   whole numbers from 0, or names (then all of them are names)
reward                      a finite number
episode, t                  optional: which episode, and which step of it, whole numbers
terminated, truncated       optional: true or false, 1 or 0
propensity                  optional: the chance with which whoever acted took the action, above 0 and at most 1
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from beliefbound.base.errors import FileError, ParameterError
from beliefbound.base.tables import pl
from beliefbound.base.validation import shown

REQUIRED = ("state", "action", "reward", "next_state")
OPTIONAL = ("episode", "t", "terminated", "truncated", "propensity")
IDS = ("state", "action", "next_state")
Size = int | Sequence[str] | None  # how many there are, or their names
_TRUE, _FALSE = ("true", "1", "yes"), ("false", "0", "no", "")
_LARGEST = 2**31


class Columns:
    """Where each column stands, and whether states and actions are numbers or names: the first block decides."""

    def __init__(
        self,
        file: Path,
        given: Mapping[str, str] | None = None,
        *,
        names: bool = False,
        states: Size = None,
        actions: Size = None,
    ) -> None:
        unknown = [name for name in given or {} if name not in (*REQUIRED, *OPTIONAL)]
        if unknown:
            known = ", ".join((*REQUIRED, *OPTIONAL))
            raise ParameterError(f"there is no column called {shown(unknown[0])} to map; a log has {known}")
        self.file, self.given, self.names = file, dict(given or {}), names
        self.declared: dict[str, Size] = {"state": states, "action": actions}
        self.named: dict[str, bool] = {}  # of states and of actions
        self._found: dict[str, str] | None = None
        self._decimal: str | None = None  # the mark that rewards have had so far: a point or a comma

    def has(self, column: str) -> bool:
        """Whether the log has an optional column."""
        return self._found is not None and column in self._found

    def read(self, frame: pl.DataFrame, first: int) -> pl.DataFrame:
        """A block with the columns' own names and types, and `row`."""
        if self._found is None:
            self._found = self._find(frame.columns)
        missing = [name for name in self._found.values() if name not in frame.columns]
        if missing:
            raise FileError(f"{self.file}, row {first}: the column {missing[0]!r} is gone")
        frame = frame.select(pl.col(there).alias(name) for name, there in self._found.items())
        frame = frame.with_columns(row=pl.int_range(first, first + len(frame), dtype=pl.Int64))
        for column, kind in frame.schema.items():
            if kind.is_nested() or kind == pl.Binary or kind == pl.Object:
                raise self._wrong(frame, column, 0, f"holds {kind}; give numbers or text")
        for column in IDS:
            frame = frame.with_columns(self._ids(frame, column))
        frame = frame.with_columns(self._rewards(frame))
        for column in ("terminated", "truncated"):
            values = self._flags(frame, column) if self.has(column) else pl.lit(False).alias(column)
            frame = frame.with_columns(values)
        if self.has("t"):
            frame = frame.with_columns(self._whole(frame, "t", -(2**62)))
        if self.has("episode"):
            self._none_empty(frame, "episode")
        if self.has("propensity"):
            frame = frame.with_columns(self._chances(frame))
        return frame

    def _find(self, header: list[str]) -> dict[str, str]:
        found = {}
        stripped = {name.strip(): name for name in header}
        for column in (*REQUIRED, *OPTIONAL):
            there = self.given.get(column, column)
            if f"{there}_duplicated_0" in stripped:  # as the reader calls the second one
                raise FileError(f"{self.file}, row 0: the column {there!r} is there twice; leave one")
            if there in stripped:
                found[column] = stripped[there]
            elif column in REQUIRED or column in self.given:
                raise FileError(
                    f"{self.file}, row 0: there is no column {there!r}; its columns are {_listed(header)}. Name the "
                    f"one that holds it: --column {column}=NAME"
                )
        return found

    def _ids(self, frame: pl.DataFrame, column: str) -> pl.Series:
        kind = "action" if column == "action" else "state"
        values = frame[column]
        self._none_empty(frame, column)
        if kind not in self.named:
            self.named[kind] = self.names or _is_text(values)
        if not self.named[kind]:
            return self._below(frame, column, self._whole(frame, column, 0), kind)
        text = values.cast(pl.String) if not _is_text(values) else values.cast(pl.String).str.strip_chars()
        numeric = text.cast(pl.Float64, strict=False).is_not_null()
        if not self.names and numeric.any():
            mostly = 2 * int(numeric.sum()) > len(text)
            i = (~numeric if mostly else numeric).arg_max() or 0
            told, others = (f"is {_told(text[i])}", "numbers") if mostly else (f"is the number {text[i]}", "names")
            raise self._wrong(
                frame,
                column,
                i,
                f"{told}, where other rows have {others}; give numbers from 0 everywhere, or names everywhere (--names "
                f"if numbers are names)",
            )
        if (text == "").any():
            raise self._wrong(frame, column, (text == "").arg_max() or 0, "is empty; give a name")
        declared = self.declared[kind]
        if declared is not None and not isinstance(declared, int):
            unknown = ~text.is_in(list(declared))
            if unknown.any():
                i = unknown.arg_max() or 0
                raise self._wrong(frame, column, i, f"is {_told(text[i])}, which is not among the declared {kind}s")
        return text

    def _below(self, frame: pl.DataFrame, column: str, ids: pl.Series, kind: str) -> pl.Series:
        """Ids are below the declared number of states or actions."""
        declared = self.declared[kind]
        limit = None if declared is None else declared if isinstance(declared, int) else len(declared)
        if limit is not None and (ids >= limit).any():
            i = (ids >= limit).arg_max() or 0
            fault = f"is {ids[i]}, but only {limit} {kind}s are declared, numbered from 0"
            raise self._wrong(frame, column, i, fault)
        return ids

    def _whole(self, frame: pl.DataFrame, column: str, least: int) -> pl.Series:
        """A column of whole numbers."""
        values = frame[column]
        if values.dtype.is_integer():
            whole = values.cast(pl.Int64, strict=False)
        else:
            number = _stripped(values).cast(pl.Float64, strict=False)
            whole = number.cast(pl.Int64, strict=False)
            whole = pl.select(pl.when(number == whole.cast(pl.Float64)).then(whole)).to_series()
        bad = whole.is_null() | (whole < least) | (whole > _LARGEST)
        if bad.any():
            i = bad.arg_max() or 0
            hint = "" if column == "t" else "; ids are whole numbers from 0, or names in every row"
            raise self._wrong(frame, column, i, f"is {_told(values[i])}{hint or '; steps are whole numbers'}")
        return whole.alias(column)

    def _rewards(self, frame: pl.DataFrame) -> pl.Series:
        number = self._numbers(frame, "reward")
        bad = ~number.is_finite().fill_null(False)
        if bad.any():
            i = bad.arg_max() or 0
            raise self._wrong(frame, "reward", i, f"is {_told(frame['reward'][i])}; rewards are finite numbers")
        return number

    def _chances(self, frame: pl.DataFrame) -> pl.Series:
        number = self._numbers(frame, "propensity")
        bad = ~((number > 0.0) & (number <= 1.0)).fill_null(False)
        if bad.any():
            i = bad.arg_max() or 0
            told = f"is {_told(frame['propensity'][i])}; it is the chance with which the action was taken there"
            raise self._wrong(frame, "propensity", i, f"{told}, above 0 and at most 1; or leave the column out")
        return number

    def _numbers(self, frame: pl.DataFrame, column: str) -> pl.Series:
        """A column of numbers, null where there is none."""
        values = self._decimals(frame, column, _stripped(frame[column]))
        return values.cast(pl.Float64, strict=False).alias(column)

    def _decimals(self, frame: pl.DataFrame, column: str, values: pl.Series) -> pl.Series:
        """Numbers with decimal commas as ones with points; an error where the log has both marks."""
        if values.dtype != pl.String:
            if self._decimal is None and values.dtype.is_float() and (values != values.floor()).any():
                self._decimal = "."
            return values
        commas = values.str.contains(r"^[+-]?[0-9]+,[0-9]+([eE][+-]?[0-9]+)?$").fill_null(False)
        points = values.str.contains(".", literal=True).fill_null(False)
        for marked, mark in ((points, "."), (commas, ",")):
            if marked.any() and (self._decimal or mark) != mark:
                i = marked.arg_max() or 0
                told = (
                    f"is {_told(values[i])}, where other numbers have a decimal {'comma' if mark == '.' else 'point'}"
                )
                raise self._wrong(frame, column, i, f"{told}; write 1234.5, without marks between thousands")
            self._decimal = mark if marked.any() else self._decimal
        return values.str.replace(",", ".", literal=True) if commas.any() else values

    def _flags(self, frame: pl.DataFrame, column: str) -> pl.Series:
        values = frame[column]
        if values.dtype == pl.Boolean:
            return values.fill_null(False)
        text = _stripped(values.cast(pl.String)).str.to_lowercase().fill_null("")
        text = text.str.strip_suffix(".0")
        bad = ~text.is_in([*_TRUE, *_FALSE])
        if bad.any():
            i = bad.arg_max() or 0
            raise self._wrong(frame, column, i, f"is {_told(values[i])}; give true or false")
        return text.is_in(_TRUE).alias(column)

    def _none_empty(self, frame: pl.DataFrame, column: str) -> None:
        empty = frame[column].is_null()
        if empty.any():
            raise self._wrong(frame, column, empty.arg_max() or 0, "is empty; every step needs it")

    def _wrong(self, frame: pl.DataFrame, column: str, i: int, fault: str) -> FileError:
        named = self._found[column] if self._found else column
        return FileError(f"{self.file}, row {frame['row'][i]}, column {named!r}: it {fault}")


def _is_text(values: pl.Series) -> bool:
    return values.dtype in (pl.String, pl.Categorical) or isinstance(values.dtype, pl.Enum)


def _stripped(values: pl.Series) -> pl.Series:
    return values.str.strip_chars() if values.dtype == pl.String else values


def _told(value: Any) -> str:
    if value is None:
        return "empty"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _listed(header: list[str]) -> str:
    shown = ", ".join(name[:40] for name in header[:20])
    return shown + (", …" if len(header) > 20 else "")
