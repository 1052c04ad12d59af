"""Sizes at each stage of a bracket: a function of the problem, larger at later stages, smaller for larger problems."""

import numpy as np
import pytest

from beliefbound.base.executors.ahead import Ahead
from beliefbound.base.limits import PARTICLE_BYTES
from beliefbound.beliefs import BetaRewards, DirichletBelief, KnownRewards
from beliefbound.bounds.dirichlet import steps
from beliefbound.bounds.dirichlet.arrays import problem_of
from beliefbound.bounds.dirichlet.effort import batch, budget, effort, fresh, outlived, piece, work
from beliefbound.bounds.dirichlet.steps import _Sampled
from beliefbound.bounds.steps import STEP_WORK
from beliefbound.kernels.particles.rows import width_of
from beliefbound.planning.task import Task


def problem(n_states, n_actions, horizon=None):
    belief = DirichletBelief(n_states, n_actions, rewards=KnownRewards(np.zeros((n_states, n_actions))))
    task = Task.of(belief, discount=0.95, horizon=horizon)
    return problem_of(task, np.zeros(1, dtype=np.uint64), horizon=horizon)


def test_later_stages_never_mean_less_effort():
    for shape in ((3, 2), (5, 2), (10, 3), (25, 4), (60, 5)):
        before = None
        for stage in range(6):
            now = effort(problem(*shape), stage, 1, 100)
            assert now == effort(problem(*shape), stage, 1, 100)
            if before is not None:
                assert now.particles >= before.particles
                assert len(now.levels) >= len(before.levels)
                assert all(n >= m for (_, n), (_, m) in zip(now.levels, before.levels, strict=False))
            assert all(n >= 16 for _, n in now.levels)
            assert now.particles == 0 or now.particles >= 32
            assert now.nodes <= 16384
            before = now
        assert before.levels
        assert before.particles


def test_no_sample_takes_longer_than_its_stage_allows_and_everything_fits():
    for n in (5, 15, 30, 60, 200, 500):
        given = problem(n, 4)
        for stage in range(6):
            x = effort(given, stage, 1, 100)
            if x.particles:
                # the longest chains are few, and may take sixteen times as long
                assert x.particles * (fresh(given) + (x.sets - 1) * work(given)) <= 16.16 * piece(stage)
                assert 8 * width_of(given) * x.particles * 4 * n <= PARTICLE_BYTES
        assert batch(given) == 1 or batch(given) * fresh(given) <= STEP_WORK
    assert [effort(problem(n, 4), 2, 1, 100).particles for n in (5, 30, 200)] == [256, 32, 0]


def test_work_is_that_of_the_method():
    assert work(problem(5, 2)) == 4 * (125 / 3 + 25 + 50)
    assert work(problem(5, 2, horizon=7)) == 7 * 10 * 5
    assert budget(1) == 8.0 * budget(0)


def successors(n_states, n_actions, each, rewards):
    """Every pair leads to a few states that are known, by chances that are not."""
    rng = np.random.default_rng(1)
    alpha = np.zeros((n_states, n_actions, n_states))
    for s in range(n_states):
        for a in range(n_actions):
            alpha[s, a, rng.choice(n_states, each, replace=False)] = 1.0 / each
    return DirichletBelief(n_states, n_actions, concentration=alpha, rewards=rewards, initial=0)


@pytest.mark.parametrize(("alpha", "beta"), [((1.0, 1.0), None), ((0.2, 0.5, 0.3), None), ((2.0, 1.0), (1.0, 3.0))])
def test_particles_that_outlive_an_observation_are_those_of_the_moments(alpha, beta):
    """`ln (E p)² / E p²` of what is seen, on average over what is seen, by draws."""
    n = len(alpha)
    rewards = KnownRewards(np.zeros((n, 1))) if beta is None else BetaRewards(*beta)
    belief = DirichletBelief(n, 1, concentration=np.tile(alpha, (n, 1, 1)), rewards=rewards, initial=0)
    given = problem_of(Task.of(belief, discount=0.9), np.zeros(1, dtype=np.uint64), horizon=None)
    rng, logs = np.random.default_rng(1), 0.0
    for row in (alpha,) if beta is None else (alpha, beta):
        p = rng.dirichlet(row, size=200_000)
        mean = p.mean(axis=0)
        logs += float(mean @ np.log(mean**2 / (p**2).mean(axis=0)))
    assert outlived(given) == pytest.approx(np.exp(logs), rel=0.02)


def test_one_large_set_where_sets_outlive_the_search_and_renewing_them_is_not_afforded():
    learnt = successors(30, 4, 3, BetaRewards(1.0, 1.0))
    flat = DirichletBelief(30, 4, rewards=BetaRewards(1.0, 1.0), initial=0)
    sizes = []
    for belief in (learnt, flat):
        given = problem_of(Task.of(belief, discount=0.95), np.zeros(1, dtype=np.uint64), horizon=None)
        sizes.append(effort(given, 2, 1, 76))
        assert 8 * width_of(given) * 120 * sizes[-1].particles <= PARTICLE_BYTES
    assert sizes[0].sets == 1
    assert sizes[0].particles >= 512
    assert sizes[1].sets > 1


@pytest.mark.parametrize(
    "belief",
    [DirichletBelief(5, 2, initial=0), DirichletBelief(12, 3, initial=0), successors(30, 4, 3, BetaRewards(1.0, 1.0))],
)
@pytest.mark.parametrize("upper_alone", [False, True])
def test_all_sizes_of_a_side_share_its_error(belief, upper_alone):
    """Whatever sizes follow each other: together they have at most what the side has, and nearly all of it."""
    with Ahead(1) as team:
        work = _Sampled(Task.of(belief, discount=0.95), 1, team, 0.05, "betting", upper_alone)
        for stage in range(steps._STAGES):
            work.enter(stage)
        share = steps._SIDE * 0.05 * (2.0 if upper_alone else 1.0)  # where one side alone is sampled, it has both
        for side, own in work.samplers.items() if not upper_alone else [("upper", work.samplers["upper"])]:
            spent = sum(work._alpha(side, sampler) for sampler in own if sampler.effort.of(side))
            assert 0.99 * share < spent <= share * (1.0 + 1e-12)
