"""How many particles a time limit affords, for the bracket of a Dirichlet belief.

Nearly all the time goes into solving models, and what that takes is known from the shape of the problem. So the sizes
are a function of the arguments, not of the clock: the same call gives the same particles on a slow machine, only
fewer simulations. They aim at enough independent simulations for each side of the bracket: an interval from a handful
is wide, however good each one is. The counts below are Chain's; a problem whose posteriors spread more (many states,
rewards to learn) draws several times as many sets, and gets fewer simulations than aimed at. Any size is valid.
"""

from typing import NamedTuple

import numpy as np

from beliefbound.kernels.particles.rows import Problem
from beliefbound.limits import PARTICLE_BYTES

SCENARIOS = 4  # of a chain of sets
_RATE = 1.5e9  # multiply-adds a second of one core, solving models
_ITERATIONS = 4  # of policy iteration
_SHARE = 0.45  # of the time, for each side
_LEVELS = ((0.5, 2048), (0.15, 512), (0.0, 128))
_LEAST = 32
_TRAJECTORIES, _CHAINS = 100, 16  # what there should be time for on one core
_SETS = 1000  # that a chain draws
_SPARE = 4  # times as many fit in memory
_HISTORIES = 4  # expanded for each set drawn
_ROWS = 200  # of each pair that a chain meets
_POOL = 1.5  # what the values of the policy's pool take, beside the solution of the models
_NODES = 4000


class Effort(NamedTuple):
    """Numbers of particles, and of histories."""

    levels: tuple[tuple[float, int], ...]  # policy: as long as this share of the value is left, so many particles
    particles: int  # relaxation: of a set
    nodes: int  # relaxation: histories that a scenario may expand


def work(problem: Problem) -> float:
    """Multiply-adds to solve one model."""
    pairs, n_states = len(problem.available), problem.n_states
    if problem.horizon >= 0:
        return float(problem.horizon * pairs * n_states)
    return float(_ITERATIONS * (n_states**3 / 3.0 + n_states**2 + pairs * n_states))


def effort(problem: Problem, seconds: float, stages: int, depth: int) -> Effort:
    """For a bracket in `seconds`, with `stages` tables a set and a policy that looks ahead `depth` times at most.

    >>> import numpy as np
    >>> from beliefbound.beliefs import DirichletBelief
    >>> from beliefbound.bounds.dirichlet.arrays import problem_of
    >>> from beliefbound.planning.task import Task
    >>> tasks = [Task.of(DirichletBelief(n, 2), discount=0.95) for n in (5, 50)]
    >>> small, large = (problem_of(task, np.zeros(1, np.uint64), horizon=None) for task in tasks)
    >>> effort(small, 60.0, 1, 100)
    Effort(levels=((0.5, 2048), (0.15, 512), (0.0, 128)), particles=512, nodes=4000)
    >>> effort(large, 60.0, 1, 100).particles
    32
    """
    budget = _SHARE * seconds * _RATE / work(problem)  # models to be solved
    left = problem.discount ** np.arange(depth)
    steps, above = [], np.inf
    for share, _ in _LEVELS:
        steps.append(int(((left >= share) & (left < above)).sum()))
        above = share
    each = (1.0 + _POOL) * sum(n * count for (_, n), count in zip(_LEVELS, steps, strict=True))
    scale = 1.0
    while scale * each * _TRAJECTORIES > budget and scale * _LEVELS[0][1] > _LEAST:
        scale /= 2.0
    levels = tuple((share, max(_LEAST, int(scale * n))) for share, n in _LEVELS)
    pairs, n_states = len(problem.available), problem.n_states
    n = 512
    while n > _LEAST and (
        _CHAINS * _SETS * n > budget
        or 8 * stages * pairs * n * _SPARE * _SETS > PARTICLE_BYTES
        or 8 * (n_states + 1) * n * pairs * _ROWS > PARTICLE_BYTES
    ):
        n //= 2
    nodes = int(np.clip(_HISTORIES * budget / (_CHAINS * SCENARIOS * n), 100, _NODES))
    return Effort(levels, n, nodes)
