"""Agents under priors of other forms: each is compiled anew."""

import numpy as np

from beliefbound import DirichletBelief, KnownRewards
from beliefbound.lab.agents import make_agent
from support.environments import CHAIN
from support.following import follow

PRIORS = ("support", "known-rewards", "tied")


def check_structured_prior(name, prior):
    """It plays, and never takes what has no chance for granted: five steps."""
    belief = None
    if prior == "tied":
        arrive = [[[0, min(s + 1, 4)], [min(s + 1, 4), 0]] for s in range(5)]
        rewards = np.array(CHAIN.mdp.rewards)
        belief = DirichletBelief.tied(np.zeros((5, 2), int), arrive, [[2.0, 1.0]], rewards=KnownRewards(rewards))
    agent = make_agent(name if belief is not None else f"{name},prior={prior}", CHAIN, belief=belief)
    assert len(follow(agent, CHAIN, 5)) == 5
