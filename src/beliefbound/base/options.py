"""The options of a job: one frozen object, made once where they are given, and handed on as it is."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar

T = TypeVar("T")


def chosen(options: type[T], given: Mapping[str, Any]) -> T:
    """A dataclass of options from what is given by name, such as `locals()` of a function whose parameters they are.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Walk:
    ...     steps: int = 10
    >>> chosen(Walk, {"steps": 3, "other": 1})
    Walk(steps=3)
    """
    names = [field.name for field in fields(options)]  # type: ignore[arg-type]
    return options(**{name: given[name] for name in names if name in given})
