"""UCBVI: published bonuses, a plain twin, optimism, and a river to swim."""

import numpy as np
import pytest

from beliefbound import backward_induction
from beliefbound.base.errors import ParameterError
from beliefbound.lab.agents import make_agent
from beliefbound.lab.envs import make_env
from support.environments import CHAIN, ENVIRONMENTS
from support.every_agent import EveryAgent
from support.following import follow
from support.optimists import earned_on_riverswim


class TestUcbvi(EveryAgent):
    name = "ucbvi"
    variants = ("ucbvi:bonus=hoeffding,tau=7", "ucbvi:scale=0.01")
    mistakes = (("ucbvi:tau=0", "tau is 0"), ("ucbvi:discount=0.9", "ucbvi has no 'discount'"))
    chooses = False


class UcbviTwin:
    """From the paper's Algorithms 1 to 4, with arrays."""

    def __init__(self, environment, *, length, bernstein, scale):
        self.S, self.A, self.H = environment.n_states, environment.n_actions, length
        self.available, self.scale, self.bernstein = environment.mdp.available, scale, bernstein
        self.low, self.high = environment.reward_range

    def reset(self, seed, cell=0, run=0):
        self.n, self.q = np.zeros((self.S, self.A, self.S)), np.full((self.H, self.S, self.A), float(self.H))
        self.total, self.at = np.zeros((self.S, self.A)), np.zeros((self.H + 1, self.S))
        self.steps, self.h = 0, self.H

    def plan(self):
        visits, v = self.n.sum(axis=2), np.zeros(self.S)
        log = np.log(5 * self.S * self.A * max(1, self.steps) / 0.05)
        for h in reversed(range(self.H)):
            for s, a in np.argwhere(visits > 0):
                n, p = visits[s, a], self.n[s, a] / visits[s, a]
                mean = p @ v
                most = 1e4 * self.H**3 * self.S**2 * self.A * log**2 / np.maximum(1, self.at[h + 1])
                if self.bernstein:
                    bonus = np.sqrt(8 * log * (p @ (v - mean) ** 2) / n) + 14 * self.H * log / (3 * n)
                    bonus += np.sqrt(8 * (p @ np.minimum(most, self.H**2)) / n)
                else:
                    bonus = 7 * self.H * log / np.sqrt(n)
                value = self.total[s, a] / n + mean + self.scale * (bonus + np.sqrt(log / (2 * n)))
                self.q[h, s, a] = min(self.q[h, s, a], value)
            v = np.where(self.available, self.q[h], -np.inf).max(axis=1)

    def act(self, s):
        if self.h == self.H:
            self.plan()
            self.h = 0
        self.at[self.h, s] += 1
        return int(np.where(self.available[s], self.q[self.h, s], -np.inf).argmax())

    def observe(self, s, a, r, t):
        self.n[s, a, t] += 1
        self.total[s, a] += (r - self.low) / (self.high - self.low)
        self.steps, self.h = self.steps + 1, self.h + 1
        if self.h == self.H:
            self.at[self.H, t] += 1


@pytest.mark.parametrize(("bonus", "scale"), [("bernstein", 0.02), ("hoeffding", 0.002)])
@pytest.mark.parametrize("environment", [CHAIN, ENVIRONMENTS["partial"]], ids=["chain", "partial"])
def test_it_equals_its_twin_step_by_step(bonus, scale, environment):
    twin = UcbviTwin(environment, length=6, bernstein=bonus == "bernstein", scale=scale)
    agent = make_agent(f"ucbvi:tau=6,bonus={bonus},scale={scale}", environment)

    def watch(k):
        np.testing.assert_allclose(agent.machine.state.q, twin.q, rtol=1e-9)

    follow(agent, environment, 200, twin=twin, watch=watch)
    assert twin.q[0].min() < 6.0  # something was learnt


@pytest.mark.parametrize("bonus", ["bernstein", "hoeffding"])
def test_values_stay_above_those_of_who_knows_the_world(bonus):
    """With the published bonus they do with probability 1 − δ; on this run they must."""
    agent = make_agent(f"ucbvi:tau=5,bonus={bonus}", CHAIN)
    follow(agent, CHAIN, 3000)
    low, high = CHAIN.reward_range
    best = backward_induction(CHAIN.mdp, discount=1.0, horizon=5).values
    assert (agent.machine.state.v[0] >= (best - 5 * low) / (high - low)).all()


def test_it_reaches_riverswims_prize():
    assert earned_on_riverswim("ucbvi:scale=0.003") > 1200


def test_plans_too_long_are_refused():
    with pytest.raises(ParameterError, match="need .* GB"):
        make_agent("ucbvi:tau=1000000", make_env("riverswim:20000"))
