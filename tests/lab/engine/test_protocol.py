"""What an agent is and how mistakes in using one are answered; what `check_agent` finds."""

import random

import gymnasium
import numpy as np
import pytest

from beliefbound.base.errors import BeliefboundError, ObservationError, ParameterError
from beliefbound.lab.agents import check_agent, make_agent, run_episode
from beliefbound.lab.envs import DiscreteEnv, make_env


class Plain:
    """A little agent of one's own; the class attributes break it in various ways."""

    counter = 0

    def __init__(self, environment):
        self.n = environment.n_actions
        self.available = environment.mdp.available

    def reset(self, seed):
        self.rng = np.random.default_rng(seed)

    def act(self, state):
        return int(self.rng.choice(np.flatnonzero(self.available[state])))

    def observe(self, state, action, reward, next_state):
        pass


def broken(**methods):
    return type("Broken", (Plain,), methods)


@pytest.mark.parametrize(
    ("factory", "message"),
    [
        (broken(act=lambda self, state: self.n), "actions run from 0 to"),
        (broken(act=lambda self, state: 0.5), "chose 0.5 in state 0; an action is a whole number"),
        (broken(act=lambda self, state: 0), "does not offer it"),
        (broken(reset=lambda self, seed: setattr(self, "rng", np.random.default_rng())), "after a reset"),
        (
            broken(reset=lambda self, seed: self.__dict__.setdefault("rng", np.random.default_rng(seed))),
            "after a reset",
        ),
        (broken(reset=lambda self, seed: setattr(self, "rng", np.random.default_rng(id(self)))), "two agents|at step"),
        (
            broken(
                reset=lambda self, seed: (random.seed(seed), Plain.reset(self, seed)),
            ),
            "global random generator",
        ),
        (lambda environment: object(), "must have the methods"),
    ],
)
def test_check_agent_says_what_is_wrong(factory, message):
    check_agent(Plain)
    with pytest.raises(AssertionError, match=message):
        check_agent(factory)


def test_bad_settings_and_observations_are_answered():
    chain = make_env("chain")
    with pytest.raises(ParameterError, match="discount is 1.0"):
        make_agent("exploit", chain, discount=1.0)
    with pytest.raises(ParameterError, match="give make_env"):
        make_agent("exploit", "chain")
    with pytest.raises(ParameterError, match="need .* GB"):
        make_agent("mcbrl:n=1000000", make_env("garnet:100,2,2"))
    agent = make_agent("exploit", chain)
    with pytest.raises(ObservationError, match="act before reset"):
        agent.act(0)
    with pytest.raises(ObservationError, match="observe before reset"):
        agent.observe(0, 0, 0.0, 0)
    for seed in (-1, 2**63, 0.5, np.zeros(4, np.uint64)):
        with pytest.raises(BeliefboundError, match="seed|stream"):
            agent.reset(seed)
    agent.reset(0)
    for call, message in (
        (lambda: agent.act(5), "ids run from 0 to 4"),
        (lambda: agent.observe(0, 2, 0.0, 0), "ids run from 0 to 1"),
        (lambda: agent.observe(0, 0, 11.0, 0), "reward 11.0, seen in state 0 after action 0, is outside"),
        (lambda: agent.observe(0, 0, float("nan"), 0), "outside the declared range"),
    ):
        with pytest.raises(ObservationError, match=message):
            call()


def test_agents_play_gymnasium_environments_of_others():
    env = DiscreteEnv(gymnasium.make("FrozenLake-v1", is_slippery=False), reward_range=(0.0, 1.0))
    agent = make_agent("mcbrl:n=4", env, discount=0.9)
    lengths = [len(run_episode(agent, env, steps=100, seed=1, run=k, reset=k == 0).actions) for k in range(5)]
    assert all(1 <= length <= 100 for length in lengths)
    with pytest.raises(ParameterError, match="oracle must know the MDP"):
        make_agent("oracle", env, discount=0.9)
    with pytest.raises(ParameterError, match="no discount of its own"):
        make_agent("exploit", env)
    with pytest.raises(ParameterError, match="reward_range"):
        make_agent("exploit", DiscreteEnv(gymnasium.make("FrozenLake-v1")), discount=0.9)
