"""Compiled kernels on disk, out of date as soon as any kernel's source is.

numba keeps the machine code of a function beside its source, with a stamp of the function's own file, and compiles
again when that stamp differs. But the code of the kernels it calls or inlines is in there too: when only their file
changes, by an upgrade or an edit, the old code would go on running; and where a class among the arguments has moved,
reading the old index fails. `name_by_sources` puts a digest of all sources of a package into the names of its files,
and of the files of those who use it, wherever numba keeps them (`__pycache__`, `NUMBA_CACHE_DIR`, or the user's cache
folder where the package is read-only). Files of other sources are never read, and are removed if they are ours; a
process that outlives an upgrade compiles again.

This hooks into the list of locators that numba asks, in turn, where a function is cached; functions elsewhere are
not affected. Where there is no such list, or `NUMBA_CACHE_LOCATOR_CLASSES` replaces it, numba's own rule stands.

Two processes that compile side by side share what they save. numba reads a function's index, chooses the next free
file name and writes both, without a lock: two processes that save one function for different arguments at the same
moment choose the same name, and whoever reads it later runs machine code for arguments of another type.
`save_one_at_a_time` lets them wait for one another; a process that is killed lets go.
"""

import contextlib
import functools
import hashlib
import os
from pathlib import Path
from types import FunctionType, ModuleType

from beliefbound.io.lock import hold


def digest(*folders: Path) -> str:
    """Of the names and contents of all Python files below `folders`."""
    total = hashlib.sha256()
    for folder in folders:
        for file in sorted(folder.rglob("*.py")):
            content = file.read_bytes()
            total.update(f"{file.relative_to(folder).as_posix()} {len(content)}\n".encode())
            total.update(content)
    return total.hexdigest()


def name_by_sources(folder: Path, *others: Path, users_of: str = "") -> None:
    """From here on, functions compiled from below `folder` are kept under names that depend on every source there.

    Args:
      folder: of a package. Files of its functions that have another name are removed.
      others: folders whose sources the names depend on too: what the functions of `folder` call.
      users_of: a package. Functions elsewhere, in modules that have something of that package among their names, get
        the same names, since they too hold its compiled code. Their own file has numba's stamp. Nothing is removed.
    """
    try:
        from numba.core.caching import CacheImpl

        locators, tag = CacheImpl._locator_classes, digest(folder, *others)[:16]
    except (ImportError, AttributeError, OSError):
        return
    tidied: set[str] = set()

    class Locator:
        """The locator numba would take, with the digest in its names."""

        @staticmethod
        def from_function(py_func, py_file):
            ours = os.path.abspath(py_file).startswith(os.path.join(folder, ""))
            if not ours and not (users_of and _uses(py_func, users_of)):
                return None
            found = (each.from_function(py_func, py_file) for each in locators if each.__module__ != __name__)
            locator = next((each for each in found if each is not None), None)
            if locator is not None:
                own = locator.get_disambiguator
                locator.get_disambiguator = lambda: f"{own()}-{tag}"
                if ours and locator.get_cache_path() not in tidied:
                    tidied.add(locator.get_cache_path())
                    remove_others(Path(locator.get_cache_path()), tag)
            return locator

    locators.insert(0, Locator)


def save_one_at_a_time() -> None:
    """From here on, compiled functions of this process are saved while no other such process saves in that folder."""
    try:
        from numba.core.caching import IndexDataCacheFile

        save = IndexDataCacheFile.save
    except (ImportError, AttributeError):
        return
    if hasattr(save, "__wrapped__"):
        return

    @functools.wraps(save)
    def locked(self, key, data):
        with contextlib.ExitStack() as held:
            with contextlib.suppress(OSError, AttributeError):  # no lock then, as numba would
                handle = os.open(Path(self._cache_path) / ".lock", os.O_RDWR | os.O_CREAT, 0o666)
                held.callback(os.close, handle)
                hold(handle, wait=True)
            save(self, key, data)

    IndexDataCacheFile.save = locked


def _uses(py_func: FunctionType, package: str) -> bool:
    """Whether a function outside a package has something of it among its globals."""
    if py_func.__module__.partition(".")[0] == package:
        return False
    names = list(py_func.__globals__.values())
    homes = (getattr(x, "__name__" if isinstance(x, ModuleType) else "__module__", None) for x in names)
    return any(isinstance(home, str) and home.partition(".")[0] == package for home in homes)


def remove_others(folder: Path, tag: str) -> None:
    """Remove compiled functions whose names lack the tag, as far as that is possible."""
    with contextlib.suppress(OSError):
        for file in folder.iterdir():
            if file.suffix in (".nbi", ".nbc") and tag not in file.name:
                file.unlink(missing_ok=True)
