"""What a bracket of a Dirichlet belief compiles, listed so that another process can (`kernels.beside`).

Types are those of the smallest problem there is: all problems have the same.
"""

from collections.abc import Iterator

import numpy as np
from numba import float64, int64, typeof, uint64

from beliefbound.kernels.beside import Job
from beliefbound.kernels.particles.chains import relax
from beliefbound.kernels.particles.changed import new_changed, solve_again
from beliefbound.kernels.particles.hyperstate import look_ahead, step
from beliefbound.kernels.particles.look import (
    Trajectory,
    TrajectoryParameters,
    expected_policy,
    look,
    new_look_space,
    walk,
)
from beliefbound.kernels.particles.renewal import begin, cheapest, child_of, expand, new_search
from beliefbound.kernels.particles.rows import BAMDP, expected_rows, new_rows, predictive
from beliefbound.kernels.particles.solving import follow, solve
from beliefbound.kernels.posterior import smallest


def jobs() -> Iterator[Job]:
    """The kernels of the relaxation, then those of the policy, callees first."""
    problem = example()
    space = new_look_space(problem, 1, 1, 1)
    belief, here, search = typeof(problem), typeof(space), typeof(new_search(problem, 1, 1, 1, 1, 1))
    line, plane, cube = (typeof(np.zeros((1,) * k)) for k in (1, 2, 3))
    whole, counts = typeof(np.zeros(1, np.int64)), typeof(np.zeros((1, 1), np.int64))
    yield expand, (belief, search, cube, int64)
    yield child_of, (belief, search, cube, int64, int64, int64, float64)
    yield begin, (belief, search, cube, whole)
    yield cheapest, (belief, search, cube, int64, uint64, int64, int64, int64, float64, int64)
    changed = typeof(new_changed(1, 1, 1))
    yield solve_again, (float64, cube, whole, whole, plane, changed, plane)
    yield relax, (belief, search, typeof(new_rows(problem, 1, 1)), changed, int64, uint64, int64, int64, float64)
    yield look_ahead, (belief, here, int64, int64, float64)
    scratch, expected = typeof(space.rows.scratch), typeof(space.expected)
    yield predictive, (belief, counts, int64, scratch)
    yield step, (belief, counts, scratch, int64, int64, plane, float64, float64, line, float64)
    yield expected_rows, (belief, counts, scratch, cube)
    yield solve, (float64, int64, typeof(space.models))
    yield follow, (float64, int64, typeof(space.models), whole, plane)
    yield expected_policy, (belief, expected, counts, whole, int64)
    yield look, (belief, here, counts, int64, int64, whole, float64)
    rules = typeof(TrajectoryParameters(1, 1, 1, 0.0, 0.0, 0.0))
    trajectory = typeof(Trajectory(np.zeros((1, 1), np.int64), np.zeros(2, np.int64), np.zeros(3)))
    yield walk, (belief, here, rules, trajectory, whole, plane, line)


def example() -> BAMDP:
    """One state, one action, one outcome, one reward."""
    return BAMDP(
        posterior=smallest(),
        available=np.ones(1, np.bool_),
        n_states=1,
        discount=0.5,
        horizon=-1,
        address=np.zeros(1, np.uint64),
        keep=np.ones(1),
        credit=np.zeros(1),
        unit=1.0,
    )
