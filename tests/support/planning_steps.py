"""When agents of MCBRL's family draw new models, and the values they hold."""

from beliefbound.kernels.outcomes import step
from beliefbound.kernels.play import environment_stream
from beliefbound.kernels.random import uniform
from beliefbound.lab.agents import make_agent
from beliefbound.lab.agents.mcbrl import PLANS
from support.environments import CHAIN


def planning_steps(name, steps, watch=None):
    """The steps at which an agent draws new models."""
    agent = make_agent(name, CHAIN)
    agent.reset(1)
    noise = environment_stream(1, 0)
    s, plans, found = 0, 0, []
    for k in range(1, steps + 1):
        a = agent.act(s)
        if agent.machine.state.clock[PLANS] > plans:
            plans += 1
            found.append(k)
        r, t = step(CHAIN.outcomes, s, a, uniform(noise))
        agent.observe(s, a, r, t)
        if watch is not None:
            watch(agent.machine.state, k, s, a)
        s = int(t)
    return found


def values_held(state):
    """`[s,m]`, of the last sweep."""
    return state.models.odd if state.models.side[0] else state.models.even
