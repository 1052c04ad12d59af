"""Agents as strings: `mcbrl:n=16,schedule=constant,interval=20`.

A name, then `parameter=value` pairs separated by commas; what is left out has its default. Every string has one
canonical form, by which results are stored: parameters in the family's order, defaults left out.
"""

import difflib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from beliefbound.agents.agent import Machine, Setting
from beliefbound.errors import ParameterError

Value = int | float | str | None


@dataclass(frozen=True)
class Number:
    """A number in `[low, high]`, or in `(low, high]` if `above`; a `None` default is said in words as `auto`."""

    name: str
    default: float | None
    low: float
    high: float
    about: str
    whole: bool = False
    above: bool = False
    auto: str = ""
    always: bool = False  # shown in canonical form even at its default

    @property
    def limits(self) -> str:
        kind = "a whole number" if self.whole else "a number"
        if math.isinf(self.high):
            return f"{kind} above {self.low:g}" if self.above else f"{kind} of at least {self.low:g}"
        if self.above:
            return f"{kind} above {self.low:g} and at most {self.high:g}"
        return f"{kind} from {self.low:g} to {self.high:g}"

    def parse(self, text: str, where: str) -> float:
        try:
            value = int(text) if self.whole else float(text)
        except ValueError:
            raise ParameterError(f"{where}: {self.name} is {text!r}; give {self.limits}") from None
        inside = self.low < value if self.above else self.low <= value
        if not (math.isfinite(value) and inside and value <= self.high):
            raise ParameterError(f"{where}: {self.name} is {value}; give {self.limits}")
        return value

    @property
    def shown(self) -> str:
        return self.auto if self.default is None else str(self.default)


@dataclass(frozen=True)
class Choice:
    """One of a few words."""

    name: str
    default: str
    choices: tuple[str, ...]
    about: str
    always: bool = False

    def parse(self, text: str, where: str) -> str:
        if text not in self.choices:
            near = nearest(text, self.choices)
            raise ParameterError(f"{where}: {self.name} is {text!r}; {near}give one of {', '.join(self.choices)}")
        return text

    @property
    def shown(self) -> str:
        return self.default


Parameter = Number | Choice


def _no_check(values: Mapping[str, Value], given: Mapping[str, Value]) -> None:
    return None


@dataclass(frozen=True)
class Family:
    """A kind of agent.

    Attributes:
      name, summary: as listed by `agents()`.
      build: from the setting and a value for every parameter to a machine.
      parameters: in canonical order.
      presets: named sets of values; `preset=name` stands for them, and other parameters override them.
      check: raises when values that are fine one by one do not go together.
    """

    name: str
    summary: str
    build: Callable[[Setting, Mapping[str, Any]], Machine]
    parameters: tuple[Parameter, ...] = ()
    presets: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)
    check: Callable[[Mapping[str, Value], Mapping[str, Value]], None] = _no_check

    @property
    def usage(self) -> str:
        """`qlearning:epsilon=0.1,…`: every parameter with its default."""
        pairs = [f"{p.name}={p.shown}" for p in self.parameters]
        return f"{self.name}:{','.join(pairs)}" if pairs else self.name


@dataclass(frozen=True)
class AgentSpec:
    """An agent by name, with a value for every parameter. `str(spec)` is its canonical form."""

    family: Family
    values: Mapping[str, Value]

    def __str__(self) -> str:
        pairs = [
            f"{p.name}={self.values[p.name]}"
            for p in self.family.parameters
            if p.always or self.values[p.name] != p.default
        ]
        return f"{self.family.name}:{','.join(pairs)}" if pairs else self.family.name

    @classmethod
    def parse(cls, text: str, families: Mapping[str, Family]) -> "AgentSpec":
        """Read a string; the message of a mistake shows the string and what would be right."""
        if not isinstance(text, str):
            raise ParameterError(f"the agent is {text!r}; give a name such as 'mcbrl:n=16' or 'exploit'")
        where = repr(text)
        name, colon, tail = (part.strip() for part in text.partition(":"))
        if name not in families:
            raise ParameterError(
                f"{where}: there is no agent {name!r}; {nearest(name, families)}known: {', '.join(families)}"
            )
        family = families[name]
        if colon and not tail:
            raise ParameterError(f"{where}: nothing follows the colon; write {name!r} or {family.usage!r}")
        given = _pairs(family, tail.split(",") if tail else [], where)
        preset = given.pop("preset", None)
        values: dict[str, Value] = {p.name: p.default for p in family.parameters}
        values |= family.presets[preset] if isinstance(preset, str) else {}
        values |= given
        try:
            family.check(values, given)
        except ParameterError as cause:
            raise ParameterError(f"{where}: {cause}") from None
        return cls(family, values)


def _pairs(family: Family, pieces: Sequence[str], where: str) -> dict[str, Value]:
    by_name: dict[str, Parameter] = {p.name: p for p in family.parameters}
    if family.presets:
        by_name["preset"] = Choice("preset", "", tuple(family.presets), "")
    given: dict[str, Value] = {}
    for piece in pieces:
        key, equals, text = (part.strip() for part in piece.partition("="))
        if not equals:
            raise ParameterError(f"{where}: {piece!r} is not of the form parameter=value; see {family.usage!r}")
        if key not in by_name:
            raise ParameterError(
                f"{where}: {family.name} has no {key!r}; {nearest(key, by_name)}the form is {family.usage!r}"
            )
        if key in given:
            raise ParameterError(f"{where}: {key} is given twice; keep one of them")
        given[key] = by_name[key].parse(text, where)
    return given


def nearest(word: str, known: Mapping[str, Any] | Sequence[str]) -> str:
    """`did you mean 'mcbrl'? `, or nothing."""
    near = difflib.get_close_matches(word.lower(), list(known), n=2, cutoff=0.5)
    return f"did you mean {' or '.join(map(repr, near))}? " if near else ""
