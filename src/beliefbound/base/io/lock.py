"""Locks that die with their process: `flock` on an open file, which the kernel lets go however the process ends.

Some network filesystems, and Windows, have no such locks. There nobody is refused and nothing is taken for abandoned:
two processes may then do the same work twice, and a killed writer's temporary file stays until somebody deletes it.
"""

import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from beliefbound.base.errors import FileError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


def hold(handle: int, *, wait: bool = False) -> bool | None:
    """Lock an open file until it is closed; false if another process has it, `None` where there are no locks."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def hold_byte(handle: int, byte: int, *, let_go: bool = False) -> bool | None:
    """Lock one byte of an open file, which need not exist, or let go of it; false if another process has it, `None`
    where there are no locks. Threads of one process do not keep one another out."""
    if fcntl is None:
        return None
    try:
        fcntl.lockf(handle, fcntl.LOCK_UN if let_go else fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:
        return None
    return True


def is_abandoned(path: Path) -> bool:
    """Whether a file that its writer keeps locked is locked no longer."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        return hold(handle) is True
    finally:
        os.close(handle)


@contextmanager
def only_one(path: Path, work: str) -> Iterator[None]:
    """Hold the lock file `path`, or fail saying which process does `work` already. The file stays, empty."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as cause:
        raise FileError(f"cannot write {path}: {cause.strerror or cause}; choose a folder you can write to") from None
    try:
        if hold(handle) is False:
            owner = os.read(handle, 1000).decode(errors="replace").strip() or "another process"
            raise FileError(f"{owner} is {work}; wait until it ends, or choose another folder")
        with suppress(OSError):  # a full disk: the lock holds without its owner's name
            os.ftruncate(handle, 0)
            os.lseek(handle, 0, os.SEEK_SET)
            os.write(handle, f"process {os.getpid()} on {socket.gethostname()}, since {time.ctime()},\n".encode())
        try:
            yield
        finally:
            with suppress(OSError):
                os.ftruncate(handle, 0)
    finally:
        os.close(handle)
