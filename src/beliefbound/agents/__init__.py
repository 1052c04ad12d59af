"""Agents that learn by acting: by name, by hand, or in thousands of runs."""

from beliefbound.agents.agent import Agent, CompiledAgent
from beliefbound.agents.check import check_agent
from beliefbound.agents.episode import Episode, run_episode
from beliefbound.agents.play import Runs, play
from beliefbound.agents.registry import agent_parameters, agents, canonical_agent, make_agent, parse_agent
from beliefbound.agents.spec import AgentSpec

__all__ = [
    "Agent",
    "AgentSpec",
    "CompiledAgent",
    "Episode",
    "Runs",
    "agent_parameters",
    "agents",
    "canonical_agent",
    "check_agent",
    "make_agent",
    "parse_agent",
    "play",
    "run_episode",
]
