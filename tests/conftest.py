"""What holds for every test."""

import signal

# Whoever runs the tests in the background may have Ctrl-C ignored; tests that press it mean the usual answer.
signal.signal(signal.SIGINT, signal.default_int_handler)
