"""Sizes that a time limit affords: a function of the arguments, larger for more time, smaller for larger problems."""

import numpy as np

from beliefbound.beliefs import DirichletBelief, KnownRewards
from beliefbound.bounds.dirichlet.arrays import problem_of
from beliefbound.bounds.dirichlet.effort import effort, work
from beliefbound.limits import PARTICLE_BYTES
from beliefbound.planning.task import Task


def problem(n_states, n_actions, horizon=None):
    belief = DirichletBelief(n_states, n_actions, rewards=KnownRewards(np.zeros((n_states, n_actions))))
    task = Task.of(belief, discount=0.95, horizon=horizon)
    return problem_of(task, np.zeros(1, dtype=np.uint64), horizon=horizon)


def test_more_time_never_means_less_effort():
    for shape in ((3, 2), (5, 2), (10, 3), (25, 4), (60, 5)):
        before = None
        for seconds in (0.1, 1.0, 10.0, 60.0, 600.0):
            now = effort(problem(*shape), seconds, 1, 100)
            assert now == effort(problem(*shape), seconds, 1, 100)
            if before is not None:
                assert now.particles >= before.particles
                assert all(n >= m for (_, n), (_, m) in zip(now.levels, before.levels, strict=True))
            assert all(n >= 32 for _, n in now.levels)
            assert now.particles >= 32
            assert 100 <= now.nodes <= 4000
            before = now


def test_larger_problems_get_fewer_particles_and_fit_in_memory():
    sizes = [effort(problem(n, 4), 60.0, 1, 100) for n in (5, 15, 30, 60)]
    assert [x.particles for x in sizes] == sorted((x.particles for x in sizes), reverse=True)
    assert sizes[0].particles > sizes[-1].particles
    for n, x in zip((5, 15, 30), sizes, strict=False):
        assert x.particles == 32 or 8 * (n + 1) * x.particles * 4 * n * 200 <= PARTICLE_BYTES


def test_work_is_that_of_the_method():
    assert work(problem(5, 2)) == 4 * (125 / 3 + 25 + 50)
    assert work(problem(5, 2, horizon=7)) == 7 * 10 * 5
