"""What `beliefbound plan` does: its words as arguments, the work, the files."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from beliefbound.base.errors import BeliefError, FileError, ParameterError
from beliefbound.base.interrupt import first_interrupt
from beliefbound.base.io.atomic import check_writable
from beliefbound.base.io.csv_table import numbers, read_table
from beliefbound.base.validation import FloatArray
from beliefbound.beliefs.from_log import action_id, state_id
from beliefbound.beliefs.log_priors import PRIORS
from beliefbound.logs import Log, read_log, read_minari
from beliefbound.report.from_log.plan import LogPlan, plan_log
from beliefbound.report.from_log.writing import write_plan

_EVERY = 10_000_000  # rows between two words about reading


def plan_file(
    source: str,
    out: Path,
    *,
    columns: Sequence[str] | None = None,
    states: str | None = None,
    actions: str | None = None,
    names: bool = False,
    keep_suspicious: bool = False,
    initial: Sequence[str] | None = None,
    terminal: Sequence[str] | None = None,
    prior: str = "suggest",
    known_rewards: Path | None = None,
    say: Callable[[str], object] = lambda text: None,
    stopping: Callable[[], object] = lambda: None,
    **choices: Any,
) -> tuple[LogPlan, Path]:
    """Read a log, plan, and write everything into `out`: `(what was found, the page)`.

    Words of the command line: `columns` are `COLUMN=NAME`; `states` and `actions` a number or names by commas;
    `initial` and `terminal` names or numbers of states; `known_rewards` a CSV file `state, action, reward`. Everything
    else is as for `plan_log`. Ctrl-C ends the search and writes what was found; a second one leaves at once and writes
    nothing.
    """
    check_writable(out)
    log = _read(source, columns, states, actions, names, keep_suspicious, say)
    start = None
    if initial:
        start = np.zeros(log.n_states)
        for name in initial:
            start[state_id(log, name)] += 1.0 / len(initial)
    with first_interrupt(stopping) as asked:
        found = plan_log(
            log,
            initial=start,
            terminal=[state_id(log, name) for name in terminal] if terminal else None,
            prior=_prior(prior),
            known=None if known_rewards is None else _known(known_rewards, log),
            stop=asked.is_set,
            say=say,
            **choices,
        )
    say("writing")
    return found, write_plan(found, out)


def _read(
    source: str,
    columns: Sequence[str] | None,
    states: str | None,
    actions: str | None,
    names: bool,
    keep_suspicious: bool,
    say: Callable[[str], object],
) -> Log:
    say(f"reading {source}")
    if source.startswith("minari:"):
        for_files: dict[str, object] = {"column": columns, "states": states, "actions": actions, "names": names}
        for name, value in (for_files | {"keep-suspicious": keep_suspicious}).items():
            if value:
                raise ParameterError(f"--{name} is for files; a Minari dataset says it itself")
        return read_minari(source.removeprefix("minari:"))
    mapping = {}
    for given in columns or ():
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
        states=_size(states),
        actions=_size(actions),
        names=names,
        keep_suspicious=keep_suspicious,
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
