"""Compiled kernels on disk, out of date as soon as any kernel's source is.

numba keeps the machine code of a function beside its source, with a stamp of the function's own file, and compiles
again when that stamp differs. But the code of the kernels it calls or inlines is in there too: when only their file
changes, by an upgrade or an edit, the old code would go on running. `stamp_sources` puts a digest of all sources of a
package into the stamp. numba then compares it wherever it keeps the code (`__pycache__`, `NUMBA_CACHE_DIR`, or the
user's cache folder where the package is read-only) and replaces old files as it always does, by renaming, so
that processes which start at once, or outlive an upgrade, do not meet. Nothing is deleted and no file is added.

This hooks into the list of locators that numba asks, in turn, where a function is cached; functions elsewhere are
not affected. Where there is no such list, or `NUMBA_CACHE_LOCATOR_CLASSES` replaces it, numba's own rule stands.
"""

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


def stamp_sources(folder: Path) -> None:
    """From here on, every source below `folder` belongs to the stamp of every function compiled from there."""
    try:
        from numba.core.caching import CacheImpl

        locators, sources = CacheImpl._locator_classes, digest(folder)
    except (ImportError, AttributeError, OSError):
        return

    class Locator:
        """The locator numba would take, with its stamp extended."""

        @staticmethod
        def from_function(py_func, py_file):
            if not os.path.abspath(py_file).startswith(os.path.join(folder, "")):
                return None
            found = (each.from_function(py_func, py_file) for each in locators if each is not Locator)
            locator = next((each for each in found if each is not None), None)
            if locator is not None:
                own = locator.get_source_stamp
                locator.get_source_stamp = lambda: (own(), sources)
            return locator

    locators.insert(0, Locator)
