"""Particles serve every belief with counts: any reward model, rewards on arrival, shared rows, absorbing states,
unavailable actions. Each is checked against the exact Bayes-optimal value of a tiny problem."""

from functools import cache

import numpy as np
import pytest
import scipy.stats as stats
from numba import typeof

from beliefbound import bracket
from beliefbound.base.errors import ObservationError
from beliefbound.beliefs import BetaRewards, DirichletBelief, DirichletRewards, KnownRewards
from beliefbound.beliefs.compiled import posterior_of
from beliefbound.bounds.dirichlet import chains
from beliefbound.bounds.dirichlet.arrays import problem_of
from beliefbound.bounds.dirichlet.effort import Effort
from beliefbound.bounds.dirichlet.fresh_models import FreshModels
from beliefbound.bounds.dirichlet.prepared import above_of
from beliefbound.bounds.dirichlet.sampler import Sampler
from beliefbound.kernels.particles.rows import draw_models, n_columns, new_rows, particles_at, width_of
from beliefbound.kernels.random import stream_from
from beliefbound.planning.task import Task
from support import oracles
from support.grid_rewards import GridRewards
from support.tiers import tiers


def guessing(sure=0.55, heads=1.0, tails=1.0):
    """One coin. Action 0 bets on heads, action 1 on tails, action 2 is paid `sure` and sees no coin. The state is what
    the coin showed last: six pairs, one row of parameters for four of them."""
    row = np.array([[0, 0, 1], [0, 0, 1]])
    arrive = np.array([[[0, 1], [0, 1], [0, -1]], [[0, 1], [0, 1], [1, -1]]])
    paid = np.zeros((2, 3, 2))
    paid[:, 0, 0] = paid[:, 1, 1] = 1.0
    paid[:, 2] = sure
    return DirichletBelief.tied(row, arrive, [[heads, tails], [1.0, 0.0]], rewards=KnownRewards(paid), initial=0)


def guessing_value(sure, heads, tails, horizon, discount):
    """The exact value by enumeration over counts of the coin."""

    @cache
    def value(h, t, left):
        if left == 0:
            return 0.0
        p = h / (h + t)
        after = p * value(h + 1, t, left - 1) + (1 - p) * value(h, t + 1, left - 1)
        return max(max(p, 1 - p) + discount * after, sure + discount * value(h, t, left - 1))

    return value(heads, tails, horizon)


CHOICE = np.array([[True, False, True], [False, True, True]])
CASES = {
    "grid": (lambda: DirichletBelief(1, 2, rewards=GridRewards(3), initial=0), 4),
    "values": (lambda: DirichletBelief(1, 2, rewards=DirichletRewards([0.0, 0.2, 1.0], [1.0, 0.5, 0.3]), initial=0), 4),
    "arrival": (
        lambda: DirichletBelief(
            2,
            2,
            concentration=0.4,
            rewards=KnownRewards([[[0.0, 1.0], [0.3, 0.5]], [[0.2, 0.0], [0.0, 0.9]]]),
            initial=0,
        ),
        5,
    ),
    "tied": (guessing, 6),
    "tied and learnt": (
        lambda: DirichletBelief.tied(
            np.zeros((2, 2), int),
            [[[0, 1], [1, 0]], [[1, 0], [0, 1]]],
            [[0.4, 0.4]],
            rewards=BetaRewards(1, 1),
            initial=0,
        ),
        3,
    ),
    "terminal": (
        lambda: DirichletBelief(
            3, 2, concentration=0.5, terminal=2, rewards=DirichletRewards([-1.0, 0.5]), initial=[0.5, 0.5, 0.0]
        ),
        3,
    ),
    "unavailable": (
        lambda: DirichletBelief(
            2,
            3,
            concentration=0.4,
            available=CHOICE,
            rewards=KnownRewards([[0.4, 9.0, 0.0], [9.0, 0.0, 1.0]]),
            initial=0,
        ),
        5,
    ),
}


PLAIN = ("terminal", "unavailable")  # of the form that most beliefs have; every other is compiled anew
SMALL = Effort(((0.5, 64), (0.0, 32)), 32, 4000, 500)


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=() if kind in PLAIN else pytest.mark.full) for kind in CASES]
)
def test_both_sides_enclose_the_exact_value(kind, monkeypatch):
    """Means over independent simulations, four standard errors; few particles, so that they are renewed often."""
    make, horizon = CASES[kind]
    belief = make()
    start = np.asarray(belief.initial)
    exact = sum(w * oracles.dirichlet_value(belief, s, 0.9, horizon) for s, w in enumerate(start) if w)
    monkeypatch.setattr(chains, "_LEAST", 0.6)
    sampler = Sampler(Task(belief, start, 0.9, horizon), 5, 2)
    sampler.effort = SMALL
    models = FreshModels(sampler.task, above_of(sampler.task), (5, 2))
    models.sample(100, [models.scratch()])
    sampler.relax(210)
    known, drops = np.concatenate(models.values), np.reshape(sampler.drops, (-1, 7)).mean(axis=1)  # by rounds
    error = np.hypot(known.std() / len(known) ** 0.5, drops.std() / len(drops) ** 0.5)
    upper = known.mean() - sampler.mean_drop
    assert upper >= exact - 4.0 * error
    assert upper < 1.25 * abs(exact) + 0.1
    sampler.simulate(300)
    assert min(sampler.values) >= sampler.floor - 1e-9
    values = np.array(sampler.values)
    error = values.std(ddof=1) / np.sqrt(len(values))
    assert values.mean() - 4.0 * error <= exact
    assert values.mean() + 4.0 * error >= exact - 0.1 * abs(exact)


@pytest.mark.full
def test_the_coin_is_valued_as_enumeration_says():
    assert oracles.dirichlet_value(guessing(), 0, 0.9, 6) == pytest.approx(guessing_value(0.55, 1.0, 1.0, 6, 0.9))


@pytest.mark.full
def test_a_tied_belief_is_bracketed():
    exact = guessing_value(0.55, 1.0, 2.0, 8, 0.9)
    knobs = {"confidence": 0.9999, "effort": 40}
    found = bracket(guessing(0.55, 1.0, 2.0), discount=0.9, horizon=8, rng=1, **knobs)
    assert found.lower.value <= exact <= found.upper.value
    assert found.relative_gap < 0.35
    found.policy.observe(0, 0, None, 1)
    assert found.policy.act(1) == 1  # tails again: bet on it


@pytest.mark.parametrize("kind", tiers(PLAIN, "terminal"))
def test_what_a_belief_rules_out_is_ruled_out_in_the_papers_bounds_too(kind):
    make, horizon = CASES[kind]
    belief = make()
    exact = sum(w * oracles.dirichlet_value(belief, s, 0.9, horizon) for s, w in enumerate(belief.initial) if w)
    knobs = {"confidence": 0.9999, "effort": 6}
    found = bracket(belief, discount=0.9, horizon=horizon, rng=np.random.default_rng(2), **knobs)
    for bound in found.bounds:
        assert bound.value <= exact if bound.side == "lower" else bound.value >= exact


@pytest.mark.full
def test_a_reward_model_of_ones_own_goes_all_the_way():
    belief = DirichletBelief(1, 2, rewards=GridRewards(3), initial=0)
    after = belief.update([0, 0], [1, 1], [0.9, 0.6], [0, 0])
    assert after.rewards.counts[0, 1].tolist() == [0.5, 1.5, 1.5]
    assert belief.log_marginal_likelihood([0, 0], [1, 1], [0.9, 0.6], [0, 0]) == pytest.approx(np.log(1 / 3 * 0.2))
    sample = after.sample(2000, 3)
    assert stats.kstest(sample.signal.chances[:, 0, 1, 2], stats.beta(1.5, 2.0).cdf).pvalue > 1e-4
    exact = oracles.dirichlet_value(after, 0, 0.9, 4)
    knobs = {"confidence": 0.9999, "effort": 30}
    found = bracket(after, discount=0.9, horizon=4, rng=np.random.default_rng(1), **knobs)
    assert found.lower.value <= exact <= found.upper.value
    assert found.relative_gap < 0.25


def test_a_reward_model_of_ones_own_is_compiled_as_ours_are():
    """The order of its axes in memory is nobody's business: another one would be another half minute of compiling."""
    mine, ours = (
        posterior_of(DirichletBelief(1, 2, rewards=rewards, initial=0))
        for rewards in (GridRewards(3), DirichletRewards(np.linspace(0.0, 1.0, 3), 0.5))
    )
    assert typeof(mine) == typeof(ours)


@pytest.mark.full
def test_pairs_of_one_row_have_the_same_particles():
    task = Task.of(guessing(), discount=0.9)
    problem = problem_of(task, np.array([5], dtype=np.uint64), horizon=None)
    rows, slots = new_rows(problem, 50, 40), np.empty(6, dtype=np.int64)
    counts = np.zeros((6, n_columns(problem)), dtype=np.int64)
    assert particles_at(problem, rows, counts, slots)
    draws = rows.draws[slots]
    assert (draws[[0, 1, 3, 4], :2] == draws[0, :2]).all()
    assert (draws[0, 2] == draws[0, 0]).all()  # paid on arrival in heads
    assert (draws[2, :2] == [[1.0], [0.0]]).all()
    before = slots.copy()
    counts[4, 1] = 3  # three tails seen at another pair
    assert particles_at(problem, rows, counts, slots)
    assert (slots != before).tolist() == [True, True, False, True, True, False]
    tails = rows.draws[slots[0], 1]
    assert abs(tails.mean() - 4 / 5) < 4.5 * np.sqrt(0.8 * 0.2 / 6 / 40)
    other = counts.copy()
    other[4, 1], other[0, 1], other[3, 1] = 0, 1, 2  # the same tails, seen elsewhere
    again = np.empty_like(slots)
    assert particles_at(problem, rows, other, again)
    assert (again == slots).all()
    fresh = np.empty((6, width_of(problem), 25))
    draw_models(problem, counts, stream_from(np.random.default_rng(0)), fresh)
    assert (fresh[[0, 1, 3, 4], :2] == fresh[0, :2]).all()


@pytest.mark.full
def test_particles_of_three_values_have_the_moments_of_the_posterior():
    belief = DirichletBelief(2, 1, concentration=1.0, rewards=DirichletRewards([0.0, 1.0, 4.0], [1.0, 2.0, 0.5]))
    problem = problem_of(Task.of(belief, discount=0.9), np.array([1], dtype=np.uint64), horizon=None)
    rows, slots = new_rows(problem, 4, 40_000), np.empty(2, dtype=np.int64)
    counts = np.zeros((2, 6), dtype=np.int64)
    counts[0, 4] = 3  # value 2, next state 0, three times
    assert particles_at(problem, rows, counts, slots)
    draws = rows.draws[slots[0]]
    alpha = np.array([1.0, 2.0, 3.5])
    mean = alpha / alpha.sum()
    error = np.sqrt(mean * (1 - mean) / (alpha.sum() + 1) / 40_000)
    assert (np.abs(draws[3:].mean(axis=1) - mean) < 5 * error).all()
    assert problem.unit * draws[2] == pytest.approx(draws[3:].T @ [0.0, 1.0, 4.0])
    assert abs(draws[0].mean() - 4 / 5) < 5 * np.sqrt(0.16 / 6 / 40_000)


@pytest.mark.full
def test_a_policy_on_particles_takes_what_is_offered_and_reads_what_it_sees():
    sampler = Sampler(Task(CASES["unavailable"][0](), np.eye(2)[0], 0.9, 5), 1, 1)
    sampler.effort = SMALL
    policy = sampler.policy
    assert policy.act(0) in (0, 2)
    with pytest.raises(ObservationError, match="state 0, action 1, .* outside the belief's support"):
        policy.observe(0, 1, None, 1)
    policy.observe(0, 0, None, 1)
    assert policy.act(1) in (1, 2)
    sampler = Sampler(Task(CASES["values"][0](), np.ones(1), 0.9, 4), 1, 1)
    sampler.effort = SMALL
    values = sampler.policy
    with pytest.raises(ObservationError, match="reward 0.7"):
        values.observe(0, 1, 0.7, 0)
    values.observe(0, 1, 1.0, 0)
    assert values.act(0) == 1
