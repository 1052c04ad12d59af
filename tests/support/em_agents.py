"""What the EM agents have in common."""

from dataclasses import replace

import numpy as np

from beliefbound import DirichletBelief, KnownRewards
from beliefbound.kernels.play import agent_stream
from beliefbound.lab.agents import make_agent
from beliefbound.lab.engine.protocol import setting_of
from beliefbound.lab.engine.registry import AGENTS, parse_agent
from beliefbound.lab.envs import make_env
from support.coin import coin
from support.em_twins import gains, improved
from support.environments import CHAIN
from support.following import follow

COMMON = {"horizon": 6, "interval": 4, "iterations": 3}
TEXT = "horizon=6,interval=4,iterations=3"  # the same


def follow_em(name, twin):
    """Forty steps beside a plain twin: actions and stochastic policies."""
    agent = make_agent(name, CHAIN)

    def watch(k):
        np.testing.assert_allclose(agent.machine.state.trajectories.policy, twin.policy, rtol=1e-8, err_msg=f"step {k}")

    follow(agent, CHAIN, 40, twin=twin, watch=watch)


def on_coin(name, policy=None, discount=1.0):
    """The state of an agent that believes the coin fair or not, Beta(1, 1), undiscounted unless said."""
    environment, belief = coin()
    setting = replace(setting_of(environment, 0.5, belief), discount=discount)
    machine = AGENTS.find(name).build(setting, **parse_agent(name).values)
    machine.reset(machine.state, agent_stream(1, 0, 0))
    if policy is not None:
        machine.state.trajectories.policy[0] = policy
    return machine.state


def told_of_a_slip(name, think):
    """The state after a plan on Chain with one slip: a step forward from 0 is paid only where it slipped."""
    agent = make_agent(f"{name},horizon=1,iterations=1,floor=0,prior=tied", CHAIN)
    agent.reset(1)
    state = agent.machine.state
    state.trajectories.policy[0] = [0.0, 1.0]
    think(state, 0)
    return state


def check_em_on_a_known_model(name):
    """Certain transitions: there is nothing to say about them, and five iterations are those of plain EM."""
    transitions = np.zeros((3, 2, 3))
    transitions[:, 0, 0] = transitions[[0, 1, 2], 1, [1, 2, 2]] = 1.0
    rewards = np.array([[0.1, 0.0], [0.0, 0.0], [0.0, 1.0]])
    belief = DirichletBelief(3, 2, concentration=transitions, rewards=KnownRewards(rewards))
    environment = make_env("garnet:3,2,2")
    agent = make_agent(f"{name}:horizon=8,iterations=5", environment, belief=belief)
    agent.reset(1)
    agent.act(0)
    policy = np.full((3, 2), 0.5)
    for _ in range(5):
        policy = improved(policy, gains(policy, [transitions] * 8, [rewards] * 8, 0, environment.discount)[1])
    np.testing.assert_allclose(agent.machine.state.trajectories.policy, policy, rtol=1e-12)
    assert policy[0, 1] > 0.5
