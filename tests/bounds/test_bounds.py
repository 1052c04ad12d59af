"""Bounds hold at the stated rate; the paper's lemmas hold numerically."""

import math

import numpy as np
import pytest
import scipy.stats as stats

from beliefbound import (
    BetaRewards,
    Bound,
    DirichletBelief,
    FiniteBelief,
    KnownRewards,
    StationaryPolicy,
    bracket,
    cadp,
    expected_mdp_policy,
    lower_bound,
    mmbi,
    optimal_values,
    policy_iteration,
    theory,
    upper_bound,
)
from beliefbound.base.errors import BeliefError, ParameterError
from beliefbound.beliefs import NormalRewards
from beliefbound.bounds import Regret, belief_distance, policy_regret
from beliefbound.bounds.statistics.intervals import margin
from support.beliefs import random_belief
from support.oracles import bayes_adaptive_value, random_models
from support.tiers import tiers

PRIOR = DirichletBelief(2, 2, concentration=0.5, rewards=KnownRewards([[0.0, 0.1], [1.0, 0.2]]), initial=0)


@pytest.mark.full
def test_fresh_sample_bounds_cover_the_truth_at_the_stated_rate():
    """200 intervals at 90%: more than 34 misses has probability below 0.1% if each misses with probability 0.1."""
    policy = StationaryPolicy([1, 0])
    precise = lower_bound(policy, PRIOR, discount=0.8, n_models=400_000, rng=np.random.default_rng(99))
    most = stats.binom(200, 0.1).ppf(0.999)
    for interval in ("bernstein", "hoeffding", "t"):
        misses = 0
        for seed in range(200):
            bound = lower_bound(
                policy,
                PRIOR,
                discount=0.8,
                confidence=0.9,
                n_models=60,
                interval=interval,
                rng=np.random.default_rng(seed),
            )
            misses += bound.value > precise.estimate
            assert bound.value < bound.estimate
        assert misses <= most, interval
        if interval == "t":
            assert misses > 2  # and it is not vacuous


@pytest.mark.parametrize("method", tiers(["emax", "qmdp"], "qmdp"))
def test_sampled_upper_bounds_cover_their_limit(method):
    precise = upper_bound(PRIOR, discount=0.8, method=method, n_models=200_000, rng=np.random.default_rng(99))
    misses = sum(
        upper_bound(
            PRIOR,
            discount=0.8,
            method=method,
            confidence=0.9,
            n_models=60,
            interval="t",
            rng=np.random.default_rng(seed),
        ).value
        < precise.estimate
        for seed in range(100)
    )
    assert misses <= stats.binom(100, 0.1).ppf(0.999)


def test_finite_beliefs_have_exact_bounds():
    p, r, w, p0 = random_models(np.random.default_rng(1), 4, 3, 2)
    belief = FiniteBelief(p, r, w, reward_signal="unobserved", initial=p0)
    plan = mmbi(belief, discount=0.9, horizon=10)
    low = lower_bound(plan.policy, belief, discount=0.9)
    assert low.exact
    assert plan.value() - 1e-11 <= low.value <= plan.value()
    q, e = (upper_bound(belief, discount=0.9, horizon=10, method=m) for m in ("qmdp", "emax"))
    assert low.value <= q.value <= e.value
    from_state = lower_bound(plan.policy, belief, discount=0.9, initial=2)
    assert plan.values[2] - 1e-11 <= from_state.value <= plan.values[2]


def test_the_regret_of_a_policy_covers_its_true_distance_from_bayes_optimal():
    for seed in range(30):
        p, r, w, p0 = random_models(np.random.default_rng(seed), 3, 2, 2, equal_rewards=True)
        belief = FiniteBelief(p, r, w, initial=p0)
        plan = mmbi(belief, discount=0.9, horizon=4)
        upper = upper_bound(belief, discount=0.9, horizon=4)
        regret = policy_regret(plan.policy, belief, upper, discount=0.9)
        truth = bayes_adaptive_value(p, r, w, p0, 0.9, 4) - plan.value()
        assert truth <= regret.value + 1e-12
        assert regret.value < theory.theorem1_regret(0.5, discount=0.9, r_max=1.0)  # and far sharper than the theorem
    with pytest.raises(ParameterError, match="needs an upper bound"):
        policy_regret(plan.policy, belief, lower_bound(plan.policy, belief, discount=0.9), discount=0.9)


def test_a_bound_must_make_sense():
    with pytest.raises(ParameterError, match="side is 'middle'"):
        Bound(1.0, "middle", "x")
    with pytest.raises(ParameterError, match="not a number"):
        Bound(math.nan, "lower", "x")
    with pytest.raises(ParameterError, match="an exact one has confidence 1"):
        Bound(1.0, "lower", "x", exact=True, confidence=0.9)
    assert float(Bound(1.0, "upper", "x", exact=False, confidence=0.9, estimate=0.5)) == 1.0
    with pytest.raises(ParameterError, match="never negative"):
        Regret(-0.1, "x")
    with pytest.raises(ParameterError, match="choose 'qmdp' or 'emax'"):
        upper_bound(PRIOR, discount=0.9, method="sum", rng=np.random.default_rng(0))
    with pytest.raises(ParameterError, match="known range"):
        margin(np.zeros(5), confidence=0.9, interval="bernstein")
    with pytest.raises(ParameterError, match="at least 2 samples"):
        margin(np.zeros(1), confidence=0.9, interval="t")


def test_unbounded_rewards_fall_back_to_an_interval_that_says_what_it_is():
    belief = DirichletBelief(2, 2, rewards=NormalRewards())
    bound = lower_bound(StationaryPolicy([0, 1]), belief, discount=0.9, rng=np.random.default_rng(0))
    assert bound.asymptotic


# -- theory ---------------------------------------------------------------------------------------------------


def test_lemma_1_is_the_least_horizon_with_a_small_enough_tail():
    for discount in (0.3, 0.9, 0.99):
        for epsilon in (1e-3, 0.1, 2.0):
            stages = theory.truncation_stages(epsilon, discount=discount, r_max=1.0)
            tail = discount**stages / (1 - discount)
            assert tail <= epsilon * (1 + 1e-9)
            assert stages == 1 or discount ** (stages - 1) / (1 - discount) > epsilon


def test_lemma_2_and_its_repair():
    assert theory.lemma2_models(1.0, discount=0.9, r_max=1.0) == 27_000
    sizes = {"n_states": 5, "n_actions": 2, "horizon": 30, "discount": 0.9, "r_max": 2.0}
    n = theory.uniform_models(0.5, **sizes)
    assert theory.uniform_deviation(n, **sizes) <= 0.5 < theory.uniform_deviation(n - 1, **sizes)
    c = 2.0 / (1 - 0.9)
    by_hand = c * math.sqrt((5 * 30 * math.log(2) + math.log(40)) / (2 * n))
    assert theory.uniform_deviation(n, **sizes) == pytest.approx(by_hand)


def test_the_uniform_repair_covers_the_best_policys_in_sample_value():
    """Optimism of the policy picked on a sample never exceeds the repaired deviation here."""
    belief = DirichletBelief(2, 2, rewards=KnownRewards([[0.0, 0.1], [1.0, 0.2]]))
    sizes = {"n_states": 2, "n_actions": 2, "horizon": 5, "discount": 0.8, "r_max": 1.0}
    for seed in range(20):
        rng = np.random.default_rng(seed)
        plan = mmbi(belief.sample(50, rng), discount=0.8, horizon=5)
        truth = lower_bound(plan.policy, belief, discount=0.8, n_models=5000, rng=rng).estimate
        assert plan.value() - truth <= theory.uniform_deviation(50, **sizes)


def test_theorem_1_and_cost():
    assert theory.theorem1_regret(0.5, discount=0.9, r_max=2.0) == pytest.approx(100.0)
    with pytest.raises(ParameterError, match="between 0 and 2"):
        theory.theorem1_regret(2.5, discount=0.9, r_max=1.0)
    stages = theory.truncation_stages(0.1, discount=0.9, r_max=1.0)
    by_hand = (4 * 25 * 3 + 5 * 5 * 2) * stages
    assert theory.cost_estimate(0.1, n_states=5, n_actions=2, discount=0.9, r_max=1.0, n_models=4) == by_hand
    assert theory.cost_estimate(0.1, n_states=5, n_actions=2, discount=0.9, r_max=1.0) > 1e9


def test_belief_distance_is_exact_for_finite_beliefs():
    p, r, w, _ = random_models(np.random.default_rng(1), 4, 3, 2)
    belief = FiniteBelief(p, r, w, reward_signal="unobserved")
    after = belief.update(0, 1, None, 2)
    distance = belief_distance(belief, after)
    assert distance.estimate == pytest.approx(np.abs(w - after.weights).sum())
    assert distance.confidence == 1.0
    with pytest.raises(BeliefError, match="different sets"):
        belief_distance(belief, FiniteBelief(p, r, w, reward_signal="unobserved"))


def test_belief_distance_of_dirichlet_beliefs_is_an_integral():
    """One row of Beta beliefs: compare with quadrature. And an extra reward observation."""
    known = KnownRewards(0.0)
    first = DirichletBelief(2, 1, concentration=2.0, rewards=known)
    second = first.update(0, 0, None, 1).update(0, 0, None, 1)
    x = (np.arange(200_000) + 0.5) / 200_000
    truth = np.abs(stats.beta(2, 2).pdf(x) - stats.beta(2, 4).pdf(x)).mean()
    found = belief_distance(first, second, n_models=40_000, rng=np.random.default_rng(0))
    assert found.low <= truth <= found.high
    assert found.estimate == pytest.approx(truth, abs=0.02)
    coin = DirichletBelief(1, 1, rewards=BetaRewards(1, 1))
    heads = coin.update(0, 0, 1.0, 0)
    truth = np.abs(1.0 - 2 * x).mean()
    assert belief_distance(coin, heads, rng=np.random.default_rng(0)).estimate == pytest.approx(truth, abs=0.02)
    same = belief_distance(first, first, rng=np.random.default_rng(0))
    assert same.estimate == 0.0
    with pytest.raises(BeliefError, match="different kinds"):
        belief_distance(first, DirichletBelief(2, 1, concentration=2.0), rng=np.random.default_rng(0))


def test_an_upper_bound_of_something_else_proves_no_policy_optimal():
    rng = np.random.default_rng(2)
    belief, _ = random_belief(rng, "unobserved")
    policy = mmbi(belief, discount=0.9).policy
    poorer = FiniteBelief(belief.transitions, 0.5 * belief.rewards, belief.weights, reward_signal="unobserved")
    with pytest.raises(ParameterError, match="is below the value"):
        policy_regret(policy, belief, upper_bound(poorer, discount=0.9), discount=0.9)
    with pytest.raises(ParameterError, match="is below the value"):
        policy_regret(policy, belief, upper_bound(belief, discount=0.9, horizon=3), discount=0.9)
    with pytest.raises(ParameterError, match="needs an upper bound"):
        policy_regret(policy, belief, lower_bound(policy, belief, discount=0.9), discount=0.9)
    one = FiniteBelief(belief.transitions[:1], belief.rewards[:1], reward_signal="unobserved")
    best = policy_iteration(one.mean(), discount=0.9).policy
    assert policy_regret(best, one, upper_bound(one, discount=0.9), discount=0.9).value == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("horizon", [None, 6])
def test_every_policy_of_the_pool_is_called_what_it_is(horizon):
    met = set()
    for seed in range(20):
        p, r, w, p0 = random_models(np.random.default_rng(seed), 3, 4, 2, concentration=0.2)
        belief = FiniteBelief(p, r, w, reward_signal="unobserved", initial=p0)
        task = {"discount": 0.9, "horizon": horizon}
        solved = optimal_values(belief, **task)
        alone, told = solved.actions, np.tensordot(belief.weights, solved.q, axes=1).argmax(axis=-1)
        step, swept = ("", ", swept from below") if horizon is None else (", first step", "")
        made = {
            f"QMDP's policy{swept}": StationaryPolicy(told),
            "MMBI": mmbi(belief, **task).policy,
            "CADP": cadp(belief, **task).policy,
            "optimal policy of the expected MDP": expected_mdp_policy(belief, **task).policy,
        } | {f"optimal policy of model {m}{step}": StationaryPolicy(actions) for m, actions in enumerate(alone)}
        found = bracket(belief, target_gap=1e-9, effort=2, rng=np.random.default_rng(1), threads=1, **task)
        for bound in found.bounds:
            if bound.side == "lower" and "graph" not in bound.method and "controller" not in bound.method:
                assert bound.policy == made[bound.method]
                met.add(bound.method)
    assert met == set(made)


def test_known_rewards_that_differ_put_beliefs_as_far_apart_as_can_be():
    first = DirichletBelief(2, 1, concentration=2.0, rewards=KnownRewards(0.0))
    second = DirichletBelief(2, 1, concentration=2.0, rewards=KnownRewards([0.0, 1e-6]))
    assert belief_distance(first, second) == (2.0, 2.0, 2.0, 1.0)
    same = DirichletBelief(2, 1, concentration=2.0, rewards=KnownRewards(np.zeros((2, 1, 2))))  # on arrival, all zero
    assert belief_distance(first, same, rng=0).estimate == 0.0


def test_the_distance_of_tied_beliefs_is_that_of_what_they_share():
    """One coin behind two pairs: the distance is that of two Beta laws, not of two products."""
    tied = DirichletBelief.tied([[0], [0]], [[[0, 1]], [[1, 0]]], [[2.0, 2.0]], rewards=KnownRewards(0.0))
    x = (np.arange(200_000) + 0.5) / 200_000
    truth = np.abs(stats.beta(2, 2).pdf(x) - stats.beta(3, 3).pdf(x)).mean()
    found = belief_distance(tied, tied.update([0, 1], [0, 0], None, [0, 0]), n_models=40_000, rng=0)
    assert found.low <= truth <= found.high
    with pytest.raises(BeliefError, match="different sizes or shared rows"):
        belief_distance(tied, DirichletBelief(2, 1, rewards=KnownRewards(0.0)), rng=0)
