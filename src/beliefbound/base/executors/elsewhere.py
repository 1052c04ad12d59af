"""Numbered samples on threads of this process, or as blocks of an executor, wherever its workers are.

    with opened("ray", address="head:6379") as executor, sampling_on(executor):
        bb.bracket(belief, discount=0.95)

A sample is a function of what it is of and of its number, so the bits are those of threads. A worker keeps what samples
are of, and the scratch for them, from block to block; one that dies costs its block, which another makes again.
"""

import hashlib
import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from threading import local
from typing import Any, Protocol

from beliefbound.base.executors.executor import Executor
from beliefbound.base.executors.threads import map_with_scratch

_BLOCKS = 32  # that samples asked for at once are divided into, where there are as many
_KEPT = 4  # kinds of samples that a worker keeps
_executor: ContextVar[Executor | None] = ContextVar("executor", default=None)
_worker = local()


class Numbered(Protocol):
    """What samples are of; it can be pickled."""

    def scratch(self) -> Any:
        """Arrays for one thread."""

    def one(self, number: int, scratch: Any) -> Any:
        """A sample, which depends on its number alone."""


@contextmanager
def sampling_on(executor: Executor) -> Iterator[None]:
    """Within it, samples of brackets under counts are drawn by an executor."""
    before = _executor.set(executor)
    try:
        yield
    finally:
        _executor.reset(before)


def sampled_elsewhere() -> bool:
    """Whether an executor draws samples."""
    return _executor.get() is not None


def map_numbered(what: Numbered, numbers: Sequence[int], scratch: Callable[[], Sequence[Any]]) -> list[Any]:
    """The samples of these numbers, in their order; `scratch` for the threads of this process, where it is asked."""
    executor = _executor.get()
    if executor is None:
        return map_with_scratch(what.one, numbers, scratch())
    made, size = pickle.dumps(what), -(-len(numbers) // _BLOCKS)
    blocks = [tuple(numbers[i : i + size]) for i in range(0, len(numbers), size or 1)]
    found = dict(executor.map(partial(_sampled, made), blocks))
    return [sample for block in blocks for sample in found[block]]


def _sampled(made: bytes, numbers: tuple[int, ...]) -> list[Any]:
    """A block of samples, on a worker."""
    kept: dict[bytes, tuple[Numbered, Any]] = _worker.__dict__.setdefault("kept", {})
    key = hashlib.sha256(made).digest()
    if key not in kept:
        while len(kept) >= _KEPT:
            del kept[next(iter(kept))]
        what: Numbered = pickle.loads(made)
        kept[key] = what, what.scratch()
    what, scratch = kept[key]
    return [what.one(number, scratch) for number in numbers]
