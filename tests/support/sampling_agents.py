"""What agents that draw models from the posterior have in common."""

import math

import numpy as np

from beliefbound import DirichletBelief, KnownRewards, policy_iteration
from beliefbound.lab.agents import make_agent
from beliefbound.lab.agents.boss import PLANS
from beliefbound.lab.envs import make_env
from support.coin import coin
from support.environments import CHAIN, tied_chain
from support.following import follow


def follow_merged(name, twin, environment):
    """Sixty steps beside a plain twin: actions, values of the merged models, and when they were drawn."""
    agent = make_agent(name, environment)

    def watch(k):
        np.testing.assert_allclose(agent.machine.state.models.v[:, 0], twin.v, rtol=1e-9, err_msg=f"step {k}")

    follow(agent, environment, 60, twin=twin, watch=watch)
    assert agent.machine.state.clock[PLANS] == twin.plans > 3


def check_share_of_coin(name, chance, *, seeds=2000, seen=()):
    """How often an agent's first action on the coin is `coin`, after having seen its outcomes; false alarms: 6e-5."""
    environment, belief = coin()
    agent = make_agent(name, environment, discount=0.95, belief=belief)
    first = 0
    for seed in range(seeds):
        agent.reset(seed)
        for t in seen:
            agent.observe(0, 0, 0.0, t)
        first += agent.act(0) == 0
    assert abs(first / seeds - chance) < 4 * math.sqrt(chance * (1 - chance) / seeds)


def check_tied_rows_come_from_one_draw(name, used=None):
    """All slips of one model are equal, for the models in use; after 200 steps they are near the truth, .2."""
    agent = make_agent(name, CHAIN, belief=tied_chain())
    actions = [a for _, a, _, _ in follow(agent, CHAIN, 200)]
    p = agent.machine.state.models.p  # [s,a,t,m]
    slips = np.stack([p[s, a, s + 1 if a == 0 else 0, :used] for s in range(4) for a in range(2)])
    np.testing.assert_allclose(slips, np.tile(slips[:1], (8, 1)), rtol=1e-12)
    assert slips.min() > 0.01
    assert slips.max() < 0.45
    assert np.mean(actions[20:]) > 0.8  # forward, once the slip is known


def check_what_is_ruled_out_stays_out(name):
    """Support of the environment, rewards of a finite number of values on arrival: any posterior will do."""
    environment, belief = coin(heads=2.0, tails=3.0)
    agent = make_agent(name, environment, belief=belief)
    follow(agent, environment, 30)
    p = agent.machine.state.models.p[..., 0]
    assert not p[belief.concentration == 0.0].any()
    np.testing.assert_allclose(p.sum(axis=2), 1.0)
    np.testing.assert_allclose(agent.machine.state.models.r[..., 0], environment.mdp.rewards)


def check_who_knows_the_model_plays_optimally(name):
    """A prior that is as good as a point: regret 0."""
    river = make_env("riverswim")
    belief = DirichletBelief(6, 2, concentration=1e14 * river.mdp.transitions, rewards=KnownRewards(river.mdp.rewards))
    agent = make_agent(name, river, belief=belief, discount=0.99)
    agent.reset(0)
    best = policy_iteration(river.mdp, discount=0.99).policy.actions.tolist()
    assert best == [1] * 6
    assert [agent.act(s) for s in range(6)] == best
