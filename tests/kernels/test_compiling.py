"""While functions are compiled no clock goes and no garbage is collected; then both go on, whatever happened."""

import gc
import threading

import pytest
from numba import njit
from numba.core import inline_closurecall
from numba.core.errors import TypingError

from beliefbound.kernels import compiling
from beliefbound.kernels.compiling import clock, paused, seconds


@pytest.fixture
def now(monkeypatch):
    """Time that passes when a test says so."""
    time = [100.0]
    monkeypatch.setattr(compiling.time, "perf_counter", lambda: time[0])
    return time


def test_the_clock_stands_still(now):
    began, compiled = clock(), seconds()
    now[0] += 5.0
    with paused():
        now[0] += 1000.0
        assert clock() == pytest.approx(began + 5.0)
        with paused():
            now[0] += 100.0
        assert clock() == pytest.approx(began + 5.0)
    now[0] += 2.0
    assert clock() == pytest.approx(began + 7.0)
    assert seconds() == pytest.approx(compiled + 1100.0)


def test_it_stands_still_until_the_last_thread_has_compiled(now):
    began, entered, leave = clock(), threading.Event(), threading.Event()

    def compile():
        with paused():
            entered.set()
            leave.wait()

    thread = threading.Thread(target=compile)
    with paused():
        thread.start()
        entered.wait()
        now[0] += 10.0
    now[0] += 10.0
    assert clock() == pytest.approx(began)
    leave.set()
    thread.join()
    now[0] += 3.0
    assert clock() == pytest.approx(began + 3.0)


def test_no_garbage_is_collected_while_numba_compiles():
    collecting = []
    gc.callbacks.append(lambda phase, info: collecting.append(phase))
    try:
        assert gc.isenabled()

        @njit
        def f(x):
            return sum([x + i for i in range(3)])

        before = seconds()
        collecting.clear()
        assert f(1.0) == 6.0
        assert seconds() > before
        assert gc.isenabled()
    finally:
        gc.callbacks.pop()


def test_it_is_collected_again_where_compiling_fails():
    @njit
    def f(x):
        return x.nothing

    depth = compiling._depth
    with pytest.raises(TypingError):
        f(1.0)
    assert gc.isenabled()
    assert compiling._depth == depth


def test_who_does_not_want_it_is_left_alone():
    gc.disable()
    try:
        with paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_an_inlined_function_is_copied_with_one_set_of_names(monkeypatch):
    """Twice per place, as numba does: what it copies from, and what it keeps. Each copy has names of its own."""
    scopes, copy = [], inline_closurecall.copy.deepcopy

    def seen(block):
        made = copy(block)
        scopes.append((block.scope, made.scope))
        return made

    monkeypatch.setattr(inline_closurecall.copy, "deepcopy", seen)
    triangle = njit(inline="always")(_triangle)
    assert njit(lambda n: triangle(n) + triangle(n + 1))(4) == _triangle(4) + _triangle(5)
    assert len(scopes) > 4
    assert len({id(of) for of, _ in scopes}) == len({id(made) for _, made in scopes}) == 4
    assert not any(made is of for of, made in scopes)


def _triangle(n):
    total = 0
    for i in range(n):
        if i > 2:
            total += i
    return total
