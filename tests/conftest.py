"""What holds for every test."""

import os
import signal

# Whoever runs the tests in the background may have Ctrl-C ignored; tests that press it mean the usual answer.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Compiled code counts the arrays that it makes; tests/agents/test_play.py looks. Before anything imports numba.
os.environ["NUMBA_NRT_STATS"] = "1"
