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
from typing import Any

from beliefbound.io.lock import hold, hold_byte
from beliefbound.kernels.compiling import paused

ROOT = Path(__file__).parents[2]  # where `beliefbound` is
COMPILED = tuple(ROOT / "beliefbound" / room for room in ("kernels", "agents"))  # rooms that hold what is compiled
_IMPORT = re.compile(r"^\s*(?:from (beliefbound[\w.]*) import (\([^)]*\)|.*)|import (beliefbound[\w.]*))", re.MULTILINE)
_PATIENCE = 120.0  # seconds to wait for another process that compiles; none of ours takes a tenth of it


@functools.cache
def sources(file: Path) -> frozenset[Path]:
    """A file and those of ours that it imports, directly or not: kernels, agents, and others that import numba."""
    found, todo = set[Path](), [file]
    while todo:
        here = todo.pop()
        if here not in found:
            found.add(here)
            todo += [each for each in _imports(here) if each not in found]
    return frozenset(found)


@functools.cache
def _imports(file: Path) -> list[Path]:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, ValueError):  # typed in by hand, or no Python
        return []
    names = set[str]()
    for package, imported, alone in _IMPORT.findall(text):
        names.add(package or alone)
        names.update(f"{package}.{name}" for name in re.findall(r"\w+", imported))
    files = [ROOT.joinpath(*name.split(".")).with_suffix(".py") for name in sorted(names)]
    return [each for each in files if each.is_file() and _is_compiled(each)]


def _is_compiled(file: Path) -> bool:
    if any(room in file.parents for room in COMPILED):
        return True
    return re.search(r"^(from|import) numba\b", file.read_text(encoding="utf-8"), re.MULTILINE) is not None


def digest(files: frozenset[Path]) -> str:
    """Of the contents of files, and of where they are below the package."""
    total = hashlib.sha256()
    for file in sorted(files):
        with contextlib.suppress(OSError):
            content = file.read_bytes()
            name = file.relative_to(ROOT).as_posix() if file.is_relative_to(ROOT) else file.name
            total.update(f"{name} {len(content)}\n".encode())
            total.update(content)
    return total.hexdigest()[:16]


def files_of(function: Any, file: str) -> frozenset[Path]:
    """What a function's code is made of: the sources of its file, and of the compiled functions that it names."""
    homes = {Path(os.path.abspath(file))}
    for value in list(function.__globals__.values()):
        code = getattr(getattr(value, "py_func", None), "__code__", None)
        if code is not None:
            homes.add(Path(os.path.abspath(code.co_filename)))
    return frozenset().union(*map(sources, homes))


def keep_compiled() -> bool:
    """From here on, functions made of our sources are kept on disk under names that depend on them; false where that
    cannot be, and nothing may be kept."""
    try:
        from numba.core import config
        from numba.core.caching import CacheImpl, IndexDataCacheFile
        from numba.core.dispatcher import Dispatcher

        locators = CacheImpl._locator_classes
        replaced = bool(config.CACHE_LOCATOR_CLASSES)
        save, compile = IndexDataCacheFile.save, Dispatcher.compile
    except (ImportError, AttributeError):
        return False
    if replaced:
        return False
    if not any(each.__module__ == __name__ for each in locators):
        locators.insert(0, _locator(locators))
        IndexDataCacheFile.save = save_one_at_a_time(save)
        Dispatcher.compile = compile_once(compile)
    return True


def _locator(locators: list[Any]) -> type:
    tidied, tags = set[tuple[str, str]](), dict[frozenset[Path], str]()

    class Locator:
        """The locator numba would take, with the digest in its names."""

        @staticmethod
        def from_function(py_func, py_file):
            files = files_of(py_func, py_file)
            if not any(file.is_relative_to(ROOT / "beliefbound") for file in files):
                return None
            found = (each.from_function(py_func, py_file) for each in locators if each.__module__ != __name__)
            locator = next((each for each in found if each is not None), None)
            if locator is not None:
                tag, own = tags.setdefault(files, digest(files)), locator.get_disambiguator
                locator.get_disambiguator = lambda: f"{own()}-{tag}"
                locator.tag = tag
                place = locator.get_cache_path(), Path(py_file).stem
                if place not in tidied and Path(py_file).is_relative_to(ROOT / "beliefbound"):
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


def compile_once(compile: Any) -> Any:
    """`compile(dispatcher, signature)` while no other process compiles the same; what it has compiled is read."""

    @functools.wraps(compile)
    def waiting(self, sig):
        if sig in self.overloads or not hasattr(getattr(self._cache, "_impl", None), "locator"):
            return compile(self, sig)
        locator, name = self._cache._impl.locator, self._cache._impl.filename_base
        with _claim(locator.get_cache_path(), f"{name} {sig}") if hasattr(locator, "tag") else contextlib.nullcontext():
            return compile(self, sig)

    return waiting


@contextlib.contextmanager
def _claim(folder: str, what: str) -> Iterator[None]:
    """Wait until no other process has claimed a function, and claim it; with no such locks, or no end, go on."""
    byte, handle = int(hashlib.sha256(what.encode()).hexdigest()[:7], 16), _claims(folder)
    if handle is None:
        yield
        return
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
