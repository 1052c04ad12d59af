"""The bracket's policy as an agent."""

import numpy as np
import pytest

from beliefbound import DirichletBelief, DirichletRewards
from beliefbound.base.errors import BeliefboundError
from beliefbound.bounds.dirichlet.particle_policy import ParticlePolicy
from beliefbound.lab.agents import make_agent
from beliefbound.lab.engine.protocol import seed_of, stream_of
from support.coin import coin
from support.environments import CHAIN
from support.every_agent import EveryAgent
from support.structured_priors import PRIORS, check_structured_prior

COIN, BELIEF = coin()


class TestBracket(EveryAgent):
    name = "bracket"
    small = "bracket:n=8"
    mistakes = (("bracket:n=1", "n is 1; give a whole number from 8"),)


def test_bracket_is_the_certified_policy_at_its_start():
    agent = make_agent("bracket:n=32", COIN, belief=BELIEF)
    for seed in range(3):
        agent.reset(seed)
        particles = seed_of(stream_of(seed))
        policy = ParticlePolicy(BELIEF, np.full(4, 0.25), 0.95, None, particles, ((0.0, 32),))
        for s, t in ((0, 1), (1, 0), (0, 2), (2, 0)):
            assert agent.act(s) == policy.act(s)
            agent.observe(s, 0, float(COIN.mdp.rewards[s, 0]), t)
            policy.observe(s, 0, None, t)


def test_bracket_counts_rewards_in_between_as_successes_so_often():
    agent = make_agent("bracket:n=8", CHAIN)
    agent.reset(1)
    for _ in range(2000):
        agent.observe(0, 0, 2.0, 0)
    counts = agent.machine.state.counts[0].reshape(2, 5)
    assert counts.sum() == 2000
    assert abs(counts[0].sum() - 400) < 4 * np.sqrt(2000 * 0.2 * 0.8)  # false alarms: 6e-5
    agent.observe(4, 1, 10.0, 4)
    assert agent.machine.state.counts[9].tolist() == [0, 0, 0, 0, 1, 0, 0, 0, 0, 0]


def test_particles_of_many_reward_values_need_room_too():
    belief = DirichletBelief(5, 2, rewards=DirichletRewards(np.linspace(0.0, 10.0, 5000)))
    with pytest.raises(BeliefboundError, match="n is 20000, .* need 32 GB; take fewer"):
        make_agent("bracket:n=20000", CHAIN, belief=belief)
    assert make_agent("bracket:n=8", CHAIN, belief=belief)


@pytest.mark.parametrize("prior", PRIORS)
def test_structured_priors_are_learnt_from(prior):
    check_structured_prior("bracket:n=8", prior)
