"""How large the parts of a bracket are at each stage of its ladder, for a Dirichlet belief.

Nearly all the time goes into drawing and solving models, and what that takes is known from the shape of the problem. A
*stage* has a budget of operations, each eight times that of the one before, and its sizes are a function of
the budget and the problem, never of the clock: the same on every machine. They aim at enough independent simulations
for each side of the bracket: an interval from a handful is wide, however good each one is. Larger problems get fewer
particles, and none at stages that do not afford some. Any size is valid.
"""

from typing import NamedTuple

import numpy as np

from beliefbound.bounds.ladder import OPERATIONS
from beliefbound.kernels.particles.rows import Problem, width_of
from beliefbound.limits import PARTICLE_BYTES

_FIRST, _TIMES = 0.5, 8.0  # budget of the first stage in seconds of `OPERATIONS`, and how it grows
_ITERATIONS = 4  # of policy iteration
_DRAW = 40  # operations to draw a number
_SHARE = 0.4  # of the budget, for each side
_LEVELS = ((0.5, 2048), (0.15, 512), (0.0, 128))
_LEAST = 32
_TRAJECTORIES, _CHAINS = 64, 64  # that a stage should have at least
_FEW = 16  # that it must have, or else it does without
_SETS = 100  # that a chain draws
_HISTORIES = 16  # expanded for each set drawn
_POOL = 1.5  # what the values of the policy's pool take, beside the solution of the models
_NODES = 4000
_BATCH_BYTES = 8 << 20  # models that are drawn and solved together


class Effort(NamedTuple):
    """Numbers of particles, and of histories; none where a stage does not afford them."""

    levels: tuple[tuple[float, int], ...]  # policy: as long as this share of the value is left, so many particles
    particles: int  # relaxation: of a set
    nodes: int  # relaxation: histories that a scenario may expand
    sets: int  # relaxation: sets that a chain may draw


def budget(stage: int) -> float:
    """Operations of a stage."""
    return float(OPERATIONS * _FIRST * _TIMES**stage)


def work(problem: Problem) -> float:
    """Operations to solve one model."""
    pairs, n_states = len(problem.available), problem.n_states
    if problem.horizon >= 0:
        return float(problem.horizon * pairs * n_states)
    return float(_ITERATIONS * (n_states**3 / 3.0 + n_states**2 + pairs * n_states))


def fresh(problem: Problem) -> float:
    """Operations to draw and solve one model."""
    return work(problem) + _DRAW * len(problem.available) * width_of(problem)


def batch(problem: Problem) -> int:
    """Models that are drawn and solved together."""
    each = 16 * len(problem.available) * width_of(problem) + 8 * problem.n_states**2
    return int(np.clip(_BATCH_BYTES // each, 1, 256))


def effort(problem: Problem, stage: int, stages: int, depth: int) -> Effort:
    """For a stage of the ladder, with `stages` tables a set and a policy that looks ahead `depth` times at most.

    >>> import numpy as np
    >>> from beliefbound.beliefs import DirichletBelief
    >>> from beliefbound.bounds.dirichlet.arrays import problem_of
    >>> from beliefbound.planning.task import Task
    >>> tasks = [Task.of(DirichletBelief(n, 2), discount=0.95) for n in (5, 50)]
    >>> small, large = (problem_of(task, np.zeros(1, np.uint64), horizon=None) for task in tasks)
    >>> effort(small, 2, 1, 100)
    Effort(levels=((0.5, 2048), (0.15, 512), (0.0, 128)), particles=512, nodes=4000, sets=500)
    >>> effort(large, 2, 1, 100).particles
    32
    """
    models = _SHARE * budget(stage) / work(problem)  # to be solved
    left = problem.discount ** np.arange(depth)
    steps, above = [], np.inf
    for share, _ in _LEVELS:
        steps.append(int(((left >= share) & (left < above)).sum()))
        above = share
    pairs, wide = len(problem.available), width_of(problem)

    def takes(scale: float) -> float:
        return (1.0 + _POOL) * sum(max(_LEAST, scale * n) * k for (_, n), k in zip(_LEVELS, steps, strict=True))

    scale = 1.0
    while scale * _LEVELS[0][1] > _LEAST and (
        takes(scale) * _TRAJECTORIES > models or 8 * pairs * wide * scale * _LEVELS[0][1] > PARTICLE_BYTES
    ):
        scale /= 2.0
    levels = tuple((share, max(_LEAST, int(scale * n))) for share, n in _LEVELS)
    if takes(scale) * _FEW > models or 8 * pairs * wide * _LEAST > PARTICLE_BYTES:
        levels = ()
    n = 512
    while n > _LEAST and (
        _CHAINS * _SETS * n > models
        or 8 * stages * pairs * n * _SETS > PARTICLE_BYTES
        or 8 * wide * n * 2 * pairs > PARTICLE_BYTES
    ):
        n //= 2
    if _FEW * 4 * n > models or 8 * wide * n * 2 * pairs > PARTICLE_BYTES:
        return Effort(levels, 0, 0, 0)
    sets = int(np.clip(models / (_CHAINS * n), 4, 5 * _SETS))
    nodes = int(np.clip(_HISTORIES * sets, 100, _NODES))
    return Effort(levels, n, nodes, sets)
