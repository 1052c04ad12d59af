"""States of a model folder without rows of their own: nothing happens there any more – or their name is misspelt.

Both look alike: `Low` in place of `low` is one more state, where nothing is paid for ever, and where rewards are costs
it is the best place to be. So a state that has no rows in any file must be declared: by `states.csv`, which lists every
state there is, or by name (`absorbing`). What is declared and has rows after all is an error too. Where it starts, a
state has rows in every model, unless it is declared and has them in none.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from beliefbound.base.errors import FileError, ParameterError
from beliefbound.base.grammar import nearest
from beliefbound.base.io.model_folder import FolderRows, ModelRows
from beliefbound.base.validation import check_sequence
from beliefbound.policy.naming import Names, printable


def check_absorbing(raw: FolderRows, folder: Path, absorbing: Sequence[str | int]) -> tuple[str, ...]:
    """The declared states, as they are called, after checking that every state without rows is one of them."""
    files = [rows for rows in (raw.training, raw.test, raw.true) if rows is not None]
    left = set(np.unique(np.concatenate([rows.source for rows in files])).tolist())
    declared = {_declared(given, raw, left): str(given) for given in _listed(absorbing)}
    known = [_called(raw, s) for s in sorted(left)]
    for file, column, s, line in _mentions(raw, files):
        if s in left or s in declared or raw.listed:
            continue
        name, place = printable(_called(raw, s)), f"{folder / file}" + ("" if line is None else f", line {line}")
        raise FileError(
            f"{place}: {column} is {name}, a state without rows of its own; {_near(raw, name, known)}if nothing "
            f"happens there any more, say so: list every state in states.csv, or pass --absorbing {name} "
            f"(absorbing=[...])"
        )
    _check_starts(raw, files, left, folder)
    return tuple(declared.values())


def _listed(absorbing: Any) -> list[str | int]:
    given = check_sequence(absorbing, "absorbing", ParameterError, fix="give a list of states")
    return list(given)


def _declared(given: str | int, raw: FolderRows, left: set[int]) -> int:
    """The id of a state that is said to be absorbing."""
    mentioned = sorted({s for _, _, s, _ in _mentions(raw, [raw.training])} | left)
    names = {_called(raw, s): s for s in mentioned}
    if str(given) not in names:
        raise ParameterError(
            f"absorbing: there is no state {printable(str(given))!r}; {_near(raw, str(given), list(names))}give states "
            f"that training.csv leads to"
        )
    state = names[str(given)]
    if state in left:
        raise ParameterError(f"absorbing: state {given} has rows in training.csv, so something happens there")
    return state


def _mentions(raw: FolderRows, files: list[ModelRows]) -> Iterator[tuple[str, str, int, int | None]]:
    """`(file, column, state, line)` of the first place of each state that is arrived at, or where it starts."""
    for s in raw.initial[0]:
        yield "initial.csv", "idstate", int(s), None
    for rows in files:
        states, first = np.unique(rows.target, return_index=True)
        for s, i in zip(states, first, strict=True):
            yield rows.file, "idstateto", int(s), int(rows.line[i])


def _check_starts(raw: FolderRows, files: list[ModelRows], left: set[int], folder: Path) -> None:
    """A start that some model has rows for has them in all."""
    for s, chance in zip(*raw.initial, strict=True):
        for rows in files if chance > 0.0 and int(s) in left else ():
            models = np.unique(rows.model)
            without = np.setdiff1d(models, rows.model[rows.source == s])
            if len(without):
                names = Names(models=raw.models if rows is raw.training else None)
                raise FileError(
                    f"{folder / rows.file}: {names.the_model(int(without[0]))} has no rows for state "
                    f"{_called(raw, int(s))}, where it starts (initial.csv), though others have; add them, or check "
                    f"how the model is spelt"
                )


def _near(raw: FolderRows, name: str, known: list[str]) -> str:
    """What was meant, where states have names."""
    return nearest(name, map(printable, known)) if raw.states is not None else ""


def _called(raw: FolderRows, state: int) -> str:
    return str(state) if raw.states is None else raw.states[state]
