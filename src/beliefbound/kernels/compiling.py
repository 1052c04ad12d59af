"""While functions are compiled, no garbage is collected and the clock of a search stands still.

A collection looks at everything numba has built so far and finds next to nothing: a tenth of the time of compiling. And
where numba puts a function into another (`inline="always"`), it copies all names of the function with each of its
blocks: another twentieth. Here they are copied once.

Kernels are compiled when they are first called, which takes seconds once per installation. `clock` does not count them,
nor the time that a process waits for another to compile what it needs: a time limit is spent on what it was given for.
"""

import copy
import gc
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import event, inline_closurecall

_lock = threading.Lock()
_depth, _began, _seconds, _collects = 0, 0.0, 0.0, False


def seconds() -> float:
    """How long this process has compiled, or waited for compiled code, so far."""
    return time.perf_counter() - clock()


def clock() -> float:
    """Seconds, from any moment on, that do not pass while something is compiled."""
    with _lock:
        return (_began if _depth > 0 else time.perf_counter()) - _seconds


@contextmanager
def paused() -> Iterator[None]:
    """No clock, no collection; in any number of threads, one within another."""
    _enter()
    try:
        yield
    finally:
        _leave()


def _enter() -> None:
    global _depth, _began, _collects
    with _lock:
        _depth += 1
        if _depth == 1:
            _began, _collects = time.perf_counter(), gc.isenabled()
            gc.disable()


def _leave() -> None:
    global _depth, _seconds
    with _lock:
        _depth -= 1
        if _depth == 0:
            _seconds += time.perf_counter() - _began
            if _collects:
                gc.enable()


class _Compiling(event.Listener):  # type: ignore[misc]
    """Told by numba where compiling begins and ends, however it ends."""

    def on_start(self, event: Any) -> None:
        _enter()

    def on_end(self, event: Any) -> None:
        _leave()


class _Copying:
    """`copy`, to numba's inliner, which copies the blocks of a function one after the other: what they share, its
    names above all, is shared by the copies."""

    def __init__(self) -> None:
        self.scope: Any = None
        self.copies: dict[int, Any] = {}

    def deepcopy(self, block: Any) -> Any:
        if block.scope is not self.scope or id(block) in self.copies:  # of another function, or once more
            self.scope, self.copies = block.scope, {}
        return copy.deepcopy(block, self.copies)


def compile_quickly() -> None:
    """From here on, for every function that numba compiles in this process."""
    event.register("numba:compile", _Compiling())
    if getattr(inline_closurecall, "copy", None) is copy:  # this numba's inliner copies as described
        inline_closurecall.copy = _Copying()
