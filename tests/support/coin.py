"""COIN: a problem small enough to solve by hand, whose only unknown is a coin."""

import numpy as np

from beliefbound import MDP, DirichletBelief, KnownRewards
from beliefbound.envs import environment_from_mdp


def coin(theta=0.5):
    """`(environment, belief)`. States D, W, L, H. In D action 0 tosses (to W with chance θ, else L), action 1 goes
    to H. W, L, H lead back to D and pay 1, 0, ½. Belief: θ ~ Beta(1, 1), all else known."""
    p = np.zeros((4, 2, 4))
    p[0, 0, 1], p[0, 0, 2], p[0, 1, 3] = theta, 1 - theta, 1.0
    p[1:, :, 0] = 1.0
    r = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 0.0], [0.5, 0.5]])
    belief = DirichletBelief(4, 2, concentration=(p > 0.0).astype(float), rewards=KnownRewards(r), initial=0)
    return environment_from_mdp(MDP(p, r, initial=0), name="coin", discount=0.95), belief
