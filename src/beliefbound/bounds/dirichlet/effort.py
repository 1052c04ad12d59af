"""How large the parts of a bracket are at each stage of its work, for a Dirichlet belief.

Nearly all the time goes into drawing and solving models, and what that takes is known from the shape of the problem. A
*stage* has a budget of operations, each eight times that of the one before, and its sizes are a function of
the budget and the problem, never of the clock: the same on every machine. They aim at enough independent simulations
for each side of the bracket: an interval from a handful is wide, however good each one is. Larger problems get fewer
particles, and none at stages that do not afford some. Any size is valid.

*Sets that are renewed, or one large set.* A search among `A` actions visits `A` times as many histories for a step
more, and of a set of particles a share `ρ` still counts after an observation. Where `A ρ > 1`, a set that is as large
as the search may outlive it: whether it does, a few small searches say beforehand (`lasting` in
`bounds.dirichlet.chains`). Then a chain has one set, as large as is afforded, and all else goes into histories; so it
has, wherever `A ρ > 1`, if renewing sets of a good size is not afforded. Where one observation nearly tells the model
(next states that are not known in advance), sets have to be renewed, however small they are.

A set with *several tables* (`kernels.particles.opened`) costs more than a short search, and searches on it end of
themselves: it is smaller, and has more histories for each particle, though no more than the largest chains have. What
is left of a drop is little, so that its price is in how many chains there are: the same size serves stage after stage,
until a few rounds of the largest are afforded.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from beliefbound.base.limits import PARTICLE_BYTES
from beliefbound.base.validation import FloatArray
from beliefbound.bounds.steps import OPERATIONS, STEP_WORK
from beliefbound.kernels.particles.rows import BAMDP, width_of

_FIRST, _TIMES = 0.5, 8.0  # budget of the first stage in seconds of `OPERATIONS`, and how it grows
_ITERATIONS = 4  # of policy iteration
_DRAW = 40  # operations to draw a number
TRAJECTORY_STEP = 5e4  # operations that a step of a trajectory takes beside its particles
# Operations, in time, of a history: by itself; for each particle and outcome of its state, and action or weight.
_HISTORY, _HISTORY_PARTICLE = 3e4, 0.4
_SHARE = 0.4  # of the budget, for each side
_LEVELS = ((0.5, 256), (0.15, 64), (0.0, 32))  # of the value that is left, at least: particles
_LEAST = 32  # particles of a set: with 16 a bracket is 6% wider (`soak/constants.py`)
_LEAST_AHEAD = 16  # particles to look ahead on: it is the floor of trajectories that costs, not their spread
_ALIKE = 4.0  # times what steps take by themselves: fewer particles would save little
_SAMPLES, _CHAINS = 1024, 192  # trajectories and chains that a stage should have
_FEW = 16  # of each kind, that it must have, or else it does without
_SETS, _HISTORIES = 60, 250  # of a typical chain
_PARTICLES, _MOST_SETS, _NODES = 256, 4096, 8192  # of a chain, where the budget allows: its sets, and its histories
# Where enough chains are afforded, the longest are few among many: times the histories, and the time of a sample.
_LONGER, _RARELY = 2.0, 16.0
# Of chains of one set: rounds that a stage should have, the largest set, histories for each particle; operations, in
# time, of a history: by itself; for each particle and outcome of its state, and action or weight.
_LARGE_ROUNDS, _LARGE, _LARGE_HISTORIES = 16, 8192, 8
_ORDERED_ROUNDS, _ORDERED_HISTORIES = 4, 32  # the same of sets with several tables
# Of sets that remember first visits, too: scenarios differ little, so that each has one; times the space of particles.
_VISITED_ROUNDS, _VISITED_HISTORIES, _ROOM = 4, 16, 6
_LARGE_HISTORY, _LARGE_PARTICLE = 3e3, 0.2
_LARGE_FRESH = 0.3  # of what it takes to draw and solve the models of small ones
_LARGE_SHORTEST = 0.125  # of the time of the set: that of the shortest chain's histories
_SHORTEST, _LEVEL = 64, 4  # histories of the shortest chains, and how many times as many of the next
_MOSTLY = 10.0  # times the work of histories: renewing sets is nearly all
POOL = 6  # stationary policies to fall back on: the expected MDP's, then particles' own
_SMALL_POOL, _SMALL = 3, 16  # where there are at most so many particles
_PIECE = 0.01  # of the budget, for one sample
_BATCH_BYTES = 8 << 20  # models that are drawn and solved together
_SWEPT = 150  # states from which on fresh models are swept, one by one, not solved
_MOST_SWEEPS, _TYPICAL_SWEEPS, _SWEEP = 200, 40, 0.5  # without a horizon; operations, in time, of a multiply-add


class Effort(NamedTuple):
    """Numbers of particles, and of histories; none where a stage does not afford them."""

    levels: tuple[tuple[float, int], ...]  # policy: as long as this share of the value is left, so many particles
    particles: int  # relaxation: of a set
    nodes: int  # relaxation: histories that a scenario may expand
    sets: int  # relaxation: sets that a chain may draw; one is never renewed
    shortest: int = _SHORTEST  # relaxation: histories of the shortest chains, about

    def of(self, side: str) -> tuple[Any, ...]:
        """What samples of one side depend on; empty where there are none."""
        if side == "lower":
            return self.levels
        return (self.particles, self.nodes, self.sets, self.shortest) if self.particles else ()


def budget(stage: int) -> float:
    """Operations of a stage."""
    return float(OPERATIONS * _FIRST * _TIMES**stage)


def work(problem: BAMDP) -> float:
    """Operations to solve one model."""
    pairs, n_states = len(problem.available), problem.n_states
    if problem.horizon >= 0:
        return float(problem.horizon * pairs * n_states)
    return float(_ITERATIONS * (n_states**3 / 3.0 + n_states**2 + pairs * n_states))


def fresh(problem: BAMDP, *, large: bool = False, tables: int = 1) -> float:
    """Operations to draw one model and to solve it for so many tables; of one `large` set it takes less."""
    each = tables * work(problem) + _DRAW * len(problem.available) * width_of(problem)
    return _LARGE_FRESH * each if large else each


def chain_lengths(nodes: int, shortest: int = _SHORTEST) -> tuple[int, ...]:
    """Histories of chains of each level, where the longest have so many.

    >>> chain_lengths(16384), chain_lengths(1000)
    ((64, 256, 1024, 4096, 16384), (250, 1000))
    """
    levels = max(0, int(math.log(nodes / shortest, _LEVEL) + 1e-9))
    return tuple(nodes // _LEVEL ** (levels - i) for i in range(levels + 1))


def history(problem: BAMDP, *, large: bool = False) -> tuple[float, float]:
    """Operations of a history: by itself, and for each particle; those of one `large` set take less."""
    posterior = problem.posterior
    outcomes = (posterior.alpha > 0.0).sum(axis=1)[posterior.row if posterior.tied else slice(None)].mean()
    each = posterior.reward.shape[0] * posterior.n_actions * float(outcomes)
    itself, particle = (_LARGE_HISTORY, _LARGE_PARTICLE) if large else (_HISTORY, _HISTORY_PARTICLE)
    return itself, particle * each * (posterior.n_actions + 2)


def outlived(problem: BAMDP) -> float:
    """`ρ`: the share of particles that still count after an observation, `(E p)² / E p²`; its geometric mean."""
    posterior = problem.posterior
    share = _outlived(posterior.alpha)[posterior.row if posterior.tied else slice(None)]
    if posterior.reward.shape[0] > 1:
        share = share + _outlived(posterior.reward.T)
    return float(np.exp(share[problem.available].mean()))


def pool(n: int) -> int:
    """Stationary policies that a policy which looks ahead on `n` particles may fall back on."""
    return _SMALL_POOL if n <= _SMALL else POOL


def valuing(n: int) -> float:
    """Times the work of solving a particle: that, and the values of the pool."""
    return 1.0 + pool(n) / _ITERATIONS


def _outlived(alpha: FloatArray) -> FloatArray:
    """Of Dirichlet rows `alpha[i,j]`, the logarithm, for the outcome that is drawn from the row: `[i]`."""
    total = alpha.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(alpha * (total + 1.0) / (total * (alpha + 1.0)))
        return np.asarray(np.where(alpha > 0.0, alpha / total * logs, 0.0).sum(axis=1))


def most_sweeps(problem: BAMDP) -> int:
    """Sweeps over a fresh model that is too large to be solved; 0 for one that is solved."""
    if problem.n_states < _SWEPT:
        return 0
    return _MOST_SWEEPS if problem.horizon < 0 else problem.horizon


def valued(problem: BAMDP) -> float:
    """Operations to draw one model and to value it by itself."""
    sweeps, pairs = most_sweeps(problem), len(problem.available)
    if not sweeps:
        return fresh(problem)
    typical = min(sweeps, _TYPICAL_SWEEPS) if problem.horizon < 0 else sweeps
    return pairs * float(_DRAW * width_of(problem) + _SWEEP * typical * problem.n_states)


def batch(problem: BAMDP) -> int:
    """Models that are drawn and valued together."""
    if most_sweeps(problem):
        return 1
    each = 16 * len(problem.available) * width_of(problem) + 8 * problem.n_states**2
    return int(np.clip(min(_BATCH_BYTES // each, STEP_WORK / fresh(problem)), 1, 256))


def piece(stage: int) -> float:
    """Operations that one sample of a stage may take."""
    return max(STEP_WORK, _PIECE * budget(stage))


def effort(
    problem: BAMDP,
    stage: int,
    stages: int,
    depth: int,
    *,
    lasting: bool = False,
    tables: int = 1,
    places: int = 0,
) -> Effort:
    """For a stage of the work, with `stages` tables a set and a policy that looks ahead `depth` times at most.
    `lasting`: sets outlive searches. One large set is solved for so many `tables`, and remembers so many `places`.

    >>> import numpy as np
    >>> from beliefbound.beliefs import DirichletBelief
    >>> from beliefbound.bounds.dirichlet.arrays import problem_of
    >>> from beliefbound.planning.task import Task
    >>> tasks = [Task.of(DirichletBelief(n, 2), discount=0.95) for n in (5, 50)]
    >>> small, large = (problem_of(task, np.zeros(1, np.uint64), horizon=None) for task in tasks)
    >>> effort(small, 2, 1, 100)
    Effort(levels=((0.5, 256), (0.15, 64), (0.0, 32)), particles=256, nodes=16384, sets=8192, shortest=64)
    >>> effort(small, 2, 1, 100, lasting=True)[1:]
    (1024, 8192, 1, 64)
    >>> effort(large, 2, 1, 100).particles
    32
    """
    return Effort(_levels(problem, stage, depth), *_chain(problem, stage, stages, lasting, tables, places))


def _levels(problem: BAMDP, stage: int, depth: int) -> tuple[tuple[float, int], ...]:
    left = problem.discount ** np.arange(depth)
    steps, above = [], np.inf
    for share, _ in _LEVELS:
        steps.append(int(((left >= share) & (left < above)).sum()))
        above = share
    row = 8 * len(problem.available) * width_of(problem)  # bytes of a model

    def takes(scale: float) -> float:
        levels = [(max(_LEAST_AHEAD, scale * n), k) for (_, n), k in zip(_LEVELS, steps, strict=True)]
        return TRAJECTORY_STEP * depth + work(problem) * sum(n * k * valuing(int(n)) for n, k in levels)

    share, scale = _SHARE * budget(stage), 1.0
    while scale * _LEVELS[0][1] > _LEAST_AHEAD and (
        (takes(scale) * _SAMPLES > share and takes(scale) > _ALIKE * TRAJECTORY_STEP * depth)
        or row * scale * _LEVELS[0][1] > PARTICLE_BYTES
    ):
        scale /= 2.0
    if takes(scale) * _FEW > share or takes(scale) > 2.0 * piece(stage) or row * _LEAST_AHEAD > PARTICLE_BYTES:
        return ()
    return tuple((least, max(_LEAST_AHEAD, int(scale * n))) for least, n in _LEVELS)


def _chain(problem: BAMDP, stage: int, stages: int, lasting: bool, tables: int, places: int) -> tuple[int, ...]:
    """Particles of a set, histories, sets; and histories of the shortest chains."""
    pairs, share, (itself, each) = len(problem.available), _SHARE * budget(stage), history(problem)
    row = 8 * pairs * width_of(problem)

    def typical(n: int) -> float:
        return n * _SETS * work(problem) + _HISTORIES * (itself + n * each)

    n = _PARTICLES
    while n > _LEAST and (
        typical(n) * _CHAINS > share or max(8 * stages * pairs * _SETS, 2 * row) * n > PARTICLE_BYTES
    ):
        n //= 2
    renewing = n * _SETS * work(problem) > _MOSTLY * _HISTORIES * (itself + n * each)
    if lasting or (n < _PARTICLES and problem.horizon < 0 and renewing and may_last(problem)):
        large, longest, shortest = _one_set(problem, share, tables, places)
        if large >= _PARTICLES:
            return large, longest, 1, shortest
    if 2 * row * n > PARTICLE_BYTES or n * (fresh(problem) + work(problem)) * _FEW > share:
        return 0, 0, 0
    ratio = min(1.0, share / (typical(n) * _CHAINS))
    longer, rarely = (_LONGER, _RARELY) if ratio == 1.0 else (1.0, 1.0)
    most = rarely * piece(stage)
    sets = min(longer * ratio * _MOST_SETS, (most / n - fresh(problem)) / work(problem))
    nodes = min(longer * ratio * _NODES, most / (itself + n * each))
    if sets < 4.0 or nodes < _HISTORIES:
        return 0, 0, 0
    return n, _power_of_two(nodes), _power_of_two(sets)


def may_last(problem: BAMDP) -> bool:
    """Whether a search visits more histories than its particles lose: `A ρ > 1`."""
    return problem.posterior.n_actions * outlived(problem) > 1.0


def _one_set(problem: BAMDP, share: float, tables: int, places: int) -> tuple[int, int, int]:
    """Particles of a chain that has one set, its histories, and those of the shortest."""
    row, (itself, each) = 8 * len(problem.available) * width_of(problem), history(problem, large=True)
    row = max(row, 8 * problem.posterior.n_actions * places // _ROOM)
    model, n = fresh(problem, large=True, tables=tables), _LARGE
    rounds, histories, scenarios, most = _LARGE_ROUNDS, _LARGE_HISTORIES, 1, _LARGE_HISTORIES * _LARGE
    if tables > 1:
        rounds, histories, scenarios = _ORDERED_ROUNDS, _ORDERED_HISTORIES, 2
    visits = places > tables * problem.n_states
    if visits:
        rounds, histories, scenarios, most = _VISITED_ROUNDS, _VISITED_HISTORIES, 1, _VISITED_HISTORIES * _LARGE
    while True:
        shortest = max(_SHORTEST, int(_LARGE_SHORTEST * n * model / (itself + n * each)))
        longest = min(histories * n, most)
        lengths = (longest,) if visits else chain_lengths(longest, shortest)
        takes = sum(
            (n * model + scenarios * length * (itself + n * each)) * 2 ** (len(lengths) - 1 - i)
            for i, length in enumerate(lengths)
        )
        if n <= _LEAST or (takes * rounds <= share and row * n <= PARTICLE_BYTES):
            return n, longest, shortest
        n //= 2


def _power_of_two(x: float) -> int:
    """Not more than `x`: stages of nearly the same size are of the same size, and go on with their samples."""
    return 1 << int(math.log2(x))
