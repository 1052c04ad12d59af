"""Model folders as plain arrays: the CSV format of the multi-model MDP literature.

* `training.csv`, optional `test.csv`: columns `idstatefrom, idaction, idstateto, idoutcome, probability, reward`,
  where `idoutcome` is the model. Optional `true.csv`: the same without `idoutcome`.
* `initial.csv`: `idstate, probability`.
* `parameters.csv`: `parameter, value` with a row `discount`; optional rows `reward_signal`, `reward_low`,
  `reward_high`.
* optional `weights.csv`, `test_weights.csv`: `idoutcome, weight`. Without them models weigh the same.
* optional `states.csv`: `idstate, name`, every state there is; `actions.csv`: `idaction, name`; `models.csv`:
  `idoutcome, name`, for the training models.
* optional `unavailable.csv`: `idstate, idaction`, actions that a state does not offer, in any file; such pairs have no
  rows.

Columns are found by name, in any order; others are ignored. Ids are whole numbers from 0; those of states, actions or
training models may be names instead (`base.io.names`). Every error names file and line. What the rows mean (duplicates,
absorbing states) is decided in `beliefs.folder` and `beliefs.rows`.
"""

import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from beliefbound.base.errors import FileError
from beliefbound.base.io.csv_table import check_not_negative, csv_text, numbers, read_table
from beliefbound.base.io.names import Names, read_names
from beliefbound.base.io.paths import as_path
from beliefbound.base.validation import FloatArray, IntArray

FILES = (
    "training.csv",
    "test.csv",
    "true.csv",
    "initial.csv",
    "parameters.csv",
    "weights.csv",
    "test_weights.csv",
    "states.csv",
    "actions.csv",
    "models.csv",
    "unavailable.csv",
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
    """A whole folder. Weights and start probabilities are `(ids, values)` pairs; parameters are text; `states`,
    `actions` and `models` are names, in the order of ids."""

    training: ModelRows
    test: ModelRows | None
    true: ModelRows | None
    initial: tuple[IntArray, FloatArray]
    parameters: Mapping[str, str]
    weights: tuple[IntArray, FloatArray] | None
    test_weights: tuple[IntArray, FloatArray] | None
    states: tuple[str, ...] | None
    actions: tuple[str, ...] | None
    models: tuple[str, ...] | None
    unavailable: tuple[IntArray, IntArray] | None  # states and actions that they do not offer
    listed: bool  # whether `states.csv` lists every state


def read_folder(path: str | Path) -> FolderRows:
    """Every file of a model folder, checked cell by cell."""
    folder = as_path(path)
    if not folder.exists():
        raise FileError(f"{folder} does not exist; give a folder with training.csv, initial.csv and parameters.csv")
    if not folder.is_dir():
        raise FileError(f"{folder} is not a folder; give the folder that holds training.csv")
    for name in ("training.csv", "initial.csv", "parameters.csv"):
        if not (folder / name).is_file():
            raise FileError(f"{folder} has no {name}; a model folder needs training.csv, initial.csv, parameters.csv")
    states = Names(read_names(folder / "states.csv", "idstate"), "state")
    actions = Names(read_names(folder / "actions.csv", "idaction"), "action")
    models, tested = Names(read_names(folder / "models.csv", "idoutcome"), "model"), Names(None, "model")
    test, true = folder / "test.csv", folder / "true.csv"
    return FolderRows(
        training=_transitions(folder / "training.csv", states, actions, models),
        test=_transitions(test, states, actions, tested) if test.exists() else None,
        true=_transitions(true, states, actions) if true.exists() else None,
        initial=read_pairs(folder / "initial.csv", "idstate", "probability", states),
        parameters=_parameters(folder / "parameters.csv"),
        weights=_optional_weights(folder / "weights.csv", models),
        test_weights=_optional_weights(folder / "test_weights.csv", tested),
        unavailable=_unavailable(folder / "unavailable.csv", states, actions),
        states=states.names,
        actions=actions.names,
        models=models.names,
        listed=(folder / "states.csv").exists(),
    )


def write_folder(path: str | Path, tables: Mapping[str, Mapping[str, object]], *, overwrite: bool = False) -> Path:
    """Write `{file name: {column: values}}` aside, then move it into place.

    A folder that does not exist, or is empty, appears at once and complete. A folder that holds anything is refused
    unless `overwrite`; then files of the format are replaced one by one or removed, and others are left alone.
    """
    folder = as_path(path)
    try:
        return _written(folder, tables, overwrite=overwrite)
    except OSError as cause:
        reason = cause.strerror or str(cause).splitlines()[0]
        raise FileError(f"cannot write {folder}: {reason}; make room, or choose a place you can write to") from None


def _written(folder: Path, tables: Mapping[str, Mapping[str, object]], *, overwrite: bool) -> Path:
    if folder.exists() and not folder.is_dir():
        raise FileError(f"{folder} is a file; give the name of a folder")
    occupied = folder.exists() and any(folder.iterdir())
    if occupied and not overwrite:
        raise FileError(f"{folder} already holds {min(x.name for x in folder.iterdir())!r}; pass overwrite=True")
    folder.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        for name, columns in tables.items():
            (aside / name).write_text(csv_text(columns), encoding="utf-8")
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


def _transitions(file: Path, states: Names, actions: Names, models: Names | None = None) -> ModelRows:
    """The rows of a file; without names of models, those of one model."""
    names = ["idstatefrom", "idaction", "idstateto", "probability", "reward"]
    frame = read_table(file, names if models is None else [*names, "idoutcome"])
    probability, line = numbers(frame, "probability", file)
    check_not_negative(probability, line, "probability", file)
    source, target = states.ids(frame, ("idstatefrom", "idstateto"), file)
    (action,) = actions.ids(frame, ("idaction",), file)
    return ModelRows(
        file=file.name,
        model=np.zeros(len(source), dtype=np.int64) if models is None else models.ids(frame, ("idoutcome",), file)[0],
        source=source,
        action=action,
        target=target,
        probability=probability,
        reward=numbers(frame, "reward", file)[0],
        line=line,
    )


def read_pairs(file: Path, key: str, value: str, names: Names) -> tuple[IntArray, FloatArray]:
    """A table of ids, or names, and numbers that are not negative: each id once."""
    frame = read_table(file, [key, value])
    (found,) = names.ids(frame, (key,), file)
    values, line = numbers(frame, value, file)
    check_not_negative(values, line, value, file)
    _, index, counts = np.unique(found, return_index=True, return_counts=True)
    if (counts > 1).any():
        twice = int(index[int(np.argmax(counts > 1))])
        raise FileError(f"{file}: {key} {frame[key][twice]} is given more than once; give each id one row")
    return found, values


def _optional_weights(file: Path, models: Names) -> tuple[IntArray, FloatArray] | None:
    return read_pairs(file, "idoutcome", "weight", models) if file.exists() else None


def _unavailable(file: Path, states: Names, actions: Names) -> tuple[IntArray, IntArray] | None:
    if not file.exists():
        return None
    frame = read_table(file, ["idstate", "idaction"])
    return states.ids(frame, ("idstate",), file)[0], actions.ids(frame, ("idaction",), file)[0]


def _parameters(file: Path) -> dict[str, str]:
    frame = read_table(file, ["parameter", "value"])
    found: dict[str, str] = {}
    for name, value, line in zip(frame["parameter"], frame["value"], frame.line, strict=True):
        if name is None or value is None:
            raise FileError(f"{file}, line {line}: a parameter needs a name and a value")
        if name in found:
            raise FileError(f"{file}, line {line}: parameter {name!r} is given more than once")
        found[name] = value
    return found
