"""What a belief's value rests on where nothing was seen: in words, for whoever reads a result."""

import numpy as np

from beliefbound.validation import BoolArray, IntArray

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
            f"nothing was observed in {len(blank)} of {len(observed)} states ({shown}): where episodes end there, say so "
            f"by terminal=[{shown}]"
        )
    return tuple(notes)
