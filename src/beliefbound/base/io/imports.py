"""The files that a module is made of: its own, and those of what it imports, as far as these are not installed.

What a module does changes with the files that it imports as much as with its own. Imports are read off the text, those
inside of functions too, so that the answer depends on the files alone and not on what happened to be loaded. Packages
that are installed have versions of their own; what is imported by a name computed at run time is not seen.
"""

import ast
import importlib.util
import inspect
import sys
import sysconfig
from collections.abc import Iterator
from functools import cache
from pathlib import Path

_INSTALLED = ("stdlib", "platstdlib", "purelib", "platlib")


def own_files(module: str) -> dict[str, Path]:
    """`{name: file}` of a loaded module and of what it imports, itself first; empty where it has no file."""
    loaded = sys.modules.get(module)
    file = None if loaded is None else _file_of(loaded)
    if file is None:
        return {}
    found, queue = {module: file}, [(module, file)]
    for name, source in queue:
        for other in _imported(name, source):
            place = None if other in found else _resolved(other, source.parent)
            if place is not None and place not in found.values():
                found[other] = place
                queue.append((other, place))
    return found


def _file_of(module: object) -> Path | None:
    try:
        return Path(inspect.getfile(module)).resolve()  # type: ignore[arg-type]
    except (OSError, TypeError):
        return None


def _imported(name: str, file: Path) -> Iterator[str]:
    """What a file imports: modules, and names that may be modules of a package."""
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return
    package = name if file.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")
            base = ".".join(parents[: len(parents) - node.level + 1]) if node.level else ""
            whole = ".".join(part for part in (base, node.module) if part)
            yield from ([whole] if whole else [])
            yield from (f"{whole}.{alias.name}" if whole else alias.name for alias in node.names)


def _resolved(name: str, beside: Path) -> Path | None:
    """The file of a module that is not installed; loaded or not, found by name or beside the file that imports it."""
    loaded = sys.modules.get(name)
    file = None if loaded is None else _file_of(loaded)
    if file is None:
        parent = name.rpartition(".")[0]
        try:  # looking for a part of a package that is not loaded would load the package
            spec = importlib.util.find_spec(name) if not parent or parent in sys.modules else None
        except (ImportError, ValueError, AttributeError):
            spec = None
        if spec is not None and spec.has_location and spec.origin is not None:
            file = Path(spec.origin).resolve()
    if file is None:
        stem = beside.joinpath(*name.split("."))
        file = next((place for place in (stem.with_suffix(".py"), stem / "__init__.py") if place.is_file()), None)
    return file if file is not None and file.suffix == ".py" and not _installed(file) else None


def _installed(file: Path) -> bool:
    return any(file.is_relative_to(place) for place in _places()) or "site-packages" in file.parts


@cache
def _places() -> tuple[Path, ...]:
    """Where installed packages are, Python's own, and this one."""
    paths = [Path(sysconfig.get_path(name)).resolve() for name in _INSTALLED]
    return (*paths, Path(__file__).resolve().parents[2])
