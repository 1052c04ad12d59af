"""What is listed of agents is what they play by."""

import sys

from numba import typeof

from beliefbound.kernels.planning.held_models import mmbi_sweeps_held, renew_plain
from beliefbound.lab.agents import make_agent, play
from beliefbound.lab.engine import jobs
from beliefbound.lab.engine.jobs import compile_agents_beside
from beliefbound.lab.envs import make_env


def test_what_is_listed_is_what_is_played():
    """What draws and sweeps models, then loops, the last agent first, and for the types that `play` gives."""
    environment = make_env("chain")
    names = ("exploit", "mcbrl:n=2")
    *of_models, mcbrl, exploit = jobs.jobs("chain", *names)
    (draws, of), (sweeps, kinds) = of_models
    agent = make_agent("mcbrl:n=2", environment)
    play(agent, environment, seed=1, runs=1, steps=5)
    state = agent.machine.state
    assert draws is renew_plain
    assert of in draws.overloads
    assert sweeps is mmbi_sweeps_held
    assert kinds == tuple(map(typeof, (state.models, state.sweeps, state.tolerance)))
    for name, (loop, kinds) in zip(reversed(names), (mcbrl, exploit), strict=True):
        agent = make_agent(name, environment)
        assert agent.loop is loop
        play(agent, environment, seed=1, runs=1, steps=5)
        assert kinds in loop.overloads


def test_it_begins_with_several_agents_only(monkeypatch):
    asked = []
    monkeypatch.setattr(jobs, "compile_beside", lambda *words, needed: asked.append((words, needed)))
    compile_agents_beside(["chain"], ["exploit"])
    compile_agents_beside(["chain"], ["exploit", "no-such-agent"])
    compile_agents_beside([], ["exploit", "mcbrl"])
    assert not asked
    compile_agents_beside(["chain", "double-loop"], ["exploit", "mcbrl"])
    ((words, needed),) = asked
    assert words == ("beliefbound.lab.engine.jobs", "chain", "exploit", "mcbrl")
    assert needed is make_agent("mcbrl", make_env("chain")).loop
    assert words[0] in sys.modules
