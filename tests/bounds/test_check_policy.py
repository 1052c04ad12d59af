"""`check_policy` passes every kind of policy of ours, and says what is wrong with those that break the protocol."""

import numpy as np
import pytest

from beliefbound import FiniteBelief, StationaryPolicy
from beliefbound.base.errors import ObservationError, PolicyError
from beliefbound.bounds.check_policy import check_policy
from support.beliefs import random_belief
from support.policies import KINDS, policy_of
from support.tiers import tiers

BELIEF = random_belief(np.random.default_rng(1), "bernoulli", n_models=4, n_states=3)[0]


@pytest.mark.parametrize("kind", tiers(KINDS, "memoryless stochastic", "settled, horizon", "alpha vectors"))
def test_ours_pass(kind):
    states = policy_of(kind).n_states
    belief = random_belief(np.random.default_rng(1), "bernoulli", n_models=4, n_states=states)[0]
    check_policy(lambda: policy_of(kind), belief, initial=0, walks=200)


class Right:
    """Alternates for ten decisions, with random moves at the start; knows nothing about this library but its errors."""

    n_states, n_actions, horizon = 3, 2, 10

    def reset(self, seed=0):
        self.steps, self.first = 0, int(np.random.default_rng(seed).integers(2))

    def act(self, state):
        if not 0 <= state < 3:
            raise ObservationError(f"state is {state}; there are 3")
        if self.steps >= self.horizon:
            raise PolicyError("all decisions are made")
        return (self.first + self.steps) % 2

    def observe(self, state, action, reward, next_state):
        self.steps += 1

    def fresh(self):
        return type(self)()


class NoObserve(Right):
    observe = None


class OtherSize(Right):
    n_states = 4


class Float(Right):
    def act(self, state):
        return float(super().act(state))


class NotOffered(Right):
    def act(self, state):
        return super().act(state) + 1


class Unreset(Right):
    turns = 0

    def reset(self, seed=0):
        super().reset(seed)
        self.turns += 1

    def act(self, state):
        return (super().act(state) + (self.turns > 1)) % 2


class Moody(Right):
    made = 0

    def __init__(self):
        Moody.made += 1
        self.odd = Moody.made % 2

    def act(self, state):
        return (super().act(state) + self.odd) % 2

    fresh = None


class Itself(Right):
    def fresh(self):
        return self


class Shared(Right):
    walk = {"steps": 0}  # noqa: RUF012

    def reset(self, seed=0):
        super().reset(seed)
        self.walk["steps"] = 0

    def act(self, state):
        super().act(state)
        return self.walk["steps"] % 2

    def observe(self, state, action, reward, next_state):
        super().observe(state, action, reward, next_state)
        self.walk["steps"] += 1


class Endless(Right):
    def act(self, state):
        return 0 if self.steps >= self.horizon else super().act(state)


class Crashes(Right):
    def act(self, state):
        return [super().act(0)] * 3 and (0, 1, 0)[state]


class Boaster(Right):
    def values_on(self, task):
        return np.full(task.models.n_models, 100.0)


class WrongTable(Right):
    horizon = None

    def act(self, state):
        if not 0 <= state < 3:
            raise ObservationError(f"state is {state}; there are 3")
        return 0

    def as_table(self):
        return StationaryPolicy([1, 1, 1])


class Mute(Right):
    def values_on(self, task):
        return np.zeros(2)


class Global(Right):
    def reset(self, seed=0):
        super().reset(seed)
        np.random.seed(1)  # noqa: NPY002


class OtherFile(Right):
    def save(self, path, **names):
        StationaryPolicy([1, 1, 0]).save(path)


BROKEN = {
    NoObserve: "it has no method observe",
    OtherSize: "n_states is 4; the belief has 3",
    Float: r"act\(\d\) is \d.0; give a whole number",
    NotOffered: r"act\(\d\) is 2, which state \d does not offer; it has the actions 0, 1",
    Unreset: "after a reset with the same seed it acts differently",
    Moody: "two policies with the same seed act differently",
    Itself: r"fresh\(\) gave the policy itself",
    Shared: "it acts differently after another, made by fresh",
    Endless: r"act after all 10 decisions is 0; raise ObservationError or PolicyError",
    Crashes: r"act\(3\), a state that there is not, raised IndexError",
    Boaster: "what it says it is worth .* is 100; 500 samples say",
    WrongTable: "what it says it is worth .* samples say",
    Mute: r"values_on has shape \(2,\); expected \(4,\)",
    Global: "global random generator",
    OtherFile: "loaded from its file it acts differently",
}


@pytest.mark.parametrize("broken", BROKEN)
def test_what_is_wrong_is_said(broken):
    with pytest.raises(AssertionError, match=BROKEN[broken]):
        check_policy(broken, BELIEF, discount=0.7, initial=0)


def test_the_right_one_to_break_is_right():
    check_policy(Right, BELIEF, initial=0)
    assert isinstance(BELIEF, FiniteBelief)
