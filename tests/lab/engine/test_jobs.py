"""What is listed of agents is what they play by."""

import sys

from beliefbound.kernels.planning.held_models import renew_held
from beliefbound.lab.agents import make_agent, play
from beliefbound.lab.engine import jobs
from beliefbound.lab.engine.jobs import compile_agents_beside
from beliefbound.lab.envs import make_env


def test_what_is_listed_is_what_is_played():
    """What draws models, then loops, the last agent first, and for the types that `play` gives."""
    environment = make_env("chain")
    names = ("exploit", "mcbrl:n=2")
    (draws, of), *listed = jobs.jobs("chain", *names)
    assert draws is renew_held
    play(make_agent("mcbrl:n=2", environment), environment, seed=1, runs=1, steps=5)
    assert of in draws.overloads
    for name, (loop, kinds) in zip(reversed(names), listed, strict=True):
        agent = make_agent(name, environment)
        assert agent.loop is loop
        play(agent, environment, seed=1, runs=1, steps=5)
        assert list(loop.overloads) == [kinds]


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
