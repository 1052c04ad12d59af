"""Compiled functions on disk are as new as all that they are made of, and compiled by one process at a time."""

import ast
import importlib
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core import config
from numba.core.caching import CacheImpl, IndexDataCacheFile

from beliefbound import kernels
from beliefbound.base.io.lock import hold_byte
from beliefbound.kernels import cache, compiling, random
from beliefbound.kernels.cache import digest, keep_compiled, sources
from beliefbound.kernels.planning import sweep
from beliefbound.kernels.play import play_loop
from beliefbound.lab.agents import exploit, mcbrl

PACKAGE = Path(kernels.__file__).parents[1]
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
    """An empty package on the path, taken for ours."""
    folder = str(tmp_path / "cache") if request.param == "in NUMBA_CACHE_DIR" else ""
    monkeypatch.setenv("NUMBA_CACHE_DIR", folder)  # which numba reads again when any of its variables has changed
    monkeypatch.setattr(numba.config, "CACHE_DIR", folder)
    package = tmp_path / "two_kernels"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "outer.py").write_text(OUTER)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setattr(cache, "PACKAGE", package)
    yield package
    forget()


def forget():
    """As in a new process."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "two_kernels"]:
        del sys.modules[name]
    importlib.invalidate_caches()
    for known in (
        cache.sources,
        cache._imports,
        cache._text,
        cache.digest,
        cache._is_ours,
        cache._sources_of,
        cache._began,
    ):
        known.cache_clear()


def run(monkeypatch, stamped=True, meanwhile=lambda: None):
    """What `outer` returns in a new session, and whether it came from disk; `meanwhile` is done once it has begun and
    imported everything, before anything is compiled."""
    forget()
    with monkeypatch.context() as session:
        plain = [each for each in CacheImpl._locator_classes if each.__module__ != cache.__name__]
        session.setattr(CacheImpl, "_locator_classes", plain)
        if stamped:
            assert keep_compiled()
        importlib.import_module("two_kernels.inner")
        meanwhile()
        outer = importlib.import_module("two_kernels.outer").outer
        return outer(), bool(outer.stats.cache_hits)


@pytest.mark.parametrize("inline", [True, False])
def test_a_kernel_is_compiled_again_when_one_that_it_calls_changes_in_another_file(package, monkeypatch, inline):
    (package / "inner.py").write_text(INNER.format(inline=inline, value=1))
    assert run(monkeypatch) == (1, False)
    assert run(monkeypatch) == (1, True)
    (package / "inner.py").write_text(INNER.format(inline=inline, value=20))
    assert run(monkeypatch) == (20, False)
    assert run(monkeypatch) == (20, True)


def test_what_is_compiled_from_a_text_that_was_replaced_is_nobody_elses(package, monkeypatch):
    """Somebody updates the sources while a process runs that has imported the old ones and compiles them now."""
    (package / "inner.py").write_text(INNER.format(inline=True, value=1))
    updated = INNER.format(inline=True, value=20)
    assert run(monkeypatch, meanwhile=lambda: (package / "inner.py").write_text(updated)) == (1, False)
    assert run(monkeypatch) == (20, False)
    assert run(monkeypatch) == (20, True)


def test_numba_alone_would_run_the_old_one(package, monkeypatch):
    (package / "inner.py").write_text(INNER.format(inline=True, value=1))
    assert run(monkeypatch, stamped=False) == (1, False)
    (package / "inner.py").write_text(INNER.format(inline=True, value=20))
    assert run(monkeypatch, stamped=False) == (1, True)  # when this is 20, half of kernels/cache.py can go


PAIR = """
from typing import NamedTuple
from numba import types

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
        assert run(monkeypatch)[0] == 2.0


KERNEL = """
from numba import njit

@njit(cache=True)
def add(pair):
    return pair.x + 1
"""
CALLER = """
from two_kernels.{place} import Pair
from two_kernels.kernel import add

def outer():
    return add(Pair(1.0))

outer.stats = add.stats
"""


def test_a_class_that_the_kernel_does_not_import_may_move(package, monkeypatch):
    """The kernel's files keep their names, and its index names a class that is no longer there."""
    (package / "kernel.py").write_text(KERNEL)
    for place in ("inner", "elsewhere"):
        (package / "inner.py").write_text("")
        (package / f"{place}.py").write_text(PAIR)
        (package / "outer.py").write_text(CALLER.format(place=place))
        assert run(monkeypatch) == (2.0, False)
        assert run(monkeypatch) == (2.0, True)


def test_what_a_kernel_does_not_import_may_change(package, monkeypatch):
    """Nor are the compiled functions of other modules touched when one changes."""
    (package / "inner.py").write_text(INNER.format(inline=False, value=1))
    (package / "other.py").write_text(INNER.format(inline=False, value=1))
    run(monkeypatch)
    old = {file for file in package.parent.rglob("*.nb?") if "outer" in file.name}
    assert old
    (package / "other.py").write_text(INNER.format(inline=False, value=2))
    assert run(monkeypatch) == (1, True)
    (package / "inner.py").write_text(INNER.format(inline=False, value=20))
    assert importlib.import_module("two_kernels.other").inner() == 2
    others = {file for file in package.parent.rglob("*.nb?") if "other" in file.name}
    assert run(monkeypatch) == (20, False)
    assert not any(file.exists() for file in old)
    assert others
    assert all(file.exists() for file in others)


def test_imports_are_followed_as_they_are_written(tmp_path, monkeypatch):
    package = tmp_path / "two_kernels"
    for folder in (package / "kernels", package / "plain"):
        folder.mkdir(parents=True)
    monkeypatch.setattr(cache, "PACKAGE", package)
    forget()
    files = {
        "kernels/a.py": "from two_kernels.kernels import b\nimport two_kernels.kernels.c\nimport two_kernels.mixed\n",
        "kernels/b.py": "def f():\n    from two_kernels.kernels.d import (\n        x,\n        y,\n    )\n",
        "kernels/c.py": "from two_kernels.plain.e import z\nfrom two_kernels.kernels.a import w\n",
        "kernels/d.py": "",
        "kernels/f.py": "from two_kernels.kernels.d import x\n",
        "plain/e.py": "from two_kernels.kernels.f import v\n",
        "mixed.py": "from numba import njit\nfrom two_kernels.kernels.f import v\n",
    }
    for name, text in files.items():
        (package / name).write_text(text)
    found = {file.relative_to(package).as_posix() for file in sources(package / "kernels/a.py")}
    assert found == {"kernels/a.py", "kernels/b.py", "kernels/c.py", "kernels/d.py", "kernels/f.py", "mixed.py"}
    forget()


def test_the_file_of_every_kernel_is_named_by_its_sources():
    for function, files in (
        (random.uniform, {"kernels/random.py"}),
        (sweep.induct_lanes, {"kernels/planning/sweep.py", "kernels/planning/simd.py", "kernels/reference.py"}),
        (exploit.act, {"lab/agents/exploit.py", "kernels/posterior.py"}),
        (play_loop(exploit.reset, exploit.act, exploit.observe), {"lab/agents/exploit.py", "kernels/play.py"}),
    ):
        found = cache.files_of(function.py_func, function.py_func.__code__.co_filename)
        assert {PACKAGE / file for file in files} <= found
        assert digest(found) in index_name(function)
    assert PACKAGE / "lab/agents/exploit.py" not in cache.files_of(mcbrl.act.py_func, mcbrl.__file__)


def test_compiled_functions_use_names_of_compiled_files_only():
    """A number that they took from elsewhere could change without their noticing."""
    for file in (file for file in PACKAGE.rglob("*.py") if "njit" in file.read_text()):
        tree, others = ast.parse(file.read_text()), set()
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("beliefbound"):
                home = PACKAGE.parent.joinpath(*node.module.split(".")).with_suffix(".py")
                if home.is_file() and not cache._is_compiled(home):
                    others |= {alias.asname or alias.name for alias in node.names}
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and any("njit" in ast.unparse(each) for each in node.decorator_list):
                used = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
                assert not used & others, f"{file.name}: {node.name} uses {used & others}"


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
    ours = importlib.import_module("users_agent").act
    assert digest(sources(tmp_path / "users_agent.py")) in index_name(ours)
    assert PACKAGE / "kernels/random.py" in sources(tmp_path / "users_agent.py")
    assert not hasattr(importlib.import_module("unrelated").act._cache._impl.locator, "tag")


def test_without_numbas_hooks_nothing_is_kept_on_disk(monkeypatch):
    """Rather than trust code that may be old."""
    monkeypatch.setattr(config, "CACHE_LOCATOR_CLASSES", "InTreeCacheLocator", raising=False)
    assert not keep_compiled()
    monkeypatch.setattr(config, "CACHE_LOCATOR_CLASSES", "")
    assert keep_compiled()
    monkeypatch.delattr(CacheImpl, "_locator_classes")
    assert not keep_compiled()


ALONE = """
from beliefbound.kernels.options import EXACT
from beliefbound.kernels.random import seed_stream, uniform
import numpy as np
assert not EXACT["cache"]
print(uniform(seed_stream(np.array([1], np.uint64))))
"""


def test_without_the_disk_everything_works(tmp_path):
    """And writes nothing."""
    apart = {"NUMBA_CACHE_DIR": str(tmp_path), "NUMBA_CACHE_LOCATOR_CLASSES": "UserProvidedCacheLocator"}
    done = subprocess.run(
        [sys.executable, "-c", ALONE], env=os.environ | apart, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) == random.uniform(random.seed_stream(np.array([1], np.uint64)))
    assert not any(tmp_path.iterdir())


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


HOLDS = """
import os, sys
from beliefbound.base.io.lock import hold_byte
handle = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
print(hold_byte(handle, int(sys.argv[2])), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def elsewhere(tmp_path):
    """`(what it said, end it)` of another process that holds a byte of a file."""
    running = []

    def start(file, byte):
        arguments = [sys.executable, "-c", HOLDS, str(file), str(byte)]
        process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        running.append(process)
        return process.stdout.readline().strip(), process

    yield start
    for process in running:
        process.kill()
        process.communicate()


def test_one_process_waits_for_another_that_compiles_the_same(package, monkeypatch, elsewhere):
    """The other is killed in the middle of it, and so lets go; no clock counts the time."""
    (package / "inner.py").write_text(INNER.format(inline=False, value=1))
    run(monkeypatch)
    forget()
    with monkeypatch.context() as session:
        session.setattr(CacheImpl, "_locator_classes", list(CacheImpl._locator_classes))
        outer = importlib.import_module("two_kernels.outer").outer
        handle, byte = cache._claim_of(outer, ())
        assert not cache.claimed(outer, ())
        said, process = elsewhere(Path(outer._cache.cache_path) / ".claims", byte)
        if said == "None":
            pytest.skip("this filesystem has no locks")
        assert said == "True"
        assert cache.claimed(outer, ())
        waits = []

        def sleep(seconds):
            waits.append(compiling.clock())
            if len(waits) == 3:
                process.kill()
                process.wait()
            assert len(waits) < 1000

        session.setattr(cache.time, "sleep", sleep)
        assert outer() == 1
        assert len(waits) >= 3
        assert waits[0] == waits[-1]  # it stands still
        assert hold_byte(handle, byte)
        hold_byte(handle, byte, let_go=True)


def test_nobody_waits_for_ever(package, monkeypatch, elsewhere):
    (package / "inner.py").write_text(INNER.format(inline=False, value=7))
    run(monkeypatch)
    forget()
    with monkeypatch.context() as session:
        session.setattr(CacheImpl, "_locator_classes", list(CacheImpl._locator_classes))
        session.setattr(cache, "_PATIENCE", 0.0)
        outer = importlib.import_module("two_kernels.outer").outer
        elsewhere(Path(outer._cache.cache_path) / ".claims", cache._claim_of(outer, ())[1])
        assert outer() == 7


def test_where_nothing_can_be_written_functions_are_compiled(package, monkeypatch):
    (package / "inner.py").write_text(INNER.format(inline=False, value=3))
    monkeypatch.setattr(cache, "_claims", lambda folder: None)
    assert run(monkeypatch) == (3, False)
