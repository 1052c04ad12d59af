"""Beliefs update as Bayes says, whatever the order, and refuse what cannot have happened."""

import math

import numpy as np
import pytest
import scipy.stats as stats
from hypothesis import given, settings
from hypothesis import strategies as st

from beliefbound import BetaRewards, DirichletBelief, FiniteBelief, KnownRewards
from beliefbound.base.errors import BeliefError, ObservationError, ParameterError
from beliefbound.beliefs import NormalRewards
from support.oracles import random_models


def history(rng, n, n_states, n_actions, rewards):
    return (
        rng.integers(n_states, size=n),
        rng.integers(n_actions, size=n),
        rng.choice(rewards, size=n),
        rng.integers(n_states, size=n),
    )


# -- finite ---------------------------------------------------------------------------------------------------


@given(seed=st.integers(0, 10**6), signal=st.sampled_from(["known", "deterministic", "bernoulli", "unobserved"]))
@settings(max_examples=60)
def test_a_finite_posterior_is_weight_times_likelihood(seed, signal):
    rng = np.random.default_rng(seed)
    p, r, w, _ = random_models(rng, 4, 3, 2, equal_rewards=signal == "known")
    if signal == "deterministic":
        r = np.round(r, 0)
    belief = FiniteBelief(p, r, w, reward_signal=signal)
    s, a, x, t = history(rng, 5, 3, 2, [0.0, 1.0])
    likelihood = np.prod(p[:, s, a, t], axis=1)
    if signal == "deterministic":
        x = r[0][s, a]  # what model 0 pays, so that it stays possible
        likelihood = likelihood * (r[:, s, a] == x).all(axis=1)
    if signal == "bernoulli":
        likelihood = likelihood * np.prod(np.where(x == 1.0, r[:, s, a], 1.0 - r[:, s, a]), axis=1)
    truth = w * likelihood / (w @ likelihood)
    assert np.allclose(belief.update(s, a, x, t).weights, truth, atol=1e-12)
    one_by_one = belief
    for i in rng.permutation(5):
        one_by_one = one_by_one.update(s[i], a[i], x[i], t[i])
    assert np.allclose(one_by_one.weights, truth, atol=1e-12)
    assert belief.update(s, a, x, t).models is belief.models


def test_impossible_and_malformed_observations_are_named():
    stay = np.eye(2)[:, None, :]
    belief = FiniteBelief(np.stack([stay, stay]), [[1.0], [2.0]])
    with pytest.raises(ObservationError, match="state 0, action 0, next state 1 has probability 0 under every model"):
        belief.update(0, 0, 1.0, 1)
    with pytest.raises(ObservationError, match="observation 1: "):
        belief.update([0, 0], [0, 0], [1.0, 1.0], [0, 1])
    with pytest.raises(ObservationError, match="state is 2; ids run from 0 to 1"):
        belief.update(2, 0, 1.0, 1)
    with pytest.raises(ObservationError, match="action is -1"):
        belief.update(0, -1, 1.0, 1)
    with pytest.raises(ObservationError, match="whole numbers"):
        belief.update(0.5, 0, 1.0, 1)
    with pytest.raises(ObservationError, match="lengths 2, 1"):
        belief.update([0, 0], [0], None, [0, 0])
    seen = FiniteBelief(np.stack([stay, stay]), [[[1.0], [2.0]], [[1.5], [2.0]]], reward_signal="deterministic")
    with pytest.raises(ObservationError, match=r"reward 7, next state 0"):
        seen.update(0, 0, 7.0, 0)
    coin = FiniteBelief(np.stack([stay, stay]), [[[0.1], [0.2]], [[0.3], [0.2]]], reward_signal="bernoulli")
    with pytest.raises(ObservationError, match="reward is 2.0; a Bernoulli reward lies between 0 and 1"):
        coin.update(0, 0, 2.0, 0)


def test_rewards_on_arrival_are_averaged_for_planning_and_seen_as_they_are():
    rng = np.random.default_rng(4)
    p, _, w, _ = random_models(rng, 3, 2, 2)
    paid = rng.integers(3, size=(3, 2, 2, 2)).astype(float)
    belief = FiniteBelief(p, paid, w, reward_signal="deterministic")
    assert np.allclose(belief.rewards, (p * paid).sum(-1))
    after = belief.update(0, 1, paid[2, 0, 1, 1], 1)
    likelihood = w * p[:, 0, 1, 1] * (paid[:, 0, 1, 1] == paid[2, 0, 1, 1])
    assert np.allclose(after.weights, likelihood / likelihood.sum())
    assert after.signal is belief.signal
    assert belief.sample(5, rng).signal.on_arrival.shape == (5, 2, 2, 2)
    same = FiniteBelief(p, np.repeat(paid[:1], 3, axis=0), w)  # the same function of (s,a,t): nothing more to see
    assert (same.signal.on_arrival == paid[:1]).all()
    with pytest.raises(BeliefError, match="so rewards are not known"):
        FiniteBelief(p, paid, w)


def test_the_expected_mdp_is_the_weighted_average_and_samples_follow_the_weights():
    rng = np.random.default_rng(0)
    p, r, w, p0 = random_models(rng, 3, 4, 2)
    belief = FiniteBelief(p, r, w, reward_signal="unobserved", initial=p0)
    assert np.allclose(belief.mean().transitions, np.tensordot(w, p, axes=1))
    assert np.allclose(belief.mean().rewards, np.tensordot(w, r, axes=1))
    sample = belief.sample(20_000, rng)
    counts = np.array([(sample.rewards[:, 0, 0] == r[m, 0, 0]).sum() for m in range(3)])
    assert stats.chisquare(counts, w * 20_000).pvalue > 1e-4
    with pytest.raises(ParameterError, match="number of sampled models is 0"):
        belief.sample(0, rng)


# -- Dirichlet ------------------------------------------------------------------------------------------------


@given(seed=st.integers(0, 10**6), n=st.integers(1, 40))
@settings(max_examples=40)
def test_dirichlet_updates_count_transitions_in_any_order(seed, n):
    rng = np.random.default_rng(seed)
    belief = DirichletBelief(3, 2)
    s, a, x, t = history(rng, n, 3, 2, [0.0, 0.25, 1.0])
    batch = belief.update(s, a, x, t)
    counts = np.zeros((3, 2, 3))
    for i in range(n):
        counts[s[i], a[i], t[i]] += 1
    assert np.allclose(batch.concentration, 1 / 3 + counts)
    single = belief
    for i in rng.permutation(n):
        single = single.update(s[i], a[i], x[i], t[i])
    assert np.allclose(single.concentration, batch.concentration)
    assert np.allclose(single.rewards.alpha, batch.rewards.alpha)
    total = batch.rewards.alpha + batch.rewards.beta
    assert np.allclose(total, 2.0 + counts.sum(-1))


def test_normal_rewards_follow_the_normal_gamma_formulas_in_one_batch_or_many():
    rng = np.random.default_rng(2)
    prior = NormalRewards(0.5, strength=2.0, shape=3.0, rate=1.5).expand(1, 1)
    x = rng.normal(2.0, 0.7, size=30)
    zeros = np.zeros(30, dtype=int)
    batch = prior.update(zeros, zeros, x)
    single = prior
    for value in x:
        single = single.update(zeros[:1], zeros[:1], np.array([value]))
    n, mean = 30, x.mean()
    assert batch.location[0, 0] == pytest.approx((2 * 0.5 + n * mean) / (2 + n))
    assert batch.rate[0, 0] == pytest.approx(
        1.5 + 0.5 * ((x - mean) ** 2).sum() + 2 * n * (mean - 0.5) ** 2 / (2 * (2 + n))
    )
    for name in ("location", "strength", "shape", "rate"):
        assert getattr(single, name)[0, 0] == pytest.approx(getattr(batch, name)[0, 0])


def test_marginal_likelihood_is_the_product_of_predictions():
    rng = np.random.default_rng(5)
    s, a, x, t = history(rng, 25, 3, 2, [0.0, 1.0])
    for rewards in (BetaRewards(2.0, 3.0), NormalRewards(0.3), KnownRewards(0.0)):
        belief = DirichletBelief(3, 2, concentration=0.7, rewards=rewards)
        whole = belief.log_marginal_likelihood(s, a, x, t)
        steps, current = 0.0, belief
        for i in range(25):
            row = current.concentration[s[i], a[i]]
            steps += math.log(row[t[i]] / row.sum())
            b = current.rewards
            if isinstance(b, BetaRewards):
                mean = b.mean()[s[i], a[i]]
                steps += math.log(mean if x[i] == 1.0 else 1.0 - mean)
            elif isinstance(b, NormalRewards):
                k, sh, ra = (v[s[i], a[i]] for v in (b.strength, b.shape, b.rate))
                scale = math.sqrt(ra * (k + 1) / (sh * k))
                steps += stats.t(2 * sh, loc=b.location[s[i], a[i]], scale=scale).logpdf(x[i])
            current = current.update(s[i], a[i], x[i], t[i])
        assert whole == pytest.approx(steps)


def test_restricted_support_is_kept_by_samples_and_refused_by_updates():
    support = np.ones((3, 2, 3), bool)
    support[0, :, 2] = False
    belief = DirichletBelief(3, 2, support=support)
    sample = belief.sample(50, np.random.default_rng(0))
    assert (sample.transitions[:, 0, :, 2] == 0).all()
    assert (sample.transitions[:, 1] > 0).all()
    with pytest.raises(ObservationError, match="outside the belief's support"):
        belief.update(0, 1, 0.5, 2)
    with pytest.raises(BeliefError, match="state 0, action 0 has no possible next state"):
        DirichletBelief(2, 1, support=[[[False, False]], [[True, True]]])


@pytest.mark.parametrize("concentration", [1e-4, 0.2, 1.0, 1e6])
def test_samples_have_the_right_marginals_at_every_concentration(concentration):
    belief = DirichletBelief(4, 1, concentration=concentration, rewards=BetaRewards(2.0, 5.0, low=-1.0, high=3.0))
    sample = belief.sample(4000, np.random.default_rng(9))
    x = sample.transitions[:, 1, 0, 2]
    assert np.isfinite(sample.transitions).all()
    assert np.allclose(sample.transitions.sum(-1), 1.0, atol=1e-12)
    law = stats.beta(concentration, 3 * concentration)
    edges = np.clip(law.ppf([0.3, 0.74, 0.76, 0.9]), 1e-300, 1 - 1e-12)
    inside = np.array([(x <= e).mean() for e in edges])
    assert np.abs(inside - law.cdf(edges)).max() < 4.5 * math.sqrt(0.25 / 4000)  # false alarm below 1e-4
    mean = sample.rewards[:, 0, 0].mean()
    assert abs(mean - (-1 + 4 * 2 / 7)) < 4.5 * 4 * math.sqrt(2 * 5 / (49 * 8)) / math.sqrt(4000)


def test_credible_intervals_hold_their_mass():
    belief = DirichletBelief(3, 1, concentration=0.8, rewards=NormalRewards(1.0, strength=2.0, shape=3.0))
    low, high = belief.credible_intervals(0.9)
    sample = belief.sample(5000, np.random.default_rng(3))
    inside = ((sample.transitions >= low) & (sample.transitions <= high)).mean(axis=0)
    assert np.abs(inside - 0.9).max() < 4.5 * math.sqrt(0.09 / 5000)
    low, high = belief.rewards.credible_intervals(0.9)
    inside = ((sample.rewards >= low) & (sample.rewards <= high)).mean(axis=0)
    assert np.abs(inside - 0.9).max() < 4.5 * math.sqrt(0.09 / 5000)
    certain = DirichletBelief(2, 1, support=[[[True, False]], [[True, True]]]).credible_intervals()
    assert certain[0][0, 0].tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: DirichletBelief(0, 2), "n_states is 0"),
        (
            lambda: DirichletBelief(2, 2, concentration=-1.0),
            r"concentration\[state 0, action 0, next state 0\] is -1.0",
        ),
        (lambda: DirichletBelief(2, 2, concentration=np.nan), "is nan"),
        (lambda: DirichletBelief(2, 2, concentration=np.ones((2, 2))), r"shape \(2, 2\)"),
        (lambda: DirichletBelief(2, 2, rewards=BetaRewards(0.0, 1.0)), "alpha.* is 0.0; it must be above 0"),
        (
            lambda: DirichletBelief(2, 2, rewards=BetaRewards(np.ones(3))),
            r"shape \(3,\); expected one number or \(2, 2\)",
        ),
        (lambda: BetaRewards(low=1.0, high=1.0), "low must be below high"),
        (lambda: DirichletBelief(2, 2, rewards=KnownRewards([np.nan, 1.0])), "KnownRewards.* is nan"),
    ],
)
def test_bad_beliefs_are_named(build, message):
    with pytest.raises((BeliefError, ParameterError), match=message):
        build()


def test_rewards_outside_the_declared_range_are_refused():
    with pytest.raises(ObservationError, match="is 2.0, outside the declared range 0 to 1"):
        DirichletBelief(2, 1).update(0, 0, 2.0, 1)
    with pytest.raises(ObservationError, match="no reward was given"):
        DirichletBelief(2, 1).update(0, 0, None, 1)
    with pytest.raises(ObservationError, match="reward 0 is nan"):
        DirichletBelief(2, 1, rewards=NormalRewards()).update(0, 0, np.nan, 1)
    assert DirichletBelief(2, 1, rewards=KnownRewards(1.0)).update(0, 0, None, 1).n_states == 2


def test_gaussian_samples_say_that_their_rewards_have_no_finite_outcomes():
    sample = DirichletBelief(2, 1, rewards=NormalRewards()).sample(3, np.random.default_rng(0))
    assert sample.reward_signal == "continuous"
    with pytest.raises(ParameterError, match="no exact update"):
        sample.update(0, 0, 0.3, 1)
