"""Numbered samples on threads of this process, or as blocks of an executor, wherever its workers are.

    with opened("ray", address="head:6379") as executor, sampling_on(executor):
        bb.bracket(belief, discount=0.95)

A sample is a function of what it is of and of its number, so the bits are those of threads. A worker keeps what samples
are of, and the scratch for them, from block to block; one that dies costs its block, which another makes again. Where
somebody else's code takes part, a worker loads it by the name or the file that this process was given.
"""

import hashlib
import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from threading import local
from typing import Any, Protocol

from beliefbound.base.errors import ExecutorError
from beliefbound.base.executors.executor import Executor
from beliefbound.base.executors.threads import map_with_scratch
from beliefbound.base.plugins import load_plugin, loaded_plugins, said

_BLOCKS = 32  # that samples asked for at once are divided into, where there are as many
_KEPT = 4  # kinds of samples that a worker keeps
_SENT = 8 * _BLOCKS  # samples asked for at once, where somebody looks at the clock between
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
    """Within it, an executor makes the samples: of brackets and certificates under counts, the walks of a certificate
    that is simulated, the chains of `from_demonstrations`."""
    before = _executor.set(executor)
    try:
        yield
    finally:
        _executor.reset(before)


def at_once(here: int) -> int:
    """How many samples to ask for between two looks at the clock: so many `here`, more where they are sent."""
    return here if _executor.get() is None else max(here, _SENT)


def sampled_elsewhere() -> bool:
    """Whether an executor draws samples."""
    return _executor.get() is not None


def map_numbered(what: Numbered, numbers: Sequence[int], scratch: Callable[[], Sequence[Any]]) -> list[Any]:
    """The samples of these numbers, in their order; `scratch` for the threads of this process, where it is asked."""
    executor = _executor.get()
    if executor is None:
        return map_with_scratch(what.one, numbers, scratch())
    made, size = _packed(what), -(-len(numbers) // _BLOCKS)
    blocks = [tuple(numbers[i : i + size]) for i in range(0, len(numbers), size or 1)]
    found = dict(executor.map(partial(_sampled, made, loaded_plugins()), blocks))
    return [sample for block in blocks for sample in found[block]]


def _packed(what: Numbered) -> bytes:
    try:
        return pickle.dumps(what)
    except Exception as cause:  # an object of somebody else may raise anything
        raise ExecutorError(f"what is sampled cannot be sent to workers: {said(cause)}; sample on threads") from None


def _sampled(made: bytes, plugins: tuple[str, ...], numbers: tuple[int, ...]) -> list[Any]:
    """A block of samples, on a worker."""
    for plugin in plugins:
        load_plugin(plugin)
    kept: dict[bytes, tuple[Numbered, Any]] = _worker.__dict__.setdefault("kept", {})
    key = hashlib.sha256(made).digest()
    if key not in kept:
        while len(kept) >= _KEPT:
            del kept[next(iter(kept))]
        what: Numbered = pickle.loads(made)
        kept[key] = what, what.scratch()
    what, scratch = kept[key]
    return [what.one(number, scratch) for number in numbers]
