"""Threads that work side by side for one caller, who takes part: tasks may themselves be divided among the same team.

>>> with Team(2) as team:
...     team.run([lambda: 1, lambda: sum(team.run([lambda: 2, lambda: 3]))])
[1, 5]
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from threading import Condition
from types import TracebackType
from typing import Any, Generic, TypeVar

from beliefbound.base.executors.threads import available_threads
from beliefbound.base.validation import check_threads

B = TypeVar("B")
S = TypeVar("S")
T = TypeVar("T")


class Team:
    """So many threads, the caller's among them; default: the cores this process may use."""

    def __init__(self, threads: int | None = None) -> None:
        self.threads = check_threads(threads) or available_threads()
        self._pool: ThreadPoolExecutor | None = None
        self._open: list[_Shared[Any]] = []  # tasks that may still be taken, those begun last at the end
        self._changed, self._called = Condition(), False  # whether somebody outside has, and its tasks run

    def __enter__(self) -> "Team":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def run(self, tasks: Sequence[Callable[[], T]]) -> list[T]:
        """What each task gives, in their order. The first are begun first; what one gives may not depend on another.

        Nobody waits for a thread that is busy elsewhere: the caller takes what nobody else has taken. While it waits
        for the others then, it takes part in what they have divided, if it is not itself one of their tasks.
        """
        helpers = min(self.threads, len(tasks)) - 1
        if helpers < 1:
            return [task() for task in tasks]
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.threads - 1, thread_name_prefix="team")
        shared, outside = _Shared(tasks), not self._called
        with self._changed:
            self._open.append(shared)
            self._called = True
            self._changed.notify_all()
        helping = [self._pool.submit(shared.work) for _ in range(helpers)]
        try:
            shared.work()
            if outside:
                self._help_until_done(helping)
        finally:
            shared.end()
            with self._changed:
                self._open.remove(shared)
                self._called = not outside
            for future in helping:
                future.cancel()
            shared.wait()
        return shared.results()

    def _help_until_done(self, helping: Sequence[Future[None]]) -> None:
        """Take tasks that others have divided, as long as these are at work."""

        def wake(future: Future[None]) -> None:
            with self._changed:
                self._changed.notify_all()

        for future in helping:
            if not future.cancel():
                future.add_done_callback(wake)
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._left() is not None or all(each.done() for each in helping))
                other = self._left()
            if other is None:
                return
            other.work()

    def _left(self) -> "_Shared[Any] | None":
        return next((each for each in reversed(self._open) if each.left), None)

    def map(self, function: Callable[[B, S], T], blocks: Sequence[B], scratch: Sequence[S]) -> list[T]:
        """`[function(block, own) for block in blocks]`, where `own` is one of `scratch`, used by nobody else meanwhile:
        as many at once as there is scratch. Which one a block gets may not matter to its result."""
        shared = _Shared([partial(function, block) for block in blocks])
        self.run([partial(shared.work, own) for own in scratch[: max(1, len(blocks))]])
        return shared.results()


ALONE = Team(1)  # one thread, the caller's


class _Shared(Generic[T]):
    """Tasks that several threads take in turn; each is called with what the thread has for it."""

    def __init__(self, tasks: Sequence[Callable[..., T]]) -> None:
        self._tasks, self._next, self._at_work, self._lock = tasks, 0, 0, Condition()
        self._found: dict[int, T] = {}
        self._failed: dict[int, BaseException] = {}

    def work(self, *own: Any) -> None:
        """Take tasks until none is left."""
        while True:
            with self._lock:
                i = self._next
                if i >= len(self._tasks):
                    return
                self._next, self._at_work = i + 1, self._at_work + 1
            try:
                self._found[i] = self._tasks[i](*own)
            except BaseException as failed:
                self._failed[i] = failed
                self.end()
            finally:
                with self._lock:
                    self._at_work -= 1
                    self._lock.notify_all()

    @property
    def left(self) -> bool:
        """Whether there is a task that nobody has taken."""
        return self._next < len(self._tasks)

    def wait(self) -> None:
        """Until nobody is at work on one."""
        with self._lock:
            self._lock.wait_for(lambda: self._at_work == 0)

    def end(self) -> None:
        """Nothing more is taken."""
        with self._lock:
            self._next = len(self._tasks)

    def results(self) -> list[T]:
        """In the order of the tasks; the first of the exceptions, if there is one."""
        if self._failed:
            raise self._failed[min(self._failed)]
        return [self._found[i] for i in range(len(self._tasks))]
