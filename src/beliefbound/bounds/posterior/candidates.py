"""Memoryless policies for a belief, and the one that an objective prefers.

Candidates come from one sample of models (MSBI, and CADP where there is time for it), from the expected MDP, from
single models' own optima, and from the log. For an objective that looks at bad models, also from best responses: CADP,
or MMBI, on the models that are worst for the best candidate so far, a few times over.

The choice is made on a *second* sample; for the mean, a candidate must beat the expected MDP's policy there by more
than a standard error. It is a choice among these candidates, no claim that no better policy exists; what the chosen one
is worth is measured on a third sample, elsewhere.
"""

import math
from typing import NamedTuple

import numpy as np

from beliefbound.base.validation import FloatArray
from beliefbound.beliefs.finite import FiniteBelief
from beliefbound.beliefs.model_source import ModelSource
from beliefbound.bounds.posterior.fresh import affordable, batch_size
from beliefbound.bounds.posterior.risk import Objective
from beliefbound.models.evaluation import evaluate
from beliefbound.planning.cadp import cadp_plan
from beliefbound.planning.expected import expected_optimum
from beliefbound.planning.mmbi import mmbi_plan
from beliefbound.planning.optimal import optimal_values
from beliefbound.planning.task import FiniteTask, Task
from beliefbound.policy import StationaryPolicy, TablePolicy

_CADP_WORK = 2e7  # multiply-adds of a sweep up to which CADP joins
_OWN = 8  # models whose own optimal policy is tried
_ROUNDS = 4  # of best responses
_SAMPLE_BYTES = 1 << 29  # of the models that policies are made on
_TRAIN_WORK, _SELECT_WORK = 2e9, 4e9  # multiply-adds, roughly


class Candidate(NamedTuple):
    """A policy and where it comes from."""

    name: str
    policy: TablePolicy


class Choice(NamedTuple):
    """What was chosen, among what, on how many models."""

    chosen: Candidate
    expected: Candidate
    pool: tuple[Candidate, ...]
    objective: FloatArray  # [policy]: of each, on the models it was chosen on
    n_train: int
    n_select: int


def choose(
    task: Task,
    objective: Objective,
    rng: np.random.Generator,
    *,
    behaviour: TablePolicy | None = None,
    n_train: int = 64,
    n_select: int = 1000,
) -> Choice:
    """The candidate with the best objective on models that none of them was made from."""
    source = ModelSource(task.belief)
    most = batch_size(source, _SAMPLE_BYTES)
    n_train = min(affordable(task, source, n_train, work=_TRAIN_WORK, least=4), max(4, most))
    n_select = min(affordable(task, source, n_select, work=_SELECT_WORK, least=16), max(8, most))
    train = FiniteTask(source.sample(n_train, rng), task.start, task.discount, task.horizon)
    expected = Candidate("expected MDP", expected_optimum(task))
    pool = [_planned(train), expected]
    if pool[0].name != "MSBI":
        pool.append(_swept(train))
    few = np.arange(min(n_train, affordable(task, source, _OWN, work=_TRAIN_WORK / 2.0, least=2)))
    own = optimal_values(train.models.select(few), discount=task.discount, horizon=task.horizon)
    pool += [Candidate(f"optimum of sampled model {i + 1}", StationaryPolicy(x)) for i, x in enumerate(own.actions)]
    if behaviour is not None and not behaviour.chances(task.belief.n_actions)[..., ~task.belief.available].any():
        pool.append(Candidate("behaviour", behaviour))  # one that does what is not offered here is none
    if objective.kind != "mean":
        pool += _responses(train, pool, objective)
    pool = list({candidate.policy: candidate for candidate in reversed(pool)}.values())[::-1]
    chosen_on = source.sample(n_select, rng)
    values = np.stack([_values(candidate.policy, chosen_on, task) for candidate in pool])
    scores = objective.of(values)
    first = next(i for i, candidate in enumerate(pool) if candidate.policy == expected.policy)
    chosen = pool[_clearly_best(values, first) if objective.kind == "mean" else int(scores.argmax())]
    return Choice(chosen, expected, tuple(pool), scores, n_train, n_select)


def _clearly_best(values: FloatArray, first: int) -> int:
    """The policy of values `[policy,m]` that beats policy `first` by most, a standard error taken off; else that one.

    The largest of several noisy means is too large: without the margin a policy whose sample was good by chance would
    be taken.
    """
    rise = values - values[first]
    clear = rise.mean(axis=1) - rise.std(axis=1, ddof=1) / math.sqrt(rise.shape[1])
    return int(clear.argmax()) if clear.max() > 0.0 else first


def _values(policy: TablePolicy, models: FiniteBelief, task: Task) -> FloatArray:
    stages = None if policy.horizon else task.horizon
    values: FloatArray = evaluate(policy, models, discount=task.discount, horizon=stages) @ task.start
    return values


def _planned(task: FiniteTask) -> Candidate:
    """CADP's policy where its sweeps are affordable, else that of MMBI on the sample."""
    work = math.prod(task.models.rewards.shape) * task.models.n_states * (task.horizon or 1)
    return Candidate("CADP", cadp_plan(task).policy) if work <= _CADP_WORK else _swept(task)


def _swept(task: FiniteTask) -> Candidate:
    return Candidate("MSBI", mmbi_plan(task, most_work=_TRAIN_WORK).policy)


def _responses(task: FiniteTask, pool: list[Candidate], objective: Objective) -> list[Candidate]:
    """Plans for the models that are worst for the best candidate so far."""
    found: list[Candidate] = []
    n = task.belief.n_models
    share = objective.level if objective.kind in ("cvar", "percentile") else 0.0
    count = max(1, math.ceil(n * share))
    for i in range(_ROUNDS):
        values = np.stack([_values(c.policy, task.belief, task) for c in (*pool, *found)])
        best = int(objective.of(values).argmax())
        worst = np.argsort(values[best], kind="stable")[:count]
        weights = np.full(n, 0.5 / n)  # half of the weight stays everywhere: the worst models change with the policy
        weights[worst] += 0.5 / count
        belief = task.belief.reweight(weights / weights.sum())
        made = _planned(FiniteTask(belief, task.start, task.discount, task.horizon))
        named = Candidate(f"{made.name} on bad models, round {i + 1}", made.policy)
        if any(named.policy == c.policy for c in (*pool, *found)):
            break
        found.append(named)
    return found
