"""Compiled kernels on disk are as new as all their sources, not only as the file they stand in."""

import importlib
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import numba
import pytest
from numba.core.caching import CacheImpl, IndexDataCacheFile

from beliefbound import agents, kernels
from beliefbound.agents import exploit
from beliefbound.kernels import random
from beliefbound.kernels.cache import digest, name_by_sources
from beliefbound.kernels.planning import sweep
from beliefbound.kernels.play import play_loop

INNER = """
from numba import njit

@njit(cache=True, forceinline={inline})
def inner():
    return {value}
"""
OUTER = """
from numba import njit
from two_kernels.inner import inner

@njit(cache=True)
def outer():
    return inner()
"""


@pytest.fixture(params=["beside the source", "in NUMBA_CACHE_DIR"])
def package(tmp_path, monkeypatch, request):
    """An empty package on the path, and numba's locators as they are without us."""
    cache = str(tmp_path / "cache") if request.param == "in NUMBA_CACHE_DIR" else ""
    monkeypatch.setattr(numba.config, "CACHE_DIR", cache)
    folder = tmp_path / "two_kernels"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "outer.py").write_text(OUTER)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    plain = [each for each in CacheImpl._locator_classes if each.__module__ != "beliefbound.kernels.cache"]
    monkeypatch.setattr(CacheImpl, "_locator_classes", plain)
    yield folder
    forget()


def forget():
    for name in [name for name in sys.modules if name.partition(".")[0] == "two_kernels"]:
        del sys.modules[name]
    importlib.invalidate_caches()


def run(folder, monkeypatch, stamped):
    """What `outer` returns in a new session, and whether it came from disk."""
    forget()
    with monkeypatch.context() as session:
        session.setattr(CacheImpl, "_locator_classes", list(CacheImpl._locator_classes))
        if stamped:
            name_by_sources(folder)
        outer = importlib.import_module("two_kernels.outer").outer
        return outer(), bool(outer.stats.cache_hits)


@pytest.mark.parametrize("inline", [True, False])
def test_a_kernel_is_compiled_again_when_one_that_it_calls_changes_in_another_file(package, monkeypatch, inline):
    (package / "inner.py").write_text(INNER.format(inline=inline, value=1))
    assert run(package, monkeypatch, stamped=True) == (1, False)
    assert run(package, monkeypatch, stamped=True) == (1, True)
    (package / "inner.py").write_text(INNER.format(inline=inline, value=20))
    assert run(package, monkeypatch, stamped=True) == (20, False)
    assert run(package, monkeypatch, stamped=True) == (20, True)


def test_numba_alone_would_run_the_old_one(package, monkeypatch):
    (package / "inner.py").write_text(INNER.format(inline=True, value=1))
    assert run(package, monkeypatch, stamped=False) == (1, False)
    (package / "inner.py").write_text(INNER.format(inline=True, value=20))
    assert run(package, monkeypatch, stamped=False) == (1, True)  # when this is 20, kernels/cache.py can go


def test_stamps_never_fail(tmp_path, monkeypatch):
    monkeypatch.setattr(CacheImpl, "_locator_classes", list(CacheImpl._locator_classes))
    name_by_sources(tmp_path / "nowhere")
    monkeypatch.delattr(CacheImpl, "_locator_classes")
    name_by_sources(tmp_path)


PAIR = """
from typing import NamedTuple

class Pair(NamedTuple):
    x: float
"""
ADD = """
from numba import njit
from two_kernels.{place} import Pair

@njit(cache=True)
def add(pair):
    return pair.x + 1

def outer():
    return add(Pair(1.0))

outer.stats = add.stats
"""


def test_a_class_among_the_arguments_may_move(package, monkeypatch):
    """numba reads the classes in an index before it compares stamps."""
    for place in ("inner", "elsewhere"):
        (package / "inner.py").write_text("")
        (package / f"{place}.py").write_text(PAIR)
        (package / "outer.py").write_text(ADD.format(place=place))
        assert run(package, monkeypatch, stamped=True)[0] == 2.0


def test_files_of_other_sources_are_removed(package, monkeypatch):
    (package / "inner.py").write_text(INNER.format(inline=False, value=1))
    run(package, monkeypatch, stamped=True)
    old = {file for file in package.parent.rglob("*.nb?") if "outer" in file.name}
    assert old
    (package / "inner.py").write_text(INNER.format(inline=False, value=20))
    run(package, monkeypatch, stamped=True)
    assert not any(file.exists() for file in old)
    assert [file for file in package.parent.rglob("*.nb?") if "outer" in file.name]


def test_the_file_of_every_kernel_is_named_by_all_sources():
    below_kernels, below_agents = Path(kernels.__file__).parent, Path(agents.__file__).parent
    for kernel in (random.uniform, sweep.sweep_lanes):
        assert digest(below_kernels)[:16] in index_name(kernel)
    for function in (exploit.act, play_loop(exploit.reset, exploit.act, exploit.observe)):
        assert digest(below_agents, below_kernels)[:16] in index_name(function)


def index_name(function):
    return function._cache._cache_file._index_name


AGENT = """
from numba import njit
from beliefbound.kernels.options import EXACT
from beliefbound.kernels.random import uniform

@njit(**EXACT)
def act(stream):
    return uniform(stream)
"""


def test_a_users_agent_is_named_by_our_sources_and_other_functions_are_not(tmp_path, monkeypatch):
    (tmp_path / "users_agent.py").write_text(AGENT)
    (tmp_path / "unrelated.py").write_text("from numba import njit\n\n@njit(cache=True)\ndef act(x):\n    return x\n")
    monkeypatch.syspath_prepend(tmp_path)
    ours = digest(Path(agents.__file__).parent, Path(kernels.__file__).parent)[:16]
    assert ours in index_name(importlib.import_module("users_agent").act)
    assert ours not in index_name(importlib.import_module("unrelated").act)


@pytest.mark.parametrize("locked", [True, False])
def test_two_that_save_at_once_do_not_take_the_same_file(tmp_path, monkeypatch, locked):
    """Each has read the index before the other writes, unless the lock keeps them apart: numba alone mixes them up."""
    load, both = IndexDataCacheFile._load_index, threading.Barrier(2)

    def slow(self):
        index = load(self)
        with suppress(threading.BrokenBarrierError):
            both.wait(0.2)
        return index

    def save(key):
        own = IndexDataCacheFile(str(tmp_path), "act", "stamp")  # a process has its own
        (IndexDataCacheFile.save if locked else IndexDataCacheFile.save.__wrapped__)(own, key, f"code for {key}")

    with monkeypatch.context() as slowly, ThreadPoolExecutor() as pool:
        slowly.setattr(IndexDataCacheFile, "_load_index", slow)
        list(pool.map(save, ["float", "int"]))
    found = [IndexDataCacheFile(str(tmp_path), "act", "stamp").load(key) for key in ("float", "int")]
    assert (found == ["code for float", "code for int"]) is locked
