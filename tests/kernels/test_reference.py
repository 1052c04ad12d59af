"""A NamedTuple that compiled code gets by reference has the fields that Python gave it."""

import gc
import importlib
import subprocess
import sys
import weakref
from typing import NamedTuple

import numpy as np
import pytest
from numba import njit, typeof, types
from numba.core.errors import TypingError

from beliefbound.kernels.options import EXACT
from beliefbound.kernels.reference import Reference, by_class, by_reference, pass_by_reference

kernel = njit(**{**EXACT, "cache": False})


@by_reference
class Inner(NamedTuple):
    counts: np.ndarray  # int64 [i]
    scale: float


class Plain(NamedTuple):  # by value
    x: np.ndarray
    y: int


@by_reference
class Outer(NamedTuple):
    flat: np.ndarray  # [i]
    cube: np.ndarray  # float32 [i,j,k]
    inner: Inner
    number: int
    flag: bool
    small: np.int32
    plain: Plain
    pair: tuple[float, int]
    strided: np.ndarray  # [i,j], any layout
    record: np.ndarray


RECORD = np.dtype([("a", np.int64), ("b", np.float64)])


def outer(rng):
    return Outer(
        flat=rng.random(5),
        cube=rng.random((2, 3, 4)).astype(np.float32),
        inner=Inner(np.arange(3), 0.5),
        number=-7,
        flag=True,
        small=np.int32(9),
        plain=Plain(rng.random(2), 11),
        pair=(2.5, 3),
        strided=rng.random((6, 8))[::2, ::-3],
        record=np.array([(1, 2.0), (3, 4.0)], RECORD),
    )


@kernel
def everything(x):
    total = 0.0
    for i in range(x.flat.size):
        total += x.flat[i]
    for i in range(x.cube.shape[0]):
        total += x.cube[i, -1].sum()
    for i in range(x.strided.shape[0]):
        for j in range(x.strided.shape[1]):
            total += x.strided[i, j] * (i + 1) / (j + 1)
    total += x.inner.counts.sum() * x.inner.scale + x.number + x.small + x.plain.x[1] + x.plain.y
    total += x.pair[0] + x.pair[1] + x.record[1].a * x.record[0].b
    return total if x.flag else -1.0


def test_every_kind_of_field_arrives():
    x = outer(np.random.default_rng(0))
    i, j = np.indices(x.strided.shape)
    plain = x.flat.sum() + float(x.cube[:, -1].astype(float).sum()) + (x.strided * (i + 1) / (j + 1)).sum()
    plain += 1.5 - 7 + 9 + x.plain.x[1] + 11 + 2.5 + 3 + 6.0
    assert everything(x) == pytest.approx(plain, rel=1e-6)
    assert everything(x._replace(flag=False)) == -1.0
    assert isinstance(typeof(x), Reference)
    assert isinstance(typeof(x).types[2], Reference)


@kernel
def shapes(x):
    return x.cube.shape, x.cube.strides, x.cube.nbytes, x.flat.itemsize, x.strided.strides, x.strided.size


def test_arrays_are_described_as_they_are():
    x = outer(np.random.default_rng(1))
    assert shapes(x) == (x.cube.shape, x.cube.strides, x.cube.nbytes, 8, x.strided.strides, x.strided.size)


@kernel
def write(x):
    x.inner.counts[1] += 10
    x.cube[1, 2, 3] = 5.0
    x.strided[0, 0] = 8.0
    row = x.cube[0, 1]
    row[0] = 6.0


def test_what_is_in_arrays_can_be_written():
    x = outer(np.random.default_rng(2))
    write(x)
    assert x.inner.counts.tolist() == [0, 11, 2]
    assert (x.cube[1, 2, 3], x.cube[0, 1, 0], x.strided[0, 0]) == (5.0, 6.0, 8.0)


@kernel
def overwrite(x, y):
    """Loads of fields stand between stores that could be to the same memory, as far as a compiler knows."""
    before = x.flat.size + x.number
    for i in range(y.size):
        y[i] = before
    return x.flat.size + x.number == before


def test_fields_are_constant_while_a_call_lasts():
    x = outer(np.random.default_rng(3))
    for size in range(1, 2000, 97):
        y = np.zeros(size)
        assert overwrite(x._replace(flat=np.zeros(size), number=size), y)
        assert (y == 2 * size).all()


@kernel
def taken_apart(x):
    counts, scale = x.inner
    return counts[2] * scale, len(x.inner), x[3], x[-1][0].b


def test_it_can_be_taken_apart():
    assert taken_apart(outer(np.random.default_rng(4))) == (1.0, 2, -7, 2.0)


@kernel
def handed_on(x, depth):
    if depth == 0:
        return x.inner.scale + x.flat[0]
    return handed_on(x, depth - 1)


def test_functions_hand_it_on():
    x = outer(np.random.default_rng(5))
    assert handed_on(x, 10) == 0.5 + x.flat[0]


def test_arrays_live_on_after_a_call_and_no_longer():
    x = outer(np.random.default_rng(6))
    for _ in range(50):
        write(x)
    known = weakref.ref(x.flat)
    assert sys.getrefcount(x.flat) == sys.getrefcount(np.zeros(3)) + 1  # the tuple holds it, nobody else
    del x
    gc.collect()
    assert known() is None


def test_empty_arrays_and_read_only_ones_arrive():
    x = outer(np.random.default_rng(7))._replace(flat=np.zeros(0), inner=Inner(np.zeros(0, np.int64), 2.0))
    assert np.isfinite(everything(x))
    fixed = np.ones(5)
    fixed.setflags(write=False)
    assert everything(x._replace(flat=fixed)) == pytest.approx(everything(x) + 5.0)


def test_a_field_that_is_not_there_or_that_is_set_is_an_error():
    x = outer(np.random.default_rng(8))
    with pytest.raises(TypingError, match="nothing"):
        kernel(lambda x: x.nothing)(x)

    @kernel
    def set_number(x):
        x.number = 3

    with pytest.raises((TypingError, NotImplementedError, Exception), match="number|setattr"):
        set_number(x)


def test_a_class_that_nobody_marked_is_marked_with_those_in_it():
    class Part(NamedTuple):
        x: np.ndarray

    class Whole(NamedTuple):
        part: Part
        k: int

    value = Whole(Part(np.ones(2)), 3)
    assert not isinstance(typeof(value), Reference)
    pass_by_reference(value)
    assert isinstance(typeof(value), Reference)
    assert isinstance(typeof(value).types[0], Reference)
    assert kernel(lambda w: w.part.x[1] + w.k)(value) == 4.0
    pass_by_reference(value)  # again, and nothing happens
    pass_by_reference((1, 2.0))
    assert isinstance(typeof((1, 2.0)), types.BaseTuple)


@by_reference
class Square(NamedTuple):
    side: float


@by_reference
class Circle(NamedTuple):
    radius: float


@by_class({Square: kernel(lambda k, x: k * x.side**2), Circle: kernel(lambda k, x: k * 3.0 * x.radius**2)}, 1)
def area(k, x):
    """Of so many."""


def test_a_function_is_chosen_by_the_class_of_an_argument():
    double = kernel(lambda x: area(2, x))
    assert area(2, Square(3.0)) == double(Square(3.0)) == 18.0
    assert area(2, Circle(1.0)) == double(Circle(1.0)) == 6.0
    with pytest.raises(KeyError):
        area(1, 4.0)


CACHED = """
from typing import NamedTuple
import numpy as np
from numba import njit
from beliefbound.kernels.options import EXACT
from beliefbound.kernels.reference import by_reference

@by_reference
class Pair(NamedTuple):
    x: np.ndarray
    k: int

@njit(**EXACT)
def second(pair):
    return pair.x[1] * pair.k

value = second(Pair(np.array([1.0, 2.0]), 4))
"""


def test_it_is_kept_on_disk(tmp_path, monkeypatch):
    (tmp_path / "kept_pair.py").write_text(CACHED)
    monkeypatch.setattr("numba.config.CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(tmp_path)
    first = importlib.import_module("kept_pair")
    assert first.value == 8.0
    assert not first.second.stats.cache_hits
    script = "import kept_pair; print(kept_pair.value, sum(kept_pair.second.stats.cache_hits.values()))"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={
            "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
            "PYTHONPATH": f"{tmp_path}:{':'.join(filter(None, sys.path))}",
        },
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["8.0", "1"]
