"""Agents that learn by acting: by name, by hand, or in thousands of runs. One file each; importing it registers it."""

from beliefbound.agents import (  # noqa: F401
    amp_em,
    bamcp,
    bayes_q,
    beb,
    beetle,
    bfs3,
    bolt,
    boss,
    bracket,
    branch_and_bound,
    controller,
    delayed_q,
    e3,
    exploit,
    gittins,
    hypotheses,
    ieql,
    interval_estimation,
    mbie,
    mbie_eb,
    mcbrl,
    mcbrl_cadp,
    mcbrl_lookahead,
    oracle,
    pac_bayes,
    policies,
    psrl,
    qlearning,
    random,
    rmax,
    sboss,
    sem,
    sparse_sampling,
    thompson,
    ucrl2,
    vb_em,
    vbrb,
    vpi,
    wyatt,
)
from beliefbound.agents.check import check_agent
from beliefbound.agents.episode import Episode, run_episode
from beliefbound.agents.play import play
from beliefbound.agents.priors import PRIOR, posterior_for, prior, priors
from beliefbound.agents.protocol import DISCOUNT, Agent, CompiledAgent, Machine, Setting
from beliefbound.agents.registry import agent, agent_parameters, agents, canonical_agent, make_agent, parse_agent
from beliefbound.agents.runs import Runs

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
