"""Small environments to try agents in."""

import numpy as np

from beliefbound import MDP, DirichletBelief, KnownRewards
from beliefbound.lab.envs import environment_from_mdp, make_env

CHAIN = make_env("chain")


def partial_environment():
    """Three states, each of which lacks some actions; the first action too."""
    rng = np.random.default_rng(3)
    p = rng.dirichlet(np.ones(3), size=(3, 3))
    available = np.array([[False, True, True], [True, False, True], [False, True, False]])
    return environment_from_mdp(MDP(p, rng.normal(size=(3, 3)), initial=0, available=available), name="partial")


def arms(*rewards):
    """One state, actions of fixed rewards in [0, 1]."""
    mdp = MDP(np.ones((1, len(rewards), 1)), [rewards], initial=0)
    return environment_from_mdp(mdp, name="arms", reward_range=(0.0, 1.0))


def tied_chain():
    """A belief: one slip for every pair of the chain, rewards known."""
    S = CHAIN.n_states
    arrive = np.array([[[0, min(s + 1, S - 1)], [min(s + 1, S - 1), 0]] for s in range(S)])
    return DirichletBelief.tied(
        np.zeros((S, 2), int), arrive, [[1.0, 1.0]], rewards=KnownRewards(CHAIN.mdp.rewards), initial=0
    )


ENVIRONMENTS = {
    "chain": CHAIN,
    "riverswim": make_env("riverswim"),
    "garnet": make_env("garnet:7,3,4,seed=2"),
    "partial": partial_environment(),
}
