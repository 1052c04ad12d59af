"""`certify` under beliefs with counts: values and distances against every history, exactly."""

import numpy as np
import pytest

from beliefbound import BetaRewards, DirichletBelief, KnownRewards, StationaryPolicy, bracket, certify, load_policy
from beliefbound.base.errors import BeliefboundError, ObservationError
from beliefbound.bounds.dirichlet import certified
from beliefbound.bounds.dirichlet.effort import Effort
from beliefbound.bounds.dirichlet.sampler import Sampler
from support import oracles

REWARDS = {"known": KnownRewards([[0.0, 1.0], [2.0, 0.5]]), "seen": BetaRewards([[1.0, 2.0]] * 2, [[2.0, 1.0]] * 2)}
HORIZON, DISCOUNT = 3, 0.9


class Last:
    """Somebody's agent: does what the last arrival says, and tells what it was shown."""

    def __init__(self):
        self.seen = set()

    def reset(self, seed):
        self.last = 0

    def act(self, state):
        return self.last

    def observe(self, state, action, reward, next_state):
        self.last = int(next_state == state)
        self.seen.add(reward)


def value_of(agent, belief, s, stages):
    """What an agent earns, by every history."""

    def follow(history, belief, s, left):
        if left == 0:
            return 0.0
        agent.reset(0)
        for step in history:
            agent.observe(*step)
        a, mean = agent.act(s), belief.mean()
        total, seen = mean.rewards[s, a], [(None, 1.0)]
        if isinstance(belief.rewards, BetaRewards):
            seen = [(1.0, mean.rewards[s, a]), (0.0, 1.0 - mean.rewards[s, a])]
        for reward, p in seen:
            for t in range(belief.n_states):
                after = belief.update(s, a, reward, t)
                chance = p * mean.transitions[s, a, t]
                total += DISCOUNT * chance * follow([*history, (s, a, reward, t)], after, t, left - 1)
        return total

    return follow([], belief, s, stages)


@pytest.fixture
def small(monkeypatch):
    """Few particles, so that they are renewed and relaxations are loose."""
    made = Sampler.__init__

    def init(self, *arguments):
        made(self, *arguments)
        self.effort = Effort(((0.0, 32),), 32, 200, 50)

    monkeypatch.setattr(Sampler, "__init__", init)


@pytest.mark.full
@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("kind", REWARDS)
def test_values_and_distances_fail_no_more_often_than_they_say(kind):
    """Thirty times at 80% each: more than 13 failures have probability 3e-3 if each fails with 0.2."""
    belief = DirichletBelief(2, 2, concentration=0.5, rewards=REWARDS[kind], initial=0)
    best = oracles.dirichlet_value(belief, 0, DISCOUNT, HORIZON)
    for policy in (Last(), StationaryPolicy([1, 0])):
        exact, failed, nearer = value_of(policy, belief, 0, HORIZON), 0, []
        for seed in range(30):
            found = certify(
                policy, belief, discount=DISCOUNT, horizon=HORIZON, confidence=0.8, samples=40, rng=seed, threads=1
            )
            failed += not (
                found.lower.value <= exact <= found.upper.value
                and found.best.value >= best
                and found.regret.value >= best - exact
            )
            nearer.append(max(0.0, found.best.value - found.lower.value) - found.regret.value)
        assert failed <= 13
        assert min(nearer) >= 0.0
        assert np.mean(nearer) > 0.005 * best  # differences with common random numbers gain
    if kind == "seen":
        agent = Last()
        certify(agent, belief, discount=DISCOUNT, horizon=HORIZON, samples=16, rng=1)
        assert agent.seen == {0.0, 1.0}


@pytest.mark.full
@pytest.mark.usefixtures("small")
def test_what_bracket_found_is_certified_from_its_file_whatever_the_threads(tmp_path):
    belief = DirichletBelief(2, 2, concentration=0.5, rewards=REWARDS["known"], initial=0)
    knobs = {"discount": DISCOUNT, "horizon": HORIZON}
    policy = bracket(belief, effort=6, rng=1, **knobs).policy
    policy.save(tmp_path / "policy.npz")
    found = certify(tmp_path / "policy.npz", belief, samples=48, rng=3, threads=2, **knobs)
    again = certify(load_policy(tmp_path / "policy.npz"), belief, samples=48, rng=3, threads=1, **knobs)
    assert found == again
    assert found.lower.value <= oracles.dirichlet_value(belief, 0, DISCOUNT, HORIZON) <= found.best.value
    assert "95% confidence" in repr(found)
    # A bound that is given and better is taken, with its own error.
    sharp = found.best.__class__(oracles.dirichlet_value(belief, 0, DISCOUNT, HORIZON), "upper", "exact tree")
    given = certify(policy, belief, samples=48, rng=3, upper=sharp, **knobs)
    assert given.best == sharp
    assert given.regret.value <= found.regret.value


def test_slips():
    belief = DirichletBelief(2, 2, concentration=0.5, rewards=REWARDS["known"], initial=0)
    with pytest.raises(BeliefboundError, match="at least 16"):
        certify(Last(), belief, discount=0.9, samples=3)
    with pytest.raises(BeliefboundError, match="3 states, the belief has 2"):
        certify(StationaryPolicy([0, 0, 0]), belief, discount=0.9)

    class Odd(Last):
        def act(self, state):
            return 7

    with pytest.raises(ObservationError, match="chose action 7"):
        certify(Odd(), belief, discount=0.9, horizon=3, samples=16)
    assert certified.LEAST_SAMPLES == 16
