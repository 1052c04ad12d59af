"""The loops of agents, listed so that another process can compile them (`kernels.beside`)."""

from collections.abc import Iterable, Iterator
from typing import Any

from numba import typeof

from beliefbound.base.errors import BeliefboundError
from beliefbound.kernels.beside import Job, compile_beside
from beliefbound.kernels.planning.held_models import mmbi_sweeps, renew
from beliefbound.kernels.play import NOWHERE, Request
from beliefbound.kernels.reference import pass_by_reference
from beliefbound.lab.engine.protocol import CompiledAgent
from beliefbound.lab.engine.registry import make_agent
from beliefbound.lab.envs.registry import make_env


def jobs(environment: str, *agents: str) -> Iterator[Job]:
    """What the loops of agents call to draw and to sweep models, where they hold any; then
    the loops. The last agent first: who plays them begins with the first."""
    place = make_env(environment)
    made = [each for each in (make_agent(name, place) for name in reversed(agents)) if isinstance(each, CompiledAgent)]
    states = [each.machine.state for each in made if each.machine.plan is None]
    for state in states:
        pass_by_reference(state)
        yield from _of_models(state)
    for agent in made:
        if agent.machine.plan is None:
            yield agent.loop, tuple(map(typeof, (agent.machine.state, Request(), *NOWHERE)))


def _of_models(state: Any) -> Iterator[Job]:
    """What draws and sweeps the models that a state holds, as far as it is no part of the loop: as long as that."""
    models = getattr(state, "models", None)
    if type(models) in renew.functions and hasattr(state, "stream"):
        yield renew.functions[type(models)], tuple(map(typeof, (state.posterior, state.stream, models)))
        sweeps = mmbi_sweeps.functions[type(models)]
        if not sweeps.targetoptions["forceinline"]:
            yield sweeps, tuple(map(typeof, (models, 1, 0.0)))


def compile_agents_beside(environments: Iterable[str], agents: Iterable[str]) -> None:
    """Begin to compile what agents play by, in a process of its own, where there are several and the last of them is
    not compiled yet; returns at once."""
    place, names = next(iter(environments), ""), tuple(agents)
    try:
        last = make_agent(names[-1], make_env(place)) if len(names) > 1 else None
    except BeliefboundError:  # who plays it says so
        return
    if isinstance(last, CompiledAgent):
        compile_beside("beliefbound.lab.engine.jobs", place, *names, needed=last.loop)
