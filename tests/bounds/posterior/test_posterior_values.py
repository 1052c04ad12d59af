"""Values under the posterior: ranges hold, intervals cover, and the objective decides which policy is chosen."""

import numpy as np
import pytest
import scipy.stats as stats

from beliefbound import DirichletBelief, KnownRewards, StationaryPolicy, evaluate
from beliefbound.base.errors import ParameterError
from beliefbound.beliefs.rewards import DirichletRewards, MixedRewards
from beliefbound.bounds.posterior.candidates import _clearly_best, choose
from beliefbound.bounds.posterior.fresh import fresh_values
from beliefbound.bounds.posterior.risk import (
    Objective,
    credible_lower,
    cvar,
    cvar_interval,
    mean_interval,
    quantile_interval,
    worse_interval,
)
from beliefbound.bounds.posterior.value_range import value_range
from beliefbound.bounds.prior_sets import prior_set
from beliefbound.planning.task import Task


def lake():
    """Three states: action 1 may reach state 2, which ends the episode and pays on arrival."""
    paid = np.zeros((3, 2, 3))
    paid[:, :, 2] = 1.0
    return DirichletBelief(3, 2, concentration=1.0, rewards=KnownRewards(paid), terminal=[2], initial=0)


def test_values_on_fresh_models_are_those_of_the_definition():
    task = Task.of(lake(), discount=0.9)
    policies = [StationaryPolicy([0, 1, 0]), StationaryPolicy([1, 0, 0])]
    found = fresh_values(task, policies, 40, np.random.default_rng(3))
    sample = task.belief.sample(40, np.random.default_rng(3))
    for k, policy in enumerate(policies):
        assert np.allclose(found.values[k], evaluate(policy, sample, discount=0.9)[:, 0])
    assert np.allclose(found.by_state, evaluate(policies[0], sample, discount=0.9).mean(axis=0))
    assert (found.best >= found.values.max(axis=0) - 1e-9).all()
    assert found.qmdp[0].max() <= found.best.mean() + 1e-9  # QMDP is never above E max
    assert found.q[0, 0] == pytest.approx(found.by_state[0])


@pytest.mark.parametrize("horizon", [None, 4])
def test_no_value_leaves_the_range_and_ends_that_pay_once_narrow_it(horizon):
    task = Task.of(lake(), discount=0.9, horizon=horizon)
    low, high = value_range(task)
    assert high == pytest.approx(1.0)  # paid once, at once
    found = fresh_values(task, [StationaryPolicy([1, 1, 0])], 200, np.random.default_rng(0))
    assert low - 1e-9 <= found.values.min()
    assert found.best.max() <= high + 1e-9
    mixed = MixedRewards([[1.0, np.nan], [-3.0, 0.0]], DirichletRewards([0.0, 2.0]))
    low, high = value_range(Task.of(DirichletBelief(2, 2, rewards=mixed), discount=0.5, initial=0))
    assert (low, high) == (pytest.approx(0.0 - 3.0), pytest.approx(4.0))  # 0, then −3 for ever; 2 for ever


def test_intervals_cover_as_often_as_they_say():
    """Beta values, whose mean, quantile and CVaR are known: 300 repeats at 90%, each side; 5 deviations are allowed."""
    law, rng = stats.beta(2.0, 3.0), np.random.default_rng(11)
    tail = law.expect(lambda x: x, lb=0.0, ub=law.ppf(0.2)) / 0.2
    missed = np.zeros(3, dtype=int)
    for _ in range(300):
        x = law.rvs(200, random_state=rng)
        for k, (made, truth) in enumerate(
            (
                (mean_interval(x, 0.1, (0.0, 1.0)), law.mean()),
                (quantile_interval(x, 0.2, 0.1), law.ppf(0.2)),
                (cvar_interval(x, 0.2, 0.1), tail),
            )
        ):
            missed[k] += not made.low <= truth <= made.high
    assert (missed <= 30 + 5 * np.sqrt(27)).all()
    assert missed[2] > 0  # not needlessly wide


def test_worse_is_counted_and_cvar_is_the_mean_of_the_worst():
    x = np.array([-1.0, -2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])
    assert worse_interval(x, 0.05).value == 0.25
    assert cvar(x, 0.25) == -1.5
    assert Objective.parse("percentile:0.25").of(x) == -1.0
    assert Objective.parse("worst").of(x) == -2.0
    for text in ("median", "cvar", "cvar:2", "mean:0.1", "percentile:x", "l1:2", "l1:0"):
        with pytest.raises(ParameterError, match="give mean, safe:0.05, cvar:0.1"):
            Objective.parse(text)


def test_the_worst_prior_nearby_and_the_least_that_is_credible():
    """Against the set of priors itself, and against how often one more value is below."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(3, 37))
    for distance in (0.01, 0.3, 1.9):
        near = prior_set(f"l1:{distance}", np.full(37, 1.0 / 37.0))
        worst = [near.worst(row)[0] for row in x]
        assert np.allclose(Objective.parse(f"l1:{distance}").of(x), worst)
    below = np.mean([y[0] < credible_lower(y[1:], 0.9).low for y in rng.exponential(size=(4000, 30))])
    assert abs(below - 3.0 / 30.0) < 5 * np.sqrt(0.1 * 0.9 / 4000)  # rank 3 of 29
    assert credible_lower(x[0, :8], 0.95, -7.0).low == -7.0
    assert credible_lower(x[0, :19], 0.95).low == x[0, :19].min()


def test_the_objective_decides():
    """Action 0 pays 1 for sure. Action 1 pays 10 if the coin of its transition is good, else loses 4: better on
    average, worse in the worst tenth of models."""
    paid = np.zeros((3, 2, 3))
    paid[0, 0] = 1.0
    paid[0, 1] = [0.0, 10.0, -4.0]
    alpha = np.zeros((3, 2, 3))
    alpha[0, 0, 0] = 1.0
    alpha[0, 1, 1:] = 0.4
    alpha[1:, :, 1:] = np.eye(2)[:, None]
    belief = DirichletBelief(3, 2, concentration=alpha, rewards=KnownRewards(paid), terminal=[1, 2], initial=0)
    task = Task.of(belief, discount=0.5, horizon=1)
    first = {
        name: choose(task, Objective.parse(name), np.random.default_rng(0)).chosen.policy
        for name in ("mean", "cvar:0.1", "percentile:0.1", "l1:0.9", "worst")
    }
    taken = {name: int(policy.chances(2).reshape(-1, 3, 2)[0, 0].argmax()) for name, policy in first.items()}
    assert taken == {"mean": 1, "cvar:0.1": 0, "percentile:0.1": 0, "l1:0.9": 0, "worst": 0}


def test_only_a_clear_gain_replaces_the_expected_mdps_policy():
    rng = np.random.default_rng(2)
    posterior = DirichletBelief(3, 2, concentration=0.5, initial=0)
    behaviour = StationaryPolicy(probabilities=np.full((3, 2), 0.5))
    found = choose(Task.of(posterior, discount=0.9), Objective.parse("mean"), rng, behaviour=behaviour)
    scores = dict(zip((c.name for c in found.pool), found.objective, strict=True))
    assert "behaviour" in scores
    assert scores[found.chosen.name] >= scores["expected MDP"]
    noise = rng.normal(size=(4, 400))
    values = 0.01 * noise + np.array([0.0, 1e-4, 0.01, 0.02])[:, None] * (1.0 + 3.0 * noise)
    assert _clearly_best(values[:2], 0) == 0  # better by less than a standard error, or not at all
    assert _clearly_best(values, 0) == 3
