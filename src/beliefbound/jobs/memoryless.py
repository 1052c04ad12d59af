"""The memoryless policy of a certificate: the best, proven, where that is a matter of a moment; else the best found.

With a horizon: branch and bound, as many nodes as the work allows. Without: every policy of one action per state, where
there are few. Else CADP, a local search, or MMBI. What is done follows from the sizes of the problem, never from the
clock: `verify` finds the same policy again.
"""

from dataclasses import replace
from typing import NamedTuple

from beliefbound.bounds.basic import regret_of
from beliefbound.bounds.bracket import Bracket
from beliefbound.bounds.finite.pool import cadp_of
from beliefbound.bounds.memoryless.branch_and_bound import best_memoryless_of
from beliefbound.bounds.memoryless.every_stationary import best_stationary_of
from beliefbound.planning.cadp import cadp_plan
from beliefbound.planning.mmbi import mmbi_plan
from beliefbound.planning.plan import Plan, plan_for
from beliefbound.planning.task import FiniteTask
from beliefbound.report.certificate import Memoryless

_CADP_WORK = 5e8  # operations, in time, up to which the memoryless policy is CADP's
_INVERSES = 0.5  # the same of a start of CADP's without a horizon, by M·S³: some five inverses, each quick
_STARTS = 15  # of CADP: MMBI, the expected MDP, models' own
_NODE_WORK, _MOST_NODES = 3e8, 4000  # of branch and bound, some tenths of a second in all
_NONE = 50  # nodes below which it is not begun: it would prove little


class Searched(NamedTuple):
    """The plan; what no memoryless policy exceeds, where that is known; whether the plan's is the best."""

    plan: Plan
    most: float | None
    proven: bool


def memoryless_of(task: FiniteTask, found: Bracket, searched: Searched | None = None) -> Memoryless:
    """The memoryless policy, what is known of the best one, and its distance from Bayes-optimal by a bracket."""
    plan, most, proven = searched_of(task) if searched is None else searched
    gap = regret_of(plan.policy, task, found.upper)
    # The best of several sampled bounds holds with the confidence of all of them together.
    return Memoryless(plan, gap if gap.exact else replace(gap, confidence=found.confidence), most, proven)


def searched_of(task: FiniteTask) -> Searched:
    """Search for the memoryless policy, as far as the sizes of the problem allow."""
    sweeps = sweeps_of(task)
    if sweeps > _CADP_WORK:
        return _mmbi(task)
    if task.horizon is None:
        one = _INVERSES * task.models.n_models * float(task.models.n_states) ** 3
        if one > _CADP_WORK:
            return _mmbi(task)
        plan = cadp_of(task) if _STARTS * one <= _CADP_WORK else cadp_plan(task, restarts=False)
        policy = best_stationary_of(task, plan.policy)
        if policy is None:
            return Searched(plan, None, False)
        best = plan if policy is plan.policy else plan_for(policy, task)
        best = replace(best, note="best of all policies of one action per state, which were all valued")
        return Searched(best, None, True)
    plan = cadp_of(task)
    nodes = int(min(_MOST_NODES, _NODE_WORK / ((1 + task.models.n_actions) * sweeps)))
    if nodes < _NONE or task.models.is_sparse:
        return Searched(plan, None, False)
    found = best_memoryless_of(task, most_nodes=nodes)
    if found.lower.value > plan.value(task.start):
        plan = plan_for(found.policy, task, note="policy that branch and bound found")
    if found.optimal:
        plan = replace(plan, note="best of all memoryless policies, by branch and bound")
    return Searched(plan, found.upper.value, found.optimal)


def sweeps_of(task: FiniteTask) -> int:
    """Operations of a sweep over all stages, or over a hundred."""
    return task.models.n_entries * (task.horizon or 100)


def _mmbi(task: FiniteTask) -> Searched:
    plan = mmbi_plan(task, most_work=_CADP_WORK)
    return Searched(replace(plan, note=plan.note or "policy of MMBI; CADP would take long"), None, False)
