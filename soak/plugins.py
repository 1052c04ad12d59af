"""Plug-ins that go wrong: agents, environments and priors of other people, each broken in one place in one way.

`faults()` is a fixed list of more than a hundred. What a command does with one is decided in `tests/plugins`: it says
in one line what failed, goes on with the others, and ends with exit code 1; never with a traceback.
"""

from typing import NamedTuple


class Broken(NamedTuple):
    """A plug-in file, and what to run with it."""

    name: str
    text: str
    agent: str
    environment: str


# What a person's code may do in place of what it should; each is one statement.
_RAISES = {
    "value": "raise ValueError('no such thing')",
    "key": "{}['missing']",
    "index": "[][3]",
    "type": "1 + 'a'",
    "name": "undefined_name",
    "zero": "1 / 0",
    "attribute": "None.nothing",
    "assertion": "assert 1 == 2, 'never'",
    "recursion": "(lambda f: f(f))(lambda f: f(f))",
    "not-implemented": "raise NotImplementedError",
    "exit": "raise SystemExit(3)",
    "lines": "raise RuntimeError('first line\\nsecond line\\n' * 50)",
    "long": "raise RuntimeError('x' * 10_000)",
    "odd": "raise type('Odd', (BaseException,), {'__str__': lambda self: 1 / 0})()",
    "memory": "raise MemoryError",
    "stop": "raise StopIteration",
    "unicode": "raise ValueError('\\x1b[31mred \\u202e \\ud800')",
    "chained": "exec('try:\\n 1/0\\nexcept Exception as e:\\n raise KeyError(1) from e')",
}
_ANSWERS = ("None", "'left'", "1.5", "float('nan')", "-1", "99", "True", "[0]", "object()", "10**40")
_AGENT = """
from beliefbound.lab.agents import agent


@agent("broken", summary="does not work")
class Broken:
    def __init__(self, setting):
        {init}
        self.n = 0

    def reset(self, seed):
        {reset}

    def act(self, state):
        {act}

    def observe(self, state, action, reward, next_state):
        self.n += 1
        {observe}
"""
_ENVIRONMENT = """
import numpy as np

from beliefbound.lab.envs import env, from_outcomes


@env("broken-place", summary="does not work")
def broken(name):
    {body}
    return from_outcomes(name, np.array([[[0.5, 0.5]] * 2]), np.zeros((1, 2, 2), int), {rewards})
"""
_PRIOR = """
from beliefbound.lab.agents import prior


@prior("broken-prior", summary="does not work")
def broken(environment):
    {body}
"""
_IMPORTS = {
    "syntax": "def f(:\n",
    "import": "import no_such_module_anywhere\n",
    "exit": "import sys\nsys.exit(0)\n",
    "name": "@agent('x', summary='y')\nclass A: ...\n",
    "bad-name": "from beliefbound.lab.agents import agent\n@agent('no spaces', summary='y')\nclass A: ...\n",
    "taken": "from beliefbound.lab.agents import agent\n@agent('mcbrl', summary='y')\nclass A: ...\n",
    "bytes": "\x00",
    "raise": "raise BaseException('at once')\n",
}


def _agent(**parts: str) -> str:
    return _AGENT.format(**{"init": "pass", "reset": "pass", "act": "return 0", "observe": "pass"} | parts)


def faults() -> list[Broken]:
    """All of them."""
    found = [
        Broken(f"agent-{part}-{kind}", _agent(**{part: statement}), "broken", "chain")
        for kind, statement in _RAISES.items()
        for part in ("init", "reset", "act", "observe")
    ]
    late = "if self.n > 30:\n            {}\n        return 0"
    found += [
        Broken(f"agent-late-{kind}", _agent(act=late.format(statement)), "broken", "chain")
        for kind, statement in list(_RAISES.items())[:6]
    ]
    found += [
        Broken(f"agent-answers-{i}", _agent(act=f"return {answer}"), "broken", "chain")
        for i, answer in enumerate(_ANSWERS)
    ]
    empty = 'from beliefbound.lab.agents import agent\n@agent("broken", summary="x")\nclass Broken:\n    {}\n'
    found += [
        Broken("agent-no-methods", empty.format("def __init__(self, setting): ..."), "broken", "chain"),
        Broken("agent-no-setting", empty.format("def __init__(self): ..."), "broken", "chain"),
        Broken("agent-none", empty.replace("class Broken:\n    {}", "def f(setting): ..."), "broken", "chain"),
    ]
    good = "np.array([[[1.0, 0.0], [0.0, 1.0]]])"
    found += [
        Broken(f"environment-{kind}", _ENVIRONMENT.format(body=statement, rewards=good), "exploit", "broken-place")
        for kind, statement in list(_RAISES.items())[:8]
    ]
    found += [
        Broken(f"environment-rewards-{i}", _ENVIRONMENT.format(body="pass", rewards=rewards), "exploit", "broken-place")
        for i, rewards in enumerate(("np.full((1, 2, 2), np.nan)", "np.full((1, 2, 2), np.inf)", "np.ones(3)", "None"))
    ]
    found += [
        Broken(
            f"environment-returns-{i}", _ENVIRONMENT.format(body=f"return {x}", rewards=good), "exploit", "broken-place"
        )
        for i, x in enumerate(("None", "3", "np.ones(4)"))
    ]
    found += [
        Broken(f"prior-{kind}", _PRIOR.format(body=statement), "exploit:prior=broken-prior", "chain")
        for kind, statement in list(_RAISES.items())[:6]
    ]
    found += [
        Broken(f"prior-returns-{i}", _PRIOR.format(body=f"return {x}"), "exploit:prior=broken-prior", "chain")
        for i, x in enumerate(("None", "3", "'flat'"))
    ]
    return found + [Broken(f"import-{kind}", text, "exploit", "chain") for kind, text in _IMPORTS.items()]
