"""COIN, the test problem of Bayesian agents: four states, one unknown chance."""

import numpy as np

from beliefbound import MDP, DirichletBelief, KnownRewards
from beliefbound.lab.envs import environment_from_mdp


def coin(chance=0.5, *, heads=1.0, tails=1.0):
    """`(environment, belief)`: in D (0) `coin` (0) goes to W (1) with an unknown chance, else to L (2), and `safe` (1)
    to H (3); all return to D. Leaving W pays 1, H ½, all else 0. The chance of W is Beta(heads, tails), in truth
    `chance`; everything else is known."""
    p = np.zeros((4, 2, 4))
    p[0, 0, [1, 2]], p[0, 1, 3], p[1:, :, 0] = (chance, 1.0 - chance), 1.0, 1.0
    rewards = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 0.0], [0.5, 0.5]])
    counts = (p > 0.0).astype(float)
    counts[0, 0, [1, 2]] = heads, tails
    belief = DirichletBelief(4, 2, concentration=counts, rewards=KnownRewards(rewards), initial=0)
    return environment_from_mdp(MDP(p, rewards, initial=0), name="coin"), belief
