"""Agents that learn by acting: by name, by hand, or in thousands of runs. One file each, imported when it is named."""

from beliefbound.lab.engine.check import check_agent
from beliefbound.lab.engine.episode import Episode, run_episode
from beliefbound.lab.engine.play import play
from beliefbound.lab.engine.priors import PRIOR, posterior_for, prior, priors
from beliefbound.lab.engine.protocol import DISCOUNT, Agent, CompiledAgent, Machine, Setting
from beliefbound.lab.engine.registry import agent, agent_parameters, agents, canonical_agent, make_agent, parse_agent
from beliefbound.lab.engine.runs import Runs

__all__ = [
    "DISCOUNT",
    "PRIOR",
    "Agent",
    "CompiledAgent",
    "Episode",
    "Machine",
    "Runs",
    "Setting",
    "agent",
    "agent_parameters",
    "agents",
    "canonical_agent",
    "check_agent",
    "make_agent",
    "parse_agent",
    "play",
    "posterior_for",
    "prior",
    "priors",
    "run_episode",
]
