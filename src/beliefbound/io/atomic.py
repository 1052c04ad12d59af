"""Write a file aside and rename it: a reader sees the old content or the new, never half of it."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from beliefbound.errors import FileError

PREFIX = ".writing-"


def write_aside(path: Path, write: Callable[[Path], object]) -> None:
    """Call `write` with a temporary path beside `path`, then rename it into place.

    A full disk or a missing permission becomes a `FileError` that names the file; what was there before stays.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=PREFIX, suffix=path.suffix, dir=path.parent)
        os.close(handle)
    except OSError as cause:
        raise FileError(f"cannot write {path}: {cause.strerror or cause}; choose a folder you can write to") from None
    aside = Path(name)
    try:
        write(aside)
        with aside.open("rb") as done:
            os.fsync(done.fileno())
        umask = os.umask(0)
        os.umask(umask)
        aside.chmod(0o666 & ~umask)
        aside.replace(path)
    except OSError as cause:
        raise FileError(
            f"cannot write {path}: {cause.strerror or cause}; nothing already written is lost: make room and run again"
        ) from None
    finally:
        aside.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text aside and rename it."""
    write_aside(path, lambda aside: aside.write_text(text, encoding="utf-8"))


def clean(folder: Path) -> None:
    """Remove what an interrupted writer left behind."""
    for left in folder.rglob(f"{PREFIX}*"):
        left.unlink(missing_ok=True)
