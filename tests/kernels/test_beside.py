"""Another process compiles what is listed, for the types that are met, and is never in the way."""

import importlib
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from beliefbound import DirichletBelief, bracket
from beliefbound.bounds import warmup
from beliefbound.kernels import beside
from beliefbound.kernels.beside import compile_beside

BRACKET = """
import importlib, sys
from beliefbound import DirichletBelief, bracket

listed, file = importlib.import_module(sys.argv[1]), sys.argv[2]
belief = DirichletBelief(5, 2, initial=0)
belief = belief.sample(8, 5) if "graph" in sys.argv[1] else belief
bracket(belief, discount=0.95, effort=12, rng=0, threads=2).policy.save(file)  # on one core, too
for function, kinds in listed.jobs():
    assert list(function.overloads) == [kinds], (function, kinds, list(function.overloads))
"""


@pytest.mark.parametrize("listed", ["beliefbound.kernels.graph.jobs", "beliefbound.kernels.particles.jobs"])
def test_what_is_listed_is_what_a_bracket_compiles(listed, tmp_path):
    """For no other types: else it would be compiled twice, and once for nobody. In a process of its own, since other
    tests call kernels with types of theirs."""
    command = [sys.executable, "-c", BRACKET, listed, str(tmp_path / "policy.npz")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


SLOW = """
import sys, time
from numba import int64, njit
from beliefbound.kernels.options import EXACT

@njit(**EXACT)
def first(x):
    return x + 1

@njit(**EXACT)
def broken(x):
    return x.nothing

@njit(**EXACT)
def last(x):
    return x + 2

def jobs(*words):
    yield first, (int64,)
    yield broken, (int64,)
    yield last, (int64,)
    while "stay" in words:
        time.sleep(0.05)
"""


@pytest.fixture
def listed(tmp_path, monkeypatch):
    """A module of jobs, with a cache of its own; every helper that is started is ended."""
    (tmp_path / "listed_kernels.py").write_text(SLOW)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr("numba.config.CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv(beside._HELPER, raising=False)
    monkeypatch.setattr(beside, "_started", set())
    monkeypatch.setattr(beside, "available_threads", lambda: 2)
    started = []
    monkeypatch.setattr(beside.atexit, "register", lambda end, process: started.append(process))
    sys.modules.pop("listed_kernels", None)
    module = __import__("listed_kernels")
    yield module, started
    for process in started:
        beside._end(process)
    del sys.modules["listed_kernels"]


def test_it_is_compiled_there_and_read_here(listed):
    """One that does not compile stops none of the others."""
    module, started = listed
    compile_beside("listed_kernels", needed=module.last)
    (process,) = started
    assert process.wait(120) == 0
    assert (module.first(1), module.last(1)) == (2, 3)
    assert module.first.stats.cache_hits
    assert module.last.stats.cache_hits


def test_it_starts_once_and_only_where_nothing_is_compiled(listed):
    module, started = listed
    module.last(1)
    compile_beside("listed_kernels", needed=module.last)
    assert not started
    compile_beside("listed_kernels", needed=module.first)
    compile_beside("listed_kernels", needed=module.first)
    assert len(started) == 1


@pytest.mark.parametrize("why", ["one core", "no disk", "a helper itself", "no interpreter", "cannot start"])
def test_it_does_not_start(listed, monkeypatch, why):
    module, started = listed
    if why == "one core":
        monkeypatch.setattr(beside, "available_threads", lambda: 1)
    elif why == "no disk":
        monkeypatch.setattr(beside, "EXACT", {"cache": False})
    elif why == "a helper itself":
        monkeypatch.setenv(beside._HELPER, "1")
    elif why == "no interpreter":
        monkeypatch.setattr(sys, "executable", "/usr/bin/an-application")
    else:
        monkeypatch.setattr(sys, "executable", "/nowhere/python3")
    compile_beside("listed_kernels", needed=module.first)
    assert not started
    assert module.first(1) == 2


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="signals of POSIX")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT, signal.SIGSTOP])
def test_one_that_is_killed_interrupted_or_stopped_is_not_missed(listed, how):
    module, started = listed
    compile_beside("listed_kernels", "stay", needed=module.first)
    (process,) = started
    os.kill(process.pid, how)
    assert (module.first(1), module.last(1)) == (2, 3)
    beside._end(process)
    assert process.returncode is not None


def test_it_leaves_with_the_process_that_started_it(listed, tmp_path):
    """However that ends: the pipe between them closes."""
    script = (
        "import os, listed_kernels\n"
        "from beliefbound.kernels import beside\n"
        "beside.available_threads = lambda: 2\n"
        "started = []\n"
        "beside.atexit.register = lambda end, process: started.append(process)\n"
        "beside.compile_beside('listed_kernels', 'stay', needed=listed_kernels.first)\n"
        "print(started[0].pid, flush=True)\n"
        "os._exit(9)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 9, done.stderr
    helper = int(done.stdout)
    for _ in range(1200):
        if not alive(helper):
            break
        time.sleep(0.05)
    assert not alive(helper)


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{pid}/stat") if os.path.exists(f"/proc/{pid}/stat") else open(os.devnull) as file:
        return " Z " not in file.read()


def test_brackets_start_it(monkeypatch):
    asked = []
    monkeypatch.setattr(warmup, "compile_beside", lambda module, *, needed: asked.append((module, needed)))
    belief = DirichletBelief(2, 2, initial=0)
    for each in (belief.sample(2, 1), belief):
        found = bracket(each, discount=0.5, effort=1, rng=0)
        assert np.isfinite(found.upper.value)
    assert [module for module, _ in asked] == ["beliefbound.kernels.graph.jobs", "beliefbound.kernels.particles.jobs"]
    for module, needed in asked:
        assert needed in [function for function, _ in importlib.import_module(module).jobs()]
