"""OPPS-DS: its formulas, a plain twin, the returns that it searches on, and the bandit that chooses."""

import math

import numpy as np
import pytest

from beliefbound.kernels.play import agent_stream
from beliefbound.kernels.random import stream_from, uniform
from beliefbound.lab.agents import make_agent
from beliefbound.lab.agents.common.formulas import (
    ABS,
    ADD,
    DIV,
    INV,
    LN,
    MAX,
    OPP,
    SQRT,
    STOP,
    SUB,
    formulas,
    said,
    value_of,
)
from beliefbound.lab.agents.opps_ds import search, trial
from support.coin import coin
from support.environments import CHAIN
from support.every_agent import EveryAgent
from support.following import follow
from support.structured_priors import PRIORS, check_structured_prior

COIN, BELIEF = coin()
GREEDY = np.array([0, STOP, STOP])


class TestOppsDs(EveryAgent):
    name = "opps-ds"
    small = "opps-ds:size=2,draws=20"
    mistakes = (("opps-ds:size=9", "size is 9"), ("opps-ds:draws=100000000", "take fewer draws"))


def test_there_are_as_many_formulas_as_the_authors_count():
    assert [len(formulas(size)) for size in (1, 2, 3)] == [3, 12, 43]
    names = [said(code) for code in formulas(3)]
    assert len(set(names)) == 43
    assert {"x", "|y|", "1/z", "−x", "(x + y)", "min(y, z)"} <= set(names)


def test_formulas_are_computed_as_they_are_written():
    stack = np.zeros(5)
    for code, exact in (
        ([0, 1, ADD], 5.0),
        ([0, 1, SUB], -1.0),
        ([0, 1, DIV, INV], 1.5),
        ([2, ABS, SQRT], 2.0),
        ([2, OPP, LN], math.log(4.0)),
        ([0, 1, MAX, 2, ADD], -1.0),
    ):
        assert value_of(np.array([*code, *[STOP] * (5 - len(code))]), 2.0, 3.0, -4.0, stack) == pytest.approx(exact)
    for code in ([2, LN], [2, SQRT], [0, 0, SUB, INV], [0, 1, 1, SUB, DIV]):
        assert math.isnan(value_of(np.array([*code, *[STOP] * (5 - len(code))]), 2.0, 3.0, -4.0, stack))


class OppsTwin:
    """`max_a f(Q_mean, Q_uniform, Q_self)` by plain value iteration to the end; Beta rewards."""

    def __init__(self, environment, index):
        S, A = environment.n_states, environment.n_actions
        self.S, self.A, self.index, self.range = S, A, index, environment.reward_range
        stay = np.zeros((S, A, S))
        stay[np.arange(S), :, np.arange(S)] = 1.0
        self.first = [np.full((S, A, S), 1.0 / S), np.ones((S, A, S)), stay]

    def reset(self, seed, cell=0, run=0):
        self.counts = [first.copy() for first in self.first]
        self.rewards = np.ones((self.S, self.A, 2))
        self.stream = agent_stream(seed, cell, run)

    def act(self, s):
        low, high = self.range
        q = [self.solved(counts, low, high)[s] for counts in self.counts]
        index = self.index(*q)
        best = np.flatnonzero(index >= index.max() - 1e-6)
        assert len(best) == 1 or np.ptp(index) < 1e-9, "a tie that is none: another seed will do"
        return int(best[int(uniform(self.stream) * len(best))]) if len(best) > 1 else int(best[0])

    def solved(self, counts, low, high):
        p, r = counts / counts.sum(axis=2, keepdims=True), self.rewards[..., 0] / self.rewards.sum(axis=2)
        v = np.zeros(self.S)
        for _ in range(600):
            v = (low + (high - low) * r + 0.95 * p @ v).max(axis=1)
        return low + (high - low) * r + 0.95 * p @ v

    def observe(self, s, a, r, t):
        x = (r - self.range[0]) / (self.range[1] - self.range[0])
        self.rewards[s, a] += (x, 1.0 - x)
        for counts in self.counts:
            counts[s, a, t] += 1.0


@pytest.mark.parametrize(
    ("code", "index"),
    [([0, STOP, STOP], lambda x, y, z: x), ([0, 2, ADD], lambda x, y, z: x + z)],
)
def test_it_equals_its_twin_step_by_step(code, index):
    agent = make_agent("opps-ds:draws=1,sweeps=3000,tolerance=1e-10,discount=0.95", CHAIN)
    agent.machine.state.formula[:] = code
    seen = follow(agent, CHAIN, 60, seed=4, twin=OppsTwin(CHAIN, index))
    assert len({a for _, a, _, _ in seen}) == 2


def test_a_trial_is_worth_what_the_prior_says():
    """Greed on the mean, four decisions from D: `γ/2` for the first pull, a tie. If it tossed, it tosses again after W,
    where the chance is 2/3, and is safe after L; if it did not, it has learnt nothing."""
    agent = make_agent("opps-ds:size=3,draws=1,sweeps=1000,tolerance=1e-10", COIN, belief=BELIEF, discount=0.95)
    state, start, stream = agent.machine.state, np.array([1.0, 0.0, 0.0, 0.0]), stream_from(np.random.default_rng(2))
    state.formula[:] = GREEDY
    agent.reset(1)
    found = np.array([trial(state, start, 4, stream) for _ in range(4000)])
    safe = 0.95 / 2 + 0.95**3 / 2  # and after it nothing was learnt, so that the second pull is worth as much
    toss = 0.95 / 2 + 0.95**3 * (0.5 * 2 / 3 + 0.5 * 0.5)
    assert abs(found.mean() - (safe + toss) / 2) < 4 * found.std() / np.sqrt(4000)  # false alarms: 6e-5


def test_the_arm_that_is_drawn_most_is_the_better_one():
    """On the coin, being afraid of the unknown is safe, and hoping for it is not."""
    agent = make_agent("opps-ds:size=3,draws=1", COIN, belief=BELIEF, discount=0.95)
    state, start = agent.machine.state, np.array([1.0, 0.0, 0.0, 0.0])
    arms = np.array([[0, OPP, STOP], [0, STOP, STOP], [2, LN, LN]])
    tries, means = np.zeros(3, np.int64), np.zeros(3)
    agent.reset(1)
    search(state, arms, start, 90, 400, 0.5, stream_from(np.random.default_rng(1)), tries, means)
    assert tries[1] > tries[0] > 0
    assert means[1] > means[0]
    assert tries[2] == -1  # ln ln of a value below 1: put aside
    assert tries.sum() == 399


@pytest.mark.parametrize("prior", PRIORS)
def test_structured_priors_are_learnt_from(prior):
    check_structured_prior("opps-ds:size=2,draws=20", prior)
