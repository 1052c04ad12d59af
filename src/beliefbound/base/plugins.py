"""Where agents, environments and priors come from: a registry of each, filled by decorators.

The decorators run when their module is imported, and a module is imported because

* it is part of this package; a registry with a `package` imports the module of the name that is asked for, all of them
  where there is none, and for a list;
* a person said so: `import my_agent` in Python, `--plugin my_agent.py` on the command line (`load_plugin`);
* an installed package declares it as an entry point of the registry's group. These are loaded when a name is not known
  or a list is asked for; one that fails is named in a warning and otherwise ignored.

The text of an experiment names things and never makes anything be imported.
"""

import importlib
import importlib.util
import pkgutil
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, TypeVar

from beliefbound.base.errors import BeliefboundError, FileError, ParameterError, PluginError
from beliefbound.base.grammar import Family, Needs, Parameter, Parsed, Value, nearest, parse, split_name

Build = TypeVar("Build", bound=Callable[..., Any])

_GROUPS: set[str] = set()  # entry-point groups already loaded
_PACKAGE = Path(__file__).resolve().parents[1]
_LONGEST = 300  # letters of a message that are shown
_PLUGINS: dict[str, None] = {}  # what `load_plugin` was given, in order


class Registry:
    """Families by name.

    Args:
      kind: what they are, for messages: `"agent"`.
      group: of entry points.
      example: a text such as a person would give.
      package: whose modules register; `a-name` is looked for in `a_name` first.
    """

    def __init__(self, kind: str, *, group: str, example: str, package: str | None = None) -> None:
        self.kind = kind
        self.group = group
        self.example = example
        self.package = package
        self._families: dict[str, Family] = {}

    def register(
        self,
        name: str,
        *,
        summary: str,
        parameters: tuple[Parameter, ...] = (),
        presets: Mapping[str, Mapping[str, Value]] | None = None,
        others: bool = False,
    ) -> Callable[[Build], Build]:
        """A decorator that enters what it decorates under `name`; what it decorates stays as it is."""
        if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z][\w.-]*", name):
            raise ParameterError(f"{self.kind} name {name!r}: use letters, digits, '-', '_' and '.', a letter first")

        def enter(build: Build) -> Build:
            if self.package is not None and not build.__module__.startswith(f"{self.package}."):
                self._load()  # names of the package come first
            taken = self._families.get(name)
            if taken is not None and taken.build.__module__ != build.__module__:
                raise ParameterError(
                    f"{build.__module__} registers the {self.kind} {name!r}, which {taken.build.__module__} already "
                    "has; choose another name"
                )
            self._families[name] = Family(name, summary, build, parameters, presets or {}, others)
            return build

        return enter

    def families(self) -> dict[str, Family]:
        """Every family, those of installed packages included."""
        self._load()
        _load_entry_points(self.group)
        return dict(sorted(self._families.items())) if self.package else dict(self._families)

    def _load(self, name: str | None = None) -> None:
        """Import the module of a name, if there is one, or all modules of the package."""
        if self.package is not None:
            for module in _modules(self.package):
                if name is None or module == name.replace("-", "_"):
                    importlib.import_module(f"{self.package}.{module}")

    def find(self, text: Any, *, where: str = "") -> Family:
        """The family that a text names."""
        name = split_name(text, self.kind, self.example)
        if name not in self._families:
            self._load(name)
        if name not in self._families:  # a module may have several
            self._load()
        if name not in self._families:
            known = self.families()
            if name not in known:
                hint = nearest(name, known)
                raise ParameterError(
                    f"{where or repr(text[:200])}: there is no {self.kind} {name[:100]!r}; {hint}"
                    f"Known: {', '.join(known)}"
                )
        return self._families[name]

    def parse(self, text: Any) -> Parsed:
        """A text as its family and a value for every parameter."""
        return parse(text, self.find(text))


@dataclass(frozen=True)
class RegisteredName:
    """A parameter whose values are the names of a registry."""

    name: str
    default: str
    registry: Registry
    about: str = ""
    always: bool = False
    by_position: bool = False
    needs: Needs | None = None
    required = False

    def parse(self, text: str, where: str) -> str:
        return self.registry.find(text, where=where).name

    @property
    def shown(self) -> str:
        return self.default


@cache
def _modules(package: str) -> tuple[str, ...]:
    """The modules right below a package; what they share stands deeper."""
    found = pkgutil.iter_modules(importlib.import_module(package).__path__)
    return tuple(module.name for module in found if not module.ispkg)


def _load_entry_points(group: str) -> None:
    if group in _GROUPS:
        return
    _GROUPS.add(group)
    for point in entry_points(group=group):
        try:
            point.load()
        except KeyboardInterrupt:
            raise
        except BaseException as cause:
            warnings.warn(
                f"the plugin {point.name!r} ({point.value}) cannot be loaded and is left out: {said(cause)}",
                RuntimeWarning,
                stacklevel=2,
            )


def load_plugin(plugin: str | Path) -> None:
    """Import a module, by name or as a `.py` file, for the agents, environments and priors that it registers.

    The module of a file `my_agent.py` is called `plugin_my_agent`. Loading one twice does nothing.
    """
    text = str(Path(plugin).absolute()) if str(plugin).endswith(".py") else str(plugin)
    try:
        if text.endswith(".py"):
            _load_file(Path(text))
        else:
            importlib.import_module(text)
    except (FileError, KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as cause:
        raise FileError(f"the plugin {text} cannot be loaded: {said(cause)}") from cause
    _PLUGINS[text] = None


def loaded_plugins() -> tuple[str, ...]:
    """What `load_plugin` was given so far: what another process must load to know the same names."""
    return tuple(_PLUGINS)


def _load_file(path: Path) -> None:
    full = path.resolve()
    if not full.is_file():
        raise FileError(f"the plugin {path} does not exist; give a .py file or the name of a module")
    name = f"plugin_{full.stem}"
    present = sys.modules.get(name)
    if present is not None:
        if Path(str(present.__file__)).resolve() != full:
            raise FileError(f"the plugins {present.__file__} and {full} have the same name; rename one")
        return
    spec = importlib.util.spec_from_file_location(name, full)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise


@contextmanager
def blamed(what: str, *, foreign: bool) -> Iterator[None]:
    """What goes wrong inside, where that is somebody else's, is one line about `what`: a `PluginError`, unless it is an
    error of ours, which is one line already."""
    try:
        yield
    except (KeyboardInterrupt, GeneratorExit, BeliefboundError):
        raise
    except BaseException as cause:
        if not foreign:
            raise
        raise PluginError(f"{what} failed: {said(cause)}", details_of(cause)) from cause


def said(cause: BaseException) -> str:
    """One line, whatever the exception is: `NameError: name 'x' is not defined (my_agent.py, line 3)`."""
    frames = traceback.extract_tb(cause.__traceback__)
    theirs = [frame for frame in frames if not Path(frame.filename).is_relative_to(_PACKAGE)] or frames
    where = f" ({Path(theirs[-1].filename).name}, line {theirs[-1].lineno})" if theirs else ""
    try:
        text = str(cause)
    except Exception:
        text = ""
    lines = text.strip().splitlines()
    first = "".join(letter if letter.isprintable() else " " for letter in lines[0])[:_LONGEST].strip() if lines else ""
    if isinstance(cause, BeliefboundError):
        return first + where
    return type(cause).__name__ + (f": {first}" if first else "") + where


def details_of(cause: BaseException) -> str:
    """The traceback, as text that can be written to a file."""
    try:
        text = "".join(traceback.format_exception(cause))
    except Exception:  # of an exception that cannot be shown
        text = f"Traceback\n{''.join(traceback.format_tb(cause.__traceback__))}{type(cause).__name__}\n"
    return text.encode("utf-8", "backslashreplace").decode()
