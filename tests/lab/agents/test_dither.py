"""Dithering: Exploit with random actions, at the rates that were asked for."""

import math

import numpy as np
import pytest

from beliefbound.kernels.planning.expected_rows import ExpectedRows
from beliefbound.kernels.play import agent_stream
from beliefbound.kernels.random import uniform
from beliefbound.lab.agents import make_agent, play
from beliefbound.lab.envs import make_env
from support.agent_twins import ExploitTwin
from support.environments import CHAIN, arms
from support.every_agent import EveryAgent
from support.following import follow

LARGE = make_env("grid:10")


class TestDither(EveryAgent):
    name = "dither"
    variants = ("dither:explore=softmax", "dither:epsilon=0.3,sweeps=3")
    mistakes = (
        ("dither:temperature=1", "temperature has no effect with explore=epsilon"),
        ("dither:explore=softmax,epsilon=0.1", "epsilon has no effect with explore=softmax"),
        ("dither:epsilon=2", "epsilon is 2"),
    )


class DitherTwin(ExploitTwin):
    """Values of Exploit's twin, then one uniform of the agent's own stream."""

    def __init__(self, environment, *, epsilon=0.0, temperature=0.0):
        super().__init__(environment, discount=0.95)
        self.epsilon, self.temperature = epsilon, temperature

    def reset(self, seed, cell=0, run=0):
        super().reset(seed, cell, run)
        self.own = agent_stream(seed, cell, run)

    def act(self, s):
        p, r = self.expected()
        self.q = q = r[s] + 0.95 * p[s] @ self.v[0]
        best, u = super().act(s), uniform(self.own)
        if self.temperature > 0.0:
            chances = np.exp((q - q.max()) / self.temperature)
            return int(np.searchsorted(np.cumsum(chances / chances.sum()), u, side="right"))
        return int(u / self.epsilon * len(q)) if u < self.epsilon else best


@pytest.mark.parametrize("how", [{"epsilon": 0.25}, {"temperature": 0.5}], ids=["epsilon", "softmax"])
@pytest.mark.parametrize("environment", [CHAIN, LARGE], ids=["dense", "rows"])
def test_it_equals_its_twin_step_by_step(how, environment):
    explore = "softmax" if "temperature" in how else "epsilon"
    name = f"dither:explore={explore}," + ",".join(f"{key}={value}" for key, value in how.items())
    agent = make_agent(name, environment, discount=0.95)
    assert isinstance(agent.machine.state.models, ExpectedRows) == (environment is LARGE)
    twin = DitherTwin(environment, **how)
    seen = follow(agent, environment, 300, twin=twin, alike=lambda s, a, b: abs(twin.q[a] - twin.q[b]) < 1e-12)
    assert len({a for _, a, _, _ in seen}) == environment.n_actions


@pytest.mark.parametrize("environment", [CHAIN, LARGE], ids=["dense", "rows"])
def test_without_random_actions_it_is_exploit(environment):
    common = {"seed": 5, "runs": range(20), "steps": 300}
    still = play(make_agent("dither:epsilon=0", environment), environment, **common)
    np.testing.assert_array_equal(still.total, play(make_agent("exploit", environment), environment, **common).total)


def test_soft_max_chances_follow_the_values():
    """One state, nothing learnt: `exp(r_a / T)` in closed form, as later values are alike. False alarms: 6e-5."""
    environment = arms(0.2, 0.8)
    agent = make_agent("dither:explore=softmax,temperature=0.3,prior=known-rewards", environment)
    first = 0
    for seed in range(4000):
        agent.reset(seed)
        first += agent.act(0) == 1
    chance = 1.0 / (1.0 + math.exp(-0.6 / 0.3))
    assert abs(first / 4000 - chance) < 4 * math.sqrt(chance * (1 - chance) / 4000)
