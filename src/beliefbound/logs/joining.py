"""Logs of one world as one: the states and actions of all, and the transitions of all."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from beliefbound.base.errors import FileError
from beliefbound.base.validation import IntArray, frozen
from beliefbound.logs.log import Cells, Log


class Joined(NamedTuple):
    """Both logs as one, and where the states `[s]` and actions `[a]` of the first are in it."""

    log: Log
    states: IntArray
    actions: IntArray


def joined(first: Log, second: Log) -> Joined:
    """Transitions of both; episodes begin as those of the first.

    Raises:
      FileError: one log has names where the other has numbers, or a state ends episodes in one and is left in the
        other.

    >>> from beliefbound.logs import log_of
    >>> one = log_of(["a", "b"], ["go", "go"], [0.0, 0.0], ["b", "a"])
    >>> two = log_of(["a", "b"], ["go", "hop"], [0.0, 0.0], ["b", "c"])
    >>> both = joined(one, two).log
    >>> both.states, both.actions, both.n_rows
    (('a', 'b', 'c'), ('go', 'hop'), 4)
    """
    s_names, n_states, s_first, s_second = _merged(first, second, "state")
    a_names, n_actions, a_first, a_second = _merged(first, second, "action")
    parts = ((first, s_first, a_first), (second, s_second, a_second))
    cells = [
        log.cells._replace(state=s[log.cells.state], action=a[log.cells.action], next_state=s[log.cells.next_state])
        for log, s, a in parts
    ]
    terminal, starts = np.zeros(n_states, dtype=np.bool_), np.zeros(n_states, dtype=np.int64)
    for log, s, _ in parts:
        terminal[s[log.terminal]] = True
    starts[s_first] = first.starts
    both = Cells(*(frozen(np.concatenate(column)) for column in zip(*cells, strict=True)))
    left = np.flatnonzero(terminal[both.state])
    if len(left):
        state = int(both.state[left[0]])
        name = str(state) if s_names is None else s_names[state]
        raise FileError(
            f"state {name[:60]!r} ends episodes in one of {first.source} and {second.source} and is left in the other; "
            f"mark the same steps as terminated in both"
        )
    log = replace(
        first,
        n_states=n_states,
        n_actions=n_actions,
        cells=both,
        values=None,
        terminal=frozen(terminal),
        starts=frozen(starts),
        states=s_names,
        actions=a_names,
        n_rows=first.n_rows + second.n_rows,
        ended=first.ended or second.ended,
        episodes=None,
        notes=(*first.notes, *(f"{second.source}: {note}" for note in second.notes)),
        source=f"{first.source} and {second.source}",
    )
    return Joined(log, s_first, a_first)


def all_joined(logs: Sequence[Log]) -> tuple[Log, list[tuple[IntArray, IntArray]]]:
    """Several logs as one, as `joined`, and where the states `[s]` and actions `[a]` of each are in it.

    >>> from beliefbound.logs import log_of
    >>> logs = [log_of(["a"] * 2, ["go"] * 2, [0.0] * 2, ["a", x]) for x in ("a", "b", "c")]
    >>> whole, places = all_joined(logs)
    >>> whole.states, [states.tolist() for states, _ in places]
    (('a', 'b', 'c'), [[0], [0, 1], [0, 2]])
    """
    whole = logs[0]
    for log in logs[1:]:
        whole = joined(whole, log).log
    return whole, [(_merged(whole, log, "state")[3], _merged(whole, log, "action")[3]) for log in logs]


def _merged(first: Log, second: Log, kind: str) -> tuple[tuple[str, ...] | None, int, IntArray, IntArray]:
    """Names, if there are any, the number of states or actions, and where those of each log are; a state that a log
    adds for what is over is the last."""
    names = [log.states if kind == "state" else log.actions for log in (first, second)]
    sizes = [log.n_states if kind == "state" else log.n_actions for log in (first, second)]
    if (names[0] is None) != (names[1] is None):
        raise FileError(
            f"{kind}s are {'numbers' if names[0] is None else 'names'} in {first.source} and "
            f"{'numbers' if names[1] is None else 'names'} in {second.source}; say --names where numbers are names"
        )
    over = [int(kind == "state" and log.ended) for log in (first, second)]
    last = max(over)
    if names[0] is None or names[1] is None:
        n = max(size - one for size, one in zip(sizes, over, strict=True))
        places = [np.append(np.arange(size - one), [n] * one) for size, one in zip(sizes, over, strict=True)]
        return None, n + last, places[0].astype(np.int64), places[1].astype(np.int64)
    own = [each[: len(each) - one] for each, one in zip((names[0], names[1]), over, strict=True)]
    known = list(dict.fromkeys((*own[0], *own[1])))
    place = {name: i for i, name in enumerate(known)}
    if last:
        known.append((names[0] if over[0] else names[1])[-1])
    found = [
        np.array([*(place[name] for name in each), *([len(place)] * one)], dtype=np.int64)
        for each, one in zip(own, over, strict=True)
    ]
    return tuple(known), len(known), found[0], found[1]
