"""Compiled kernels on disk, out of date as soon as any kernel's source is.

numba keeps the machine code of a function beside its source, with a stamp of the function's own file, and compiles
again when that stamp differs. But the code of the kernels it calls or inlines is in there too: when only their file
changes, by an upgrade or an edit, the old code would go on running; and where a class among the arguments has moved,
reading the old index fails. `name_by_sources` puts a digest of all sources of a package into the names of its files,
wherever numba keeps them (`__pycache__`, `NUMBA_CACHE_DIR`, or the user's cache folder where the package is
read-only). Files of other sources are never read, and are removed; a process that outlives an upgrade compiles again.

This hooks into the list of locators that numba asks, in turn, where a function is cached; functions elsewhere are
not affected. Where there is no such list, or `NUMBA_CACHE_LOCATOR_CLASSES` replaces it, numba's own rule stands.
"""

import contextlib
import hashlib
import os
from pathlib import Path


def digest(folder: Path) -> str:
    """Of the names and contents of all Python files below `folder`."""
    total = hashlib.sha256()
    for file in sorted(folder.rglob("*.py")):
        content = file.read_bytes()
        total.update(f"{file.relative_to(folder).as_posix()} {len(content)}\n".encode())
        total.update(content)
    return total.hexdigest()


def name_by_sources(folder: Path) -> None:
    """From here on, functions compiled from below `folder` are kept under names that depend on every source there."""
    try:
        from numba.core.caching import CacheImpl

        locators, tag = CacheImpl._locator_classes, digest(folder)[:16]
    except (ImportError, AttributeError, OSError):
        return
    tidied: set[str] = set()

    class Locator:
        """The locator numba would take, with the digest in its names."""

        @staticmethod
        def from_function(py_func, py_file):
            if not os.path.abspath(py_file).startswith(os.path.join(folder, "")):
                return None
            found = (each.from_function(py_func, py_file) for each in locators if each is not Locator)
            locator = next((each for each in found if each is not None), None)
            if locator is not None:
                own = locator.get_disambiguator
                locator.get_disambiguator = lambda: f"{own()}-{tag}"
                if locator.get_cache_path() not in tidied:
                    tidied.add(locator.get_cache_path())
                    remove_others(Path(locator.get_cache_path()), tag)
            return locator

    locators.insert(0, Locator)


def remove_others(folder: Path, tag: str) -> None:
    """Remove compiled functions whose names lack the tag, as far as that is possible."""
    with contextlib.suppress(OSError):
        for file in folder.iterdir():
            if file.suffix in (".nbi", ".nbc") and tag not in file.name:
                file.unlink(missing_ok=True)
