"""What to measure next: against enumeration, and in cases where the answer is known."""

import numpy as np
import pytest

from beliefbound.beliefs import BetaRewards, DirichletBelief, FiniteBelief, KnownRewards, NormalRewards
from beliefbound.bounds.basic import e_max
from beliefbound.bounds.bound import Bound
from beliefbound.bounds.finite.problem import named_pool
from beliefbound.bounds.information.value import value_of_information
from beliefbound.errors import ParameterError
from beliefbound.planning.optimal import optimal_values
from beliefbound.planning.task import FiniteTask
from beliefbound.policy import StationaryPolicy
from support import oracles
from support.beliefs import ROUNDING, SIGNALS, random_belief


def test_perfect_information_is_worth_at_least_any_pair_and_at_most_e_max():
    rng = np.random.default_rng(1)
    for i in range(20):
        belief, (P, r, w, p0) = random_belief(rng, SIGNALS[i % 4], n_models=4)
        found = value_of_information(belief, discount=0.9, horizon=4)
        assert found.evpi.value == pytest.approx(p0 @ e_max(belief, discount=0.9, horizon=4).values - found.value)
        assert (found.gain >= 0.0).all()
        assert (found.gain <= found.evpi.value + ROUNDING).all()
        exact = oracles.bayes_adaptive_value(P, r, w, p0, 0.9, 4, belief.reward_signal)
        assert found.evpi.exact
        assert found.value + found.evpi.value >= exact - ROUNDING


def test_a_pair_that_all_models_agree_on_is_worth_nothing():
    rng = np.random.default_rng(2)
    P, r, w, p0 = oracles.random_models(rng, 4, 3, 2, equal_rewards=True)
    P[:, 1, 0] = P[0, 1, 0]
    belief = FiniteBelief(P, r, w, initial=p0)
    for tries in (None, 3):
        found = value_of_information(belief, tries=tries, discount=0.9, horizon=6, draws=200, rng=rng)
        assert found.gain[1, 0] == pytest.approx(0.0, abs=1e-12)


def chances_value(P, r, chances, discount):
    """Value `[m,s]` of a policy given by chances `[k,s,a]`, from the definition."""
    v = np.zeros(r.shape[:2])
    for stage in chances[::-1]:
        v = np.einsum("sa,msa->ms", stage, r + discount * np.einsum("msat,mt->msa", P, v))
    return v


def test_one_try_equals_the_sum_over_its_outcomes():
    """Every outcome enumerated, for one try of each pair; the interval must hold it (error 1e-4 by its confidence)."""
    rng = np.random.default_rng(3)
    belief, (P, r, w, p0) = random_belief(rng, "bernoulli", n_models=4, n_states=3)
    found = value_of_information(
        belief, tries=1, discount=0.9, horizon=2, draws=4000, confidence=0.9999, rng=np.random.default_rng(4)
    )
    pool = [policy for _, policy in named_pool(FiniteTask.of(belief, discount=0.9, horizon=2, initial=p0))]
    own = optimal_values(belief, discount=0.9, horizon=2).actions
    rules = [policy.chances(2) for policy in [*pool, *map(StationaryPolicy, own)]]
    values = np.array([chances_value(P, r, np.broadcast_to(x, (2, 3, 2)), 0.9) @ p0 for x in rules])
    best = (values @ w).max()
    for s, a in np.ndindex(3, 2):
        seen = [chance * P[:, s, a, t] for chance in (r[:, s, a], 1 - r[:, s, a]) for t in range(3)]
        rise = sum((values @ (w * like)).max() for like in seen) - best
        assert found.low[s, a] <= rise + ROUNDING
        assert found.high[s, a] >= rise - ROUNDING
        assert found.gain[s, a] == pytest.approx(rise, abs=0.01)
    assert (found.low <= found.gain).all()
    assert (found.gain <= found.high).all()


def test_more_tries_tell_more():
    belief, _ = random_belief(np.random.default_rng(5), "known", n_models=5)
    gains = [
        value_of_information(belief, tries=k, discount=0.9, horizon=6, draws=3000, rng=np.random.default_rng(6)).gain
        for k in (1, 4, 64)
    ]
    known = value_of_information(belief, discount=0.9, horizon=6).gain
    assert gains[0].sum() <= gains[1].sum() + 0.01
    assert gains[1].sum() <= gains[2].sum() + 0.01
    np.testing.assert_allclose(gains[2], known, atol=0.03)


def test_a_dirichlet_belief_is_measured_on_a_sample():
    """Only action 1 of state 0 is uncertain, so only it is worth measuring."""
    sure = np.full((2, 2, 2), 0.0)
    sure[0, 0, 0] = sure[1, 0, 1] = sure[1, 1, 1] = 1.0
    sure[0, 1] = 0.5
    belief = DirichletBelief(2, 2, concentration=sure, rewards=KnownRewards([[0.5, 0.0], [1.0, 1.0]]), initial=0)
    found = value_of_information(belief, discount=0.9, horizon=4, n_models=200, rng=np.random.default_rng(7))
    assert found.best() == (0, 1)
    assert not found.evpi.exact
    with pytest.raises(ParameterError, match="rng"):
        value_of_information(belief, discount=0.9, rng="seven")


def sure_arm(p):
    """One state; arm 0 pays 0.5 for sure, arm 1 pays 1 with a Beta probability: `E max` has a closed form."""
    return DirichletBelief(1, 2, concentration=1.0, rewards=BetaRewards([[1e9, p[0]]], [[1e9, p[1]]]), initial=0)


def test_the_value_of_perfect_information_of_a_dirichlet_belief_has_a_true_interval():
    """One decision: `E max = E max(1/2, p)` with `p` uniform is 5/8, any plan is worth 1/2, so the bound must exceed
    1/8. Sixty runs at 80%: more than 24 failures have probability below 2e-4 if each fails with 20%. With a given
    bound the errors add up."""
    failures = 0
    for seed in range(60):
        found = value_of_information(
            sure_arm((1, 1)), discount=0.9, horizon=1, n_models=30, confidence=0.8, rng=np.random.default_rng(seed)
        )
        assert found.evpi.confidence == pytest.approx(0.8)
        assert found.evpi.estimate == pytest.approx(0.125, abs=0.1)
        failures += found.evpi.value < 0.125
    assert failures <= 24
    lower = Bound(0.5, "lower", "given", exact=False, confidence=0.99, n_samples=10)
    found = value_of_information(
        sure_arm((1, 1)), discount=0.9, horizon=1, lower=lower, confidence=0.9, rng=np.random.default_rng(8)
    )
    assert found.evpi.confidence == pytest.approx(1 - 0.05 - 0.01)
    assert 0.125 < found.evpi.value < 0.25


def test_normal_rewards_get_an_asymptotic_interval_that_says_so():
    belief = DirichletBelief(1, 2, concentration=1.0, rewards=NormalRewards(0.0), initial=0)
    found = value_of_information(belief, discount=0.9, horizon=1, rng=np.random.default_rng(9))
    assert "asymptotic" in found.evpi.method
    assert found.evpi.value > found.evpi.estimate


def test_measuring_one_pair_of_a_dirichlet_belief_leaves_the_others_uncertain():
    """One decision between 1/2 for sure and a uniform chance: knowing the chance is worth 1/8, one try 1/12, and
    knowing what is sure nothing. A second uncertain arm must not become known with the first."""
    for tries, truth in ((None, 1 / 8), (1, 1 / 12)):
        found = value_of_information(
            sure_arm((1, 1)), tries=tries, discount=0.9, horizon=1, draws=2000, rng=np.random.default_rng(1)
        )
        assert found.gain[0, 1] == pytest.approx(truth, abs=0.015)
        assert found.low[0, 1] <= truth
        assert abs(found.gain[0, 0]) < 1e-3
        assert found.best() == (0, 1)
    arms = DirichletBelief(1, 3, concentration=1.0, rewards=BetaRewards([[1e9, 1, 1]], [[1e9, 1, 1]]), initial=0)
    found = value_of_information(arms, discount=0.9, horizon=1, draws=2000, rng=np.random.default_rng(2))
    assert found.gain[0, 1:] == pytest.approx([1 / 8, 1 / 8], abs=0.015)
    with pytest.raises(ParameterError, match="Normal rewards"):
        value_of_information(
            DirichletBelief(1, 2, rewards=NormalRewards()), tries=1, discount=0.9, rng=np.random.default_rng(0)
        )


@pytest.mark.parametrize("tries", [None, 1])
def test_measuring_a_pair_measures_all_that_share_its_row(tries):
    """One coin behind four pairs, a sure action worth 0.55 beside it, one bet to make. With the coin of a uniform
    prior known the bet is worth `E max(0.55, p, 1 − p) = 0.7525`; after one toss it pays 2/3. From any pair."""
    row = np.array([[0, 0, 1], [0, 0, 1]])
    arrive = np.array([[[0, 1], [0, 1], [0, -1]], [[0, 1], [0, 1], [1, -1]]])
    paid = np.zeros((2, 3, 2))
    paid[:, 0, 0] = paid[:, 1, 1] = 1.0
    paid[:, 2] = 0.55
    belief = DirichletBelief.tied(row, arrive, [[1.0, 1.0], [1.0, 0.0]], rewards=KnownRewards(paid), initial=0)
    found = value_of_information(belief, tries=tries, discount=0.9, horizon=1, draws=2000, rng=3)
    exact = 0.7525 - 0.55 if tries is None else 2 / 3 - 0.55
    assert found.gain[:, :2] == pytest.approx(np.full((2, 2), exact), abs=0.02)
    assert found.gain[:, 2] == pytest.approx([0.0, 0.0], abs=0.002)


def test_measuring_and_choosing_from_the_pool_never_beats_the_best_plan_after_measuring():
    """`value + gain` against every memoryless plan there is, enumerated for each group of models that agree."""
    rng, below = np.random.default_rng(8), 0
    for _ in range(20):
        P, r, w, p0 = oracles.random_models(rng, 3, 2, 2, equal_rewards=True)
        P[2, 0] = P[0, 0]  # measuring state 0 does not tell the first from the third
        belief = FiniteBelief(P, r, w, initial=p0)
        found = value_of_information(belief, discount=0.9, horizon=3)
        assert found.n_policies >= 2
        for s, groups in ((0, ([0, 2], [1])), (1, ([0], [1], [2]))):
            best = sum(
                w[group].sum()
                * oracles.best_memoryless_value(P[group], r[group], w[group] / w[group].sum(), p0, 0.9, 3)[0]
                for group in groups
            )
            assert (found.value + found.gain[s] <= best + ROUNDING).all()
            below += bool((found.value + found.gain[s] < best - 1e-6).any())
    assert below > 0  # the pool does not have every plan, and is not said to
