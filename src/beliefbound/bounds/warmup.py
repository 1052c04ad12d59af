"""Compile before the clock starts: the first bracket of a fresh installation is as good as any later one.

Kernels are compiled when they are first called, which takes seconds once per installation and a moment per process.
`warm_up` calls them, through the doors that `bracket` uses, on a problem of a few models, so that a time limit is spent
on the problem it was given for. Which kernels there are depends on how models are stored and on whether there is a
horizon; each kind is warmed up once per process.
"""

import time
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp

from beliefbound.beliefs import DirichletBelief, FiniteBelief
from beliefbound.bounds.dirichlet.arrays import posterior_of
from beliefbound.bounds.dirichlet.sampler import Sampler
from beliefbound.bounds.dirichlet.steps import dirichlet_steps
from beliefbound.bounds.finite.cells import Size, cell_steps
from beliefbound.bounds.finite.first_actions import model_values
from beliefbound.bounds.finite.opening import swept
from beliefbound.bounds.finite.pairs import with_pairs
from beliefbound.bounds.finite.pool import policies_of
from beliefbound.bounds.finite.problem import problem_of
from beliefbound.bounds.finite.relaxation import Certifier, relaxation
from beliefbound.bounds.finite.search import finite_steps
from beliefbound.bounds.record import Record
from beliefbound.bounds.steps import Limits, Meter, finish, take
from beliefbound.planning.task import FiniteTask, Task, finite_task

_DISCOUNT, _HORIZON = 0.5, 3
_CONFIDENCE = 0.95
_EFFORT = 12  # steps: every kind of them


def warm_up(task: Task) -> float:
    """Compile what a bracket of this kind of task needs; the seconds it took, about 0 when there was nothing to do."""
    began = time.perf_counter()
    finite = finite_task(task)
    horizon = None if task.horizon is None else _HORIZON
    if finite is None:
        _sampled(horizon, posterior_of(task) is not None)
    else:
        _finite(horizon, finite.models.is_sparse)
    return time.perf_counter() - began


@cache
def _finite(horizon: int | None, sparse: bool) -> None:
    rng = np.random.default_rng(0)
    transitions: Any = rng.dirichlet(np.ones(3), size=(4, 3, 3))
    if sparse:
        transitions = [sp.csr_array(model.reshape(9, 3)) for model in transitions]
    belief = FiniteBelief(transitions, rng.random((4, 3, 3)), reward_signal="bernoulli")
    task = FiniteTask.of(belief, discount=_DISCOUNT, horizon=horizon)
    record = Record(_CONFIDENCE)
    take(finite_steps(task, rng, None, record), record, Limits(effort=_EFFORT))
    if horizon is None:
        finish(swept(task, Meter(), record, work=0.0))  # STEP_WORK of so few entries would be seconds of sweeps
    policies = policies_of(task)
    problem = with_pairs(problem_of(task, stages=_HORIZON, policies=policies), task)
    cells = cell_steps(problem, np.ones((4, 4)), task.weights, task.start, Size(3, 4, 0.0), Meter())
    problem = problem._replace(cells=finish(cells)[0], merged=horizon is None)
    certifier = Certifier(task, problem, policies, core_nodes=9)
    certifier.grow(9)
    certifier.refresh(0, certifier.n_nodes)
    model_values(certifier)
    relaxation(belief, discount=_DISCOUNT, horizon=horizon, nodes=100, scenarios=64, rng=rng)


@cache
def _sampled(horizon: int | None, counted: bool) -> None:
    rng = np.random.default_rng(0)
    task = Task.of(DirichletBelief(2, 2, initial=0), discount=_DISCOUNT, horizon=horizon)
    next(dirichlet_steps(task, rng, None, Record(_CONFIDENCE)))
    if counted:
        sampler = Sampler(task, 0, 1)
        sampler.simulate(2)
        sampler.relax(2)
