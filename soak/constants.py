"""What the tuning constants of `bounds/` are worth: brackets with each of them halved and doubled, at equal effort.

    python -m soak.constants            # a quarter of an hour
    python -m soak.constants pairs      # those of modules whose names contain a word

Constants decide how far a bracket gets, never what is true: whatever is halved or doubled, the brackets of one problem
must have a value in common. That is checked, and is an error; rounding is no constant of this kind. Printed is, for
each constant that changes anything, how many times wider each bracket becomes. Constants that are limits of memory or
time change nothing on problems that do not meet them.
"""

import pkgutil
import re
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import beliefbound as bb

ROUNDING = re.compile(r"_ELIMINATION|_?ROUNDED|_TINY|_NOISE|_SPARES")


def random_belief(models: int, states: int, actions: int) -> bb.FiniteBelief:
    rng = np.random.default_rng(models * 100 + states)
    p = rng.dirichlet(np.full(states, 0.3), size=(models, states, actions))
    return bb.FiniteBelief(p, rng.random((states, actions)))


def hidden_goal(places: int) -> bb.FiniteBelief:
    """Go anywhere, and try: it pays in one place, which is not known. Equal beliefs are met again and again."""
    n = places + 1
    p = np.zeros((places, n, n, n))
    for a in range(places):
        p[:, :, a, a] = 1.0
    p[:, range(n), places, range(n)] = 1.0
    r = np.zeros((places, n, n))
    r[range(places), range(places), places] = 1.0
    return bb.FiniteBelief(p, r, reward_signal="bernoulli")


PROBLEMS: dict[str, Callable[[], bb.Bracket]] = {
    "4 models": lambda: bb.bracket(random_belief(4, 5, 2), discount=0.9, effort=8, rng=1),
    "36 models": lambda: bb.bracket(random_belief(36, 8, 3), discount=0.95, effort=16, rng=1),
    "20 states": lambda: bb.bracket(random_belief(12, 20, 4), discount=0.98, effort=10, rng=1),
    "horizon 12": lambda: bb.bracket(random_belief(6, 6, 2), discount=1.0, horizon=12, effort=10, rng=1),
    "hidden goal": lambda: bb.bracket(hidden_goal(6), discount=0.9, effort=10, rng=1),
    "counts": lambda: bb.bracket(bb.DirichletBelief(4, 2), discount=0.9, effort=7, rng=1),
}


def constants(modules: list[ModuleType]) -> Iterator[tuple[ModuleType, str]]:
    """Module-level numbers in capitals, or tuples of them, where they are made."""
    for module in modules:
        text = Path(str(module.__file__)).read_text(encoding="utf-8")
        for line in re.findall(r"^((?:_?[A-Z][A-Z_0-9]*(?:, )?)+) = ", text, re.MULTILINE):
            yield from ((module, name) for name in line.split(", ") if scaled(getattr(module, name), 2.0) is not None)


def scaled(value: Any, factor: float) -> Any:
    """A number, or a tuple of them, times a factor; whole numbers stay whole and positive. Anything else is `None`."""
    if isinstance(value, tuple):
        each = [scaled(x, factor) for x in value]
        return None if not each or None in each else tuple(each)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return max(1, round(value * factor)) if isinstance(value, int) else value * factor


def widths(found: dict[str, list[tuple[float, float]]]) -> dict[str, float]:
    """Bracket every problem; their widths, as multiples of the first. Ends that exclude each other are an error."""
    result = {}
    for name, problem in PROBLEMS.items():
        bracket = problem()
        ends = found.setdefault(name, [])
        ends.append((bracket.lower.value, bracket.upper.value))
        lower, upper = max(low for low, _ in ends), min(high for _, high in ends)
        if lower > upper:
            sys.exit(f"{name}: a value of at least {lower!r}, and of at most {upper!r}")
        low, high = ends[0]
        result[name] = (ends[-1][1] - ends[-1][0]) / max(high - low, sys.float_info.min)
    return result


def main() -> None:
    rooms = pkgutil.walk_packages(bb.bounds.__path__, "beliefbound.bounds.")
    modules = [import_module(each.name) for each in rooms]
    found: dict[str, list[tuple[float, float]]] = {}
    widths(found)
    for module, name in constants(modules):
        short, value = module.__name__.removeprefix("beliefbound."), getattr(module, name)
        if not any(word in short for word in sys.argv[1:] or [""]) or ROUNDING.fullmatch(name):
            continue
        users = [each for each in modules if vars(each).get(name) is value and (each is module or name[0] != "_")]
        for factor in (0.5, 2.0):
            if scaled(value, factor) == value:
                continue
            for each in users:
                setattr(each, name, scaled(value, factor))
            changed = {of: f"{times:.3f}" for of, times in widths(found).items() if times != 1.0}
            for each in users:
                setattr(each, name, value)
            if changed:
                print(f"{short}.{name} = {value} x {factor:g}:", changed, flush=True)


if __name__ == "__main__":
    main()
