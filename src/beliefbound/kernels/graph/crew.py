"""Threads that take part in one compiled loop: jobs that one of them, the *first*, publishes, and any of them takes.

The first thread runs its loop; others run theirs beside it, for as long as they like, and may come late, or never: who
publishes also takes, so that all jobs are done when `finish` returns, whoever is there. A job is a number, and what
is done of it may not depend on who does it. Handing one over takes a tenth of a microsecond, where a call by way of
Python takes tens: batches of growth (`kernels.graph.growth`) last a few hundred.

Jobs are counted, never reset: so many are published, taken and done, each number in cache lines of its own. A thread
takes number `n < published` by moving `taken` from `n` to `n + 1`, which succeeds for one. A job's place in the ring is
used again only after all jobs before it are done. Who waits lets other threads of the machine run.
"""

import os
from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from beliefbound.kernels.lines import copied
from beliefbound.kernels.options import FAST
from beliefbound.kernels.reference import by_reference

_APART = 16  # words: two cache lines, which are fetched together
PUBLISHED, TAKEN, DONE, COUNTED, CLOSED = (_APART * i for i in range(5))  # places in `Crew.word`
RING = 256  # jobs between two calls of `finish`, at most
_SPINS = 64  # looks before others may run


@by_reference
class Crew(NamedTuple):
    """What a crew shares."""

    word: np.ndarray  # int64 [place]: jobs published, taken and done; what others have counted; whether it is over
    job: np.ndarray  # int64 [RING]


def new_crew() -> Crew:
    """Nothing published."""
    return Crew(copied(np.zeros(5 * _APART, dtype=np.int64)), copied(np.zeros(RING, dtype=np.int64)))


def close(crew: Crew) -> None:
    """Nothing more will be published: whoever waits for jobs leaves."""
    crew.word[CLOSED] = 1  # one word, which nothing else depends on: all jobs are done


def closed(crew: Crew) -> bool:
    """Whether it is."""
    return bool(crew.word[CLOSED])


def _address(context, builder, kind, array, place):
    return builder.gep(context.make_array(kind)(context, builder, array).data, [place])


@intrinsic
def get(typing_context, words, place):
    """`words[place]`, and all that was written before it was `put`."""

    def generate(context, builder, signature, arguments):
        return builder.load_atomic(_address(context, builder, signature.args[0], *arguments), "acquire", 8)

    return types.int64(words, types.int64), generate


@intrinsic
def put(typing_context, words, place, value):
    """`words[place] = value`, after all that was written before."""

    def generate(context, builder, signature, arguments):
        at = _address(context, builder, signature.args[0], *arguments[:2])
        builder.store_atomic(arguments[2], at, "release", 8)
        return context.get_dummy_value()

    return types.void(words, types.int64, types.int64), generate


@intrinsic
def add(typing_context, words, place, value):
    """`words[place] += value`, at once; what it was before."""

    def generate(context, builder, signature, arguments):
        at = _address(context, builder, signature.args[0], *arguments[:2])
        return builder.atomic_rmw("add", at, arguments[2], "acq_rel")

    return types.int64(words, types.int64, types.int64), generate


@intrinsic
def move(typing_context, words, place, old, new):
    """`words[place] = new` if it is `old`, at once; whether it was."""

    def generate(context, builder, signature, arguments):
        at = _address(context, builder, signature.args[0], *arguments[:2])
        found = builder.cmpxchg(at, arguments[2], arguments[3], "acq_rel", "acquire")
        return builder.extract_value(found, 1)

    return types.boolean(words, types.int64, types.int64, types.int64), generate


@intrinsic
def let_others_run(typing_context):
    """Give the core to another thread that wants it, where the system can be asked."""

    def generate(context, builder, signature, arguments):
        if os.name == "posix":
            kind = ir.FunctionType(ir.IntType(32), [])
            builder.call(cgutils.get_or_insert_function(builder.module, kind, "sched_yield"), [])
        return context.get_dummy_value()

    return types.void(), generate


@njit(inline="always", **FAST)
def publish(crew, job):
    """A job for whoever is free."""
    n = get(crew.word, PUBLISHED)
    crew.job[n % RING] = job
    put(crew.word, PUBLISHED, n + 1)


@njit(inline="always", **FAST)
def take(crew):
    """The number of a job that is now the caller's to do; −1 where there is none."""
    while True:
        n = get(crew.word, TAKEN)
        if n >= get(crew.word, PUBLISHED):
            return np.int64(-1)
        if move(crew.word, TAKEN, n, n + 1):
            return n


@njit(inline="always", **FAST)
def wait(spins):
    """Between two looks; how many there were."""
    if spins % _SPINS == _SPINS - 1:
        let_others_run()
    return spins + 1


@njit(inline="always", **FAST)
def finish(crew):
    """Wait until all that was published, and taken, is done."""
    spins = 0
    while get(crew.word, DONE) < get(crew.word, PUBLISHED):
        spins = wait(spins)
