"""Environments by name: `chain`, `grid:5`, `garnet:50,4,5,seed=3`.

A string is a family, optionally followed by a colon and values separated by commas. Values come in the family's order
or as `key=value`; what is left out has its default. To add an environment, write a function `build(name, *, …) ->
Environment` and one `Family` here.
"""

import difflib
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from beliefbound.envs import benchmark, garnet, gridworlds, loops, operations, swims
from beliefbound.envs.environment import Environment
from beliefbound.errors import ParameterError

MAX_OUTCOMES = 4_000_000  # states × actions × outcomes: about 100 MB of tables


@dataclass(frozen=True)
class Parameter:
    """A whole number or a real one in `[low, high]`."""

    name: str
    default: int | float
    low: int | float
    high: int | float

    def parse(self, text: str, where: str) -> int | float:
        kind = "a whole number" if isinstance(self.default, int) else "a number"
        limits = f"{kind} from {self.low} to {self.high}"
        try:
            value = int(text) if isinstance(self.default, int) else float(text)
        except ValueError:
            raise ParameterError(f"{where}: {self.name} is {text!r}; give {limits}") from None
        if not (math.isfinite(value) and self.low <= value <= self.high):
            raise ParameterError(f"{where}: {self.name} is {value}; give {limits}")
        return value


@dataclass(frozen=True)
class Family:
    """A kind of environment. `size` counts the entries of its tables, so that absurd ones are refused unbuilt."""

    name: str
    summary: str
    build: Callable[..., Environment]
    parameters: tuple[Parameter, ...] = ()
    size: Callable[..., int] = lambda **_: 0

    @property
    def usage(self) -> str:
        """`garnet:states=20,actions=4,branching=3,seed=0`: every parameter with its default."""
        return _text(self.name, [f"{p.name}={p.default}" for p in self.parameters])


_SLIP = Parameter("slip", 0.2, 0.0, 1.0)
_SEED = Parameter("seed", 0, 0, 2**63 - 1)

_FAMILIES = {
    family.name: family
    for family in (
        Family(
            "chain",
            "5 states in a row, actions that slip; the paper's benchmark (Strens 2000)",
            loops.chain,
            (Parameter("states", 5, 2, 100_000), _SLIP),
        ),
        Family("double-loop", "two loops of five steps, the better one easy to leave (Strens 2000)", loops.double_loop),
        Family(
            "grid",
            "square grid with slips, a prize in the far corner",
            gridworlds.grid,
            (Parameter("size", 5, 2, 500), _SLIP),
        ),
        Family(
            "maze",
            "Dearden's maze: 33 cells, 3 flags to bring to the goal, 264 states",
            gridworlds.maze,
            (Parameter("slip", 0.1, 0.0, 1.0),),
        ),
        Family(
            "riverswim",
            "swim against the current for a distant prize",
            swims.riverswim,
            (Parameter("length", 6, 2, 100_000),),
        ),
        Family(
            "optimistic",
            "3 states where hoping for more is costly",
            swims.optimistic,
            (Parameter("epsilon", 0.1, 0.0, 1.0), Parameter("delta", 0.1, 0.0, 1.0)),
        ),
        Family(
            "garnet",
            "random MDP with a given number of successors",
            garnet.garnet,
            (
                Parameter("states", 20, 1, 1_000_000),
                Parameter("actions", 4, 1, 10_000),
                Parameter("branching", 3, 1, 10_000),
                _SEED,
            ),
            lambda *, states, actions, branching, seed: states * actions * branching,
        ),
        Family(
            "inventory",
            "order stock before a random demand (Puterman 1994)",
            operations.inventory,
            (Parameter("capacity", 3, 1, 1000),),
            lambda *, capacity: capacity**3,
        ),
        Family(
            "replacement",
            "keep a machine that wears or pay for a new one (Puterman 1994)",
            operations.replacement,
            (Parameter("states", 10, 2, 100_000),),
        ),
        Family("prior-chain", "a chain drawn from a prior (Castronovo 2016)", benchmark.prior_chain, (_SEED,)),
        Family(
            "prior-double-loop",
            "a double loop drawn from a prior (Castronovo 2016)",
            benchmark.prior_double_loop,
            (_SEED,),
        ),
        Family("prior-grid", "a 5 × 5 grid drawn from a prior (after Castronovo 2016)", benchmark.prior_grid, (_SEED,)),
    )
}


def environments() -> dict[str, str]:
    """Every family with its parameters and their defaults, and one line about it.

    >>> environments()["grid:size=5,slip=0.2"]
    'square grid with slips, a prize in the far corner'
    """
    return {family.usage: family.summary for family in _FAMILIES.values()}


def make_env(name: str) -> Environment:
    """The environment that `name` describes: a family, then values in order or by key.

    >>> make_env("chain")
    Environment('chain', 5 states, 2 actions)
    >>> make_env("garnet:50,4,5,seed=3")
    Environment('garnet:50,4,5,seed=3', 50 states, 4 actions)
    >>> make_env("gird:5")
    Traceback (most recent call last):
    beliefbound.errors.ParameterError: 'gird:5': there is no environment 'gird'; did you mean 'grid'? ...
    """
    if not isinstance(name, str):
        raise ParameterError(f"the environment is {name!r}; give a name such as 'chain' or 'grid:5'")
    where = repr(name)
    head, colon, tail = name.partition(":")
    head = head.strip()
    if head not in _FAMILIES:
        near = difflib.get_close_matches(head.lower(), _FAMILIES, n=3, cutoff=0.5)
        hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else "."
        raise ParameterError(f"{where}: there is no environment {head!r}{hint} Known: {', '.join(_FAMILIES)}")
    family = _FAMILIES[head]
    if colon and not tail.strip():
        raise ParameterError(f"{where}: nothing follows the colon; write {head!r} or {family.usage!r}")
    values = _values(family, tail.split(",") if tail else [], where)
    if family.size(**values) > MAX_OUTCOMES:
        raise ParameterError(
            f"{where}: {family.size(**values):,} outcomes is more than {MAX_OUTCOMES:,}; make it smaller"
        )
    return family.build(_canonical(family, values), **values)


def _values(family: Family, pieces: list[str], where: str) -> dict[str, int | float]:
    by_name = {p.name: p for p in family.parameters}
    given: dict[str, int | float] = {}
    for position, piece in enumerate(pieces):
        key, equals, text = (part.strip() for part in piece.partition("="))
        if not equals:
            text = key
            if any("=" in earlier for earlier in pieces[:position]):
                raise ParameterError(f"{where}: {piece!r} comes after a key=value; give it a key too: {family.usage!r}")
            if position >= len(family.parameters):
                raise ParameterError(f"{where}: {piece!r} is one value too many; the form is {family.usage!r}")
            key = family.parameters[position].name
        if key not in by_name:
            near = difflib.get_close_matches(key, by_name, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise ParameterError(f"{where}: {family.name} has no {key!r}; {hint}The form is {family.usage!r}")
        if key in given:
            raise ParameterError(f"{where}: {key} is given twice; keep one of them")
        given[key] = by_name[key].parse(text, where)
    return {p.name: given.get(p.name, p.default) for p in family.parameters}


def _canonical(family: Family, values: dict[str, Any]) -> str:
    """The shortest usual spelling: leading sizes by position, everything else that is not its default by key."""
    changed = [p.name for p in family.parameters if values[p.name] != p.default]
    sizes = [p.name for p in family.parameters if isinstance(p.default, int) and p.name != "seed"]
    count = max((i + 1 for i, name in enumerate(sizes) if name in changed), default=0)
    positional = sizes[:count]
    keyed = [f"{name}={values[name]}" for name in changed if name not in positional]
    return _text(family.name, [str(values[name]) for name in positional] + keyed)


def _text(name: str, parts: list[str]) -> str:
    return f"{name}:{','.join(parts)}" if parts else name
