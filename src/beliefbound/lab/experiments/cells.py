"""One block of an experiment: from the strings of a cell to an agent, an environment, and runs."""

import numpy as np

from beliefbound.lab.engine.play import play
from beliefbound.lab.engine.registry import make_agent
from beliefbound.lab.engine.runs import Runs
from beliefbound.lab.envs import make_env
from beliefbound.lab.envs.environment import Environment
from beliefbound.lab.experiments.spec import Cell, Spec


def play_cell(spec: Spec, cell: Cell, runs: range) -> Runs:
    """The runs numbered `runs` of a cell: a pure function of its arguments."""
    environment = make_env(cell.environment)
    if environment.of_run is None:
        return _play(spec, cell, environment, runs)
    each = [_play(spec, cell, environment.of_run(run), range(run, run + 1)) for run in runs]
    total, utility = (np.concatenate([getattr(one, name) for one in each]) for name in ("total", "utility"))
    curves, visits = [one.curve for one in each], [one.visits for one in each]
    return Runs(
        total,
        utility,
        np.concatenate([c for c in curves if c is not None]) if spec.curve_every else None,
        np.concatenate([v for v in visits if v is not None]) if spec.visits else None,
        each[0].curve_every,
    )


def _play(spec: Spec, cell: Cell, environment: Environment, runs: range) -> Runs:
    discount = environment.discount if spec.discount is None else spec.discount
    return play(
        make_agent(cell.agent, environment, discount=discount),
        environment,
        seed=cell.seed,
        runs=runs,
        steps=spec.steps,
        discount=discount,
        accounting=spec.accounting,
        curve_every=spec.curve_every or None,
        visits=spec.visits,
    )
