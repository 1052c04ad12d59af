"""RLSVI: a plain twin on the same noise, its law before anything is seen, and a river to swim."""

import math

import numpy as np
import pytest

from beliefbound.base.errors import ParameterError
from beliefbound.kernels.play import agent_stream
from beliefbound.kernels.random import normal
from beliefbound.lab.agents import make_agent
from beliefbound.lab.envs import make_env
from support.environments import CHAIN, ENVIRONMENTS, arms
from support.every_agent import EveryAgent
from support.following import follow
from support.optimists import earned_on_riverswim


class TestRlsvi(EveryAgent):
    name = "rlsvi"
    variants = ("rlsvi:tau=5,sigma=0.3", "rlsvi:noise=proven")
    mistakes = (
        ("rlsvi:noise=proven,sigma=2", "sigma has no effect with noise=proven"),
        ("rlsvi:tau=0", "tau is 0"),
    )


class RlsviTwin:
    """Ridge regression on noisy data, with arrays."""

    def __init__(self, environment, length, sigma):
        self.S, self.A, self.H, self.sigma = environment.n_states, environment.n_actions, length, sigma
        self.available, (self.low, self.high) = environment.mdp.available, environment.reward_range

    def reset(self, seed, cell=0, run=0):
        self.stream, self.h = agent_stream(seed, cell, run), self.H
        self.n, self.total = np.zeros((self.S, self.A, self.S)), np.zeros((self.S, self.A))
        self.episodes = 0

    def plan(self):
        v, self.actions = np.zeros(self.S), np.zeros((self.H, self.S), int)
        self.episodes += 1
        sigma = self.sigma
        if sigma is None:
            sigma = math.sqrt(0.5 * self.S * self.H**3 * math.log(2 * self.H * self.S * self.A * self.episodes))
        weight = self.n.sum(axis=2) + 1
        for h in reversed(range(self.H)):
            noise = np.array([normal(self.stream) for _ in range(self.S * self.A)]).reshape(self.S, self.A)
            q = (self.total + self.n @ v) / weight + sigma * noise / np.sqrt(weight)
            q = np.where(self.available, q, -np.inf)
            self.actions[h], v = q.argmax(axis=1), q.max(axis=1)

    def act(self, s):
        if self.h == self.H:
            self.plan()
            self.h = 0
        return int(self.actions[self.h, s])

    def observe(self, s, a, r, t):
        self.n[s, a, t] += 1
        self.total[s, a] += (r - self.low) / (self.high - self.low)
        self.h += 1


@pytest.mark.parametrize(("noise", "sigma"), [("sigma=0.4", 0.4), ("noise=proven", None)])
@pytest.mark.parametrize("environment", [CHAIN, ENVIRONMENTS["partial"]], ids=["chain", "partial"])
def test_it_equals_its_twin_step_by_step(noise, sigma, environment):
    agent = make_agent(f"rlsvi:tau=6,{noise}", environment)
    seen = follow(agent, environment, 200, twin=RlsviTwin(environment, 6, sigma))
    assert len({a for _, a, _, _ in seen}) == environment.n_actions


def test_an_arm_is_chosen_as_often_as_its_noise_is_larger():
    """One step, after n pulls of arm 0 that paid 1 each: a difference of Normals. False alarms: 6e-5."""
    agent, first = make_agent("rlsvi:tau=1,sigma=0.8", arms(0.0, 1.0)), 0
    for seed in range(3000):
        agent.reset(seed)
        for _ in range(3):
            agent.observe(0, 0, 1.0, 0)
        first += agent.act(0) == 0
    chance = 0.5 * (1 + math.erf(0.75 / (0.8 * math.sqrt(1 / 4 + 1)) / math.sqrt(2)))
    assert abs(first / 3000 - chance) < 4 * math.sqrt(chance * (1 - chance) / 3000)


def test_it_reaches_riverswims_prize():
    assert earned_on_riverswim("rlsvi") > 1200


def test_plans_too_long_are_refused():
    with pytest.raises(ParameterError, match="need .* GB"):
        make_agent("rlsvi:tau=1000000", make_env("riverswim:20000"))
