"""`check_belief` passes every belief of ours, and says what is wrong with those that do not keep their word."""

import numpy as np
import pytest

from beliefbound import BetaRewards, DirichletBelief, DirichletRewards, FiniteBelief, KnownRewards
from beliefbound.beliefs import NormalRewards
from beliefbound.beliefs.check import check_belief
from support.beliefs import SIGNALS, random_belief
from support.mixture import Mixture

OURS = {
    "flat": DirichletBelief(2, 2),
    "after steps": DirichletBelief(2, 2).update([0, 1], [0, 1], [1.0, 0.0], [1, 1]),
    "known rewards, terminal": DirichletBelief(2, 2, rewards=KnownRewards([[0.0, 1.0], [2.0, 0.0]]), terminal=[1]),
    "on arrival": DirichletBelief(2, 1, rewards=KnownRewards([[[0.0, 1.0]], [[2.0, 0.0]]])),
    "values": DirichletBelief(2, 2, rewards=DirichletRewards([0.0, 0.5, 2.0], 1.0)),
    "normal": DirichletBelief(2, 2, rewards=NormalRewards(), initial=1),
    "tied": DirichletBelief.tied([[0], [0]], [[[0, 1]], [[1, 0]]], [[1.0, 1.0]], rewards=KnownRewards(0.0)),
    "fewer actions": DirichletBelief(2, 2, available=[[True, False], [True, True]]),
    "support": DirichletBelief(2, 2, support=[[True, True], [False, True]]),
}


@pytest.mark.parametrize("name", OURS)
def test_ours_pass(name):
    check_belief(OURS[name])


@pytest.mark.parametrize("signal", SIGNALS)
def test_finite_beliefs_pass(signal):
    check_belief(random_belief(np.random.default_rng(3), signal, n_models=4, n_states=3)[0])


class Plain(Mixture):
    """A right one to break: it is not registered, so it has no files."""

    def __init__(self, parts=None, weights=None):
        beliefs = [DirichletBelief(2, 2, concentration=x, initial=0, rewards=BetaRewards(1.0, x)) for x in (0.5, 2.0)]
        super().__init__(parts or beliefs, [0.5, 0.5] if weights is None else weights)


class NoStart(Plain):
    def __init__(self):
        super().__init__()
        del self.initial


class WrongShape(Plain):
    def __init__(self):
        super().__init__()
        self.available = np.ones((2, 3), dtype=bool)


class NoAction(Plain):
    def __init__(self):
        super().__init__()
        self.available = np.array([[True, True], [False, False]])


class NoDistribution(Plain):
    def __init__(self):
        super().__init__()
        self.initial = np.array([0.5, 0.6])


class SmallRange(Plain):
    def __init__(self):
        super().__init__()
        self.reward_range = (0.0, 0.5)

    def sample(self, n, rng=None):
        return Plain().sample(n, rng)


class Forgetful(Plain):
    def sample(self, n, rng=None):
        return super().sample(n, np.random.default_rng())


class Reseeded(Plain):
    def sample(self, n, rng=None):
        return super().sample(n, 1)


class TooFew(Plain):
    def sample(self, n, rng=None):
        return super().sample(n - 1, rng)


class NoBelief(Plain):
    def sample(self, n, rng=None):
        return super().sample(n, rng).transitions


class Weighted(Plain):
    def sample(self, n, rng=None):
        drawn = super().sample(n, rng)
        return drawn.reweight(np.arange(1.0, n + 1.0) / np.arange(1.0, n + 1.0).sum())


class Global(Plain):
    def sample(self, n, rng=None):
        np.random.seed(3)  # noqa: NPY002
        return super().sample(n, rng)


class WrongMean(Plain):
    def mean(self):
        return self.parts[0].update(0, 0, 1.0, 0).mean()


class WrongPredictive(Plain):
    def predictive(self, state, action):
        return np.array([0.2, 0.8])


class Unnormalised(Plain):
    def predictive(self, state, action):
        return super().predictive(state, action) * 1.1


class LearnsNothing(Plain):
    def update(self, state, action, reward, next_state):
        super().update(state, action, reward, next_state)
        return self


class LearnsTwice(Plain):
    def update(self, *step):
        return super().update(*step).update(*step)


class KeepsWeights(Plain):
    """The parts are conditioned, their weights are not."""

    def update(self, *step):
        return Mixture([part.update(*step) for part in self.parts], self.weights)


class InPlace(Plain):
    def update(self, *step):
        after = super().update(*step)
        self.parts, self.weights = after.parts, after.weights
        return after


class Credulous(Plain):
    def update(self, state, action, reward, next_state):
        if np.max(state) >= 2:
            return self
        return super().update(state, action, reward, next_state)


class Terminal(Plain):
    terminal = np.array([False, True])


class NotItself(Plain):
    def tied_to(self, state, action):
        return np.array([[1 - state, action]])


BROKEN = {
    NoStart: "it has no initial",
    WrongShape: r"available has shape \(2, 3\); expected \(2, 2\)",
    NoAction: "available: state 1 has no action; offer one",
    NoDistribution: r"initial is \[0.5 0.6\]; give probabilities that sum to 1",
    SmallRange: r"pays 0\.\d+; reward_range says at most 0.5",
    Forgetful: "drew other models the second time; equal seeds draw equal models",
    Reseeded: "drew the same models twice from one generator",
    TooFew: r"sample\(5, seed\) gave 4 models; give 5",
    NoBelief: r"sample\(5, seed\) gave .* give a FiniteBelief",
    Weighted: "give equal ones, they are draws",
    Global: "global random generator",
    WrongMean: r"mean\(\)\.transitions\[\d, \d, \d\] is .* samples say",
    WrongPredictive: r"predictive\(0, 0\)\[\d\] is .* samples say",
    Unnormalised: r"predictive\(0, 0\) sums to 1.1; chances of the next state sum to 1",
    LearnsNothing: r"after .*: what is expected.* samples say",
    LearnsTwice: r"after .*: what is expected.* samples say",
    KeepsWeights: r"after .*: what is expected.* samples say",
    InPlace: "update changed the belief itself; give another one",
    Credulous: r"update\(2, 0, .*\) cannot happen in any model; raise ObservationError",
    Terminal: "terminal: state 1 is left in models drawn",
    NotItself: r"tied_to\(0, 0\) is .* the pair itself is among those",
}


@pytest.mark.parametrize("broken", BROKEN)
def test_what_is_wrong_is_said(broken):
    with pytest.raises(AssertionError, match=BROKEN[broken]):
        check_belief(broken(), draws=20_000)


def test_the_right_one_to_break_is_right():
    check_belief(Plain(), draws=20_000)
    assert isinstance(Plain().sample(2, 1), FiniteBelief)
