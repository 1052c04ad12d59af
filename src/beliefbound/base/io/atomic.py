"""Write a file aside and rename it: a reader sees the old content or the new, never half of it."""

import io
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from beliefbound.base.errors import FileError
from beliefbound.base.io.lock import hold, is_abandoned

if TYPE_CHECKING:
    import polars as pl

PREFIX = ".writing-"


def write_aside(path: Path, write: Callable[[Path], object]) -> None:
    """Call `write` with a temporary path beside `path`, then rename it into place.

    A full disk or a missing permission becomes a `FileError` that names the file; what was there before stays. The
    temporary file is locked while it is written, so that nobody takes it for one left behind. What is no file, such as
    a device, is not replaced; where a link stands, the file that it leads to is.
    """
    try:
        path = path.resolve() if path.is_symlink() else path
        if path.exists() and not path.is_file():
            raise FileError(
                f"cannot write {path}: it is {'a folder' if path.is_dir() else 'no file'}; give a file's name"
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=PREFIX, suffix=path.suffix, dir=path.parent)
    except OSError as cause:
        raise FileError(f"cannot write {path}: {cause.strerror or cause}; choose a folder you can write to") from None
    aside = Path(name)
    try:
        hold(handle, wait=True)
        write(aside)
        with aside.open("rb") as done:
            os.fsync(done.fileno())
        umask = os.umask(0)
        os.umask(umask)
        aside.chmod(0o666 & ~umask)
        aside.replace(path)
    except OSError as cause:
        reason = cause.strerror or str(cause).splitlines()[0]
        raise FileError(
            f"cannot write {path}: {reason}; nothing already written is lost: make room and run again"
        ) from None
    finally:
        aside.unlink(missing_ok=True)
        os.close(handle)


def write_bytes(path: Path, data: bytes) -> None:
    """Write bytes aside and rename them."""
    write_aside(path, lambda aside: aside.write_bytes(data))


def as_parquet(frame: "pl.DataFrame") -> bytes:
    """A frame as the bytes of a parquet file: made in memory, so that only the writing of them can fail."""
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text aside and rename it."""
    write_bytes(path, text.encode())


def check_writable(folder: Path) -> None:
    """Make the folder if it is missing, and fail now, not after hours of work, if no file can be written there."""
    if folder.exists() and not folder.is_dir():
        raise FileError(f"{folder} is a file; give a folder for the results")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(prefix=PREFIX, dir=folder) as probe:
            probe.write(b"x")
    except OSError as cause:
        raise FileError(
            f"cannot write into {folder}: {cause.strerror or cause}; choose a folder you can write to"
        ) from None


def clean(folder: Path) -> None:
    """Remove what writers that no longer live left behind; a file somebody is writing stays."""
    for left in folder.rglob(f"{PREFIX}*"):
        if is_abandoned(left):
            left.unlink(missing_ok=True)
