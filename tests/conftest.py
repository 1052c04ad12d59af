"""What holds for every test."""

import os
import signal
from pathlib import Path

# Whoever runs the tests in the background may have Ctrl-C ignored; tests that press it mean the usual answer.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Tests that run side by side keep compiled code apart: two processes that save one function for different arguments at
# the same moment can spoil numba's index of it. Before anything imports numba.
if worker := os.environ.get("PYTEST_XDIST_WORKER"):
    os.environ["NUMBA_CACHE_DIR"] = str(Path(__file__).parents[1] / ".kernels" / worker)

# Compiled code counts the arrays that it makes; tests/agents/test_play.py looks.
os.environ["NUMBA_NRT_STATS"] = "1"
