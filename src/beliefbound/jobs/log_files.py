"""What can be asked of a file of steps, in words of the command line: the same for logs and for demonstrations."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from beliefbound.base.errors import ParameterError
from beliefbound.base.validation import FloatArray
from beliefbound.beliefs.from_log import state_id
from beliefbound.beliefs.log_priors import PRIORS
from beliefbound.logs.log import Log


@dataclass(frozen=True, kw_only=True, eq=False)
class LogFileOptions:
    """How a file of steps is read.

    Attributes:
      columns: `COLUMN=NAME`, which column of the file holds what.
      states, actions: a number, or names by commas.
      names: whether ids are names though they look like numbers.
      sort: whether rows are put in the order of episodes and steps first.
      keep_suspicious: whether rows that do not follow each other count as they stand.
    """

    columns: Sequence[str] | None = None
    states: str | None = None
    actions: str | None = None
    names: bool = False
    sort: bool = False
    keep_suspicious: bool = False

    @property
    def reading(self) -> dict[str, Any]:
        """As `read_log` and `read_demonstrations` are told."""
        return {
            "columns": column_mapping(self.columns),
            "states": size_of(self.states),
            "actions": size_of(self.actions),
            "names": self.names,
            "sort": self.sort,
            "keep_suspicious": self.keep_suspicious,
        }


def column_mapping(given: Sequence[str] | None) -> dict[str, str]:
    """Which column of a file holds what, from `COLUMN=NAME`."""
    mapping = {}
    for each in given or ():
        column, equals, name = each.partition("=")
        if not equals or not name:
            raise ParameterError(f"--column is {each!r}; give COLUMN=NAME, such as state=s")
        mapping[column] = name
    return mapping


def size_of(text: str | None) -> int | list[str] | None:
    """How many states or actions there are, or their names, from what was said."""
    if text is None:
        return None
    return int(text) if text.isdigit() else [name.strip() for name in text.split(",")]


def prior_of(text: str) -> Any:
    """A prior of the dynamics by name, or its concentration."""
    if text in ("suggest", *PRIORS):
        return text
    try:
        return float(text)
    except ValueError:
        choices = f"suggest, {', '.join(PRIORS)}"
        raise ParameterError(f"the prior is {text!r}; give {choices}, or a concentration above 0") from None


def start_of(names: Sequence[str] | None, log: Log) -> FloatArray | None:
    """Start states by name or number, equally likely, as a distribution `[s]`; `None` where nobody named any."""
    if not names:
        return None
    start = np.zeros(log.n_states)
    for name in names:
        start[state_id(log, name)] += 1.0 / len(names)
    return start
