"""Hidden-model problems written as POMDPX and as Cassandra's `.pomdp`, for other people's solvers.

Numbers are written so that they are read back bit for bit. Both formats separate names by blanks, and Cassandra's knows
letters, digits, `-` and `_` only: other signs become `_`, and where names would then be alike a number is added; the
words returned say which were changed.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.sax.saxutils import escape

import numpy as np

from beliefbound.base.io.atomic import write_text
from beliefbound.base.io.formats.hidden_model import HiddenModel, Names
from beliefbound.base.validation import FloatArray


def write_pomdpx(path: Path, problem: HiddenModel) -> tuple[str, ...]:
    """Write POMDPX: one observed variable `state`, one hidden one `model`, one action; returns what was changed."""
    notes: list[str] = []
    n_models, n_states, n_actions = problem.transitions.shape[:3]

    def clean(name: str) -> str:
        text = re.sub(r"\s+", "_", name.strip())
        return "_" if text in ("*", "-", "") else text

    states = _words(problem.states, n_states, "s", clean, notes)
    actions = _words(problem.actions, n_actions, "a", clean, notes)
    models = _words(problem.models, n_models, "s", clean, notes)

    def values(names: Names, words: list[str]) -> str:
        return f"<NumValues>{len(words)}</NumValues>" if names is None else f"<ValueEnum>{_text(words)}</ValueEnum>"

    def table(var: str, parents: str, entries: Iterator[tuple[str, str]], kind: str = "ProbTable") -> Iterator[str]:
        tag = "CondProb" if kind == "ProbTable" else "Func"
        yield f'<{tag}><Var>{var}</Var><Parent>{parents}</Parent><Parameter type="TBL">\n'
        for instance, numbers in entries:
            yield f"<Entry><Instance>{instance}</Instance><{kind}>{numbers}</{kind}></Entry>\n"
        yield f"</Parameter></{tag}>\n"

    def rows(array: FloatArray, by_model: bool) -> Iterator[tuple[str, str]]:
        """Entries `action model state` of `array[m,s,a,…]`, or `action state`; then `-` where an axis is left."""
        own = models if by_model else [""]
        for m, s, a in np.ndindex(len(own), n_states, n_actions):
            values = array[m, s, a] if by_model else array[s, a]
            words = [actions[a], *([own[m]] if by_model else []), states[s], *(["-"] if values.ndim else [])]
            yield _text(words), _numbers(values)

    def lines() -> Iterator[str]:
        yield '<?xml version="1.0" encoding="UTF-8"?>\n<pomdpx version="1.0" id="hidden-model">\n'
        yield "<Description>An observed state, and a hidden model that never changes.</Description>\n"
        yield f"<Discount>{problem.discount!r}</Discount>\n<Variable>\n"
        yield f'<StateVar vnamePrev="state_0" vnameCurr="state_1" fullyObs="true">{values(problem.states, states)}'
        yield f'</StateVar>\n<StateVar vnamePrev="model_0" vnameCurr="model_1">{values(problem.models, models)}'
        yield f'</StateVar>\n<ActionVar vname="action">{values(problem.actions, actions)}</ActionVar>\n'
        yield '<RewardVar vname="reward"/>\n</Variable>\n<InitialStateBelief>\n'
        yield from table("state_0", "null", iter([("-", _numbers(problem.initial))]))
        yield from table("model_0", "null", iter([("-", _numbers(problem.weights))]))
        yield "</InitialStateBelief>\n<StateTransitionFunction>\n"
        yield from table("state_1", "action model_0 state_0", rows(problem.transitions, True))
        yield from table("model_1", "model_0", iter([("- -", "identity")]))
        yield "</StateTransitionFunction>\n<RewardFunction>\n"
        paid, by_model = _common(problem)
        parents = "action model_0 state_0" if by_model else "action state_0"
        parents += " state_1" if paid.ndim == 3 + by_model else ""
        yield from table("reward", parents, rows(paid, by_model), "ValueTable")
        yield "</RewardFunction>\n</pomdpx>\n"

    write_text(path, "".join(lines()))
    return tuple(notes)


def write_cassandra(path: Path, problem: HiddenModel) -> tuple[str, ...]:
    """Write Cassandra's format: states `state_model`, whose observation is the state; returns what was changed."""
    notes: list[str] = []
    n_models, n_states, n_actions = problem.transitions.shape[:3]

    def clean(name: str) -> str:
        text = re.sub(r"[^A-Za-z0-9_-]", "_", name)
        return text if text[:1].isalpha() else f"n{text}"

    states = _words(problem.states, n_states, "s", clean, notes)
    actions = _words(problem.actions, n_actions, "a", clean, notes)
    models = _words(problem.models, n_models, "m", clean, notes)
    flat = [[f"{state}_{model}" for state in states] for model in models]
    if len({name for row in flat for name in row}) < n_models * n_states:
        flat = [[f"x{m}_{s}" for s in range(n_states)] for m in range(n_models)]
        notes.append("the names of states and models run into each other: models have no names in the file")

    def lines() -> Iterator[str]:
        yield "# An observed state, and a hidden model that never changes.\n"
        yield f"discount: {problem.discount!r}\nvalues: reward\n"
        yield f"states: {' '.join(name for row in flat for name in row)}\n"
        yield f"actions: {' '.join(actions)}\nobservations: {' '.join(states)}\n"
        yield f"start: {_numbers(np.outer(problem.weights, problem.initial).ravel())}\n"
        for m, s, a, t in np.argwhere(problem.transitions > 0.0):
            chance = float(problem.transitions[m, s, a, t])
            yield f"T: {actions[a]} : {flat[m][s]} : {flat[m][t]} {chance!r}\n"
        for m in range(n_models):
            for s in range(n_states):
                yield f"O: * : {flat[m][s]} : {states[s]} 1.0\n"
        for m in range(n_models):
            for s in range(n_states):
                for a in range(n_actions):
                    paid = problem.rewards[m, s, a]
                    if paid.ndim == 0:
                        yield f"R: {actions[a]} : {flat[m][s]} : * : * {float(paid)!r}\n"
                        continue
                    for t in np.flatnonzero(problem.transitions[m, s, a]):
                        yield f"R: {actions[a]} : {flat[m][s]} : {flat[m][t]} : * {float(paid[t])!r}\n"

    write_text(path, "".join(lines()))
    return tuple(notes)


def _common(problem: HiddenModel) -> tuple[FloatArray, bool]:
    """Rewards without the axis of models where all pay the same, and whether that axis is there."""
    same = bool((problem.rewards == problem.rewards[:1]).all())
    return (problem.rewards[0], False) if same else (problem.rewards, True)


def _words(names: Names, count: int, letter: str, clean: Callable[[str], str], notes: list[str]) -> list[str]:
    """One word per name, all different."""
    if names is None:
        return [f"{letter}{i}" for i in range(count)]
    words: list[str] = []
    taken: set[str] = set()
    for i, name in enumerate(names):
        word = clean(name)
        if word in taken:
            word = f"{word}_{i}"
        while word in taken:
            word += "_"
        taken.add(word)
        words.append(word)
        if word != name:
            notes.append(f"the name {name!r} is written as {word!r}")
    return words


def _text(words: list[str]) -> str:
    return escape(" ".join(words))


def _numbers(values: FloatArray) -> str:
    return " ".join(repr(float(x)) for x in np.atleast_1d(values))
