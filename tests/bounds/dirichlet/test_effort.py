"""Sizes at each stage of a bracket: a function of the problem, larger at later stages, smaller for larger problems."""

import numpy as np

from beliefbound.base.limits import PARTICLE_BYTES
from beliefbound.beliefs import DirichletBelief, KnownRewards
from beliefbound.bounds.dirichlet.arrays import problem_of
from beliefbound.bounds.dirichlet.effort import batch, budget, effort, fresh, piece, work
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
            assert all(n >= 32 for _, n in now.levels)
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
