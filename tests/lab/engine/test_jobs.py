"""What is listed of agents is what they play by."""

import importlib
import sys
from types import SimpleNamespace

import pytest
from numba import typeof

from beliefbound.kernels.planning import jobs as drawing
from beliefbound.kernels.planning.held_models import mmbi_sweeps_compressed, renew_compressed, renew_plain
from beliefbound.lab.agents import make_agent, play
from beliefbound.lab.engine import jobs, protocol
from beliefbound.lab.engine.jobs import compile_agents_beside
from beliefbound.lab.envs import make_env


def test_what_is_listed_is_what_is_played():
    """What draws models, then loops, the last agent first, and for the types that `play` gives."""
    environment = make_env("chain")
    names = ("exploit", "mcbrl:n=2")
    (draws, of), mcbrl, exploit = jobs.jobs("chain", *names)
    agent = make_agent("mcbrl:n=2", environment)
    play(agent, environment, seed=1, runs=1, steps=5)
    assert draws is renew_plain
    assert of in draws.overloads
    for name, (loop, kinds) in zip(reversed(names), (mcbrl, exploit), strict=True):
        agent = make_agent(name, environment)
        assert agent.loop is loop
        play(agent, environment, seed=1, runs=1, steps=5)
        assert kinds in loop.overloads


def test_what_sweeps_compressed_models_is_no_part_of_the_loop_and_listed():
    (draws, _), (sweeps, kinds), _ = jobs.jobs("garnet:states=120,actions=2,branching=3,seed=1", "mcbrl:n=2")
    assert (draws, sweeps) == (renew_compressed, mmbi_sweeps_compressed)
    assert kinds[1:] == (typeof(1), typeof(1.0))


def test_what_most_agents_draw_by_is_listed_for_the_types_they_have():
    environment = make_env("chain")
    play(make_agent("mcbrl:n=2", environment), environment, seed=1, runs=1, steps=5)
    *_, (renew, kinds) = listed = list(drawing.jobs())
    assert renew is renew_plain
    assert kinds in renew.overloads
    for function, kinds in listed[:-1]:
        function.compile(kinds)
        assert list(function.overloads) == [kinds], function.py_func.__name__


def test_the_first_loop_that_is_compiled_starts_it(monkeypatch):
    asked, environment, started = [], make_env("chain"), [False]
    monkeypatch.setattr(protocol, "compile_beside", lambda module, *, needed: asked.append((module, needed)))
    monkeypatch.setattr(protocol, "compiles_beside", lambda: started[0])
    monkeypatch.setattr(protocol, "is_kept", lambda loop: False)
    agent = make_agent("exploit", environment)
    play(agent, environment, seed=1, runs=1, steps=5)
    asked.clear()
    play(agent, environment, seed=1, runs=1, steps=5)
    assert not asked  # it is compiled
    monkeypatch.setattr(agent, "loop", SimpleNamespace(overloads={}, __call__=None))
    for started[0] in (True, False):
        with pytest.raises(TypeError):  # no loop
            agent.reset(1)
    ((module, needed),) = asked
    assert needed in [function for function, _ in importlib.import_module(module).jobs()]


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
