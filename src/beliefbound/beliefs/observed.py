"""Observations: transitions as beliefs take them in, and what a value rests on where there were none."""

from typing import Any

import numpy as np

from beliefbound.base.errors import ObservationError
from beliefbound.base.validation import BoolArray, IntArray, check_ids

_SHOWN = 8


def prior_notes(observed: IntArray, uncertain: BoolArray) -> tuple[str, ...]:
    """Sentences about pairs that were never observed.

    Args:
      observed: `[s,a]`, how many transitions taught something about the pair.
      uncertain: `[s,a]`, pairs that there is something to learn about.

    >>> prior_notes(np.array([[3, 0], [0, 0]]), np.ones((2, 2), dtype=np.bool_))[0]
    '3 of 4 pairs of state and action were never observed: there the value rests on what was believed before'
    """
    unseen = uncertain & (observed == 0)
    if not unseen.any():
        return ()
    count, total = int(unseen.sum()), int(uncertain.sum())
    if count == total:
        return ("no transition was observed since the belief was made: its value is that of the prior",)
    notes = [
        f"{count} of {total} pairs of state and action were never observed: there the value rests on what was believed "
        f"before"
    ]
    blank = np.flatnonzero(uncertain.any(axis=1) & (unseen == uncertain).all(axis=1))
    if len(blank):
        shown = ", ".join(map(str, blank[:_SHOWN])) + (", …" if len(blank) > _SHOWN else "")
        notes.append(
            f"nothing was observed in {len(blank)} of {len(observed)} states ({shown}): where episodes end there, say "
            f"so by terminal=[{shown}]"
        )
    return tuple(notes)


def check_log(
    state: Any, action: Any, next_state: Any, n_states: int, n_actions: int
) -> tuple[IntArray, IntArray, IntArray]:
    """`(states, actions, next states)` of one transition or of several, as ids `[i]`."""
    return (
        np.atleast_1d(check_ids(state, n_states, "state", ObservationError)),
        np.atleast_1d(check_ids(action, n_actions, "action", ObservationError)),
        np.atleast_1d(check_ids(next_state, n_states, "next_state", ObservationError)),
    )


def check_times(times: Any, count: int) -> IntArray:
    """How often each of `count` transitions was seen: whole numbers `[i]`, all of them 1 where nothing was said."""
    if times is None:
        return np.ones(count, dtype=np.int64)
    often = np.atleast_1d(check_ids(times, np.iinfo(np.int64).max, "times", ObservationError))
    if often.shape != (count,):
        raise ObservationError(f"times has shape {often.shape}; expected ({count},), one number per transition")
    return often


def check_lengths(states: Any, actions: Any, rewards: Any, arrivals: Any) -> None:
    """Four rows of the same length."""
    shapes = [np.shape(x) for x in (states, actions, rewards, arrivals)]
    if any(len(shape) != 1 for shape in shapes) or len(set(shapes)) > 1:
        told = ", ".join(str(shape[0] if len(shape) == 1 else shape) for shape in shapes)
        raise ObservationError(
            f"states, actions, rewards and next states have lengths {told}; give one number each, or arrays of equal "
            f"length"
        )
