"""One folder, one result: what is in a folder belongs together.

A result is written aside, in a hidden folder inside its own, and put into place when it is complete. Until then what
was there is untouched, however the work ends. Then the files of the result that was there before go: those that its
`contents.json` lists and that are unchanged since. Nobody else's file is ever removed, nor one that somebody edited.

    format    "beliefbound contents"
    job       what made the result: bound, robust, plan, paper, run or league
    files     SHA-256 of each file, by its name; `/` between a folder inside and a name
"""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

import msgspec

from beliefbound.base.errors import FileError
from beliefbound.base.io.atomic import check_writable, write_bytes, write_text
from beliefbound.base.io.lock import hold, is_abandoned

CONTENTS = "contents.json"
FORMAT = "beliefbound contents"
_PREFIX, _LOCK = ".unfinished-", ".lock"


class Contents(msgspec.Struct, forbid_unknown_fields=True):
    """What `contents.json` holds."""

    format: str
    job: str
    files: dict[str, str]


@contextmanager
def one_result(folder: Path, job: str, *, last: str) -> Iterator[Path]:
    """A folder to write a result into. When the block ends without an error, its files take the place of the earlier
    result's in `folder`, `last` after all others: a folder without it holds no result."""
    check_writable(folder)
    for left in folder.glob(f"{_PREFIX}*"):
        if is_abandoned(left / _LOCK):  # its writer was killed
            shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=_PREFIX, dir=folder) as held:
        aside = Path(held)
        handle = os.open(aside / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            hold(handle)
            yield aside
            write_contents(aside, job)
            _put(aside, folder, last)
        finally:
            os.close(handle)


def write_contents(folder: Path, job: str) -> None:
    """Write `contents.json` of a folder in which nothing but one result is."""
    files = {name: digest(folder / name) for name in names_in(folder)}
    text = msgspec.json.format(msgspec.json.encode(Contents(FORMAT, job, files)), indent=2).decode()
    write_text(folder / CONTENTS, text + "\n")


def names_in(folder: Path) -> list[str]:
    """Files of a folder and of folders inside it, but for the list of them."""
    found = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return sorted(name for name in found if name not in (CONTENTS, _LOCK))


def read_contents(folder: Path) -> Contents | None:
    """The list of a folder's result; `None` where there is none that can be read."""
    try:
        found = msgspec.json.decode((folder / CONTENTS).read_bytes(), type=Contents)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return found if found.format == FORMAT else None


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _earlier(folder: Path) -> set[str]:
    """Files of the result in a folder, unchanged since it was written; never a link, never outside the folder."""
    listed = read_contents(folder)
    ours = set()
    for name, known in ({} if listed is None else listed.files).items():
        place = PurePosixPath(name)
        path = folder / place
        if place.is_absolute() or ".." in place.parts or path.parent.resolve() != folder.resolve() / place.parent:
            continue
        with suppress(OSError, ValueError):
            if path.is_file() and not path.is_symlink() and digest(path) == known:
                ours.add(name)
    return ours


def _put(aside: Path, folder: Path, last: str) -> None:
    names = names_in(aside)
    for name in (*names, CONTENTS):
        if (path := folder / name).exists() and not path.is_file():
            raise FileError(f"cannot write {path}: it is no file; give another folder for the results")
    before = _earlier(folder)
    try:
        for name in {last} & before:
            (folder / name).unlink()
        for name in sorted(before - {*names}):
            (folder / name).unlink()
            if (inside := (folder / name).parent) != folder:
                with suppress(OSError):  # somebody else's files are in it
                    inside.rmdir()
        for name in sorted((*names, CONTENTS), key=lambda name: name == last):
            _move(aside / name, folder / name)
    except OSError as cause:
        raise FileError(f"cannot write into {folder}: {cause.strerror or cause}; run it again") from None


def _move(path: Path, target: Path) -> None:
    if target.is_symlink():  # the file that it leads to is written
        write_bytes(target, path.read_bytes())
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    path.replace(target)
