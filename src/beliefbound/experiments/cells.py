"""One block of an experiment: from the strings of a cell to an agent, an environment, and runs."""

from beliefbound.agents import make_agent
from beliefbound.agents.play import play
from beliefbound.agents.runs import Runs
from beliefbound.envs import make_env
from beliefbound.experiments.spec import Cell, Spec


def play_cell(spec: Spec, cell: Cell, runs: range) -> Runs:
    """The runs numbered `runs` of a cell: a pure function of its arguments."""
    environment = make_env(cell.environment)
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
