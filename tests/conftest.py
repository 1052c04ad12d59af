"""What holds for every test."""

import gc
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

# Whoever runs the tests in the background may have Ctrl-C ignored; tests that press it mean the usual answer.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Compiled code counts the arrays that it makes; tests/engine/test_play.py looks. Before anything imports numba.
os.environ["NUMBA_NRT_STATS"] = "1"

# Most of the time goes into compiling, which makes millions of objects: the usual thresholds spend a seventh of it on
# walking over those that stay.
gc.set_threshold(50_000, 10, 10)


# Every agent's own file is for the full tier but for one agent of each family of kernels, and those of the paper.
REPRESENTATIVES = {"exploit", "mcbrl", "beb", "boss", "bamcp", "sem", "qlearning", "random", "oracle", "policy"}
AGENTS = Path(__file__).parent / "agents"


def pytest_collection_modifyitems(items):
    """Put agents into their tier."""
    for item in items:
        if item.path.parent == AGENTS and item.path.stem.removeprefix("test_") not in REPRESENTATIVES:
            item.add_marker(pytest.mark.full)


def pytest_collection_finish():
    """What was imported and collected stays to the end: no walk over it either."""
    gc.freeze()


def pytest_configure(config):
    """Tests side by side begin with quantecon's compiled code on disk, whole.

    It compiles as it is imported and keeps each function in two files that name one another. Two processes that
    import it at once leave one file of each, and from then on every import of it aborts.
    """
    if getattr(config.option, "numprocesses", None) and not hasattr(config, "workerinput"):
        subprocess.run([sys.executable, "-c", "import quantecon"], check=True)
