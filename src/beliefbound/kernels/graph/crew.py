"""Threads that take part in one compiled loop: jobs that one of them, the *first*, publishes, and any of them takes.

The first thread runs its loop; others run theirs beside it, for as long as they like, and may come late, or never: who
publishes also takes, so that all jobs get done, whoever is there. A job is a number, and what
is done of it may not depend on who does it. Handing one over takes a tenth of a microsecond, where a call by way of
Python takes tens: batches of growth (`kernels.graph.growth`) last a few hundred.

Jobs are counted, never reset: so many are published and taken. A thread takes number `n < published` by moving `taken`
from `n` to `n + 1`, which succeeds for one. Each job has a place in a ring, and says itself when it is done; a place is
used again after that, which whoever publishes sees to. Who waits lets other threads of the machine run.
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
PUBLISHED, TAKEN, CLOSED = (_APART * i for i in range(3))  # places in `Crew.word`
RING = 256  # jobs that are not known to be done, at most
_JOB, _DONE, _COUNTED = range(3)  # words of a job
_SPINS = 64  # looks before others may run


@by_reference
class Crew(NamedTuple):
    """What a crew shares."""

    word: np.ndarray  # int64 [place]: jobs published and taken; whether it is over
    job: np.ndarray  # int64 [RING · _APART]: what is to be done; its number plus one when it is; what was counted


def new_crew() -> Crew:
    """Nothing published."""
    return Crew(copied(np.zeros(3 * _APART, dtype=np.int64)), copied(np.zeros(RING * _APART, dtype=np.int64)))


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
def place_of(n):
    """Where job number `n` is."""
    return n % RING * _APART


@njit(inline="always", **FAST)
def publish(crew, job):
    """A job for whoever is free; its number."""
    n = get(crew.word, PUBLISHED)
    crew.job[place_of(n) + _JOB] = job
    put(crew.word, PUBLISHED, n + 1)
    return n


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
def job_of(crew, n):
    """What is to be done."""
    return crew.job[place_of(n) + _JOB]


@njit(inline="always", **FAST)
def report(crew, n, counted):
    """It is done; with whatever was counted on the way."""
    crew.job[place_of(n) + _COUNTED] = counted
    put(crew.job, place_of(n) + _DONE, n + 1)


@njit(inline="always", **FAST)
def is_done(crew, n):
    """Whether it is."""
    return get(crew.job, place_of(n) + _DONE) == n + 1


@njit(inline="always", **FAST)
def counted_by(crew, n):
    """What was counted when it was done."""
    return crew.job[place_of(n) + _COUNTED]


@njit(inline="always", **FAST)
def wait(spins):
    """Between two looks; how many there were."""
    if spins % _SPINS == _SPINS - 1:
        let_others_run()
    return spins + 1
