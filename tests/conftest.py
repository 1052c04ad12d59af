"""What holds for every test."""

import gc
import os
import signal
import subprocess
import sys

# Whoever runs the tests in the background may have Ctrl-C ignored; tests that press it mean the usual answer.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Compiled code counts the arrays that it makes; tests/engine/test_play.py looks. Before anything imports numba.
os.environ["NUMBA_NRT_STATS"] = "1"

# Most of the time goes into compiling, which makes millions of objects: the usual thresholds spend a seventh of it on
# walking over those that stay.
gc.set_threshold(50_000, 10, 10)


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
