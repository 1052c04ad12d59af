"""Names for the states, actions and models of a model folder.

Where a folder has `states.csv` (`idstate, name`), `actions.csv` (`idaction, name`) or `models.csv` (`idoutcome, name`),
these name the ids that the other files use. Where an id column of `training.csv` holds no number at all, its cells are
names themselves, in every file: they are numbered as that table lists them, else in the order in which they first
appear in `training.csv` and then in the other files. Names are distinct. A cell that is neither is an error with
its line.
"""

from pathlib import Path

import numpy as np

from beliefbound.base.errors import FileError
from beliefbound.base.grammar import nearest
from beliefbound.base.io.csv_table import CsvTable, as_numbers, ids, read_table
from beliefbound.base.validation import IntArray


def read_names(file: Path, key: str) -> tuple[str, ...] | None:
    """The names that a table gives to ids, in their order; nothing where there is no such file."""
    if not file.exists():
        return None
    frame = read_table(file, [key, "name"])
    numbers = ids(frame, key, file)
    order = np.argsort(numbers, kind="stable")
    if not np.array_equal(numbers[order], np.arange(len(numbers))):
        raise FileError(f"{file}: {key} must be each of 0 to {len(numbers) - 1} once; number them without gaps")
    given = [_checked(text, "name", line, file) for text, line in zip(frame["name"], frame.line, strict=True)]
    names = [given[int(i)] for i in order]
    for i, name in enumerate(given):
        if name in given[:i]:
            raise FileError(f"{file}, line {frame.line[i]}: the name {name!r} is given more than once")
    return tuple(names)


class Names:
    """The states, or the actions, of a folder, as its files are read one after the other."""

    def __init__(self, listed: tuple[str, ...] | None, kind: str) -> None:
        self._listed, self._kind = listed, kind
        self._number: dict[str, int] | None = None  # where cells are names: their ids
        self._begun = False

    @property
    def names(self) -> tuple[str, ...] | None:
        """In the order of ids; nothing where they have none."""
        return self._listed if self._number is None else tuple(self._number)

    def ids(self, frame: CsvTable, columns: tuple[str, ...], file: Path) -> list[IntArray]:
        """The ids in some columns. The first file decides whether cells are numbers or names."""
        if not self._begun:
            self._begun = True
            if all(np.isnan(as_numbers(frame[name])).all() for name in columns):
                self._number = {name: i for i, name in enumerate(self._listed or ())}
        if self._number is None:
            found = [ids(frame, name, file) for name in columns]
            most = 2**31 if self._listed is None else len(self._listed)
            for name, values in zip(columns, found, strict=True):
                if (values >= most).any():
                    i = int(np.argmax(values >= most))
                    raise FileError(
                        f"{file}, line {frame.line[i]}: {name} is {values[i]}, but the names of {self._kind}s end "
                        f"at {most - 1}; name every {self._kind}"
                    )
            return found
        cells = zip(frame.line, *(frame[name] for name in columns), strict=True)
        rows = [
            [self._named(text, name, line, file) for name, text in zip(columns, row, strict=True)]
            for line, *row in cells
        ]
        return list(np.array(rows, dtype=np.int64).T)

    def _named(self, text: str | None, column: str, line: int, file: Path) -> int:
        assert self._number is not None
        name = _checked(text, column, line, file)
        if name not in self._number:
            if self._listed is not None:
                hint = nearest(name, self._listed).rstrip()
                raise FileError(
                    f"{file}, line {line}: {column} is {name!r}, which is not among the names of {self._kind}s"
                    + (f"; {hint}" if hint else "")
                )
            self._number[name] = len(self._number)
        return self._number[name]


def _checked(text: str | None, column: str, line: int, file: Path) -> str:
    """One cell that is not empty."""
    if not text:
        raise FileError(f"{file}, line {line}: {column} is empty; give a name")
    return text
