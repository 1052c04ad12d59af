"""What optimistic agents have in common."""

import numpy as np

from beliefbound import MDP, BetaRewards, DirichletBelief
from beliefbound.lab.agents import make_agent, play
from beliefbound.lab.envs import environment_from_mdp, make_env
from support.coin import coin
from support.following import follow


def follow_optimist(name, twin, environment):
    """Forty steps beside a plain twin: actions, and values of the optimistic model."""
    agent = make_agent(name, environment)

    def watch(k):
        np.testing.assert_allclose(agent.machine.state.model.v, twin.v, rtol=1e-9, err_msg=f"step {k}")

    follow(agent, environment, 40, twin=twin, watch=watch)


def value_on_coin(name):
    """The action in D and the value of D, of two equal counts everywhere."""
    environment, belief = coin()
    belief = DirichletBelief(4, 2, concentration=2.0 * environment.mdp.transitions, rewards=belief.rewards)
    agent = make_agent(f"{name},tolerance=1e-12,sweeps=100000,cap=no", environment, belief=belief, discount=0.95)
    agent.reset(0)
    return agent.act(0), float(agent.machine.state.model.v[0])


PULL = 1 - 0.95**2  # a cycle of the coin takes two steps: `V = (bonus of the pull + γ reward) / PULL`


def after_a_step_of_tied_rows(name):
    """Two states whose only action shares one row. The model after a step in the first, and the reward of the second
    before it."""
    arrive = np.array([[[1, 0]], [[0, 1]]])  # outcome 0 changes the state, outcome 1 keeps it
    belief = DirichletBelief.tied(np.zeros((2, 1), int), arrive, [[1.0, 1.0]], rewards=BetaRewards(), initial=0)
    p = np.full((2, 1, 2), 0.5)
    environment = environment_from_mdp(MDP(p, [[0.0], [1.0]], initial=0), name="two")
    agent = make_agent(name, environment, belief=belief)
    agent.reset(0)
    before = agent.machine.state.model.r[1, 0]
    agent.observe(0, 0, 0.0, 1)
    model = agent.machine.state.model
    np.testing.assert_allclose(model.p[:, 0], [[1 / 3, 2 / 3], [2 / 3, 1 / 3]])
    assert model.width[0, 0] == model.width[1, 0]
    return model, before


def earned_on_riverswim(name):
    """Mean of ten runs. Swimming right is worth .43 a step, staying left .005 (5000 steps: 2138 at best)."""
    environment = make_env("riverswim")
    return play(make_agent(name, environment), environment, seed=1, runs=10, steps=5000).total.mean()
