"""Blocks on threads of this process: compiled code holds no lock, so they are enough for one machine."""

import os
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice, pairwise
from queue import SimpleQueue
from threading import Event
from typing import Any, TypeVar

from beliefbound.base.executors.executor import B, R
from beliefbound.base.validation import check_threads

S = TypeVar("S")
_AHEAD = 2  # blocks in flight for each worker, so that none waits while a result is looked at
_SKIPPED: Any = object()
_LARGE = 1 << 22  # multiply-adds, some 10 ms: threads take 0.2 ms to start
_RANGES = 4  # for each thread, so that none waits long for the last


def available_threads() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class ThreadExecutor:
    """Runs blocks on so many threads; default: the cores this process may use."""

    def __init__(self, threads: int | None = None) -> None:
        self.threads = check_threads(threads) or available_threads()

    def map(
        self, function: Callable[[B], R], blocks: Iterable[B], *, stop: Event | None = None
    ) -> Generator[tuple[B, R], None, None]:
        """`(block, function(block))` as they complete; see `Executor`."""
        stopped = stop or Event()
        source = iter(blocks)
        pending: dict[Future[R], B] = {}

        def work(block: B) -> R:
            result: R = _SKIPPED if stopped.is_set() else function(block)
            return result

        pool = ThreadPoolExecutor(self.threads, thread_name_prefix="blocks")
        try:
            while True:
                if not stopped.is_set():
                    for block in islice(source, _AHEAD * self.threads - len(pending)):
                        pending[pool.submit(work, block)] = block
                if not pending:
                    return
                for future in wait(pending, return_when=FIRST_COMPLETED).done:
                    block, result = pending.pop(future), future.result()
                    if result is not _SKIPPED:
                        yield block, result
        finally:
            pool.shutdown(wait=not stopped.is_set(), cancel_futures=True)


def in_ranges(n: int, size: float, step: Callable[..., None], *given: Any) -> None:
    """`step(*given, first, last)` over ranges that make up `range(n)`: here where all of it takes `size` operations or
    so and that is little, else on as many threads as this process has cores. What is done of an item may not depend on
    its range."""
    if size < _LARGE or (threads := available_threads()) == 1:
        step(*given, 0, n)
        return
    ends = [n * i // (_RANGES * threads) for i in range(_RANGES * threads + 1)]
    for _ in ThreadExecutor(threads).map(lambda ends: step(*given, *ends), pairwise(ends)):
        pass


def map_with_scratch(function: Callable[[B, S], R], blocks: Sequence[B], scratch: Sequence[S]) -> list[R]:
    """`[function(block, own) for block in blocks]`, where `own` is one of `scratch`, used by nobody else meanwhile.

    As many threads as there is scratch; with one, this thread. Which scratch a block gets may not matter to its result.
    """
    if len(scratch) == 1:
        return [function(block, scratch[0]) for block in blocks]
    free: SimpleQueue[S] = SimpleQueue()
    for own in scratch:
        free.put(own)

    def work(i: int) -> R:
        own = free.get()
        try:
            return function(blocks[i], own)
        finally:
            free.put(own)

    results = dict(ThreadExecutor(len(scratch)).map(work, range(len(blocks))))
    return [results[i] for i in range(len(blocks))]
