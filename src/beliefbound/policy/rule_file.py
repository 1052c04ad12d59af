"""A rule as comma-separated values: which action in which state. `memoryless.csv` and `policy.csv` are such.

    state         `idstate`, a number from 0, or `state`, a name or a number: every state, once per stage; those where
                  nothing happens any more may be left out
    action        `idaction`, a number from 0, or `action`, a name or a number
    stage         optional: the decision, from 0; without it the rule is the same at every stage
    probability   optional: of the action, where a state has several rows

Where both the number and the name are given they must agree. Every error names file and line.
"""

from pathlib import Path

import numpy as np

from beliefbound.base.errors import FileError, PolicyError
from beliefbound.base.grammar import nearest
from beliefbound.base.io.csv_table import CsvTable, as_numbers, ids, numbers, read_table
from beliefbound.base.validation import IntArray
from beliefbound.policy.naming import Names
from beliefbound.policy.tables import MemorylessPolicy, StationaryPolicy, TablePolicy

_COLUMNS = ["stage", "idstate", "state", "idaction", "action", "probability"]


def read_rule(path: Path, names: Names, n_states: int, n_actions: int, idle: IntArray | None = None) -> TablePolicy:
    """The policy of a CSV file, for a belief of so many states and actions that are called so; `idle`: `[s]`, an action
    for states where none matters, -1 for the others.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "rule.csv")
    ...     _ = file.write_text("state,action\\nill,treat\\nwell,wait\\n")
    ...     read_rule(file, Names(("well", "ill"), ("wait", "treat")), 2, 2)
    StationaryPolicy([0, 1])
    """
    frame = read_table(path, _COLUMNS, optional=_COLUMNS)
    states = _numbered(frame, "state", names.states, n_states, path)
    actions = _numbered(frame, "action", names.actions, n_actions, path)
    stages = ids(frame, "stage", path) if "stage" in frame.columns else np.zeros_like(states)
    n_stages = int(stages.max()) + 1
    if n_stages > len(stages):
        raise FileError(f"{path}: stages go up to {n_stages - 1}, but there are {len(stages)} rows; number them from 0")
    drawn = "probability" in frame.columns
    places = stages * n_states + states
    rows = places * n_actions + actions if drawn else places
    _, first = np.unique(rows, return_index=True)
    if len(first) < len(rows):
        line = frame.line[int(np.setdiff1d(np.arange(len(rows)), first)[0])]
        raise FileError(f"{path}, line {line}: this state has an action already; give each state one row per stage")
    chances = np.zeros((n_stages, n_states, n_actions))
    chances[stages, states, actions] = numbers(frame, "probability", path)[0] if drawn else 1.0
    given_places = np.unique(places)
    if idle is not None:
        left_out = np.setdiff1d(np.arange(n_stages * n_states), given_places)
        left_out = left_out[idle[left_out % n_states] >= 0]
        chances[left_out // n_states, left_out % n_states, idle[left_out % n_states]] = 1.0
        given_places = np.union1d(given_places, left_out)
    if len(given_places) < n_stages * n_states:
        gap = given_places != np.arange(len(given_places))
        stage, s = divmod(int(np.argmax(gap)) if gap.any() else len(gap), n_states)
        at = f" at stage {stage}" if "stage" in frame.columns else ""
        raise FileError(f"{path} has no row for {names.state(s)}{at}; give every state an action")
    given = {"probabilities": chances} if drawn else {"actions": chances.argmax(axis=-1)}
    try:
        if "stage" in frame.columns:
            return MemorylessPolicy(**given)
        return StationaryPolicy(**{key: held[0] for key, held in given.items()})
    except PolicyError as fault:
        raise FileError(f"{path}: {fault}") from None


def _numbered(frame: CsvTable, kind: str, names: tuple[str, ...] | None, count: int, path: Path) -> IntArray:
    """The ids in the column of numbers, else in that of names; where there are both, they say the same."""
    given = [column for column in (f"id{kind}", kind) if column in frame.columns]
    if not given:
        raise FileError(f"{path} has neither a column 'id{kind}' nor '{kind}'; give one of them")
    found = [_ids(frame, column, kind, names, count, path) for column in given]
    if (found[0] != found[-1]).any():
        i = int(np.argmax(found[0] != found[-1]))
        said = f"id{kind} is {frame[given[0]][i]}, but {kind} is {frame[given[-1]][i]!r}"
        raise FileError(f"{path}, line {frame.line[i]}: {said}; the models call them differently")
    return found[0]


def _ids(frame: CsvTable, column: str, kind: str, names: tuple[str, ...] | None, count: int, path: Path) -> IntArray:
    number: dict[str | None, int] = {name: i for i, name in enumerate(names or ())}
    if column == kind and all(text in number for text in frame[column]):
        return np.array([number[text] for text in frame[column]], dtype=np.int64)
    unknown = next((i for i, text in enumerate(frame[column]) if text not in number), 0)
    if column == kind and names is not None and np.isnan(as_numbers(frame[column])).any():
        text = frame[column][unknown] or ""
        raise FileError(
            f"{path}, line {frame.line[unknown]}: there is no {kind} {text!r} in the models; "
            f"{nearest(text, names)}known: {', '.join(names[:10])}{' …' if len(names) > 10 else ''}"
        )
    values = ids(frame, column, path)
    if (values >= count).any():
        i = int(np.argmax(values >= count))
        raise FileError(
            f"{path}, line {frame.line[i]}: {column} is {values[i]}; the models have {count} {kind}s, from 0"
        )
    return values
