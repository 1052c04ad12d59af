"""Reward beliefs: one class is a reward model; and what every belief can do beside learning."""

import copy
import pickle

import numpy as np
import pytest
import scipy.stats as stats

from beliefbound.base.errors import BeliefError, ObservationError, ParameterError
from beliefbound.beliefs import (
    BetaRewards,
    DirichletBelief,
    DirichletRewards,
    FiniteBelief,
    KnownRewards,
    NormalRewards,
)
from beliefbound.beliefs.compiled import posterior_of
from beliefbound.beliefs.rewards import RewardColumns
from beliefbound.kernels.posterior import expected, learn
from support.oracles import random_models


def test_two_values_are_a_beta_belief():
    rng = np.random.default_rng(0)
    s, a, t = rng.integers(3, size=30), rng.integers(2, size=30), rng.integers(3, size=30)
    x = rng.choice([-1.0, 3.0], size=30)
    beta = DirichletBelief(3, 2, rewards=BetaRewards(0.5, 2.0, low=-1.0, high=3.0))
    two = DirichletBelief(3, 2, rewards=DirichletRewards([3.0, -1.0], [0.5, 2.0]))
    assert two.log_marginal_likelihood(s, a, x, t) == pytest.approx(beta.log_marginal_likelihood(s, a, x, t))
    assert np.allclose(two.update(s, a, x, t).mean().rewards, beta.update(s, a, x, t).mean().rewards)
    for ours, theirs in zip(two.rewards.credible_intervals(), beta.rewards.credible_intervals(), strict=True):
        assert np.allclose(ours, theirs, atol=0.06)


def test_finitely_many_values_are_learnt_by_counts():
    belief = DirichletBelief(2, 2, rewards=DirichletRewards([0.0, 1.0, 5.0], [2.0, 1.0, 1.0]))
    after = belief.update([0, 0, 0], [1, 1, 1], [5.0, 5.0, 0.0], [0, 1, 1])
    assert after.rewards.counts[0, 1].tolist() == [3.0, 1.0, 3.0]
    assert after.mean().rewards[0].tolist() == pytest.approx([6 / 4, 16 / 7])
    assert belief.reward_range == (0.0, 5.0)
    sample = after.sample(4000, 1)
    assert sample.reward_signal == "finite"
    assert np.allclose(sample.signal.chances @ [0.0, 1.0, 5.0], sample.rewards)
    assert stats.kstest(sample.signal.chances[:, 0, 1, 2], stats.beta(3, 4).cdf).pvalue > 1e-4
    assert sample.rewards[:, 0, 1].mean() == pytest.approx(16 / 7, abs=4.5 * 5 / np.sqrt(4 * 4000))
    posterior = posterior_of(belief)
    for reward, arrival in ((5.0, 0), (5.0, 1), (0.0, 1)):
        learn(posterior, 0, 1, reward, arrival)
    assert expected(posterior, 1, np.empty(2)) == pytest.approx(16 / 7)
    with pytest.raises(ObservationError, match="is 2.0, none of the values"):
        belief.update(0, 0, 2.0, 1)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: DirichletRewards([0.0, 0.0]), "the value 0 twice"),
        (lambda: DirichletRewards([0.0]), "two or more"),
        (lambda: DirichletRewards([0.0, np.inf]), r"values\[value 1\] is inf"),
        (lambda: DirichletBelief(1, 1, rewards=DirichletRewards([0.0, 1.0], [1.0, 0.0])), "value 1. is 0.0"),
        (lambda: DirichletBelief(1, 1, rewards=DirichletRewards([0.0, 1.0], np.nan)), "is nan"),
        (lambda: DirichletBelief(1, 1, rewards=DirichletRewards([0.0, 1.0], np.ones((2, 2)))), r"shape \(2, 2\)"),
        (lambda: BetaRewards(low=0.0, high=np.inf), "both finite"),
        (lambda: BetaRewards("many"), "not a rectangular array of numbers"),
        (lambda: DirichletBelief(2, 1, rewards=KnownRewards(np.zeros((2, 1, 3)))), "on arrival, expected"),
        (lambda: DirichletBelief(2, 1, rewards=KnownRewards(np.full((2, 1, 2), np.nan))), "next state 0. is nan"),
        (lambda: DirichletBelief(10**7, 2), "needs .* GiB; use fewer states"),
        (lambda: DirichletBelief(2, 2, available=[[True, False], [False, False]]), "available.state 1. has no action"),
        (lambda: DirichletBelief(2, 2, terminal=[2]), r"terminal\[0\] is 2"),
    ],
)
def test_bad_beliefs_are_named(build, message):
    with pytest.raises(BeliefError, match=message):
        build()


def test_known_rewards_on_arrival_are_averaged_by_each_model():
    paid = np.arange(8.0).reshape(2, 2, 2)
    belief = DirichletBelief(2, 2, concentration=1.0, rewards=KnownRewards(paid))
    assert np.allclose(belief.mean().rewards, paid.mean(axis=-1))
    sample = belief.sample(20, 0)
    assert np.allclose(sample.rewards, (sample.transitions * paid).sum(-1))
    assert sample.update(0, 1, None, 1).n_models == 20
    posterior, p = posterior_of(belief), np.empty(2)
    learn(posterior, 1, 0, 5.0, 1)
    assert expected(posterior, 2, p) == pytest.approx(4 / 3 + 5 * 2 / 3)


def test_values_that_pay_the_same_cannot_be_counted():
    class Same(BetaRewards):
        def columns(self):
            return RewardColumns(np.ones((2, 1, 1)), np.ones((2, 1, 1, 1)), False)

        def expand(self, n_states, n_actions):
            return self

    with pytest.raises(BeliefError, match=r"two reward values of state 0, action 0 are 1\.0"):
        posterior_of(DirichletBelief(1, 1, rewards=Same()))


@pytest.mark.parametrize("rewards", [BetaRewards(1, 1, low=1.0, high=2.0), DirichletRewards([1.0, 2.0, 3.0]), None])
def test_terminal_states_absorb_and_pay_nothing(rewards):
    belief = DirichletBelief(3, 2, rewards=rewards, terminal=2)
    mean = belief.mean()
    assert (mean.transitions[2, :, 2] == 1.0).all()
    assert (mean.rewards[2] == 0.0).all()
    sample = belief.sample(10, 0)
    assert (sample.transitions[:, 2, :, 2] == 1.0).all()
    assert (sample.rewards[:, 2] == 0.0).all()
    assert (sample.rewards[:, :2] != 0.0).all()
    after = belief.update([0, 2], [0, 1], [1.0, 0.0], [2, 2])  # the reward of the absorbing state is no observation
    assert after.rewards.mean()[2, 1] == belief.rewards.mean()[2, 1]
    assert sample.update([0, 2], [0, 1], [1.0, 0.0], [2, 2]).n_models == 10
    assert belief.reward_range[0] <= 0.0
    posterior = posterior_of(belief)
    learn(posterior, 2, 0, 0.0, 2)
    assert expected(posterior, 4, np.empty(3)) == 0.0
    assert np.isfinite(posterior.reward).all()


def test_unavailable_actions_are_not_in_samples_and_cannot_be_observed():
    available = np.array([[True, False], [True, True]])
    belief = DirichletBelief(2, 2, available=available)
    sample = belief.sample(5, 0)
    assert (sample.transitions[:, 0, 1] == 0.0).all()
    assert (sample.available == available).all()
    assert (belief.mean().available == available).all()
    with pytest.raises(ObservationError, match="outside the belief's support"):
        belief.update(0, 1, 1.0, 0)


def beliefs():
    rng = np.random.default_rng(2)
    p, r, w, p0 = random_models(rng, 3, 2, 2)
    for signal in ("deterministic", "bernoulli", "unobserved", "continuous"):
        yield FiniteBelief(p, r, w, reward_signal=signal, initial=p0)
    yield FiniteBelief(p, rng.random((3, 2, 2, 2)), w, reward_signal="deterministic")
    for rewards in (BetaRewards(), NormalRewards(), KnownRewards(np.zeros((2, 2, 2))), DirichletRewards([0, 1, 2])):
        yield DirichletBelief(2, 2, rewards=rewards, terminal=1)
    yield DirichletBelief.tied([[0], [0]], [[[0, 1]], [[1, 0]]], [[1.0, 2.0]])


@pytest.mark.parametrize("belief", list(beliefs()), ids=repr)
def test_copies_and_pickles_are_the_same_belief_and_frozen(belief):
    for other in (copy.copy(belief), copy.deepcopy(belief), pickle.loads(pickle.dumps(belief))):
        assert repr(other) == repr(belief)
        assert np.array_equal(other.mean().transitions, belief.mean().transitions)
        ours, theirs = (x.sample(4, 7) for x in (other, belief))
        assert np.array_equal(ours.transitions, theirs.transitions)
        assert np.array_equal(ours.rewards, theirs.rewards)
        assert ours.reward_signal == theirs.reward_signal
        with pytest.raises(AttributeError, match="frozen"):
            other.initial = None
        with pytest.raises(ValueError, match="read-only"):
            getattr(other, "weights" if hasattr(belief, "weights") else "concentration")[...] = 0.0


def test_randomness_is_a_generator_or_a_seed():
    belief = DirichletBelief(2, 2)
    by_seed, by_generator = belief.sample(3, 5), belief.sample(3, np.random.default_rng(5))
    assert np.array_equal(by_seed.transitions, by_generator.transitions)
    for bad in ("five", -1, 1.5):
        with pytest.raises(ParameterError, match="rng is"):
            belief.sample(3, bad)
    assert not np.array_equal(belief.sample(3).transitions, belief.sample(3).transitions)


@pytest.mark.parametrize("belief", list(beliefs()), ids=repr)
def test_the_predictive_row_is_that_of_the_expected_mdp(belief):
    mean = belief.mean()
    for s in range(belief.n_states):
        for a in range(belief.n_actions):
            assert belief.predictive(s, a) == pytest.approx(mean.transitions[s, a])
