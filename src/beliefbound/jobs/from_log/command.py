"""What `beliefbound plan` does: its words as options, the work, the files."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from beliefbound.base.errors import BeliefError, FileError, ParameterError
from beliefbound.base.interrupt import first_interrupt
from beliefbound.base.io.atomic import check_writable
from beliefbound.base.io.csv_table import numbers, read_table
from beliefbound.base.options import chosen
from beliefbound.base.validation import FloatArray
from beliefbound.beliefs.from_log import action_id, state_id
from beliefbound.beliefs.log_priors import PRIORS
from beliefbound.bounds.record import TracePoint
from beliefbound.jobs.from_log.plan import PlanOptions, plan_of
from beliefbound.jobs.from_log.writing import write_plan
from beliefbound.logs import Log, read_log, read_minari
from beliefbound.report.from_log.result import LogPlan

_EVERY = 10_000_000  # rows between two words about reading


@dataclass(frozen=True, kw_only=True, eq=False)
class PlanFileOptions(PlanOptions):
    """What can be asked of `beliefbound plan`, in words of the command line.

    Attributes:
      columns: `COLUMN=NAME`, which column of the file holds what.
      states, actions: a number, or names by commas.
      names: whether ids are names though they look like numbers.
      sort: whether rows are put in the order of episodes and steps first.
      keep_suspicious: whether rows that do not follow each other count as they stand.
      known_rewards: a CSV file `state, action, reward`.
      initial, terminal: names or numbers of states; `prior`: its name, or a number.
      others: as for `plan_log`.
    """

    columns: Sequence[str] | None = None
    states: str | None = None
    actions: str | None = None
    names: bool = False
    sort: bool = False
    keep_suspicious: bool = False
    known_rewards: Path | None = None

    def of_log(self, log: Log) -> PlanOptions:
        """What the words mean for a log."""
        start = None
        if self.initial:
            start = np.zeros(log.n_states)
            for name in self.initial:
                start[state_id(log, name)] += 1.0 / len(self.initial)
        meant = {
            "initial": start,
            "terminal": [state_id(log, name) for name in self.terminal] if self.terminal else None,
            "prior": _prior(str(self.prior)),
            "known": None if self.known_rewards is None else _known(self.known_rewards, log),
        }
        return chosen(PlanOptions, vars(self) | meant)


def plan_file(
    source: str,
    out: Path,
    options: PlanFileOptions,
    *,
    watch: Callable[[TracePoint], object] | None = None,
    say: Callable[[str], object] = lambda text: None,
    stopping: Callable[[], object] = lambda: None,
) -> tuple[LogPlan, Path]:
    """Read a log, plan, and write everything into `out`: `(what was found, the page)`. Ctrl-C ends the search and
    writes what was found; a second one leaves at once and writes nothing."""
    check_writable(out)
    log = _read(source, options, say)
    with first_interrupt(stopping) as asked:
        found = plan_of(log, options.of_log(log), watch=watch, stop=asked.is_set, say=say)
    say("writing")
    return found, write_plan(found, out)


def _read(source: str, options: PlanFileOptions, say: Callable[[str], object]) -> Log:
    say(f"reading {source}")
    if source.startswith("minari:"):
        for_files = {"column": options.columns} | {
            name: getattr(options, name) for name in ("states", "actions", "names", "sort", "keep_suspicious")
        }
        for name, value in for_files.items():
            if value:
                raise ParameterError(f"--{name.replace('_', '-')} is for files; a Minari dataset says it itself")
        return read_minari(source.removeprefix("minari:"))
    mapping = {}
    for given in options.columns or ():
        column, equals, name = given.partition("=")
        if not equals or not name:
            raise ParameterError(f"--column is {given!r}; give COLUMN=NAME, such as state=s")
        mapping[column] = name
    told = 0

    def progress(rows: int) -> None:
        nonlocal told
        if rows - told >= _EVERY:
            told = rows
            say(f"{rows:,} rows read")

    return read_log(
        source,
        columns=mapping,
        states=_size(options.states),
        actions=_size(options.actions),
        names=options.names,
        sort=options.sort,
        keep_suspicious=options.keep_suspicious,
        progress=progress,
    )


def _known(file: Path, log: Log) -> FloatArray:
    """Rewards `[s,a]` of a table; NaN for pairs that it does not have."""
    frame = read_table(file, ["state", "action", "reward"])
    rewards, lines = numbers(frame, "reward", file)
    known = np.full((log.n_states, log.n_actions), np.nan)
    for line, state, action, reward in zip(lines, frame["state"], frame["action"], rewards, strict=True):
        try:
            at = state_id(log, str(state)), action_id(log, str(action))
        except BeliefError as fault:
            raise FileError(f"{file}, line {line}: {fault}") from None
        if not np.isnan(known[at]):
            raise FileError(f"{file}, line {line}: state {state}, action {action} is given more than once")
        known[at] = reward
    return known


def _size(text: str | None) -> int | list[str] | None:
    if text is None:
        return None
    return int(text) if text.isdigit() else [name.strip() for name in text.split(",")]


def _prior(text: str) -> Any:
    if text in ("suggest", *PRIORS):
        return text
    try:
        return float(text)
    except ValueError:
        choices = f"suggest, {', '.join(PRIORS)}"
        raise ParameterError(f"the prior is {text!r}; give {choices}, or a concentration above 0") from None
