"""Agents stepped by hand, alone or beside a plain twin on the same random stream."""

import numpy as np

from beliefbound.kernels.outcomes import begin, step
from beliefbound.kernels.play import agent_stream, environment_stream
from beliefbound.kernels.random import uniform
from beliefbound.lab.agents import make_agent


def follow(agent, environment, steps, *, seed=7, twin=None, alike=None, watch=None):
    """Run 3 of a seed; its transitions `(s, a, r, t)`.

    Args:
      twin: takes the same actions.
      alike: `alike(s, a, b)` says whether other actions will do.
      watch: called with the number of the step once both have acted.
    """
    noise = environment_stream(seed, 3)
    agent.reset(agent_stream(seed, 0, 3))
    if twin is not None:
        twin.reset(seed, 0, 3)
    s, seen = int(begin(environment.outcomes, uniform(noise))), []
    for k in range(steps):
        a = agent.act(s)
        if twin is not None:
            b = twin.act(s)
            assert a == b or (alike is not None and alike(s, a, b)), f"step {k}"
        if watch is not None:
            watch(k)
        r, t = step(environment.outcomes, s, a, uniform(noise))
        agent.observe(s, a, r, t)
        if twin is not None:
            twin.observe(s, a, r, t)
        seen.append((s, a, float(r), int(t)))
        s = int(t)
    return seen


def actions_of(name, environment, steps):
    """Actions and total reward of an agent where there is one state."""
    agent = make_agent(name, environment)
    agent.reset(0)
    actions, total = [], 0.0
    for _ in range(steps):
        a = agent.act(0)
        agent.observe(0, a, environment.mdp.rewards[0, a], 0)
        actions.append(a)
        total += environment.mdp.rewards[0, a]
    return actions, total


def walk(agent, environment, steps, seed=1):
    """Step an agent that was reset through its environment, yielding states before it acts."""
    noise, s = np.random.default_rng(seed), 0
    for _ in range(steps):
        yield s
        a = agent.act(s)
        o = int(np.searchsorted(environment.outcomes.cumulative[s, a], noise.random(), side="right"))
        t = int(environment.outcomes.next_state[s, a, o])
        agent.observe(s, a, float(environment.outcomes.reward[s, a, o]), t)
        s = t
