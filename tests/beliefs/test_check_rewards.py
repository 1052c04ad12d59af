"""`check_rewards` passes every reward model of ours and the documented example, which learns from logs."""

import numpy as np
import pytest

from beliefbound import BetaRewards, DirichletBelief, DirichletRewards, KnownRewards
from beliefbound.beliefs import MixedRewards, NormalRewards
from beliefbound.beliefs.rewards import RewardColumns, RewardSample
from beliefbound.beliefs.rewards.check import check_rewards
from beliefbound.logs import log_of
from support.grid_rewards import GridRewards

HALF_KNOWN = np.full((2, 3, 2), np.nan)
HALF_KNOWN[0, 1] = 0.5
OURS = {
    "beta": BetaRewards(),
    "beta, on a scale": BetaRewards(2.0, 3.0, low=-1.0, high=2.0),
    "known": KnownRewards(1.0),
    "known, on arrival": KnownRewards(np.arange(12.0).reshape(2, 3, 2)),
    "values": DirichletRewards([0.0, 1.0, 3.0], 0.5),
    "normal": NormalRewards(),
    "mixed": MixedRewards(HALF_KNOWN, DirichletRewards([0.0, 1.0], 1.0)),
    "the example": GridRewards(3),
}


@pytest.mark.parametrize("name", OURS)
def test_ours_pass(name):
    check_rewards(OURS[name])


def test_the_documented_example_learns_from_a_log():
    """The same counts as `DirichletRewards` on the same grid."""
    log = log_of([0, 1, 0, 0, 1], [0, 0, 0, 0, 0], [0.0, 0.5, 1.0, 1.0, 0.5], [1, 0, 0, 1, 0])
    found = DirichletBelief.from_log(log, prior=1.0, rewards=GridRewards(3))
    same = DirichletBelief.from_log(log, prior=1.0, rewards=DirichletRewards(np.linspace(0.0, 1.0, 3), 0.5))
    np.testing.assert_allclose(found.rewards.counts[0, 0], [1.5, 0.5, 2.5])
    np.testing.assert_allclose(found.mean().rewards, same.mean().rewards)


class Broken(GridRewards):
    """A right one to break."""

    def __init__(self, points=3, prior=0.5):
        super().__init__(points, prior)

    def _like(self, other):
        made = type(self)()
        made.values, made.counts = other.values, other.counts
        return made

    def expand(self, n_states, n_actions):
        return self._like(super().expand(n_states, n_actions))

    def update(self, states, actions, rewards, *, times=None):
        return self._like(super().update(states, actions, rewards, times=times))


class NoLikelihood(Broken):
    log_marginal_likelihood = property()


class NoTimes(Broken):
    def update(self, states, actions, rewards):
        return super().update(states, actions, rewards)


class IgnoresTimes(Broken):
    def update(self, states, actions, rewards, *, times=None):
        return super().update(states, actions, rewards)


class WrongMean(Broken):
    def mean(self):
        return super().mean() + 0.2


class WrongColumns(Broken):
    def columns(self):
        counts, paid, fractional = super().columns()
        return RewardColumns(counts[::-1] + np.arange(3.0)[:, None, None], paid, fractional)


class FlatColumns(Broken):
    def columns(self):
        counts, paid, fractional = super().columns()
        return RewardColumns(counts, paid[..., 0], fractional)


class SmallRange(Broken):
    range = (0.0, 0.5)


class NoSignal(Broken):
    def sample(self, n, stream):
        return RewardSample(super().sample(n, stream).rewards, "known")


class WrongShape(Broken):
    def sample(self, n, stream):
        drawn = super().sample(n, stream)
        return RewardSample(drawn.rewards[:, 0], drawn.signal)


class InPlace(Broken):
    def update(self, states, actions, rewards, *, times=None):
        self.counts = super().update(states, actions, rewards, times=times).counts
        return self


class LearnsTwice(Broken):
    def update(self, states, actions, rewards, *, times=None):
        return super().update(states, actions, rewards, times=2 * (np.ones(len(states)) if times is None else times))


class WrongEvidence(Broken):
    def log_marginal_likelihood(self, states, actions, rewards):
        return 0.5 * super().log_marginal_likelihood(states, actions, rewards) ** 2


BROKEN = {
    NoLikelihood: "has no log_marginal_likelihood",
    NoTimes: "take times, how often each reward was seen",
    IgnoresTimes: "update with times=3 expects .*, the same three times over",
    WrongMean: r"mean\(\)\[\d, \d\] is .* samples say",
    WrongColumns: r"columns\(\) has the mean .* mean\(\) says",
    FlatColumns: r"columns\(\)\.paid has shape \(3, 2, 3\)",
    SmallRange: "range says 0.0 to 0.5",
    NoSignal: "sample has the signal 'known'",
    WrongShape: r"has rewards of shape \(50000, 3\); expected \(50000, 2, 3\)",
    InPlace: "update changed the reward belief itself; give another one",
    LearnsTwice: r"after rewards .* mean\(\)\[0, 0\] is .* samples say",
    WrongEvidence: "log_marginal_likelihood of rewards .* after an update",
}


@pytest.mark.parametrize("broken", BROKEN)
def test_what_is_wrong_is_said(broken):
    with pytest.raises(AssertionError, match=BROKEN[broken]):
        check_rewards(broken(), draws=50_000)


def test_the_right_one_to_break_is_right():
    check_rewards(Broken())
