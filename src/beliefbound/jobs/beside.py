"""What `beliefbound bound` finds beside the bracket, where it is asked for: first actions by start state, and which
policy to choose as weights move."""

from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from beliefbound.base.errors import ParameterError
from beliefbound.beliefs.folder import ModelFolder
from beliefbound.bounds.bracket import Bracket, bracket_of
from beliefbound.bounds.finite.pool import pool_of
from beliefbound.bounds.sensitivity import Sensitivity, model_id, sensitivity_of
from beliefbound.bounds.steps import Limits
from beliefbound.planning.task import FiniteTask
from beliefbound.policy.naming import names_of

_POLICIES = 8  # of the pool that are compared


def starts_of(
    folder: ModelFolder, horizon: int | None, limits: Limits, efforts: list[int], **knobs: Any
) -> dict[int, Bracket]:
    """A bracket from each state in which it may start, each until its first action is proven, or to the limits: a
    share of the seconds each. `efforts`: where there are any, so many steps, one number per state, in place of
    limits."""
    states = np.flatnonzero(folder.initial).tolist()
    if efforts and len(efforts) != len(states):
        raise ParameterError(f"there are {len(states)} states to start in, and efforts for {len(efforts)}")
    share, found = limits._replace(seconds=limits.seconds / len(states)), dict[int, Bracket]()
    for k, s in enumerate(states):
        task = FiniteTask.of(folder.training, discount=folder.discount, horizon=horizon, initial=s)
        until = Limits(effort=efforts[k]) if efforts else share
        found[s] = bracket_of(task, until, target="decision", **knobs).bracket
    return found


def moving(given: str | None, folder: ModelFolder) -> list[int] | None:
    """The models whose weights move, from one name or two by a comma."""
    if given is None:
        return None
    belief = folder.training
    models = [model_id(name.strip(), names_of(belief), belief.n_models) for name in given.split(",")]
    if len(models) > 2 or len(set(models)) < len(models) or belief.n_models <= len(models):
        raise ParameterError(
            f"sensitivity is {given!r}, and there are {belief.n_models} models; give one of them, or two, and leave one"
        )
    return models


def compared_policies(task: FiniteTask, certified: Any, memoryless: Any) -> Sensitivity:
    """The certified policy, the memoryless one, and others, each once: no two of them are worth the same everywhere."""
    policies = {"the certified policy": certified, "the memoryless policy": memoryless}
    policies |= {each.name: each.policy for each in islice(pool_of(task), _POLICIES)}
    found = sensitivity_of(task, policies)
    same = 1e-9 * np.abs(found.values).max()
    rows = found.values
    kept = [k for k in range(len(rows)) if all(np.abs(rows[k] - rows[j]).max() > same for j in range(k))]
    return replace(found, policies=tuple(found.policies[k] for k in kept), values=rows[kept])


def efforts_of(starts: dict[int, Bracket] | None) -> list[int] | None:
    """How many steps each of them took."""
    return None if starts is None else [bracket.effort for bracket in starts.values()]
