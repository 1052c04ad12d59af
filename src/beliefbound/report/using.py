"""How to use a policy that a report is about: the lines of Python that act with it."""

from typing import Any

import numpy as np

from beliefbound.base.validation import FloatArray
from beliefbound.policy.naming import Names
from beliefbound.report.page import Section


def using_section(file: str, names: Names, start: FloatArray) -> Section:
    """Lines that run beside the file of the policy; observations and actions are names where there are any.

    >>> names = Names(states=("dry", "wet"))
    >>> using_section("policy.json", names, np.array([0.0, 1.0])).code[0].splitlines()[3]
    "action = act('wet')"
    """
    s = int(np.argmax(start))
    state: Any = s if names.states is None else names.states[s]
    lines = [
        "from beliefbound import load_actor",
        f"act = load_actor({file!r})",
        "act.reset(seed=0)  # at the start of every episode",
        f"action = act({state!r})",
        f"act.observe({state!r}, action, 0.0, {state!r})  # state, action, reward, next state: after every step",
    ]
    return Section(
        "How to use the policy",
        [
            "Ask for an action in each state, and tell what happened: a policy that learns, or counts stages, needs "
            "it. `load_policy` gives the policy itself."
        ],
        code=["\n".join(lines)],
    )
