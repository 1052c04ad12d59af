"""The seam: map a pure function over addressed blocks.

A block says everything its result depends on, so an executor may run it anywhere, in any order and more than once; what
it yields is the same bit for bit. Nothing else is asked of an executor, and nothing else of a function.
"""

from collections.abc import Callable, Generator, Iterable
from threading import Event
from typing import Protocol, TypeVar

B = TypeVar("B")
R = TypeVar("R")


class Executor(Protocol):
    """Runs blocks."""

    def map(
        self, function: Callable[[B], R], blocks: Iterable[B], *, stop: Event | None = None
    ) -> Generator[tuple[B, R], None, None]:
        """`(block, function(block))` of every block, as they complete.

        `blocks` is read only a little ahead of what is running. Once `stop` is set no more of it is read, what runs is
        finished and yielded, and the iterator ends; an exception after that, such as a second Ctrl-C, waits for
        nothing. Leaving the loop earlier drops what has not begun and waits for what has.
        """
        ...
