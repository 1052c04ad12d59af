"""Rungs: what a bracket does next, whatever the time.

The work behind a bracket is one fixed sequence of small pieces, its *rungs*. What a rung does and how long it is follow
from the problem, the seed and the numbers found on the rungs before – never from the clock, nor from the number of
threads. The clock, a target for the gap, or somebody who asks to stop decide *between* rungs whether to go on. So the
first `k` rungs give the same certificate, bit for bit, whoever takes them and however long they take: `effort=k`.

A ladder is a generator: `next` takes one rung, and what it yields are the bounds found there. It may read
the numbers of the `Log` (its bounds, the error of the next attempt), and nothing that has to do with time.

    finite beliefs   `bounds.finite.search.finite_rungs(task, rng, threads, log)`
    others           `bounds.dirichlet.sampler.dirichlet_rungs(task, rng, threads, log)`

How long. Work is counted in operations (`OPERATIONS` take about a second on one core). A rung takes `RUNG` of them, or
the share `GROWTH` of all that came before where that is more: a time limit is then kept within a tenth of itself, or
within a few tenths of a second where it is short. Where a step cannot be divided and is longer, an empty rung comes
before it, and the log says what is ahead: it is not begun where there is no time left for it. The first bounds are
found whatever the limit is.
"""

from collections.abc import Generator, Iterator, Sequence
from typing import TypeVar

from beliefbound.bounds.bound import Bound
from beliefbound.bounds.log import Log

T = TypeVar("T")
Rungs = Iterator[Sequence[Bound]]
Part = Generator[Sequence[Bound], None, T]  # a part of a ladder that has a result, for `yield from`

OPERATIONS = 1e9  # multiply-adds in about a second, in loops like those of the kernels
RUNG = 0.05 * OPERATIONS
GROWTH = 0.04  # of all the work before


def climb(rungs: Rungs, log: Log, *, effort: int | None = None) -> None:
    """Take rungs, and note their bounds, until `effort` of them are done, the log says that it is enough, or there are
    none left. With an effort the clock does not count, only a target does. Both sides have a bound in the end."""
    for bounds in rungs:
        log.add(*bounds)
        log.effort += 1
        if log.lower is None or log.upper is None:
            continue
        if log.reached or log.stopped or (log.left <= log.ahead if effort is None else log.effort >= effort):
            return


def finish(part: Part[T]) -> T:
    """The result of a part of a ladder, taken to its end."""
    while True:
        try:
            next(part)
        except StopIteration as end:
            result: T = end.value
            return result


class Meter:
    """Work done so far, in operations, and whether it fills a rung."""

    def __init__(self) -> None:
        self.done, self._began = 0.0, 0.0

    @property
    def left(self) -> float:
        """Operations until the rung is full; not below 0."""
        return max(0.0, self._began + max(RUNG, GROWTH * self._began) - self.done)

    def add(self, operations: float) -> None:
        """Count work."""
        self.done += operations

    def full(self) -> bool:
        """Whether the rung is full: it is to be yielded, and the next one begins."""
        if self.left > 0.0:
            return False
        self._began = self.done
        return True


class Account(Meter):
    """The work of one of several searches that share a ladder: rungs are the ladder's, `done` is its own."""

    def __init__(self, whole: Meter) -> None:
        super().__init__()
        self._whole = whole

    @property
    def left(self) -> float:
        """Operations until the ladder's rung is full."""
        return self._whole.left

    def add(self, operations: float) -> None:
        """Count work, for both."""
        self.done += operations
        self._whole.add(operations)

    def full(self) -> bool:
        """Whether the ladder's rung is full."""
        return self._whole.full()
