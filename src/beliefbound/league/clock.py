"""The time that an agent takes of the processor, without what numba takes to compile it or to load it from disk.

So the first step of an agent can be timed once, compiled or not: one that plans for minutes need not plan twice.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from numba.core.event import Listener, install_listener

Clock = Callable[[], float]


class _Compiling(Listener):  # type: ignore[misc]
    """How long numba's compiler was at work; it may enter itself again."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._depth, self._began = 0, 0.0
        self.seconds = 0.0

    def on_start(self, event: Any) -> None:
        if self._depth == 0:
            self._began = self._clock()
        self._depth += 1

    def on_end(self, event: Any) -> None:
        self._depth -= 1
        if self._depth == 0:
            self.seconds += self._clock() - self._began


@contextmanager
def working_time(clock: Clock = time.process_time) -> Iterator[Clock]:
    """A clock that stands still while numba compiles.

    >>> with working_time() as now:
    ...     began = now()
    ...     now() >= began
    True
    """
    compiling = _Compiling(clock)
    with install_listener("numba:compiler_lock", compiling):
        yield lambda: clock() - compiling.seconds
