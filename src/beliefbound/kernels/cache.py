"""Compiled functions on disk: as new as all that they are made of, and compiled by one process at a time.

*As new as their sources.* numba keeps the machine code of a function beside its source, with a stamp of the function's
own file, and compiles again when that stamp differs. But the code of the kernels that it calls or inlines, and the
constants and classes that it uses, come from other files: when only those change, by an upgrade or an edit, the old
code would go on running. So the names of our files have a digest of the function's file and of all of ours that it
imports, directly or not, as far as they hold what is compiled (`sources`). Files of other digests are never read; those
of the same module are removed. A change in one agent does not touch the code of another.

*Once.* A process that needs a function which another is compiling waits for it and then reads it (`compile_once`). And
since numba chooses a free file name without a lock, so that two processes that save one function for different
arguments may choose the same, they save one after the other (`save_one_at_a_time`). A process that is killed lets go.

*Or not at all.* A function's list of what is kept names the classes of its arguments, which may live in files that it
does not import. Where one of them has moved since, the list counts as empty (`forget_unreadable`).

All this hooks into parts of numba that are not public, among them the list of locators that it asks, in turn, where a
function is cached. Where they are missing, or `NUMBA_CACHE_LOCATOR_CLASSES` replaces them, `keep_compiled` says so, and
nothing of ours is kept on disk: each process compiles for itself, and never runs old code.
"""

import contextlib
import functools
import hashlib
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

from beliefbound.base.io.lock import hold, hold_byte
from beliefbound.kernels.compiling import paused

PACKAGE = Path(__file__).parents[1]
COMPILED = (
    "kernels",
    "lab/agents",
)  # rooms of the package that hold what is compiled; other files do if they import numba
_PATIENCE = 120.0  # seconds to wait for another process that compiles; none of ours takes a tenth of it


@functools.cache
def sources(file: Path) -> frozenset[Path]:
    """A file and those of ours that it imports, directly or not, and that hold what is compiled."""
    found, todo = set[Path](), [file]
    while todo:
        here = todo.pop()
        if here not in found:
            found.add(here)
            todo += _imports(here)
    return frozenset(found)


@functools.cache
def _imports(file: Path) -> list[Path]:
    ours = rf"({PACKAGE.name}[\w.]*)"
    names = set[str]()
    for package, imported, alone in re.findall(
        rf"^\s*(?:from {ours} import (\([^)]*\)|.*)|import {ours})", _text(file), re.MULTILINE
    ):
        names.add(package or alone)
        names.update(f"{package}.{name}" for name in re.findall(r"\w+", imported))
    files = [PACKAGE.parent.joinpath(*name.split(".")).with_suffix(".py") for name in sorted(names)]
    return [each for each in files if each.is_file() and _is_compiled(each)]


def _is_compiled(file: Path) -> bool:
    if any(PACKAGE / room in file.parents for room in COMPILED):
        return True
    return re.search(r"^(from|import) numba\b", _text(file), re.MULTILINE) is not None


def _stamps(folder: str) -> Iterator[tuple[str, int]]:
    """Python files below a folder, and when they were written."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir() and entry.name != "__pycache__":
                yield from _stamps(entry.path)
            elif entry.name.endswith(".py"):
                yield entry.path, entry.stat().st_mtime_ns


@functools.cache
def _began() -> dict[str, int]:
    """When our files were written, as this process found them when it began."""
    return dict(_stamps(str(PACKAGE)))


@functools.cache
def _text(file: Path) -> str:
    """What a file says; with a mark of this process where it may not be what was imported, having been written since:
    what is compiled from the old text must not be taken for the new one's."""
    try:
        text, stamp = file.read_text(encoding="utf-8"), file.stat().st_mtime_ns
    except (OSError, ValueError):  # typed in by hand, or no Python
        return ""
    if _is_ours(file) and _began().get(str(file)) != stamp:
        text += f"\n# written after process {os.getpid()} began to read, seen at {time.time_ns()}"
    return text


@functools.cache
def digest(files: frozenset[Path]) -> str:
    """Of the contents of files, and of where they are below the package."""
    total = hashlib.sha256()
    for file in sorted(files):
        name = file.relative_to(PACKAGE).as_posix() if _is_ours(file) else file.name
        total.update(f"{name} {len(_text(file))}\n{_text(file)}".encode())
    return total.hexdigest()[:16]


@functools.cache
def _is_ours(file: Path) -> bool:
    return file.is_relative_to(PACKAGE)


def files_of(function: Any, file: str) -> frozenset[Path]:
    """What a function's code is made of: the sources of its file, and of the compiled functions that it names."""
    codes = (getattr(getattr(x, "py_func", None), "__code__", None) for x in list(function.__globals__.values()))
    return _sources_of(frozenset([file, *(code.co_filename for code in codes if code is not None)]))


@functools.cache
def _sources_of(files: frozenset[str]) -> frozenset[Path]:
    return frozenset().union(*(sources(Path(os.path.abspath(file))) for file in files))


def keep_compiled() -> bool:
    """From here on, functions made of our sources are kept on disk under names that depend on them; false where that
    cannot be, and nothing may be kept."""
    _began()
    try:
        from numba.core import config
        from numba.core.caching import CacheImpl, IndexDataCacheFile
        from numba.core.compiler_lock import global_compiler_lock
        from numba.core.dispatcher import Dispatcher

        locators, save, compile = CacheImpl._locator_classes, IndexDataCacheFile.save, Dispatcher.compile
        load = IndexDataCacheFile._load_index
    except (ImportError, AttributeError):
        return False
    if getattr(config, "CACHE_LOCATOR_CLASSES", ""):
        return False
    if not any(each.__module__ == __name__ for each in locators):
        locators.insert(0, _locator(locators))
    if not hasattr(save, "__wrapped__"):
        IndexDataCacheFile.save = save_one_at_a_time(save)
        IndexDataCacheFile._load_index = forget_unreadable(load)
        setattr(Dispatcher, "compile", compile_once(compile, global_compiler_lock))  # noqa: B010
    return True


def _locator(locators: list[Any]) -> type:
    tidied = set[tuple[str, str]]()

    class Locator:
        """The locator numba would take, with the digest in its names."""

        @staticmethod
        def from_function(py_func, py_file):
            files = files_of(py_func, py_file)
            if not any(map(_is_ours, files)):
                return None
            found = (each.from_function(py_func, py_file) for each in locators if each.__module__ != __name__)
            locator = next((each for each in found if each is not None), None)
            if locator is not None:
                tag, own = digest(files), locator.get_disambiguator
                locator.get_disambiguator = lambda: f"{own()}-{tag}"
                locator.tag = tag
                place = locator.get_cache_path(), Path(py_file).stem
                if place not in tidied and _is_ours(Path(os.path.abspath(py_file))):
                    tidied.add(place)
                    remove_others(*place, tag)
            return locator

    return Locator


def remove_others(folder: str, module: str, tag: str) -> None:
    """Remove compiled functions of a module whose names lack the tag, as far as that is possible."""
    with contextlib.suppress(OSError):
        for file in Path(folder).glob(f"{module}.*.nb[ic]"):
            if tag not in file.name:
                file.unlink(missing_ok=True)


def save_one_at_a_time(save: Any) -> Any:
    """`save(file, key, data)` while no other such process saves in that folder."""

    @functools.wraps(save)
    def locked(self, key, data):
        with contextlib.ExitStack() as held:
            with contextlib.suppress(OSError, AttributeError):  # no lock then, as numba would
                handle = os.open(Path(self._cache_path) / ".lock", os.O_RDWR | os.O_CREAT, 0o666)
                held.callback(os.close, handle)
                hold(handle, wait=True)
            save(self, key, data)

    return locked


def forget_unreadable(load: Any) -> Any:
    """`load(file)`, the functions that a file lists; none where it names a class that is gone, or is cut off."""

    @functools.wraps(load)
    def tolerant(self):
        try:
            return load(self)
        except (AttributeError, ImportError, EOFError, UnpicklingError):
            return {}

    return tolerant


def compile_once(compile: Any, lock: Any) -> Any:
    """`compile(dispatcher, signature)` while no other process compiles the same; what it has compiled is read. What a
    process claims it compiles at once: a thread that waits for numba's `lock` claims nothing."""

    @functools.wraps(compile)
    def waiting(self, sig):
        claim = None if sig in self.overloads else _claim_of(self, sig)
        if claim is None:
            return compile(self, sig)
        with lock, _held(*claim):
            return compile(self, sig)

    return waiting


def is_kept(dispatcher: Any) -> bool:
    """Whether a function is on disk, for some arguments; true where it would not be kept."""
    file = getattr(dispatcher._cache, "_cache_file", None)
    return file is None or os.path.exists(file._index_path)


def claimed(dispatcher: Any, sig: Any) -> bool:
    """Whether another process compiles a function for these arguments."""
    claim = _claim_of(dispatcher, sig)
    held = None if claim is None else hold_byte(*claim)
    if claim is not None and held:
        hold_byte(*claim, let_go=True)
    return held is False


def _claim_of(dispatcher: Any, sig: Any) -> tuple[int, int] | None:
    """The byte, of an open file, that stands for a function and its arguments; `None` if it is not ours."""
    locator: Any = getattr(getattr(dispatcher._cache, "_impl", None), "locator", None)
    if not hasattr(locator, "tag"):
        return None
    handle, what = _claims(locator.get_cache_path()), f"{dispatcher._cache._impl.filename_base} {sig}"
    return None if handle is None else (handle, int(hashlib.sha256(what.encode()).hexdigest()[:7], 16))


@contextlib.contextmanager
def _held(handle: int, byte: int) -> Iterator[None]:
    """Wait until no other process holds a byte, and hold it; with no such locks, or no end, go on."""
    if hold_byte(handle, byte) is False:
        with paused():
            end = time.monotonic() + _PATIENCE
            while hold_byte(handle, byte) is False and time.monotonic() < end:
                time.sleep(0.01)
    try:
        yield
    finally:
        hold_byte(handle, byte, let_go=True)


@functools.cache
def _claims(folder: str) -> int | None:
    """The file whose bytes are claims. It stays open: to close it would let go of all of them."""
    try:
        return os.open(os.path.join(folder, ".claims"), os.O_RDWR | os.O_CREAT, 0o666)
    except OSError:
        return None
