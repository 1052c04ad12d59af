"""The PAC-Bayes hybrid: its bound, its candidates, and which of them it follows."""

import numpy as np
import pytest

from beliefbound import MDP, BetaRewards, DirichletBelief, KnownRewards, policy_iteration
from beliefbound.lab.agents import make_agent
from beliefbound.lab.agents.pac_bayes import BAYES, CHOSEN, EMPIRICAL, PRIOR_ONLY, slack
from beliefbound.lab.envs import environment_from_mdp
from support.coin import coin
from support.environments import CHAIN
from support.every_agent import EveryAgent
from support.following import follow
from support.sampling_agents import check_what_is_ruled_out_stays_out


class TestPacBayes(EveryAgent):
    name = "pac-bayes"
    mistakes = (("pac-bayes:delta=0", "delta is 0.0"),)


def test_the_slack_of_the_bound():
    assert slack(101, 1, 0.0, 0.05) == pytest.approx(0.2116, abs=1e-4)


def misled():
    """Two states; the prior is sure that action 0 pays, in truth action 1 does."""
    p = np.zeros((2, 2, 2))
    p[:, 0, 0], p[:, 1, 1] = 1.0, 1.0
    environment = environment_from_mdp(MDP(p, [[0.0, 0.0], [1.0, 1.0]], initial=0), name="two")
    wrong = np.array([[[1.0, 3000.0], [3000.0, 1.0]]] * 2)
    return environment, DirichletBelief(2, 2, concentration=wrong, rewards=KnownRewards(environment.mdp.rewards))


def test_a_misleading_prior_is_dropped_in_the_end():
    environment, belief = misled()
    agent = make_agent("pac-bayes:epsilon=0.0,spread=0.05", environment, belief=belief, discount=0.5)
    agent.reset(0)
    state = agent.machine.state
    assert agent.act(0) == 0  # the prior's policy
    rng = np.random.default_rng(0)
    chosen = []
    for _ in range(6000):
        s, a = rng.integers(2, size=2)
        agent.observe(int(s), int(a), float(s), int(a))
        agent.act(0)
        chosen.append(int(state.clock[CHOSEN]))
    assert chosen[0] == BAYES
    assert chosen[-1] == EMPIRICAL
    assert agent.act(0) == 1
    assert state.bounds[EMPIRICAL] < state.bounds[BAYES] <= state.bounds[PRIOR_ONLY] <= 2.0


def test_a_good_prior_is_kept():
    """A fair coin and a prior that says so: data are noise, far from the prior in its own units."""
    environment, belief = coin(heads=1000.0, tails=1000.0)
    agent = make_agent("pac-bayes:epsilon=0.0,spread=0.001", environment, belief=belief, discount=0.95)
    agent.reset(0)
    rng = np.random.default_rng(0)
    for _ in range(200):
        for s in range(4):
            for a in range(2):
                agent.observe(
                    s, a, float(environment.mdp.rewards[s, a]), int(rng.choice(4, p=environment.mdp.transitions[s, a]))
                )
        agent.act(0)
    state = agent.machine.state
    assert state.clock[CHOSEN] != EMPIRICAL
    assert state.bounds[state.clock[CHOSEN]] < state.bounds[EMPIRICAL] <= 20.0


def test_candidates_of_pac_bayes_are_the_optimal_values_of_their_models():
    belief = DirichletBelief(5, 2, rewards=BetaRewards(low=0.0, high=10.0))
    agent = make_agent("pac-bayes:epsilon=1", CHAIN)
    seen = follow(agent, CHAIN, 64, seed=5)
    agent.machine.state.clock[0] = 1
    agent.act(0)
    models = agent.machine.state.models
    posterior = belief.update(*map(np.array, zip(*seen, strict=True)))
    for candidate, mdp in ((BAYES, posterior.mean()), (PRIOR_ONLY, belief.mean())):
        values = policy_iteration(mdp, discount=0.95).values / 10.0
        np.testing.assert_allclose(models.v[:, candidate], values, rtol=1e-9)
    visits, arrivals = agent.machine.state.counts.visits, agent.machine.state.counts.arrivals
    tried = visits > 0
    frequencies = arrivals / np.maximum(1, visits)[..., None]
    target = agent.machine.state.counts.rewards / np.maximum(1, visits) + 0.95 * frequencies @ models.v[:, EMPIRICAL]
    q = models.q[:, EMPIRICAL].reshape(5, 2)
    np.testing.assert_allclose(q[tried], target[tried], rtol=1e-9)
    np.testing.assert_allclose(q[~tried], models.q[:, PRIOR_ONLY].reshape(5, 2)[~tried], rtol=1e-9)


def test_what_the_belief_rules_out_stays_out():
    check_what_is_ruled_out_stays_out("pac-bayes")
