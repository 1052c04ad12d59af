"""What agents that search trees of histories have in common: the coin, and beliefs whose exact tree is small."""

import numpy as np
import pytest

from beliefbound import MDP, BetaRewards, DirichletBelief, KnownRewards
from beliefbound.lab.agents import make_agent
from beliefbound.lab.envs import environment_from_mdp
from support.coin import coin
from support.environments import CHAIN
from support.oracles import dirichlet_value

COIN, BELIEF = coin()
TOSS, SAFE = 0.95 / 2 + 0.95**3 * 7 / 12, 0.95 / 2 + 0.95**3 / 2  # four decisions, by hand
FOREVER = 5.695387  # Bayes-optimal without a horizon


def searched(name, environment=COIN, belief=BELIEF, *, state=0, seed=1):
    """The state of an agent's machine after one action."""
    agent = make_agent(name, environment, belief=belief)
    agent.reset(seed)
    agent.act(state)
    return agent.machine.state


def shared_slip():
    """Two states, two actions, one unknown slip, shared: what is seen anywhere tells about everywhere."""
    row, arrive = [[0, 0], [0, 0]], [[[0, 1], [1, 0]], [[1, 0], [0, 1]]]
    rewards = KnownRewards([[0.1, 0.0], [0.4, 1.0]])
    return DirichletBelief.tied(row, arrive, [[0.6, 0.9]], rewards=rewards, initial=0)


def unknown_rewards():
    """One state, two arms: rewards are all there is to learn."""
    return DirichletBelief(1, 2, rewards=BetaRewards([[1.0, 2.0]], [[1.0, 2.5]], low=0.0, high=1.0))


def on_arrival():
    rewards = np.array([[[0.0, 1.0], [0.5, 0.0]], [[0.2, 0.6], [0.0, 0.3]]])
    return DirichletBelief(2, 2, concentration=0.7, rewards=KnownRewards(rewards))


BELIEFS = {"tied": shared_slip(), "rewards": unknown_rewards(), "on arrival": on_arrival()}


def playground(belief):
    """Somewhere to make an agent for; rewards from 0 to 1."""
    S, A = belief.n_states, belief.n_actions
    mdp = MDP(np.full((S, A, S), 1.0 / S), np.full((S, A), 0.5), initial=0)
    return environment_from_mdp(mdp, reward_range=(0.0, 1.0), discount=0.9)


def check_exact_tree(name, kind, read):
    """Three decisions; all have seen what rewards and shared rows teach. `read(state)`: the value at the root."""
    belief = BELIEFS[kind]
    exact = dirichlet_value(belief, 0, 0.9, 3)
    assert read(searched(name, playground(belief), belief)) == pytest.approx(exact, abs=0.03)


def check_a_search_leaves_the_belief_as_it_was(name):
    """Counts are put back, bit for bit."""
    agent = make_agent(name, CHAIN)
    agent.reset(4)
    for s, a, r, t in ((0, 1, 0.0, 1), (1, 1, 2.0, 0), (0, 0, 2.0, 0)):
        agent.observe(s, a, r, t)
    posterior = agent.machine.state.posterior
    alpha, reward = posterior.alpha.copy(), posterior.reward.copy()
    agent.act(0)
    np.testing.assert_array_equal(posterior.alpha, alpha)
    np.testing.assert_array_equal(posterior.reward, reward)
