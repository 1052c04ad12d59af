"""POMDPX, the factored format of the SARSOP solver, read as a hidden-model problem.

State variables with `fullyObs="true"` are the observed state, their product if there are several; the others are the
hidden model, and each must keep its value for ever: the table of its next value is the identity. Rewards may depend on
actions, state variables and next values of them; several reward functions are added. An `ObsVar` must tell nothing of
the hidden variables. Observed and hidden variables are independent at the start. Anything else is refused, and the
error says where and why. Agents of this format do not see rewards: where models pay differently, rewards are
`unobserved`.

Products of tables are sums of products over labelled axes: a hidden variable has the same label now and next.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np

from beliefbound.base.errors import FileError
from beliefbound.base.io.formats.hidden_model import HiddenModel, Names, check_cells, to_distributions
from beliefbound.base.io.formats.tables import Axis, read_table
from beliefbound.base.io.formats.xml import Xml
from beliefbound.base.validation import FloatArray

_SECTIONS = {
    "Description",
    "Discount",
    "Variable",
    "InitialStateBelief",
    "StateTransitionFunction",
    "ObsFunction",
    "RewardFunction",
}
_MOST_VARIABLES = 20  # axes of a table: twice the state variables and the actions stay below 52
_MOST_VALUES = 1_000_000
_APART = 1e-9  # a start that is a product up to this is one


class Variables:
    """The variables of a document. `now` and `then` are the axes of state variables at a step and after it."""

    def __init__(self, xml: Xml) -> None:
        section = xml.one(xml.root, "Variable")
        self.now: dict[str, Axis] = {}
        self.then: dict[str, Axis] = {}
        self.actions: dict[str, Axis] = {}
        self.seen: dict[str, Axis] = {}
        self.hidden: list[str] = []  # names now
        self.observed: list[str] = []
        self.next_name: dict[str, str] = {}
        self.rewards: set[str] = set()
        self.unnamed: set[str] = set()  # variables given as a number of values
        self._labels = 0
        for element in section:
            if element.tag == "StateVar":
                self._state(xml, element)
            elif element.tag in ("ActionVar", "ObsVar"):
                name, axes = xml.attribute(element, "vname"), self.actions if element.tag[0] == "A" else self.seen
                self._new(xml, element, name)
                axes[name] = Axis(name, self._values(xml, element, name, "a" if element.tag[0] == "A" else "o"), 0)
                axes[name] = axes[name]._replace(label=self._label())
            elif element.tag == "RewardVar":
                self.rewards.add(xml.attribute(element, "vname"))
            else:
                raise xml.wrong(element, "is no kind of variable; known are StateVar, ActionVar, ObsVar, RewardVar")
        for kind, found in (("ActionVar", self.actions), ("RewardVar", self.rewards), ("StateVar", self.now)):
            if not found:
                raise xml.wrong(section, f"has no <{kind}>")
        if not self.observed:
            raise xml.wrong(
                section,
                "has no observed state variable; a hidden-model problem has at least one StateVar with "
                'fullyObs="true", and hidden ones that never change',
            )
        if self._labels > 2 * _MOST_VARIABLES:
            raise xml.wrong(section, f"has more than {_MOST_VARIABLES} variables; join some of them")

    def _label(self) -> int:
        self._labels += 1
        return self._labels - 1

    def _new(self, xml: Xml, element: Element, name: str) -> None:
        if name in {*self.now, *self.then, *self.actions, *self.seen}:
            raise xml.wrong(element, f"the name {name!r} is given to two variables")

    def _state(self, xml: Xml, element: Element) -> None:
        now, then = xml.attribute(element, "vnamePrev"), xml.attribute(element, "vnameCurr")
        for name in (now, then):
            self._new(xml, element, name)
        if now == then:
            raise xml.wrong(element, f"{now!r} has the same name now and next")
        full = element.get("fullyObs", "false").strip().lower()
        if full not in ("true", "false"):
            raise xml.wrong(element, f"fullyObs is {full!r}; give true or false")
        values = self._values(xml, element, now, "s")
        self.now[now] = Axis(now, values, self._label())
        same = full == "false"  # a hidden variable never moves
        self.then[then] = Axis(then, values, self.now[now].label if same else self._label())
        (self.hidden if same else self.observed).append(now)
        self.next_name[now] = then

    def _values(self, xml: Xml, element: Element, name: str, letter: str) -> tuple[str, ...]:
        listed, count = element.find("ValueEnum"), element.find("NumValues")
        if (listed is None) == (count is None):
            raise xml.wrong(element, "needs either <ValueEnum> or <NumValues>")
        if listed is not None:
            values = tuple(xml.words(listed))
            if not values or len(set(values)) != len(values):
                raise xml.wrong(listed, "needs at least one value, and each of them once")
            if {"*", "-"} & set(values):
                raise xml.wrong(listed, "'*' and '-' are no names of values")
            return values
        assert count is not None
        words = xml.words(count)
        if len(words) != 1 or not words[0].isdecimal() or not 0 < len(words[0]) < 10 or int(words[0]) < 1:
            raise xml.wrong(count, f"is {' '.join(words)[:40]!r}; give a number of values, at least 1")
        if int(words[0]) > _MOST_VALUES:
            raise xml.wrong(count, f"is {words[0]}; at most {_MOST_VALUES} values are read")
        self.unnamed.add(name)
        return tuple(f"{letter}{i}" for i in range(int(words[0])))

    def names(self, axes: list[Axis]) -> Names:
        """Names of the product of some variables; none where all are given as numbers of values."""
        if not axes or all(axis.name in self.unnamed for axis in axes):
            return None
        names = [""]
        for axis in axes:
            names = [f"{name},{value}" if name else value for name in names for value in axis.values]
        return tuple(names)


def read_pomdpx(path: Path) -> HiddenModel:
    """The hidden-model problem of a POMDPX file."""
    xml, notes = Xml(path, "pomdpx"), list[str]()
    for element in xml.root:
        if element.tag not in _SECTIONS:
            raise xml.wrong(element, f"is no section of the format; known are {', '.join(sorted(_SECTIONS))}")
    variables = Variables(xml)
    discount = xml.one(xml.root, "Discount")
    numbers = xml.numbers(discount)
    if len(numbers) != 1 or not 0.0 <= numbers[0] <= 1.0:
        raise xml.wrong(discount, "needs one number between 0 and 1")
    hidden = [variables.now[name] for name in variables.hidden]
    observed = [variables.now[name] for name in variables.observed]
    arrived = [variables.then[variables.next_name[name]] for name in variables.observed]
    actions = list(variables.actions.values())
    size = [int(np.prod([len(axis.values) for axis in axes] or [1])) for axes in (hidden, observed, actions)]
    check_cells((*size, size[1]), path, "transitions")
    _check_silent(xml, variables, notes)
    weights, initial = _start(xml, variables, hidden, observed, notes)
    moves = _moves(xml, variables, notes)
    n_models, n_states, n_actions = size
    transitions = product(moves, [*hidden, *observed, *actions, *arrived])
    rewards = _rewards(xml, variables, [*hidden, *observed, *actions], arrived)
    shape = (n_models, n_states, n_actions)
    return HiddenModel(
        transitions.reshape(*shape, n_states),
        rewards.reshape(*shape, -1) if rewards.ndim > len([*hidden, *observed, *actions]) else rewards.reshape(shape),
        weights,
        initial,
        numbers[0],
        states=variables.names(observed),
        actions=variables.names(actions),
        models=variables.names(hidden),
        notes=tuple(notes),
    )


def product(tables: list[tuple[list[Axis], FloatArray]], axes: list[Axis]) -> FloatArray:
    """The product of tables over labelled axes, with the axes asked for, in their order."""
    operands: list[Any] = []
    for own, table in tables:
        operands += [table, [axis.label for axis in own]]
    for axis in axes:  # axes that no table has
        operands += [np.ones(len(axis.values)), [axis.label]]
    joint: FloatArray = np.einsum(*operands, [axis.label for axis in axes])
    return joint


def _conditionals(
    xml: Xml, section: str, targets: dict[str, Axis], parents: dict[str, Axis]
) -> Iterator[tuple[Element, list[Axis], Axis, FloatArray]]:
    """`(element, parents, variable, table)` of each `<CondProb>` of a section."""
    found = xml.root.find(section)
    for element in [] if found is None else found:
        if element.tag != "CondProb":
            raise xml.wrong(element, "is not a <CondProb>")
        var = xml.one(element, "Var")
        words = xml.words(var)
        if len(words) != 1 or words[0] not in targets:
            raise xml.wrong(var, f"{' '.join(words)[:40]!r} is no variable of {section}: {', '.join(targets)}")
        given = _parents(xml, element, parents)
        axes = [*given, targets[words[0]]]
        yield element, given, targets[words[0]], read_table(xml, element, axes, "ProbTable")


def _parents(xml: Xml, element: Element, allowed: dict[str, Axis]) -> list[Axis]:
    parent = xml.one(element, "Parent")
    words = [word for word in xml.words(parent) if word != "null"]
    for word in words:
        if word not in allowed:
            raise xml.wrong(parent, f"{word[:40]!r} cannot stand here; known are {', '.join(allowed) or 'none'}")
    if len(set(words)) != len(words):
        raise xml.wrong(parent, "names a variable twice")
    return [allowed[word] for word in words]


def _distributed(xml: Xml, given: list[Axis], axis: Axis, table: FloatArray, notes: list[str]) -> FloatArray:
    def place(index: tuple[int, ...]) -> str:
        named = ", ".join(f"{own.name} = {own.values[i]}" for own, i in zip(given, index, strict=True))
        return f"{axis.name} given {named}" if named else axis.name

    return to_distributions(table, xml.path, place, notes, axis.name)


def _start(
    xml: Xml, variables: Variables, hidden: list[Axis], observed: list[Axis], notes: list[str]
) -> tuple[FloatArray, FloatArray]:
    """Weights of the models and chances of the start states."""
    section = xml.one(xml.root, "InitialStateBelief")
    kinds = (set(variables.hidden), set(variables.observed))
    parts: list[tuple[set[str], tuple[list[Axis], FloatArray]]] = []
    for element, given, axis, table in _conditionals(xml, section.tag, variables.now, variables.now):
        if any(axis.name == part[1][0][-1].name for part in parts):
            raise xml.wrong(element, f"{axis.name} is given twice")
        names = {axis.name, *(own.name for own in given)}
        parts.append((names, ([*given, axis], _distributed(xml, given, axis, table, notes))))
    missing = set(variables.now) - {part[1][0][-1].name for part in parts}
    if missing:
        raise xml.wrong(section, f"has no <CondProb> for {min(missing)}")
    if all(names <= kind for names, _ in parts for kind in kinds if names & kind):
        factors = [[table for names, table in parts if names & kind] for kind in kinds]
        return product(factors[0], hidden).ravel(), product(factors[1], observed).ravel()
    joint = product([table for _, table in parts], [*hidden, *observed])
    joint = joint.reshape(-1, int(np.prod([len(axis.values) for axis in observed])))
    weights, initial = joint.sum(axis=1), joint.sum(axis=0)
    if np.abs(joint - np.outer(weights, initial)).max() > _APART:
        raise xml.wrong(
            section,
            "the start state tells about the hidden variable; here a belief has one prior for all start states, so "
            "give them independent of each other",
        )
    return weights, initial


def _moves(xml: Xml, variables: Variables, notes: list[str]) -> list[tuple[list[Axis], FloatArray]]:
    """The tables of the observed variables' next values, once the hidden ones are seen to stay."""
    section = xml.one(xml.root, "StateTransitionFunction")
    tables, found = [], set[str]()
    parents = {**variables.actions, **variables.now, **variables.then}
    for element, given, axis, table in _conditionals(xml, section.tag, variables.then, parents):
        if axis.name in found:
            raise xml.wrong(element, f"{axis.name} is given twice")
        if axis in given:
            raise xml.wrong(element, f"{axis.name} is its own parent")
        found.add(axis.name)
        table = _distributed(xml, given, axis, table, notes)
        now = next(name for name, then in variables.next_name.items() if then == axis.name)
        if now in variables.hidden:
            _check_stays(xml, element, given, variables.now[now], axis, table)
        else:
            tables.append(([*given, axis], table))
    missing = set(variables.then) - found
    if missing:
        raise xml.wrong(section, f"has no <CondProb> for {min(missing)}")
    return tables


def _check_stays(xml: Xml, element: Element, given: list[Axis], now: Axis, then: Axis, table: FloatArray) -> None:
    """The table of a hidden variable's next value is the identity."""
    names = [axis.name for axis in given]
    fault = (
        f"the hidden variable {now.name} changes its value; only problems whose hidden variable never changes are read"
    )
    if now.name not in names:
        if len(now.values) > 1:
            raise xml.wrong(element, f"{fault} ({now.name} is not among its parents)")
        return
    moved = np.moveaxis(table, names.index(now.name), -2)
    wrong = np.argwhere(moved != np.eye(len(now.values)))
    if len(wrong):
        *_, i, j = (int(k) for k in wrong[0])
        chance = moved[tuple(wrong[0])]
        raise xml.wrong(element, f"{fault} (from {now.values[i]} to {then.values[j]} with probability {chance:g})")


def _check_silent(xml: Xml, variables: Variables, notes: list[str]) -> None:
    """Observation variables tell nothing about hidden ones."""
    hidden = {variables.now[name].label for name in variables.hidden}
    parents = {**variables.actions, **variables.then}
    for element, given, axis, table in _conditionals(xml, "ObsFunction", variables.seen, parents):
        table = _distributed(xml, given, axis, table, notes)
        for k, own in enumerate(given):
            if own.label in hidden and (table != table.take([0], axis=k)).any():
                raise xml.wrong(
                    element,
                    f"the observation {axis.name} tells about the hidden variable {own.name}; only what observed state "
                    f'variables tell is read: make it a StateVar with fullyObs="true"',
                )
        if len(axis.values) > 1:
            notes.append(f"{axis.name}: the observation tells nothing about the hidden variable, and is left out")


def _rewards(xml: Xml, variables: Variables, axes: list[Axis], arrived: list[Axis]) -> FloatArray:
    """Rewards over `axes`, and over arrivals where any function looks at them."""
    section = xml.one(xml.root, "RewardFunction")
    allowed = {**variables.actions, **variables.now, **variables.then}
    labels = {axis.label for axis in arrived}
    tables = []
    for element in section:
        if element.tag != "Func":
            raise xml.wrong(element, "is not a <Func>")
        var = xml.one(element, "Var")
        if not set(xml.words(var)) <= variables.rewards or len(xml.words(var)) != 1:
            raise xml.wrong(var, f"{' '.join(xml.words(var))[:40]!r} is no reward variable")
        given = _parents(xml, element, allowed)
        if len({axis.label for axis in given}) != len(given):
            raise xml.wrong(element, "names a hidden variable both now and next; it never changes, so name it once")
        tables.append((given, read_table(xml, element, given, "ValueTable")))
    if not tables:
        raise xml.wrong(section, "has no <Func>")
    on_arrival = any(axis.label in labels for given, _ in tables for axis in given)
    full = [*axes, *arrived] if on_arrival else axes
    check_cells([len(axis.values) for axis in full], xml.path, "rewards")
    total: FloatArray = np.zeros([len(axis.values) for axis in full])
    for table in tables:
        total += product([table], full)
    if not np.isfinite(total).all():
        raise FileError(f"{xml.path}: rewards add up to more than a number can hold; use a larger unit for them")
    return total
