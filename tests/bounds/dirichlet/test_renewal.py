"""Particles that are renewed from the posterior: drawn and solved right, and still an upper bound."""

import numpy as np
import pytest
from scipy.special import betaln

from beliefbound.beliefs import BetaRewards, DirichletBelief, KnownRewards
from beliefbound.bounds.dirichlet import chains
from beliefbound.bounds.dirichlet.arrays import problem_of
from beliefbound.bounds.dirichlet.effort import Effort
from beliefbound.bounds.dirichlet.fresh_models import FreshModels
from beliefbound.bounds.dirichlet.prepared import above_of, below_of
from beliefbound.bounds.dirichlet.sampler import Sampler
from beliefbound.kernels.particles.renewal import moment_ratio
from beliefbound.kernels.particles.rows import clear, n_columns, new_rows, particles_at
from beliefbound.kernels.particles.solving import optimal, values_of
from beliefbound.models.mdp import MDP
from beliefbound.planning.optimal import policy_iteration
from beliefbound.planning.task import Task
from support import oracles

CONCENTRATION = np.array(
    [[[0.3, 0.7, 1.0], [0.0, 2.0, 0.4]], [[1.0, 1.0, 1.0], [0.2, 0.2, 0.2]], [[3.0, 0.5, 0.1]] * 2]
)
BETA = BetaRewards(np.full((3, 2), 0.7), np.full((3, 2), 1.5), low=-1.0, high=3.0)
KNOWN = KnownRewards([[0.3, -1.0], [0.0, 2.0], [1.0, 0.5]])


def drawn(rewards, n, *, horizon=None, counts=None, generation=0):
    """`(problem, slots, rows)` with `n` particles."""
    belief = DirichletBelief(3, 2, concentration=CONCENTRATION, rewards=rewards)
    task = Task.of(belief, discount=0.9, horizon=horizon)
    problem = problem_of(task, np.array([5], dtype=np.uint64), horizon=horizon)
    rows, slots = new_rows(problem, 20, n), np.empty(6, dtype=np.int64)
    if counts is None:
        counts = np.zeros((6, n_columns(problem)), dtype=np.int64)
    assert particles_at(problem, rows, generation, counts, slots)
    return problem, slots, rows


@pytest.mark.parametrize("rewards", [KNOWN, BETA])
def test_particles_have_the_moments_of_the_posterior(rewards):
    """Means of 40,000 draws within five standard errors of the closed form."""
    columns = 6 if rewards is BETA else 3
    counts = np.zeros((6, columns), dtype=np.int64)
    counts[0, :3], counts[3, 2], counts[5, columns - 1] = (2, 0, 1), 4, 3
    problem, slots, rows = drawn(rewards, 40_000, counts=counts)
    draws = rows.draws[slots]
    alpha = CONCENTRATION.reshape(6, 3) + counts.reshape(6, -1, 3).sum(axis=1)
    mean = alpha / alpha.sum(axis=1, keepdims=True)
    error = np.sqrt(mean * (1 - mean) / (alpha.sum(axis=1, keepdims=True) + 1) / 40_000)
    assert (np.abs(draws[:, :3].mean(axis=2) - mean) <= 5 * error + 1e-15).all()
    assert draws[:, :3].sum(axis=1) == pytest.approx(1.0)
    if rewards is BETA:
        won, lost = 0.7 + counts[:, :3].sum(axis=1), 1.5 + counts[:, 3:].sum(axis=1)
        expected = -1.0 + 4.0 * won / (won + lost)
        deviation = 4.0 * np.sqrt(won * lost / (won + lost + 1)) / (won + lost)
        assert (np.abs(problem.unit * draws[:, 3].mean(axis=1) - expected) <= 5 * deviation / 200).all()
    else:
        assert (problem.unit * draws[:, 3] == np.array(KNOWN.mean()).reshape(6, 1)).all()


def test_draws_are_a_function_of_generation_pair_and_counts():
    problem, slots, rows = drawn(KNOWN, 50)
    before = rows.draws[slots].copy()
    counts = np.zeros((6, 3), dtype=np.int64)
    counts[2, 1] = 1
    after = np.empty(6, dtype=np.int64)
    assert particles_at(problem, rows, 0, counts, after)
    assert (after != slots).tolist() == [False, False, True, False, False, False]
    assert particles_at(problem, rows, 1, counts, after)
    assert not set(after) & set(slots)
    clear(rows)
    assert particles_at(problem, rows, 0, np.zeros_like(counts), after)
    assert (rows.draws[after] == before).all()
    assert not all(particles_at(problem, rows, g, counts, after) for g in range(5))


@pytest.mark.parametrize("n", [1, 7, 300])
@pytest.mark.parametrize("rewards", [KNOWN, BETA])
def test_particles_are_solved_exactly(rewards, n):
    problem, slots, rows = drawn(rewards, n)
    draws = rows.draws[slots]
    P = np.moveaxis(draws[:, :3].reshape(3, 2, 3, n), -1, 0)
    r = np.moveaxis(draws[:, 3].reshape(3, 2, n), -1, 0)
    q, policy = np.empty((1, 6, n)), np.ones((3, n), dtype=np.int64)
    optimal(0.9, rows.draws, slots, -1, policy, q)
    for m in {0, n // 2, n - 1}:
        exact = policy_iteration(MDP(P[m], r[m]), discount=0.9).values
        assert q[0, :, m].reshape(3, 2).max(axis=1) == pytest.approx(exact, rel=1e-9)
        assert policy[:, m].tolist() == q[0, :, m].reshape(3, 2).argmax(axis=1).tolist()
    stages = np.empty((3, 6, n))
    optimal(0.9, rows.draws, slots, 6, policy, stages)
    for i in range(3):
        exact, _ = oracles.optimal_values(P, r, 0.9, 6 - i)
        assert pytest.approx(exact, rel=1e-12) == stages[i].reshape(3, 2, n).max(axis=1).T
    actions, values = np.array([1, 0, 1]), np.empty((3, n))
    values_of(0.9, rows.draws, slots, -1, actions, values)
    assert pytest.approx(oracles.stationary_values(P, r, actions, 0.9), rel=1e-9) == values.T
    values_of(0.9, rows.draws, slots, 4, actions, values)
    repeated = oracles.policy_values(P, r, np.tile(actions, (4, 1)), 0.9)
    assert pytest.approx(repeated, rel=1e-12) == values.T


def test_the_effective_number_of_particles_is_that_of_the_moments():
    """The ratio telescopes to `(E L)² / E L²`, whose terms are Beta functions for a row of two."""
    a, b = 0.3, 1.1
    seen, total = [0, 0], 0.0
    for outcome in (0, 0, 1, 0, 1):
        total += moment_ratio((a, b)[outcome], a + b, seen[outcome], sum(seen))
        seen[outcome] += 1
    first = betaln(a + 3, b + 2) - betaln(a, b)
    second = betaln(a + 6, b + 4) - betaln(a, b)
    assert total == pytest.approx(2 * first - second, rel=1e-12)


CASES = {
    "known": (KnownRewards([[0.4, 0.0], [0.0, 1.0]]), 6),
    "beta": (BetaRewards(np.array([[1.0, 0.5], [1.0, 0.5]]), np.array([[1.0, 0.5], [2.0, 0.5]])), 4),
}


def relaxed(belief, horizon, n, count):
    """`E max` minus the drop of chains of `n` particles: mean and standard error."""
    sampler = Sampler(Task(belief, np.eye(2)[0], 0.9, horizon), 5, 2)
    sampler.effort = Effort((), n, 4000, 500)
    models = FreshModels(sampler.task, above_of(sampler.task), (5, 2))
    models.sample(200, [models.scratch()])
    sampler.relax(count)
    known, drops = np.concatenate(models.values), np.array(sampler.drops)
    assert drops.min() >= 0.0
    error = np.hypot(known.std() / np.sqrt(len(known)), drops.std() / np.sqrt(count))
    return known.mean() - drops.mean(), error


@pytest.mark.parametrize("kind", ["known", pytest.param("beta", marks=pytest.mark.full)])
def test_renewed_particles_bound_the_exact_value_from_above(kind, monkeypatch):
    """Few particles, so that they are renewed at almost every step: the mean over chains is not below the exact
    Bayes-optimal value (four standard errors), and lower than with sets that are never renewed."""
    rewards, horizon = CASES[kind]
    belief = DirichletBelief(2, 2, concentration=0.3, rewards=rewards, initial=0)
    exact = oracles.dirichlet_value(belief, 0, 0.9, horizon)
    found = {}
    for least in (0.6, 0.0):
        monkeypatch.setattr(chains, "_LEAST", max(least, 1e-30))
        found[least], error = relaxed(belief, horizon, 6, 2000)
        assert found[least] >= exact - 4.0 * error
    assert exact < found[0.6] < found[0.0]


def test_a_search_without_room_is_looser_and_still_valid(monkeypatch):
    rewards, horizon = CASES["known"]
    belief = DirichletBelief(2, 2, concentration=0.3, rewards=rewards, initial=0)
    exact = oracles.dirichlet_value(belief, 0, 0.9, horizon)
    estimates = []
    for size in (1 << 28, 1):
        monkeypatch.setattr(chains, "PARTICLE_BYTES", size)
        monkeypatch.setattr(chains, "_LEAST", 0.9)
        value, error = relaxed(belief, horizon, 20, 300)
        assert value >= exact - 4.0 * error
        estimates.append(value)
    assert estimates[0] <= estimates[1]


@pytest.mark.full
def test_the_chain_prior_is_bracketed_within_a_few_percent():
    """A fixed effort of a few seconds on the Dirichlet(1/5) prior of Chain, rewards known."""
    forward = np.array([0.0, 0.0, 0.0, 0.0, 10.0])
    rewards = KnownRewards(np.column_stack([0.8 * 2 + 0.2 * forward, 0.2 * 2 + 0.8 * forward]))
    task = Task(DirichletBelief(5, 2, rewards=rewards), np.eye(5)[0], 0.95, None)
    sampler = Sampler(task, 1, 2, 2)
    assert sampler.effort.particles == 256
    sampler.relax(40)
    sampler.simulate(60)
    models = FreshModels(task, above_of(task), (1, 2))
    models.sample(200, [models.scratch()])
    assert 62.5 < np.mean(models.values) - np.mean(sampler.drops) < 64.8
    assert 61.0 < np.mean(sampler.values) < 63.3
    assert np.std(sampler.values) < 5.0  # the control variate at work: 13 without
    assert min(sampler.values) >= sampler.policy.floor


@pytest.mark.parametrize("shift", [0.0, -5.0])
@pytest.mark.parametrize(("side", "horizon"), [("upper", None), ("lower", None), ("upper", 6), ("lower", 6)])
def test_large_models_are_swept_to_the_side_that_is_wanted(shift, side, horizon):
    """The same draws, solved and swept; with rare outcomes cut, and with rewards of both signs."""
    concentration = CONCENTRATION.copy()
    concentration[0, 0, 2] = 1e-7
    rewards = KnownRewards(np.array(KNOWN.mean()) + shift)
    belief = DirichletBelief(3, 2, concentration=concentration, rewards=rewards)
    task = Task.of(belief, discount=0.9, horizon=horizon)
    ranged = above_of(task) if side == "upper" else below_of(task)
    assert (ranged.problem.keep < 1.0).any()
    policy = None if side == "upper" else np.array([1, 0, 1])
    solved, swept = (FreshModels(task, ranged, (7, 1), policy) for _ in range(2))
    swept.sweeps = 200 if horizon is None else horizon
    solved.n = swept.n = 1
    for own in (solved, swept):
        own.sample(20, [own.scratch()])
    above = np.concatenate(swept.values) - np.concatenate(solved.values)
    slack = 1e-4 * (solved.high - solved.low) if horizon is None else 0.0
    if side == "lower":
        above = -above
    assert (above >= -1e-9).all()
    assert (above <= slack + 1e-9).all()
