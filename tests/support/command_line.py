"""The command line: as a person runs it, in a process of its own, and in this process, which has everything loaded."""

import contextlib
import gc
import io
import os
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

from beliefbound.cli import main

PLAIN = {"COLUMNS": "160", "NO_COLOR": "1"}


def beliefbound(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """In a process of its own: for what plug-ins leave behind, and once for every way to end."""
    return subprocess.run(
        [sys.executable, "-c", "from beliefbound.cli import command; command()", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, **PLAIN},
    )


def command(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """In this process, by the same entry point: seconds faster."""
    out, errors, code, collected = io.StringIO(), io.StringIO(), 0, gc.get_threshold()
    with contextlib.ExitStack() as held:
        held.enter_context(contextlib.chdir(cwd or Path.cwd()))
        held.enter_context(contextlib.redirect_stdout(out))
        held.enter_context(contextlib.redirect_stderr(errors))
        held.enter_context(patch.dict(os.environ, PLAIN))
        held.enter_context(patch.object(sys, "argv", ["beliefbound", *map(str, arguments)]))
        held.callback(gc.set_threshold, *collected)
        try:
            main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
    return subprocess.CompletedProcess(sys.argv, code, out.getvalue(), errors.getvalue())
