"""What holds for every test."""

import gc
import importlib.util
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes is no reason to fail.
settings.register_profile("here", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("here")

# Whoever runs the tests in the background may have Ctrl-C ignored; tests that press it mean the usual answer.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Compiled code counts the arrays that it makes; tests/lab/engine/test_play.py looks. Before anything imports numba.
os.environ["NUMBA_NRT_STATS"] = "1"

# Most of the time goes into compiling, which makes millions of objects: the usual thresholds spend a seventh of it on
# walking over those that stay.
gc.set_threshold(50_000, 10, 10)


# The tiers: `make test` runs what is not marked `full`, `make test-all` that too. Tests and files mark themselves; only
# every agent's own file is marked here, but for one of each larger family of kernels, and examples that need packages
# which the first tier does not install, or compile for long what nothing else there does.
REPRESENTATIVES = {"exploit", "mcbrl", "beb", "boss", "bamcp", "qlearning", "random", "oracle", "policy"}
EXAMPLES = {"src/beliefbound/models/convert/quantecon.py", "src/beliefbound/beliefs/population.py"}
ROOT = Path(__file__).parent.parent
AGENTS = "tests/lab/agents"
# What compiles most comes first, each in a process of its own: the others then find it compiled, and the small ones at
# the end fill the cores evenly.
EARLY = (
    "tests/bounds/test_bracket.py",
    "tests/bounds/dirichlet/test_any_posterior.py",
    AGENTS,
    "tests/bounds/dirichlet",
    "tests/bounds",
    "tests",
)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config):
    """As many as cores, four at most; in the first tier one more, since one often waits for what another compiles. (In
    the full one Ray has workers of its own.)"""
    return min(4, (os.cpu_count() or 1) + (config.option.markexpr == "not full"))


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path):
    """A file of tests is only that: its docstrings are not searched for examples."""
    found = yield
    return [each for each in found if type(each) is pytest.Module or not file_path.name.startswith("test_")]


def pytest_collection_modifyitems(items):
    """Mark what belongs to the full tier and cannot say so itself; put everything in order."""
    first = {f"{AGENTS}/test_{name}.py" for name in REPRESENTATIVES}
    places = {item: os.path.relpath(item.path, ROOT) for item in items}
    for item, place in places.items():
        if (place.startswith(AGENTS) and place not in first) or place in EXAMPLES:
            item.add_marker(pytest.mark.full)
    items.sort(key=lambda item: [places[item].startswith(early) for early in EARLY], reverse=True)


class Clock:
    """Time that passes when somebody says so, and `step` seconds at every look."""

    def __init__(self):
        self.now, self.step = 0.0, 0.0

    def __call__(self):
        self.now += self.step
        return self.now


@pytest.fixture
def clock(monkeypatch):
    """In place of the computer's: what takes how long does not depend on the machine."""
    clock = Clock()
    monkeypatch.setattr("time.perf_counter", clock)
    return clock


def pytest_collection_finish():
    """What was imported and collected stays to the end: no walk over it either."""
    gc.freeze()


def pytest_configure(config):
    """Tests of the full tier side by side begin with quantecon's compiled code on disk, whole.

    It compiles as it is imported and keeps each function in two files that name one another. Two processes that
    import it at once leave one file of each, and from then on every import of it aborts.
    """
    alone = not getattr(config.option, "numprocesses", None) or hasattr(config, "workerinput")
    if not alone and config.option.markexpr != "not full" and importlib.util.find_spec("quantecon"):
        subprocess.run([sys.executable, "-c", "import quantecon"], check=True)
