"""Alpha vectors by point-based backups (`kernels.graph.alpha`): beliefs met on trajectories, and backups at them.

A vector is the value of one controller on every model, whatever the prior. Trajectories act on what is known so far,
sometimes at random, and are drawn to upper values to a degree of their own; a round backs up at the beliefs that they
met, the deepest first, a few times over, so that values travel back along them. Without a horizon only.
"""

from collections.abc import Sequence

import numpy as np

from beliefbound.base.validation import FloatArray, IntArray
from beliefbound.bounds.steps import CALL, Meter, Stepwise
from beliefbound.kernels.graph import alpha as kernel
from beliefbound.kernels.graph.alpha import Points, new_vectors
from beliefbound.kernels.graph.heavy import mean_heavy
from beliefbound.kernels.graph.nodes import BeliefMDP
from beliefbound.kernels.random import uniform
from beliefbound.planning.lemmas import stages_until
from beliefbound.planning.task import FiniteTask
from beliefbound.policy import TablePolicy

SWEEPS = 3  # over the beliefs of a round
RANDOM, MIX = 0.15, 0.8  # share of steps that are random; the most that a trajectory is drawn to upper values
_DEPTH = 60  # steps of a trajectory, where the discount allows as many
_LEFT = 1e-4  # of the value: what may be left at the end of one
_MOST_BYTES = 1 << 28  # of vectors: beyond, fewer of them
_BACKUP = 0.2  # operations, in time, of a multiply-add with a vector: they are done several at once
_LEAST = 500.0  # operations of a backup, however few vectors there are


class PointBackups:
    """Vectors found so far for a task, from those of memoryless `policies`, whose values `problem` has."""

    def __init__(
        self,
        task: FiniteTask,
        problem: BeliefMDP,
        policies: Sequence[TablePolicy],
        stream: IntArray,
        *,
        capacity: int,
        gain: float,
    ) -> None:
        """`capacity`: vectors at most; `gain`: what a new one must add."""
        self.task, self.problem, self.policies = task, problem, list(policies)
        each = 16 * task.models.n_models * (1 + task.models.n_states)
        self.vectors = new_vectors(problem, problem.v[0], min(capacity, _MOST_BYTES // each))
        self.states = np.flatnonzero(task.start)
        self._stream, self._gain = stream, gain
        self._chances = np.cumsum(task.start[self.states])
        self._depth = stages_until(_LEFT, task.discount, most=_DEPTH)
        self._asked = float(task.models.n_models)  # models by which a vector is chosen, on average

    def use(self, problem: BeliefMDP) -> None:
        """From now on, with the leaf values of another problem of the same task."""
        self.problem = problem

    def fits(self, vectors: int) -> bool:
        """Whether there is space for so many more."""
        return int(self.vectors.size[0]) + vectors <= len(self.vectors.state)

    def trajectories(
        self, prior: FloatArray, points: Points, used: int, meter: Meter, *, random: float = RANDOM, mix: float = MIX
    ) -> Stepwise[None]:
        """Fill `points` from place `used` on with beliefs met on the way from a prior."""
        weights, each = np.array(prior), float(self.work().mean())
        while used < len(points.state):
            i = int(np.searchsorted(self._chances, uniform(self._stream), side="right"))
            s, drawn, before = int(self.states[min(i, len(self.states) - 1)]), mix * uniform(self._stream), used
            where = self._stream, points, used, self._depth
            used = kernel.walk(self.problem, self.vectors, s, weights, *where, random, drawn)
            meter.add(CALL + (used - before) * each)
            if meter.full():
                yield
        self._asked = mean_heavy(points.weight[:used], self.vectors.scale)

    def back_up(self, points: Points, meter: Meter, *, sweeps: int = SWEEPS) -> Stepwise[list[float]]:
        """Backups at points; what each sweep over them has gained."""
        order, gains = np.argsort(-points.depth, kind="stable"), list[float]()
        while len(gains) < sweeps and (not gains or gains[-1] > 0.0):
            gained, i = 0.0, 0
            while i < len(order):
                each = np.cumsum(self.work()[points.state[order[i:]]])
                more = i + max(1, int(np.searchsorted(each, meter.left, side="right")))
                gained += kernel.back_up_points(self.problem, self.vectors, points, order[i:more], self._gain)
                meter.add(CALL + float(each[more - i - 1]))
                i = more
                if meter.full():
                    yield
            gains.append(float(gained))
        return gains

    def keep_used(self, points: Points) -> None:
        """From now on only vectors that are best at one of the points are asked, and those of the policies."""
        kernel.keep_used(self.vectors, points, len(self.policies))

    def best(self, prior: FloatArray) -> tuple[IntArray, FloatArray]:
        """`(vectors [start], values [start])`: the best at each start state, and what it is worth there at a prior."""
        weights = np.array(prior)
        found = [kernel.best_vector(self.vectors, int(s), weights) for s in self.states]
        numbers = [self.vectors.number[s, i] for s, (_, i) in zip(self.states, found, strict=True)]
        return np.array(numbers, dtype=np.int64), np.array([value for value, _ in found])

    def work(self) -> FloatArray:
        """`[s]`: operations of a backup at a belief of each state, or of a step of a trajectory."""
        first = self.problem.first
        asked = np.concatenate([[0], np.cumsum(self.vectors.known_count[self.problem.arrive])])
        return np.asarray(_BACKUP * (asked[first[:, -1]] - asked[first[:, 0]]) * self._asked + _LEAST)

    def asking_work(self, points: Points) -> float:
        """Operations of asking every vector of a state at points."""
        most = float(self.vectors.known_count.max())
        return 2.0 * _BACKUP * len(points.state) * most * self._asked


def new_points(n: int, n_models: int) -> Points:
    """Places for beliefs."""
    return Points(np.empty(n, dtype=np.int32), np.empty((n, n_models)), np.empty(n, dtype=np.int32))


def joined(parts: Sequence[Points]) -> Points:
    """Several lists of beliefs as one."""
    return Points(*map(np.concatenate, zip(*parts, strict=True)))
