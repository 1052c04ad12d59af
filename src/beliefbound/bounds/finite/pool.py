"""The pool: memoryless policies worth having at the leaves of a search, each a lower bound by itself.

MMBI, the expected MDP's, CADP where that does not take long, and the optimal policies of the likeliest models. Made
once for a task, one after the other: whoever asks first makes them.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from beliefbound.base.validation import IntArray
from beliefbound.bounds.bound import Kind
from beliefbound.bounds.steps import OPERATIONS
from beliefbound.planning.cadp import cadp_plan
from beliefbound.planning.expected import expected_optimum
from beliefbound.planning.mmbi import mmbi_plan
from beliefbound.planning.optimal import optimal_actions
from beliefbound.planning.plan import Plan
from beliefbound.planning.task import FiniteTask, made_once
from beliefbound.policy import StationaryPolicy, TablePolicy
from beliefbound.policy.naming import names_of

MMBI_WORK = 0.1 * OPERATIONS  # without a horizon, its sweeps end there
_OWN_POLICIES = 16  # models whose own optimal policy is in the pool: each costs a look at every node
MOST_POLICIES = _OWN_POLICIES + 3
_POOL_WORK = 0.5 * OPERATIONS  # for the values of the pool
_CADP_WORK = 10_000_000  # multiply-adds of a sweep up to which CADP joins the pool: beyond, it takes seconds
_MADE = "pool"  # among the parts of a task


class Pooled(NamedTuple):
    """A policy of the pool, and what it is."""

    kind: Kind
    name: str
    policy: TablePolicy


@made_once
def mmbi_of(task: FiniteTask) -> Plan:
    """MMBI; without a horizon the best policy met after so much work."""
    return mmbi_plan(task, most_work=MMBI_WORK)


@made_once
def cadp_of(task: FiniteTask) -> Plan:
    """CADP with all its starts, of which that policy is one."""
    return cadp_plan(task, mmbi=mmbi_of(task).policy)


def policies_of(task: FiniteTask) -> list[TablePolicy]:
    """The policies of the pool."""
    return [each.policy for each in pool_of(task)]


def pool_of(task: FiniteTask) -> Iterator[Pooled]:
    """The pool, one distinct policy after the other; each is made when it is asked for."""
    known: list[Pooled] | None = task.parts.own.get(_MADE)
    if known is not None:
        yield from known
        return
    met: dict[TablePolicy, Pooled] = {}
    for each in _candidates(task):
        if each.policy not in met:
            met[each.policy] = each
            yield each
    task.parts.own[_MADE] = list(met.values())


def _candidates(task: FiniteTask) -> Iterator[Pooled]:
    yield Pooled(Kind.MMBI, "MMBI", mmbi_of(task).policy)
    yield Pooled(Kind.EXPECTED_MDP, "optimal policy of the expected MDP", expected_optimum(task))
    if math.prod(task.models.rewards.shape) * task.models.n_states * (task.horizon or 100) <= _CADP_WORK:
        yield Pooled(Kind.CADP, "CADP", cadp_of(task).policy)
    likely, called = likeliest(task), names_of(task.belief).the_model
    for m, actions in zip(likely, optimal_actions(task, likely), strict=True):
        name = f"optimal policy of {called(m)}{', first step' if task.horizon else ''}"
        yield Pooled(Kind.MODEL_OPTIMUM, name, StationaryPolicy(actions))


def likeliest(task: FiniteTask) -> IntArray:
    """The models whose own optimal policies join the pool: fewer where valuing one takes long."""
    most = int(np.clip(_POOL_WORK / valuing_work(task), 2, _OWN_POLICIES))
    return np.argsort(-task.weights, kind="stable")[:most]


def valuing_work(task: FiniteTask) -> float:
    """Operations, in time, that the exact value of one memoryless policy takes."""
    models = task.models
    if task.horizon is not None:
        return float(task.horizon * models.n_entries)
    if models.is_sparse:
        return 200.0 * models.n_entries
    return models.n_entries + 0.15 * models.n_models * float(models.n_states) ** 3
