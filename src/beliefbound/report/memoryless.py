"""The memoryless policy of a certificate: its plan, and how far below Bayes-optimal it can be."""

from dataclasses import replace

from beliefbound.beliefs import FiniteBelief
from beliefbound.bounds.basic import regret_of
from beliefbound.bounds.bound import Regret
from beliefbound.bounds.bracket import Bracket
from beliefbound.bounds.finite.pool import cadp_of
from beliefbound.planning.mmbi import mmbi_plan
from beliefbound.planning.plan import Plan
from beliefbound.planning.task import FiniteTask
from beliefbound.report.page import Table

_SHOWN = 40  # states whose actions the page lists
_CADP_WORK = 5e8  # multiply-adds up to which the memoryless policy is CADP's


def memoryless_plan(task: FiniteTask) -> Plan:
    """CADP's plan; MMBI's, after a number of sweeps, where CADP would take long."""
    if task.models.n_entries * (task.horizon or 100) <= _CADP_WORK:
        return cadp_of(task)
    plan = mmbi_plan(task, most_work=_CADP_WORK)
    return replace(plan, note=plan.note or "policy of MMBI; CADP would take long")


def memoryless_regret(plan: Plan, task: FiniteTask, found: Bracket) -> Regret:
    """How far below Bayes-optimal the plan can be, by the upper bound of a bracket."""
    gap = regret_of(plan.policy, task, found.upper)
    # The best of several sampled bounds holds with the confidence of all of them together.
    return gap if gap.exact else replace(gap, confidence=found.confidence)


def policy_tables(plan: Plan, belief: FiniteBelief) -> list[Table]:
    """What the memoryless policy does in each state, where one action each is all there is to say."""
    policy = plan.policy
    if policy.horizon is not None:
        return []
    states = belief.states or tuple(map(str, range(belief.n_states)))
    actions = belief.actions or tuple(map(str, range(belief.n_actions)))
    rows = [[state, actions[a]] for state, a in zip(states, policy.actions, strict=True)]
    more = f" The first {_SHOWN} of {len(rows)} states; all are in memoryless.csv." if len(rows) > _SHOWN else ""
    return [Table(["state", "action"], rows[:_SHOWN], "What the memoryless policy does." + more)]
