"""The steps of a log one after the other (`Episodes`), for what counts cannot tell: what an episode paid.

Steps are kept until `MOST_STEPS` of them are there, and then to the end of the episode that is going on. So how many
episodes are kept depends on what happened before and on nothing later: what holds at all times for the first `n`
episodes holds for those that are kept.
"""

import numpy as np

from beliefbound.base.tables import pl
from beliefbound.base.validation import IntArray, frozen
from beliefbound.logs.log import Episodes

MOST_STEPS = 1_000_000  # some 40 megabytes
_LONGEST = 4 * MOST_STEPS  # steps of an episode that goes on and on: then nothing is kept


class Keeper:
    """Blocks of rows in, steps out."""

    def __init__(self) -> None:
        self._parts: list[pl.DataFrame] = []
        self._rows = 0
        self._open = True

    def add(self, frame: pl.DataFrame, begins: pl.Series) -> None:
        """Rows of a block, and which of them begin an episode."""
        if not self._open:
            return
        if self._rows >= MOST_STEPS and begins.any():
            until = begins.arg_max() or 0
            frame, begins, self._open = frame.head(until), begins.head(until), False
        wanted = ["state", "action", "next_state", "terminated", "reward", "propensity"]
        self._parts.append(frame.select([x for x in wanted if x in frame.columns]).with_columns(begins.alias("begins")))
        self._rows += len(frame)
        if self._rows > _LONGEST:
            self._parts, self._open = [], False

    def rows(self) -> pl.DataFrame | None:
        """Everything kept; `None`: nothing."""
        return pl.concat(self._parts) if self._parts else None


def episodes_of(rows: pl.DataFrame, state: IntArray, action: IntArray, next_state: IntArray) -> Episodes:
    """Steps whose ids are known."""
    chance = rows["propensity"].to_numpy() if "propensity" in rows.columns else None
    return Episodes(
        frozen(np.flatnonzero(rows["begins"].to_numpy())),
        frozen(state),
        frozen(action),
        frozen(next_state),
        frozen(rows["reward"].to_numpy()),
        None if chance is None else frozen(chance),
    )
