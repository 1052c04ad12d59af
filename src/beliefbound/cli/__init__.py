"""The command line, one file per command: parse, call one function, print.

Heavy imports happen inside commands, so `--help` is instant. Commands appear in the order of the imports below.
"""

import atexit
import gc
import os
import sys
import threading

from beliefbound.base.errors import BeliefboundError
from beliefbound.cli.app import app

# isort: off
from beliefbound.cli import paper  # noqa: F401
from beliefbound.cli import bound  # noqa: F401
from beliefbound.cli import verify  # noqa: F401
from beliefbound.cli import certify  # noqa: F401
from beliefbound.cli import robust  # noqa: F401
from beliefbound.cli import plan  # noqa: F401
from beliefbound.cli import imitate  # noqa: F401
from beliefbound.cli import compare  # noqa: F401
from beliefbound.cli import convert  # noqa: F401
from beliefbound.cli import experiment  # noqa: F401
from beliefbound.cli import league  # noqa: F401
from beliefbound.cli import names  # noqa: F401
# isort: on

__all__ = ["app", "command", "main"]

_OBJECTS = 50_000  # made between two walks of the garbage collector: at 700 they take a tenth of the time of compiling


def command() -> None:
    """The program `beliefbound`: `main`, and the process ends. What was loaded is not taken apart first, object by
    object, which takes a fifth of the time of a short command."""
    try:
        main()
    except SystemExit as end:
        if isinstance(end.code, str) or threading.active_count() > 1:  # Python says the one and waits for the other
            raise
        atexit._run_exitfuncs()
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except OSError:  # Python says so
            raise end from None
        os._exit(end.code or 0)


def main() -> None:
    """Entry point: user mistakes end with one clear line and exit code 1, never with a traceback."""
    gc.set_threshold(_OBJECTS)
    try:
        app()
    except BeliefboundError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
    except MemoryError:
        print("error: not enough memory; give a smaller problem, or fewer models, runs or threads", file=sys.stderr)
        sys.exit(1)
