"""The first steps of a finite belief: the paper's bounds, and the pool of policies for the leaves of a search.

Small models are solved: each by itself for `E max` and QMDP, a linear system for the exact value of a policy. Where
that would take long there are sweeps instead, valid after any number of them (MacQueen): with `V' = TV`,

    V' + γ/(1−γ) min (V' − V)  ≤  the fixed point  ≤  V' + γ/(1−γ) max (V' − V),

from above for the models by themselves, from below for the value of a policy.
"""

from typing import NamedTuple

import numpy as np

from beliefbound.base.validation import FloatArray, IntArray
from beliefbound.bounds.basic import e_max_of, qmdp_of
from beliefbound.bounds.bound import Bound, Kind
from beliefbound.bounds.decision import Contest
from beliefbound.bounds.finite.first_actions import note_first
from beliefbound.bounds.finite.pool import MMBI_WORK, MOST_POLICIES, mmbi_of, pool_of, valuing_work
from beliefbound.bounds.finite.problem import models_apart, search_depth, stages_kept, values_of
from beliefbound.bounds.record import Record
from beliefbound.bounds.steps import STEP_WORK, Meter, Stepwise
from beliefbound.models.enclosing import swept as swept_bound
from beliefbound.planning.optimal import OptimalValues, solved_models
from beliefbound.planning.rounding import Allowance
from beliefbound.planning.task import FiniteTask
from beliefbound.policy import StationaryPolicy, TablePolicy
from beliefbound.policy.naming import names_of

_SOLVED = 0.4 * STEP_WORK  # operations of valuing a policy up to which models are solved, not swept
_SWEEPS, _MOST_SWEEPS = 10, 400  # at a time, at least; in all
_OWN = 2  # models whose own policies join the pool, where they are swept
_EPSILON = 1e-7  # of the largest value: sweeps end


class Opening(NamedTuple):
    """What the first steps leave for those that follow."""

    policies: list[TablePolicy]
    values: list[FloatArray]  # of each, [stage,m,s], or less
    apart: FloatArray  # [stage,m,s,a], from above
    stages: int


def opening(task: FiniteTask, meter: Meter, record: Record) -> Stepwise[Opening]:
    """The paper's bounds and the pool of policies."""
    if task.horizon is None and valuing_work(task) > _SOLVED:
        return (yield from swept(task, meter, record))
    return (yield from _solved(task, meter, record))


def _solved(task: FiniteTask, meter: Meter, record: Record) -> Stepwise[Opening]:
    stages = search_depth(task, MOST_POLICIES)
    kept, allowance = stages_kept(task, stages), Allowance(task)
    apart, plan = models_apart(task, kept), mmbi_of(task)
    meter.add(8.0 * valuing_work(task) + MMBI_WORK)
    meter.full()
    own = values_of(task, plan.policy, kept)
    if record.contest is not None:
        _note(task, own[min(1, len(own) - 1)], solved_models(task).q_above, record.contest, allowance)
    record.add(
        Bound(_worth(task, own[0], allowance), "lower", "MMBI", policy=plan.policy, kind=Kind.MMBI),
        e_max_of(task),
        qmdp_of(task),
    )
    yield
    policies, values = list[TablePolicy](), list[FloatArray]()
    for kind, name, policy in pool_of(task):
        policies.append(policy)
        values.append(values_of(task, policy, kept))
        record.add(Bound(_worth(task, values[-1][0], allowance), "lower", name, policy=policy, kind=kind))
        meter.add(valuing_work(task))
        if meter.full():
            yield
    yield
    return Opening(policies, values, apart, stages)


def swept(task: FiniteTask, meter: Meter, record: Record, *, work: float = STEP_WORK) -> Stepwise[Opening]:
    """The first steps where models are too large to be solved; `work` is operations of sweeps at a time."""
    models, discount, weights, allowance = task.models, task.discount, task.weights, Allowance(task)
    batch = max(_SWEEPS, int(work / models.n_entries))
    above = models.from_above(discount, _EPSILON * task.largest_value, batch)
    q = models.backup_above(above, discount)
    meter.add(2.0 * batch * models.n_entries)
    told = np.where(models.available, np.tensordot(weights, q, axes=1), -np.inf)
    first = StationaryPolicy(told.argmax(axis=-1))
    policies, values = [first], [_from_below(task, first, batch)]
    meter.add(2.0 * batch * models.n_entries)
    if record.contest is not None:
        _note(task, values[0], q, record.contest, allowance)
    meter.full()
    method = "QMDP's policy, swept from below"
    record.add(
        Bound(task.below(values[0]), "lower", method, policy=first, kind=Kind.QMDP), *_told(task, above, q, batch)
    )
    yield
    done, fallen = batch, np.inf
    while done < _MOST_SWEEPS and fallen > _EPSILON * task.largest_value:
        before = task.value(above)
        above = models.from_above(discount, _EPSILON * task.largest_value, batch, above)
        done, fallen = done + batch, before - task.value(above)
        meter.add(2.0 * batch * models.n_entries)
        if meter.full():
            record.add(*_told(task, above, models.backup_above(above, discount), done))
            yield
    q = models.backup_above(above, discount)
    record.add(*_told(task, above, q, done))
    yield
    best = np.where(models.available, q, -np.inf).argmax(axis=-1)
    likely = np.argsort(-weights, kind="stable")[:_OWN]
    called = names_of(task.belief).the_model
    names = ["MMBI, swept", *(f"optimal policy of {called(m)}, swept" for m in likely)]
    kinds = [Kind.MMBI, *(Kind.MODEL_OPTIMUM for _ in likely)]
    for kind, name, actions in zip(kinds, names, [_greedy(task, batch), *best[likely]], strict=True):
        policy = StationaryPolicy(actions)
        if policy not in policies:
            policies.append(policy)
            values.append(_from_below(task, policy, batch))
            meter.add(4.0 * batch * models.n_entries)
            meter.full()
            record.add(Bound(task.below(values[-1]), "lower", f"{name} from below", policy=policy, kind=kind))
            yield
    q[:, ~models.available] = 0.0
    return Opening(list(policies), [each[None] for each in values], q[None], search_depth(task, len(policies)))


def _told(task: FiniteTask, above: FloatArray, q: FloatArray, sweeps: int) -> list[Bound]:
    """`E max` and QMDP from values `[m,s]`, `[m,s,a]` that are not below the optimal ones."""
    solved = OptimalValues(above, q, np.empty((0, 0), dtype=np.int64), above, q)
    bounds = e_max_of(task, solved), qmdp_of(task, solved)
    return [
        Bound(bound.value, "upper", f"{bound.method}, {sweeps} sweeps from above", kind=bound.kind) for bound in bounds
    ]


def _greedy(task: FiniteTask, sweeps: int) -> IntArray:
    """The actions of MMBI after so many sweeps."""
    models = task.models
    values, q = np.zeros(models.rewards.shape[:2]), np.empty_like(models.rewards)
    actions = np.empty(models.n_states, dtype=np.int64)
    for _ in range(sweeps):
        models.greedy(values, task.weights, task.discount, q=q, actions=actions, out=values)
    return actions


def _from_below(task: FiniteTask, policy: StationaryPolicy, sweeps: int) -> FloatArray:
    """Values `[m,s]` of a policy, or less."""
    models, chances = task.models, policy.chances(task.models.n_actions)
    values, q = np.zeros(models.rewards.shape[:2]), np.empty_like(models.rewards)
    before = values
    for _ in range(sweeps):
        before = values.copy()
        models.follow(before, chances, task.discount, q=q, out=values)
    return swept_bound(values, before, task.discount, models.rounding, up=False)


def _worth(task: FiniteTask, values: FloatArray, allowance: Allowance) -> float:
    """Of values `[m,s]` of a policy: those without a horizon are rounded down, those with one are not."""
    return task.below(values) if task.horizon is None else allowance.lower(task.value(values))


def _note(task: FiniteTask, after: FloatArray, q: FloatArray, contest: Contest, allowance: Allowance) -> None:
    """First bounds of the first actions: `after[m,s]` of a memoryless policy, or the model told afterwards."""
    follow = task.models.backup(after, task.discount)[:, contest.state]
    told: FloatArray = np.where(task.models.available, q, 0.0)[:, contest.state]
    note_first(contest, task.weights, follow, told, allowance)
