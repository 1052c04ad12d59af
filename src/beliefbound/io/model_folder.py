"""Model folders as plain arrays: the CSV format of the multi-model MDP literature.

* `training.csv`, optional `test.csv`: columns `idstatefrom, idaction, idstateto, idoutcome, probability, reward`,
  where `idoutcome` is the model. Optional `true.csv`: the same without `idoutcome`.
* `initial.csv`: `idstate, probability`.
* `parameters.csv`: `parameter, value` with a row `discount`; optional rows `reward_signal`, `reward_low`,
  `reward_high`.
* optional `weights.csv`, `test_weights.csv`: `idoutcome, weight`. Without them models weigh the same.

Columns are found by name, in any order; others are ignored. Ids are whole numbers from 0. Every error names file and
line. What the rows mean (duplicates, absorbing states) is decided in `beliefs.folder` and `beliefs.rows`.
"""

import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from beliefbound.errors import FileError
from beliefbound.validation import FloatArray, IntArray

FILES = (
    "training.csv",
    "test.csv",
    "true.csv",
    "initial.csv",
    "parameters.csv",
    "weights.csv",
    "test_weights.csv",
)
PARAMETERS = ("discount", "reward_signal", "reward_low", "reward_high")


@dataclass(frozen=True, eq=False)
class ModelRows:
    """The rows of one transition file, as they stand. All arrays have one entry per row; `line` is its line there."""

    file: str
    model: IntArray
    source: IntArray
    action: IntArray
    target: IntArray
    probability: FloatArray
    reward: FloatArray
    line: IntArray


@dataclass(frozen=True, eq=False)
class FolderRows:
    """A whole folder. Weights and start probabilities are `(ids, values)` pairs; parameters are text."""

    training: ModelRows
    test: ModelRows | None
    true: ModelRows | None
    initial: tuple[IntArray, FloatArray]
    parameters: Mapping[str, str]
    weights: tuple[IntArray, FloatArray] | None
    test_weights: tuple[IntArray, FloatArray] | None


def read_folder(path: str | Path) -> FolderRows:
    """Every file of a model folder, checked cell by cell."""
    folder = Path(path)
    if not folder.exists():
        raise FileError(f"{folder} does not exist; give a folder with training.csv, initial.csv and parameters.csv")
    if not folder.is_dir():
        raise FileError(f"{folder} is not a folder; give the folder that holds training.csv")
    for name in ("training.csv", "initial.csv", "parameters.csv"):
        if not (folder / name).is_file():
            raise FileError(f"{folder} has no {name}; a model folder needs training.csv, initial.csv, parameters.csv")
    return FolderRows(
        training=_transitions(folder / "training.csv"),
        test=_transitions(folder / "test.csv") if (folder / "test.csv").exists() else None,
        true=_transitions(folder / "true.csv", one=True) if (folder / "true.csv").exists() else None,
        initial=_pairs(folder / "initial.csv", "idstate", "probability"),
        parameters=_parameters(folder / "parameters.csv"),
        weights=_optional_weights(folder / "weights.csv"),
        test_weights=_optional_weights(folder / "test_weights.csv"),
    )


def write_folder(path: str | Path, tables: Mapping[str, Mapping[str, object]], *, overwrite: bool = False) -> Path:
    """Write `{file name: {column: values}}` aside, then move it into place.

    A folder that does not exist, or is empty, appears at once and complete. A folder that holds anything is refused
    unless `overwrite`; then files of the format are replaced one by one or removed, and others are left alone.
    """
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise FileError(f"{folder} is a file; give the name of a folder")
    occupied = folder.exists() and any(folder.iterdir())
    if occupied and not overwrite:
        raise FileError(f"{folder} already holds {min(x.name for x in folder.iterdir())!r}; pass overwrite=True")
    folder.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        for name, columns in tables.items():
            pl.DataFrame(columns).write_csv(aside / name)
        if not occupied:
            aside.chmod(0o755)
            os.replace(aside, folder)
            return folder
        for name in FILES:
            if name in tables:
                os.replace(aside / name, folder / name)
            else:
                (folder / name).unlink(missing_ok=True)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return folder


def _transitions(file: Path, *, one: bool = False) -> ModelRows:
    names = ["idstatefrom", "idaction", "idstateto", "probability", "reward"]
    frame = _table(file, names if one else [*names, "idoutcome"])
    source, line = _column(frame, "idstatefrom", file)
    model = np.zeros(len(source), dtype=np.int64) if one else _ids(frame, "idoutcome", file)
    probability, _ = _column(frame, "probability", file)
    _not_negative(probability, line, "probability", file)
    return ModelRows(
        file=file.name,
        model=model,
        source=_ids(frame, "idstatefrom", file),
        action=_ids(frame, "idaction", file),
        target=_ids(frame, "idstateto", file),
        probability=probability,
        reward=_column(frame, "reward", file)[0],
        line=line,
    )


def _pairs(file: Path, key: str, value: str) -> tuple[IntArray, FloatArray]:
    frame = _table(file, [key, value])
    ids = _ids(frame, key, file)
    numbers, line = _column(frame, value, file)
    _not_negative(numbers, line, value, file)
    _, index, counts = np.unique(ids, return_index=True, return_counts=True)
    if (counts > 1).any():
        twice = int(index[int(np.argmax(counts > 1))])
        raise FileError(f"{file}: {key} {ids[twice]} is given more than once; give each id one row")
    return ids, numbers


def _optional_weights(file: Path) -> tuple[IntArray, FloatArray] | None:
    return _pairs(file, "idoutcome", "weight") if file.exists() else None


def _parameters(file: Path) -> dict[str, str]:
    frame = _table(file, ["parameter", "value"])
    found: dict[str, str] = {}
    for name, value, line in zip(frame["parameter"], frame["value"], frame["line"], strict=True):
        if name in found:
            raise FileError(f"{file}, line {line}: parameter {name!r} is given more than once")
        if not name or not value:
            raise FileError(f"{file}, line {line}: a parameter needs a name and a value")
        found[name] = value
    return found


def _table(file: Path, columns: list[str]) -> pl.DataFrame:
    """The named columns as text, stripped, with `line`; blank lines are dropped."""
    if not file.is_file():
        raise FileError(f"{file} is not a file")
    try:
        frame = pl.read_csv(file, infer_schema=False)
    except pl.exceptions.NoDataError:
        raise FileError(f"{file} is empty; expected the columns {', '.join(columns)}") from None
    except (pl.exceptions.ComputeError, OSError) as cause:
        reason = str(cause).splitlines()[0]
        raise FileError(f"{file} is not a table of comma-separated values: {reason}") from None
    headers = [name.strip() for name in frame.columns]
    for name in columns:
        if headers.count(name) != 1:
            how = "no column" if name not in headers else "more than one column"
            raise FileError(f"{file} has {how} {name!r}; its header is {', '.join(headers)!r}")
    frame = frame.rename(dict(zip(frame.columns, headers, strict=True))) if headers != frame.columns else frame
    frame = frame.select(pl.col(name).str.strip_chars() for name in columns).with_columns(
        line=pl.int_range(2, pl.len() + 2)
    )
    frame = frame.filter(~pl.all_horizontal(pl.col(name).is_null() for name in columns))
    if frame.is_empty():
        raise FileError(f"{file} has a header but no rows")
    return frame


def _column(frame: pl.DataFrame, name: str, file: Path) -> tuple[FloatArray, IntArray]:
    """A column of finite numbers, and the line of each."""
    numbers = frame[name].cast(pl.Float64, strict=False)
    lines = frame["line"].to_numpy().astype(np.int64)
    values = numbers.fill_null(float("nan")).to_numpy().astype(np.float64)
    bad = ~np.isfinite(values)
    if bad.any():
        i = int(np.argmax(bad))
        text = frame[name][i]
        shown = "empty" if text is None or text == "" else f"{text!r}"
        raise FileError(f"{file}, line {lines[i]}: {name} is {shown}; expected a finite number")
    return values, lines


def _ids(frame: pl.DataFrame, name: str, file: Path) -> IntArray:
    values, lines = _column(frame, name, file)
    bad = (values < 0) | (values != np.floor(values)) | (values > 2**31)
    if bad.any():
        i = int(np.argmax(bad))
        raise FileError(f"{file}, line {lines[i]}: {name} is {frame[name][i]}; ids are whole numbers from 0")
    return values.astype(np.int64)


def _not_negative(values: FloatArray, lines: IntArray, name: str, file: Path) -> None:
    if (values < 0.0).any():
        i = int(np.argmax(values < 0.0))
        raise FileError(f"{file}, line {lines[i]}: {name} is {values[i]:g}; it cannot be negative")
