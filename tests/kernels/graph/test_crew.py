"""A crew does every job once, however many threads take part, and nobody waits for ever."""

import threading

import numpy as np
import pytest
from numba import njit

from beliefbound.kernels.graph.crew import (
    CLOSED,
    RING,
    close,
    closed,
    counted_by,
    get,
    is_done,
    job_of,
    new_crew,
    publish,
    report,
    take,
)
from beliefbound.kernels.options import EXACT

KNOBS = {**EXACT, "cache": False}


@njit(**KNOBS)
def square(crew, found):
    """Do one job: each place is written by whoever takes it, and counts how often."""
    n = take(crew)
    if n < 0:
        return False
    job = job_of(crew, n)
    found[job, 0] += 1
    found[job, 1] = job * job
    report(crew, n, 3 * job)
    return True


@njit(**KNOBS)
def lead(crew, found, batch):
    """Publish jobs in batches, and see each batch done before the next; what they have done and counted."""
    seen = counted = 0
    for begin in range(0, len(found), batch):
        for job in range(begin, min(begin + batch, len(found))):
            last = publish(crew, job)
        for job in range(begin, min(begin + batch, len(found))):
            n = last - (min(begin + batch, len(found)) - 1 - job)
            while not is_done(crew, n):
                square(crew, found)
            seen, counted = seen + found[job, 0], counted + counted_by(crew, n)
    return seen, counted


@njit(**KNOBS)
def follow(crew, found):
    done = 0
    while True:
        if square(crew, found):
            done += 1
        elif get(crew.word, CLOSED) > 0:
            return done


@pytest.mark.parametrize("helpers", [0, 1, 3])
@pytest.mark.parametrize("batch", [1, 7, RING])
def test_every_job_is_done_once_and_before_its_batch_ends(helpers, batch):
    crew, found = new_crew(), np.zeros((3000, 2), dtype=np.int64)
    threads = [threading.Thread(target=follow, args=(crew, found)) for _ in range(helpers)]
    for thread in threads:
        thread.start()
    try:
        assert lead(crew, found, batch) == (3000, 3 * sum(range(3000)))
    finally:
        close(crew)
    for thread in threads:
        thread.join(30.0)
        assert not thread.is_alive()
    assert (found[:, 0] == 1).all()
    assert (found[:, 1] == np.arange(3000) ** 2).all()


def test_who_comes_when_it_is_over_leaves_at_once():
    crew = new_crew()
    assert not closed(crew)
    close(crew)
    assert closed(crew)
    assert follow(crew, np.zeros((1, 2), dtype=np.int64)) == 0
