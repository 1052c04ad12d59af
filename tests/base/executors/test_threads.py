"""The seam: whatever runs the blocks, each is yielded once with its own result, and stopping keeps what has begun."""

import threading
import time
from threading import Event

import pytest

from beliefbound.base.errors import ParameterError
from beliefbound.base.executors import ThreadExecutor, available_threads, opened
from beliefbound.base.executors.threads import map_with_scratch


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_every_block_comes_once_with_its_own_result(threads):
    found = list(ThreadExecutor(threads).map(lambda x: x * x, range(50)))
    assert sorted(found) == [(x, x * x) for x in range(50)]
    assert list(ThreadExecutor(threads).map(abs, [])) == []


def test_blocks_are_read_only_a_little_ahead():
    read = []

    def blocks():
        for i in range(1000):
            read.append(i)
            yield i

    results = ThreadExecutor(2).map(abs, blocks())
    next(results)
    assert len(read) <= 4
    results.close()
    assert len(read) <= 4


def test_stop_finishes_what_runs_and_begins_nothing_else():
    stop, gate = Event(), Event()
    begun = []

    def work(block):
        begun.append(block)
        assert gate.wait(60)
        return -block

    def release():
        while len(begun) < 2:
            time.sleep(0.001)
        stop.set()
        gate.set()

    helper = threading.Thread(target=release)
    helper.start()
    found = list(ThreadExecutor(2).map(work, range(100), stop=stop))
    helper.join()
    assert sorted(found) == [(block, -block) for block in sorted(begun)]
    assert len(begun) == 2


def test_an_interruption_after_stop_waits_for_nothing_and_before_it_for_what_has_begun():
    stop, gate, running = Event(), Event(), Event()

    def work(block):
        if block:
            running.set()
            assert gate.wait(60)
        return block

    results = ThreadExecutor(2).map(work, range(3), stop=stop)
    assert next(results) == (0, 0)
    assert running.wait(60)
    stop.set()
    results.close()  # would wait for the gate, which nobody has opened
    gate.set()

    begun, done = Event(), []

    def slow(block):
        if block:
            begun.set()
            time.sleep(0.02)
        else:
            assert begun.wait(60)  # both have begun before the first is done
        done.append(block)

    results = ThreadExecutor(2).map(slow, range(2))
    next(results)
    results.close()
    assert done == [0, 1]


def test_a_blocks_own_error_arrives_and_the_rest_is_dropped():
    begun = []

    def work(block):
        begun.append(block)
        if block == 3:
            raise KeyError("three")

    with pytest.raises(KeyError, match="three"):
        list(ThreadExecutor(2).map(work, range(1000)))
    assert len(begun) < 20


@pytest.mark.parametrize("workers", [1, 3])
def test_scratch_is_used_by_one_block_at_a_time(workers):
    def work(block, own):
        own.append(block)
        assert own == [block]
        time.sleep(0.0005)
        assert own.pop() == block
        return 2 * block

    assert map_with_scratch(work, range(100), [[] for _ in range(workers)]) == list(range(0, 200, 2))


def test_executors_by_name():
    with opened() as executor:
        assert executor.threads == available_threads()
    for arguments, message in (
        ({"name": "magic"}, "executor is 'magic'; give one of: threads, ray"),
        ({"name": "threads", "address": "auto"}, "threads have none; add: --executor ray"),
        ({"name": "threads", "threads": 0}, "threads is 0; it must be at least 1"),
    ):
        with pytest.raises(ParameterError, match=message), opened(**arguments):
            pass
