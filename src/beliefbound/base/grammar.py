"""`name:parameters`, the one grammar of agents and environments: `mcbrl:n=16`, `grid:10`, `garnet:50,4,5,seed=3`.

A name, optionally a colon and values separated by commas. Values come in the family's order or as `key=value`; once
one has a key, so have all that follow. What is left out has its default. Every text has one canonical form, by which
results are stored: sizes that lead by position, everything else that is not its default by key, in order.
"""

import difflib
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

from beliefbound.base.errors import ParameterError
from beliefbound.base.io.imports import own_files

Value = int | float | str | None
Needs = tuple[str, tuple[str, ...]]


class Parameter(Protocol):
    """One parameter of a family.

    Attributes:
      name, about: as listed.
      default: its value where none is given; where a person must give one, `None` and `required`.
      always: shown in canonical form even at its default.
      by_position: in canonical form without its key; such parameters come first in a family.
      needs: `(parameter, values)`: has an effect only where that parameter has one of those values.
    """

    @property
    def name(self) -> str: ...
    @property
    def about(self) -> str: ...
    @property
    def default(self) -> Value: ...
    @property
    def required(self) -> bool: ...
    @property
    def always(self) -> bool: ...
    @property
    def by_position(self) -> bool: ...
    @property
    def needs(self) -> Needs | None: ...
    @property
    def shown(self) -> str:
        """The default, in words."""

    def parse(self, text: str, where: str) -> Value:
        """The value that a text means; `where` begins the message of a mistake."""


@dataclass(frozen=True)
class Number:
    """A number in `[low, high]`, or in `(low, high]` if `above`; a `None` default is said in words as `auto`."""

    name: str
    default: float | None
    low: float
    high: float
    about: str = ""
    whole: bool = False
    above: bool = False
    auto: str = ""
    always: bool = False
    by_position: bool = False
    needs: Needs | None = None
    required = False

    @property
    def limits(self) -> str:
        kind = "a whole number" if self.whole else "a number"
        low, high = (str(x) if self.whole else f"{x:g}" for x in (self.low, self.high))
        return f"{kind} above {low} and at most {high}" if self.above else f"{kind} from {low} to {high}"

    def parse(self, text: str, where: str) -> float:
        try:
            value = int(text) if self.whole else float(text)
        except ValueError:
            raise ParameterError(f"{where}: {self.name} is {_cut(text)!r}; give {self.limits}") from None
        if not (self.low < value if self.above else self.low <= value) or not value <= self.high:
            raise ParameterError(f"{where}: {self.name} is {_cut(str(value))}; give {self.limits}")
        return value

    @property
    def shown(self) -> str:
        return self.auto if self.default is None else str(self.default)


@dataclass(frozen=True)
class Choice:
    """One of a few words."""

    name: str
    default: str
    choices: Sequence[str]
    about: str = ""
    always: bool = False
    by_position: bool = False
    needs: Needs | None = None
    required = False

    def parse(self, text: str, where: str) -> str:
        if text not in self.choices:
            hint = nearest(text, self.choices)
            raise ParameterError(f"{where}: {self.name} is {_cut(text)!r}; {hint}give one of {', '.join(self.choices)}")
        return text

    @property
    def shown(self) -> str:
        return self.default


@dataclass(frozen=True)
class Text:
    """Any text without a comma; without a default it must be given."""

    name: str
    default: str | None = None
    about: str = ""
    by_position: bool = True
    path: bool = False  # whether it names a file or folder, whose content then matters
    always = False
    needs: Needs | None = None

    @property
    def required(self) -> bool:
        return self.default is None

    def parse(self, text: str, where: str) -> str:
        if not text:
            raise ParameterError(f"{where}: {self.name} is empty; give {self.about or 'a text'}")
        return text

    @property
    def shown(self) -> str:
        return self.name.upper() if self.default is None else self.default


@dataclass(frozen=True)
class Family:
    """A kind of agent or environment.

    Attributes:
      name, summary: as listed.
      build: what makes one; it is given a value for every parameter, as keywords.
      parameters: in canonical order.
      presets: named sets of values; `preset=name` stands for them, and other parameters override them.
      others: whether keys that are no parameter are accepted, as text.
    """

    name: str
    summary: str
    build: Callable[..., Any]
    parameters: tuple[Parameter, ...] = ()
    presets: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)
    others: bool = False

    @property
    def foreign(self) -> bool:
        """Whether it is somebody else's, and no part of this package."""
        return self._module.partition(".")[0] != __name__.partition(".")[0]

    @property
    def _module(self) -> str:
        return getattr(self.build, "__module__", None) or ""  # a partial has none, and code that is run as text

    @cached_property
    def edition(self) -> str:
        """A digest of the file that `build` is from and of the files that it imports (`base.io.imports`), so that what
        it made before an edit is not taken for its own; empty for this package's, which has a version, and where there
        is no file."""
        files = own_files(self._module) if self.foreign else {}
        try:
            digests = [(name, hashlib.sha256(file.read_bytes())) for name, file in files.items()]
        except OSError:
            return ""
        if len(digests) > 1:
            total = hashlib.sha256()
            for name, digest in [("", digests[0][1]), *sorted(digests[1:], key=lambda each: each[0])]:
                total.update(name.encode() + b"\0" + digest.digest())
            return total.hexdigest()[:8]
        return digests[0][1].hexdigest()[:8] if digests else ""

    @property
    def usage(self) -> str:
        """`qlearning:epsilon=0.1,…`: every parameter with its default."""
        shown = [p.shown if p.required else f"{p.name}={p.shown}" for p in self.parameters]
        return _text(self.name, [*shown, *(["KEY=VALUE"] if self.others else [])])


@dataclass(frozen=True)
class Parsed:
    """A family with a value for every parameter, and which of them were given. `str` is the canonical form."""

    family: Family
    values: Mapping[str, Value]
    given: frozenset[str]

    @property
    def families(self) -> list[Family]:
        """Its own, and those that its values name, such as a prior's."""
        registries = [(getattr(p, "registry", None), self.values[p.name]) for p in self.family.parameters]
        return [self.family, *(registry.find(value) for registry, value in registries if registry is not None)]

    @property
    def edition(self) -> str:
        """Of all of them, where some are somebody else's; see `Family.edition`."""
        return "-".join(family.edition for family in self.families if family.edition)

    @property
    def foreign(self) -> bool:
        """Whether one of them is somebody else's."""
        return any(family.foreign for family in self.families)

    def __str__(self) -> str:
        parameters = self.family.parameters
        changed = [p.name for p in parameters if p.always or self.values[p.name] != p.default]
        leading = [p.name for p in parameters if p.by_position]
        count = max((i + 1 for i, name in enumerate(leading) if name in changed), default=0)
        by_key = [name for name in changed if name not in leading[:count]]
        by_key += sorted(set(self.values) - {p.name for p in parameters})
        values = [str(self.values[name]) for name in leading[:count]]
        if any("=" in value for value in values):  # a path, say: without its key it would be read as key and value
            values, by_key = [], [*leading[:count], *by_key]
        return _text(self.family.name, values + [f"{name}={self.values[name]}" for name in by_key])


def split_name(text: Any, kind: str, example: str) -> str:
    """The name at the head of a text."""
    if not isinstance(text, str):
        raise ParameterError(f"the {kind} is {text!r}; give a name such as {example!r}")
    return text.partition(":")[0].strip()


def parse(text: str, family: Family) -> Parsed:
    """Read the text of a family; the message of a mistake shows the text and what would be right."""
    where = repr(_cut(text))
    _, colon, tail = text.partition(":")
    if colon and not tail.strip():
        raise ParameterError(f"{where}: nothing follows the colon; write {family.name!r} or {family.usage!r}")
    given = _given(family, tail.split(",") if tail else [], where)
    preset = given.pop("preset", None) if family.presets else None
    values: dict[str, Value] = {p.name: p.default for p in family.parameters}
    values |= family.presets[str(preset)] if preset is not None else {}
    values |= given
    for p in family.parameters:
        if p.required and values[p.name] is None:
            raise ParameterError(f"{where}: {p.name} is missing; the form is {family.usage!r}")
        if p.needs is not None and p.name in given and values[p.needs[0]] not in p.needs[1]:
            other, useful = p.needs
            raise ParameterError(
                f"{where}: {p.name} has no effect with {other}={values[other]}; drop it or take {other}={useful[0]}"
            )
    return Parsed(family, values, frozenset(given))


def _given(family: Family, pieces: Sequence[str], where: str) -> dict[str, Value]:
    by_name: dict[str, Parameter] = {p.name: p for p in family.parameters}
    if family.presets:
        by_name["preset"] = Choice("preset", "", tuple(family.presets))
    given: dict[str, Value] = {}
    keyed = False
    for position, piece in enumerate(pieces):
        key, equals, text = (part.strip() for part in piece.partition("="))
        if not equals:
            text = key
            if keyed:
                raise ParameterError(f"{where}: {piece!r} comes after a key=value; give it a key too: {family.usage!r}")
            if position >= len(family.parameters):
                raise ParameterError(f"{where}: {piece!r} is one value too many; the form is {family.usage!r}")
            key = family.parameters[position].name
        keyed = bool(equals)
        if key not in by_name and not (family.others and key.isidentifier()):
            raise ParameterError(
                f"{where}: {family.name} has no {key!r}; {nearest(key, by_name)}the form is {family.usage!r}"
            )
        if key in given:
            raise ParameterError(f"{where}: {key} is given twice; keep one of them")
        given[key] = by_name[key].parse(text, where) if key in by_name else text
    return given


def nearest(word: str, known: Iterable[str]) -> str:
    """`did you mean 'mcbrl'? `, or nothing."""
    spelt = {name.lower(): name for name in known}
    near = difflib.get_close_matches(word.lower()[:100], list(spelt), n=2, cutoff=0.5)
    return f"did you mean {' or '.join(repr(spelt[name]) for name in near)}? " if near else ""


def _cut(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:200]}…"


def _text(name: str, parts: Sequence[str]) -> str:
    return f"{name}:{','.join(parts)}" if parts else name
