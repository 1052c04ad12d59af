"""Agents that learn by acting: by name, by hand, or in thousands of runs. One file each, imported when it is named."""

from beliefbound.engine.check import check_agent
from beliefbound.engine.episode import Episode, run_episode
from beliefbound.engine.play import play
from beliefbound.engine.priors import PRIOR, posterior_for, prior, priors
from beliefbound.engine.protocol import DISCOUNT, Agent, CompiledAgent, Machine, Setting
from beliefbound.engine.registry import agent, agent_parameters, agents, canonical_agent, make_agent, parse_agent
from beliefbound.engine.runs import Runs

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
