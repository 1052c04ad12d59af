"""Steps of work: what a bracket does next, whatever the time.

The work behind a bracket is one fixed sequence of small *steps*. What a step does and how long it is follow from the
problem, the seed and the numbers found before – never from the clock, nor from the number of threads. The clock, a
target for the gap, or somebody who asks to stop decide *between* steps whether to go on. So the first `k` steps give
the same certificate, bit for bit, whoever takes them and however long they take: `effort=k`.

A sequence of steps is a generator: `next` takes one. The bounds that it finds go into the `Record`, whose numbers it
may read.

    finite beliefs   `bounds.finite.search.finite_steps(task, rng, threads, record)`
    that count       `bounds.dirichlet.steps.dirichlet_steps(task, rng, threads, record)`
    others           `bounds.drawn.steps.drawn_steps(task, rng, threads, record)`

How long. Work is counted in operations (`OPERATIONS` take about a second on one core). A step takes `STEP_WORK` of
them, or the share `GROWTH` of all that came before where that is more: a time limit is then kept within a tenth of
itself, or within a few tenths of a second where it is short. Where a piece of work cannot be divided and is longer, an
empty step comes before it, and the record says what is ahead: it is not begun where there is no time left for it. The
first bounds are found whatever the limit is.
"""

from collections.abc import Callable, Generator, Iterator
from typing import NamedTuple, TypeVar

from beliefbound.bounds.record import Record

T = TypeVar("T")
Steps = Iterator[None]
Stepwise = Generator[None, None, T]  # steps that end with a result, for `yield from`

OPERATIONS = 1e9  # multiply-adds in about a second, in loops like those of the kernels
STEP_WORK = 0.05 * OPERATIONS  # of a step: some 50 ms, so that clock and caller are asked often enough
CALL = 20_000  # operations, in time, of a call from Python
GROWTH = 0.04  # of all the work before


class Limits(NamedTuple):
    """When to stop: at a `gap`, after so many steps, and without such a number after so many `seconds`, or when `stop`
    says so."""

    gap: float = 0.0
    effort: int | None = None
    seconds: float = float("inf")
    stop: Callable[[], bool] | None = None

    def over(self, record: Record, taken: int) -> bool:
        """Whether to stop after `taken` steps; not before both sides have a bound."""
        if record.lower is None or record.upper is None:
            return False
        if record.reached(self.gap) or (self.stop is not None and self.stop()):
            return True
        return taken >= self.effort if self.effort is not None else self.seconds - record.seconds <= record.ahead


def take(steps: Steps, record: Record, limits: Limits) -> int:
    """Take steps until it is enough or there are none left; how many were taken."""
    taken = 0
    for taken, _ in enumerate(steps, start=1):
        if limits.over(record, taken):
            break
    return taken


def finish(part: Stepwise[T]) -> T:
    """The result of a part, taken to its end."""
    while True:
        try:
            next(part)
        except StopIteration as end:
            result: T = end.value
            return result


class Meter:
    """Work done so far, in operations, and whether it fills a step."""

    def __init__(self) -> None:
        self.done, self._began = 0.0, 0.0

    @property
    def left(self) -> float:
        """Operations until the step is full; not below 0."""
        return max(0.0, self._began + max(STEP_WORK, GROWTH * self._began) - self.done)

    def add(self, operations: float) -> None:
        """Count work."""
        self.done += operations

    def full(self) -> bool:
        """Whether the step is full: it is to be yielded, and the next one begins."""
        if self.left > 0.0:
            return False
        self._began = self.done
        return True


class Tape(Meter):
    """A meter that remembers what it was told: work is counted again, and divided as before, where what it made is
    taken from a task's parts. So a certificate does not depend on what was made before."""

    def __init__(self, whole: Meter) -> None:
        super().__init__()
        self._whole = whole
        self._told: list[float | None] = []  # operations; `None`: whether the step is full was asked

    @property
    def left(self) -> float:
        """Operations until the step is full."""
        return self._whole.left

    def add(self, operations: float) -> None:
        """Count work."""
        self._told.append(operations)
        self._whole.add(operations)

    def full(self) -> bool:
        """Whether the step is full."""
        self._told.append(None)
        return self._whole.full()

    def again(self, meter: Meter) -> Steps:
        """The same work, counted by another meter."""
        for operations in self._told:
            if operations is not None:
                meter.add(operations)
            elif meter.full():
                yield
