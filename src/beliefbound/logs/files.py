"""`read_log`: a file of transitions, of any length, or a table in memory, as counts."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from beliefbound.base.errors import ParameterError
from beliefbound.base.io.paths import as_path
from beliefbound.base.validation import as_flag, check_count, check_function, check_names, check_sequence, shown
from beliefbound.logs.assembling import MOST_PAIRS, assemble
from beliefbound.logs.blocks import ahead, blocks
from beliefbound.logs.columns import Columns, Size
from beliefbound.logs.counting import Counter
from beliefbound.logs.log import Log
from beliefbound.logs.tables import frame_of, is_table


def read_log(
    path: Any,
    *,
    columns: Mapping[str, str] | None = None,
    states: Size = None,
    actions: Size = None,
    names: bool = False,
    sort: bool = False,
    keep_suspicious: bool = False,
    progress: Callable[[int], object] | None = None,
) -> Log:
    """Count the transitions of a CSV or Parquet file, or of a table in memory.

    Args:
      path: a table with the columns `state, action, reward, next_state` and, if it has them, `episode, t, terminated,
        truncated, propensity` (the chance with which the action was taken); other columns are ignored. A file: Parquet,
        or text with cells separated by commas, semicolons, tabs or bars, also compressed by gzip. Or a DataFrame of
        polars or pandas, or a dictionary of columns.
      columns: the names that these columns have in the file, where they differ: `{"state": "s"}`.
      states, actions: how many there are, or their names in order; default: those that occur. Ids that are names are
        numbered in alphabetical order.
      names: take ids for names though they look like numbers.
      sort: put rows in the order of `episode` and `t` first; the whole log is then held in memory.
      keep_suspicious: count rows that do not follow each other as they stand, and say so, instead of refusing the file.
      progress: told how many rows were read, now and then.

    Raises:
      ParameterError: an argument is not what it should be.
      FileError: with file, row and column: something in the file is not a log.

    >>> import tempfile
    >>> rows = ["state,action,reward,next_state,terminated", "dry,wait,0,wet,false", "wet,sow,1.5,dry,true"]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(f"{folder}/log.csv").write_text("\\n".join(rows))
    ...     log = read_log(f"{folder}/log.csv")
    >>> log, log.states, log.reward_range
    (Log(2 rows, 3 states, 2 actions), ('dry', 'wet', '(terminated)'), (0.0, 1.5))
    """
    table = is_table(path)
    file = Path("the table") if table else as_path(path)
    names, keep_suspicious = as_flag(names, "names"), as_flag(keep_suspicious, "keep_suspicious")
    if columns is not None and not (isinstance(columns, Mapping) and all(isinstance(x, str) for x in columns.values())):
        raise ParameterError(f"columns is {shown(columns)}; give names, such as {{'state': 's'}}")
    check_function(progress, "progress")
    sizes = {"states": as_size(states, "states"), "actions": as_size(actions, "actions")}
    counter = Counter(Columns(file, columns, names=names, **sizes), sort=as_flag(sort, "sort"))
    for first, block in [(1, frame_of(path))] if table else ahead(blocks(file)):
        counter.add(block, first)
        if progress is not None:
            progress(counter.n_rows)
    counter.finish()
    return assemble(counter, str(file), keep_suspicious=keep_suspicious)


def as_log(given: Any) -> Any:
    """A log from a table in memory, or from a file; anything else as it is.

    >>> as_log({"state": [0, 1], "action": [0, 0], "reward": [0.0, 1.0], "next_state": [1, 0]})
    Log(2 rows, 2 states, 1 actions)
    """
    return read_log(given) if isinstance(given, str | Path) or is_table(given) else given


def as_size(declared: Size, kind: str) -> Size:
    """A number, or distinct names."""
    if declared is None or isinstance(declared, int | np.integer):
        number = None if declared is None else check_count(declared, f"number of {kind}")
        if number is not None and number > MOST_PAIRS:
            raise ParameterError(f"the number of {kind} is {number}; give at most {MOST_PAIRS}")
        return number
    names = check_sequence(declared, kind, ParameterError, fix="give a number, or a list of names")
    return check_names(names, len(names), kind.removesuffix("s"), ParameterError)
