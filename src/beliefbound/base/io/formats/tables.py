"""The tables of POMDPX (`<Parameter type="TBL">`): entries over named axes, later ones over earlier ones.

An entry has an `Instance`, one word per axis: the name of a value, `*` for every value alike, or `-` for values listed
one after the other in the table that follows (several `-`: the last moves fastest). The table holds as many numbers, or
the word `uniform`, or `identity` where there are two `-` of equal length. What no entry names is 0.
"""

from typing import NamedTuple
from xml.etree.ElementTree import Element

import numpy as np

from beliefbound.base.io.formats.hidden_model import check_cells
from beliefbound.base.io.formats.xml import Xml
from beliefbound.base.validation import FloatArray


class Axis(NamedTuple):
    """A variable at one time: its name there, its values, and the number that stands for it in sums of products."""

    name: str
    values: tuple[str, ...]
    label: int


def read_table(xml: Xml, parent: Element, axes: list[Axis], tag: str) -> FloatArray:
    """The table of a `<CondProb>` (`tag` is `ProbTable`) or a `<Func>` (`ValueTable`)."""
    parameter = xml.one(parent, "Parameter")
    kind = parameter.get("type", "TBL")
    if kind != "TBL":
        raise xml.wrong(parameter, f"has type {kind!r}; only tables (TBL) are read, so write the parameter as one")
    shape = tuple(len(axis.values) for axis in axes)
    check_cells(shape, xml.path, f"the table over {', '.join(axis.name for axis in axes)}")
    table = np.zeros(shape)
    places = [{value: i for i, value in enumerate(axis.values)} for axis in axes]
    for entry in parameter:
        if entry.tag != "Entry":
            raise xml.wrong(entry, "is not an <Entry>")
        instance, numbers = xml.one(entry, "Instance"), xml.one(entry, tag)
        words = xml.words(instance)
        if len(words) != len(axes):
            names = " ".join(axis.name for axis in axes)
            raise xml.wrong(instance, f"has {len(words)} words for the {len(axes)} variables {names}")
        index: list[int | slice] = []
        listed: list[int] = []  # lengths of the axes that stay: of `-`, and 1 for `*`
        for word, axis, place in zip(words, axes, places, strict=True):
            if word in ("*", "-"):
                index.append(slice(None))
                listed.append(len(axis.values) if word == "-" else 1)
            elif word in place:
                index.append(place[word])
            else:
                raise xml.wrong(instance, f"{word[:40]!r} is no value of {axis.name}")
        table[tuple(index)] = _values(xml, numbers, tuple(listed))
    return table


def _values(xml: Xml, element: Element, shape: tuple[int, ...]) -> FloatArray:
    words = xml.words(element)
    count = int(np.prod(shape, dtype=np.int64))
    if words == ["uniform"]:
        if not shape or shape[-1] == 1 < count:
            raise xml.wrong(element, "uniform needs '-' for the variable itself, the last word of the instance")
        return np.full(shape, 1.0 / shape[-1])
    if words == ["identity"]:
        sides = [n for n in shape if n > 1]
        if len(sides) != 2 or sides[0] != sides[1]:
            if count == 1:
                return np.ones(shape)
            raise xml.wrong(element, "identity needs two '-' whose variables have equally many values")
        return np.eye(sides[0]).reshape(shape)
    numbers = xml.numbers(element)
    if len(numbers) != count:
        raise xml.wrong(element, f"has {len(numbers)} numbers; the instance asks for {count}")
    return np.array(numbers).reshape(shape)
