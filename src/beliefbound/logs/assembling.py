"""From counts to a `Log`: ids or names, sizes, and where episodes end."""

import numpy as np

from beliefbound.base.errors import FileError, ParameterError
from beliefbound.base.tables import pl
from beliefbound.base.validation import IntArray, frozen
from beliefbound.logs.counting import FAULTS, Counter
from beliefbound.logs.episodes import episodes_of
from beliefbound.logs.log import ENDED, Cells, Episodes, Log

MOST_PAIRS = 50_000_000  # of a state and an action


def assemble(counter: Counter, source: str, *, keep_suspicious: bool = False) -> Log:
    """The log of everything counted.

    Raises:
      FileError: there are fewer than two rows, or rows that do not follow each other.
    """
    if counter.n_rows < 2:
        many = "no rows" if counter.n_rows == 0 else "1 row"
        raise FileError(f"{source}, row {counter.n_rows}: the log has {many}; there is nothing to learn a policy from")
    notes = _faults(counter, source, keep_suspicious)
    table, starts = counter.cells(), counter.initial()
    s_names, n_states = _universe(table, ("state", "next_state"), counter, source)
    a_names, n_actions = _universe(table, ("action",), counter, source)
    if n_states * n_actions > MOST_PAIRS:
        raise FileError(
            f"{source}: {n_states:,} states and {n_actions:,} actions are {n_states * n_actions:,} pairs, too many; "
            f"number states and actions from 0 without gaps, or say --names"
        )
    state, target = (numbers_of(table[name], s_names) for name in ("state", "next_state"))
    action = numbers_of(table["action"], a_names)
    ended, count = table["terminated"].to_numpy(), table["count"].to_numpy()
    terminal, added = np.zeros(n_states, dtype=np.bool_), False
    ends = np.unique(target[ended])
    live = np.union1d(state, target[~ended])
    if len(np.intersect1d(ends, live)):
        target = np.where(ended, n_states, target)
        terminal, added, n_states = np.append(terminal, True), True, n_states + 1
        if s_names is not None:
            s_names = (*s_names, _free(ENDED, s_names))
        notes.append(
            "episodes also go on from states that terminated steps lead to: being over is kept apart, as one more state"
        )
    else:
        terminal[ends] = True
    begins = np.zeros(n_states, dtype=np.int64)
    begins[numbers_of(starts["state"], s_names)] = starts["count"].to_numpy()
    if not counter.columns.has("episode"):
        notes.append("there is no column 'episode': an episode is taken to begin wherever a row does not continue")
    if not counter.columns.has("terminated"):
        notes.append(
            "there is no column 'terminated': no state is taken to end an episode unless you name it (terminal=…)"
        )
    total = table["total"].to_numpy()
    cells = Cells(
        state=state,
        action=action,
        next_state=target,
        reward=table["reward"].to_numpy() if counter.values else total / count,
        times=count,
        squares=table["squares"].to_numpy(),
        least=table["least"].to_numpy(),
        most=table["most"].to_numpy(),
        place=table["place"].to_numpy() / count,
        place_squares=table["place_squares"].to_numpy() / count,
    )
    cells = Cells(*(frozen(np.ascontiguousarray(x)) for x in cells))
    return Log(
        n_states=n_states,
        n_actions=n_actions,
        cells=cells,
        values=frozen(np.unique(cells.reward)) if counter.values else None,
        terminal=frozen(terminal),
        starts=frozen(begins),
        states=s_names,
        actions=a_names,
        n_rows=counter.n_rows,
        n_episodes=counter.n_episodes,
        n_terminated=int(count[ended].sum()),
        n_truncated=counter.n_truncated,
        ended=added,
        episodes=None if counter.faults else _steps(counter, s_names, a_names, n_states - 1 if added else None),
        notes=tuple(notes),
        source=source,
    )


def _steps(
    counter: Counter, s_names: tuple[str, ...] | None, a_names: tuple[str, ...] | None, over: int | None
) -> Episodes | None:
    """The steps that were kept; `over`: the state that was added for terminated ones."""
    rows = counter.kept.rows()
    if rows is None:
        return None
    target = numbers_of(rows["next_state"], s_names)
    if over is not None:
        target = np.where(rows["terminated"].to_numpy(), over, target)
    return episodes_of(rows, numbers_of(rows["state"], s_names), numbers_of(rows["action"], a_names), target)


def _faults(counter: Counter, source: str, keep: bool) -> list[str]:
    """Sentences about rows that do not follow each other; an error unless they are to be kept."""
    notes = []
    for fault in sorted(counter.faults.values(), key=lambda fault: fault.row):
        if not keep:
            shuffled = counter.columns.has("t") and fault.kind in ("missing step", "split episode", "broken episode")
            order = " If rows are not in order, say --sort (sort=True), and t puts them so." if shuffled else ""
            raise FileError(
                f"{source}, row {fault.row}, column {fault.column!r}: {fault.kind}: {FAULTS[fault.kind][1]} "
                f"({fault.rows:,} such rows).{order} Correct the file, or say --keep-suspicious to count rows as they "
                f"stand"
            )
        notes.append(
            f"{fault.rows:,} rows are suspicious: {fault.kind}, first in row {fault.row}; counted as they stand"
        )
    return notes


def _universe(
    table: pl.DataFrame, columns: tuple[str, ...], counter: Counter, source: str
) -> tuple[tuple[str, ...] | None, int]:
    """Names, if ids are names, and how many there are."""
    kind = "action" if columns == ("action",) else "state"
    seen = pl.concat([table[name].alias(kind) for name in columns]).unique().sort()
    declared = counter.columns.declared[kind]
    if declared is None:
        return (tuple(seen.to_list()), len(seen)) if counter.columns.named[kind] else (None, int(seen[-1]) + 1)
    if isinstance(declared, int):
        if counter.columns.named[kind]:
            raise ParameterError(f"{kind}s of {source} are names: declare them by name, not by their number")
        return None, declared
    return tuple(declared), len(declared)


def numbers_of(values: pl.Series, names: tuple[str, ...] | None) -> IntArray:
    """Ids of states or actions, from ids or names."""
    if names is None or values.dtype.is_integer():
        return values.to_numpy().astype(np.int64)
    return values.cast(pl.Enum(names)).to_physical().to_numpy().astype(np.int64)


def _free(name: str, taken: tuple[str, ...]) -> str:
    while name in taken:
        name += "'"
    return name
