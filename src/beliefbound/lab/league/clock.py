"""The time that an agent takes of the processor, without what numba takes to compile it or to load it from disk.

So the first step of an agent can be timed once, compiled or not: one that plans for minutes need not plan twice.

An agent that asks a server or another process takes little of this processor and is slow all the same. Where the
processor hardly worked, more than a busy machine explains, what counts is the time that passed. How long a thread was
ready and had no processor, Linux tells (`/proc/thread-self/schedstat`), and that is no part of it.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from numba.core.event import Listener, install_listener

Clock = Callable[[], float]

_BUSY = 4.0  # times slower: what other programs may do to one that works
_PAUSE = 0.1  # seconds: and for so long they may hold it up


def undelayed() -> float:
    """The time that passes, without what this thread waited for a processor, where the system says so."""
    try:
        with open("/proc/thread-self/schedstat", encoding="ascii") as file:
            delayed = int(file.read().split()[1]) * 1e-9
    except (OSError, ValueError, IndexError):
        delayed = 0.0
    return time.perf_counter() - delayed


class Spent:
    """A clock: processor time and, for stretches between two looks at it that were mostly waited, time that passed."""

    def __init__(self, processor: Clock = time.process_time, passing: Clock = undelayed) -> None:
        self._clocks = processor, passing
        self._last = processor(), passing()
        self._seconds = 0.0

    def __call__(self) -> float:
        processor, passing = (clock() for clock in self._clocks)
        worked, passed = processor - self._last[0], passing - self._last[1]
        self._last = processor, passing
        self._seconds += passed if passed > _BUSY * worked + _PAUSE else worked
        return self._seconds


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
def working_time(clock: Clock | None = None) -> Iterator[Clock]:
    """A clock, by default `Spent`, that stands still while numba compiles.

    >>> with working_time() as now:
    ...     began = now()
    ...     now() >= began
    True
    """
    clock = Spent() if clock is None else clock
    compiling = _Compiling(clock)
    with install_listener("numba:compiler_lock", compiling):
        yield lambda: clock() - compiling.seconds
