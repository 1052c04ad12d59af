"""`read_demonstrations`: steps of people who know what they do, without rewards; and more transitions by others.

A log (`logs.columns`) without the column `reward`; one more column, `demonstrator`, says who it was where there are
several.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from beliefbound.base.errors import FileError, ParameterError
from beliefbound.base.io.paths import as_path
from beliefbound.base.tables import pl
from beliefbound.base.validation import BoolArray, IntArray, as_flag, frozen, shown
from beliefbound.logs.assembling import assemble, numbers_of
from beliefbound.logs.blocks import blocks
from beliefbound.logs.columns import Columns, Size
from beliefbound.logs.counting import Counter
from beliefbound.logs.files import as_size
from beliefbound.logs.joining import joined
from beliefbound.logs.log import Log
from beliefbound.logs.tables import frame_of, is_table

WHO = "demonstrator"
_MOST_DEMONSTRATORS = 100


@dataclass(frozen=True, eq=False)
class Demonstrations:
    """What was demonstrated, counted.

    Attributes:
      log: all transitions, those of others too; rewards are not known, and 0.
      visits: `[k,s,a]`, how often each demonstrator chose what.
      demonstrators: their names.
      source: where the demonstrations came from.
    """

    log: Log = field(repr=False)
    visits: IntArray = field(repr=False)
    demonstrators: tuple[str, ...]
    source: str

    def __repr__(self) -> str:
        return f"Demonstrations({self.n_steps:,} steps, {self.log.n_states} states, {self.log.n_actions} actions)"

    @property
    def n_steps(self) -> int:
        """How many steps were demonstrated."""
        return int(self.visits.sum())

    @property
    def n_demonstrators(self) -> int:
        """How many people showed something."""
        return len(self.demonstrators)

    @property
    def never_left(self) -> BoolArray:
        """`[s]`: states in which nobody showed what to do, though episodes do not end there."""
        left: BoolArray = (self.visits.sum(axis=(0, 2)) == 0) & ~self.log.terminal
        return left


def read_demonstrations(
    path: Any,
    *,
    transitions: Any = None,
    columns: Mapping[str, str] | None = None,
    states: Size = None,
    actions: Size = None,
    names: bool = False,
    sort: bool = False,
    keep_suspicious: bool = False,
) -> Demonstrations:
    """Count the steps of a CSV or Parquet file of demonstrations, or of a table in memory.

    Args:
      path: a table with the columns `state, action, next_state` and, if it has them, `demonstrator, episode, t,
        terminated, truncated`.
      transitions: a log of what others did in the same world, who need not know what is good: it teaches how the world
        works. Rewards in it are not used.
      columns, states, actions, names, sort, keep_suspicious: as for `read_log`; `columns` may name `demonstrator`.

    Raises:
      FileError: with file, row and column; also where the demonstrations have rewards.

    >>> read_demonstrations({"state": [0, 1], "action": [1, 0], "next_state": [1, 0]}).visits.tolist()
    [[[0, 1], [1, 0]]]
    """
    knobs: dict[str, Any] = {"states": as_size(states, "states"), "actions": as_size(actions, "actions")}
    knobs |= {"names": as_flag(names, "names"), "sort": as_flag(sort, "sort"), "keep": as_flag(keep_suspicious, "keep")}
    log, rows = _read(path, columns, **knobs)
    demonstrators: tuple[str, ...] = ("the demonstrator",)
    ids = np.zeros(len(rows), dtype=np.int64)
    if WHO in rows.columns:
        who, ids = np.unique(rows[WHO].to_numpy(), return_inverse=True)
        demonstrators = tuple(map(str, who))
    if len(demonstrators) > _MOST_DEMONSTRATORS:
        raise FileError(
            f"{log.source}, column {WHO!r}: there are {len(demonstrators)} demonstrators, more than "
            f"{_MOST_DEMONSTRATORS}; name one column that says who acted, not which row it is"
        )
    s, a = numbers_of(rows["state"], log.states), numbers_of(rows["action"], log.actions)
    source = log.source
    if transitions is not None:
        other, _ = _read(transitions, columns, rewards=True, **knobs)
        log, s_place, a_place = joined(log, other)
        s, a = s_place[s], a_place[a]
    if log.n_actions < 2:
        raise FileError(
            f"{source}: every step takes the action {log.action_name(0)[:40]!r}; where there is nothing to choose, "
            f"choices say nothing about what is wanted. If there were others, name them: --actions a,b (actions=…)"
        )
    visits = np.zeros((len(demonstrators), log.n_states, log.n_actions), dtype=np.int64)
    np.add.at(visits, (ids, s, a), 1)
    return Demonstrations(log, frozen(visits), demonstrators, source)


def _read(
    given: Any,
    columns: Mapping[str, str] | None,
    *,
    states: Size,
    actions: Size,
    names: bool,
    sort: bool,
    keep: bool,
    rewards: bool = False,
) -> tuple[Log, pl.DataFrame]:
    """A log whose rewards are 0, and its rows: who, where, what."""
    if columns is not None and not (isinstance(columns, Mapping) and all(isinstance(x, str) for x in columns.values())):
        raise ParameterError(f"columns is {shown(columns)}; give names, such as {{'state': 's'}}")
    table, mapping = is_table(given), dict(columns or {})
    file, who = Path("the table") if table else as_path(given), mapping.pop(WHO, None)
    paid = mapping.pop("reward", "reward")
    found = Columns(file, mapping, names=names, states=states, actions=actions)
    counter, rows = Counter(found, sort=sort), []
    for first, block in [(1, frame_of(given))] if table else blocks(file):
        header = {name.strip(): name for name in block.columns}
        if paid in header and not rewards:
            raise FileError(
                f"{file}, column {paid!r}: these demonstrations have rewards, which say more than choices do: "
                f"beliefbound plan uses them (plan_log). To learn from the choices alone, leave the column out"
            )
        if who is not None and who not in header and not rewards:
            raise FileError(f"{file}, row 0: there is no column {who!r}; its columns are {', '.join(header)[:200]}")
        named = header.get(WHO if who is None else who)
        block = block.drop(header[paid]) if paid in header else block
        block = block.with_columns(pl.lit(0.0).alias("reward"))
        counter.add(block, first)
        kept = found.read(block, first).select("state", "action")
        if named is not None:
            if block[named].null_count():
                i = first + (block[named].is_null().arg_max() or 0)
                raise FileError(f"{file}, row {i}, column {named!r}: it is empty; every step was shown by somebody")
            kept = kept.with_columns(block[named].cast(pl.String).str.strip_chars().alias(WHO))
        rows.append(kept)
    counter.finish()
    return assemble(counter, str(file), keep_suspicious=keep), pl.concat(rows) if rows else pl.DataFrame()
