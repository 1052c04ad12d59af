"""Compile beside: another process compiles what this one will need, and this one reads it.

numba compiles on one core. Where nothing is compiled yet and there is a second core, `compile_beside` starts a process
of its own, `python -m beliefbound.kernels.beside MODULE WORDS`, which compiles the functions that `MODULE.jobs(*WORDS)`
lists, for the types of their arguments, and keeps them on disk. Neither compiles what the other has begun
(`kernels.cache.compile_once`): a process that needs such a function waits for it.

It changes no result and is never needed: where it cannot start, is killed, or compiles for types that nobody asks for,
everything is compiled here, as it would have been. It says nothing, is no fork of this process, and leaves with it.
"""

import atexit
import contextlib
import importlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from beliefbound.base.executors.threads import available_threads
from beliefbound.kernels.cache import claimed, is_kept
from beliefbound.kernels.options import EXACT

Job = tuple[Any, tuple[Any, ...]]  # a compiled function, and the types of its arguments
_HELPER = "BELIEFBOUND_HELPER"  # set in a process that compiles beside another
_started = set[tuple[str, ...]]()


def compile_beside(module: str, *words: str, needed: Any) -> None:
    """Start a process that compiles `module.jobs(*words)`, once, if `needed`, one of them, is not kept on disk."""
    job = (module, *words)
    if job in _started or os.environ.get(_HELPER) or not EXACT["cache"] or is_kept(needed):
        return
    _started.add(job)
    if available_threads() < 2 or not Path(sys.executable or "").stem.lower().startswith("python"):
        return
    paths = os.pathsep.join(path for path in sys.path if path)
    with contextlib.suppress(OSError):
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "beliefbound.kernels.beside", *job],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": paths, _HELPER: "1"},
        )
        atexit.register(_end, process)


def compiles_beside() -> bool:
    """Whether this process has started one. Two beside it would be in its way."""
    return bool(_started)


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    if process.stdin is not None:
        process.stdin.close()
    process.wait()


def main() -> None:
    """In the other process: compile what nobody else does, until all is done or the first process is gone."""
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    module, *words = sys.argv[1:]
    for function, kinds in _jobs(module, words):
        if not claimed(function, kinds):
            with contextlib.suppress(Exception):  # who needs it meets the same, and says so
                function.compile(kinds)


def _jobs(module: str, words: list[str]) -> Iterator[Job]:
    found: Iterator[Job] = importlib.import_module(module).jobs(*words)
    return found


def _leave_with_parent() -> None:
    os.read(0, 1)  # nothing is ever written: the pipe closes when the first process ends, however it does
    os._exit(0)


if __name__ == "__main__":
    main()
