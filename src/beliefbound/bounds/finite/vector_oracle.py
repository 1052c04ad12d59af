"""Alpha vectors as best responses: policies, with their values on every model, that are good at a prior asked for.

A vector is the value of one controller on every model (`kernels.graph.alpha`), whatever the prior: those found for one
prior serve all others. `improve` backs up at beliefs along trajectories from a prior; `best` is the best known policy
at a prior, one controller for each start state. Without a horizon only.
"""

import numpy as np

from beliefbound.base.validation import FloatArray, IntArray
from beliefbound.bounds.finite.backups import PointBackups, joined, new_points
from beliefbound.bounds.finite.controller import Controller, controller_of, vector_nodes
from beliefbound.bounds.finite.pool import policies_of
from beliefbound.bounds.finite.problem import problem_of, scale_of
from beliefbound.bounds.steps import Meter, finish
from beliefbound.kernels.graph.alpha import Points
from beliefbound.kernels.graph.controller import COMMIT, IMPOSSIBLE
from beliefbound.kernels.random import seed_stream
from beliefbound.planning.rounding import ChainErrors
from beliefbound.planning.task import FiniteTask

_GAIN = 1e-7  # of the scale of values: what a new vector must add
_CAPACITY = 100_000  # vectors
_ROUND = 2000  # that a round may add
_KEPT = 8192  # latest beliefs at which vectors stay in use


class VectorOracle:
    """Vectors found so far for a task without a horizon."""

    def __init__(self, task: FiniteTask, rng: np.random.Generator) -> None:
        self.task, self.policies = task, policies_of(task)
        self.problem = problem_of(task, stages=1, policies=self.policies)
        stream = seed_stream(rng.integers(0, 2**64, size=4, dtype=np.uint64))
        gain = _GAIN * scale_of(self.problem, task.weights, task.start, task.largest_value)
        self.backups = PointBackups(task, self.problem, self.policies, stream, capacity=_CAPACITY, gain=gain)
        self.vectors, self.states = self.backups.vectors, self.backups.states
        self._seen: list[Points] = []
        self._errors = ChainErrors(task)

    @property
    def full(self) -> bool:
        """Whether there is no space for another round."""
        return not self.backups.fits(_ROUND)

    def improve(self, prior: FloatArray, count: int) -> float:
        """Back up at `count` beliefs on the way from a prior; what was gained at them in all."""
        points = self._met(prior, count)
        gained = sum(finish(self.backups.back_up(points, Meter())))
        self._seen.append(points)
        while len(self._seen) > 1 and sum(len(part.state) for part in self._seen[1:]) > _KEPT:
            self._seen.pop(0)
        self.backups.keep_used(joined(self._seen))
        return gained

    def follow(self, prior: FloatArray, count: int) -> Points:
        """Beliefs that are met when the best vectors are followed from a prior."""
        return self._met(prior, count, random=0.0, mix=0.0)

    def _met(self, prior: FloatArray, count: int, **knobs: float) -> Points:
        """The start, and beliefs on the way from there."""
        used = len(self.states)
        points = new_points(max(count, used), len(prior))
        points.state[:used], points.weight[:used], points.depth[:used] = self.states, prior, 0
        finish(self.backups.trajectories(prior, points, used, Meter(), **knobs))
        return points

    def known(self, s: int) -> tuple[IntArray, FloatArray]:
        """`(numbers [i], values [i,m])` of the vectors of a state that are in use."""
        count = int(self.vectors.known_count[s])
        return self.vectors.number[s, :count].astype(np.int64), self.vectors.known[s, :, :count].T

    def first_action(self, number: int, s: int) -> int:
        """What a vector of state `s` plays first."""
        action, policy = int(self.vectors.action[number]), int(self.vectors.policy[number])
        return action if action >= 0 else int(np.atleast_2d(self.policies[policy].actions)[0, s])

    def best(self, prior: FloatArray) -> tuple[IntArray, FloatArray]:
        """`(vectors [start], values [m])`: the best known policy at a prior, and its value on every model, rounded
        down."""
        numbers, _ = self.backups.best(prior)
        own = self.vectors.value[numbers]
        values: FloatArray = self.task.start[self.states] @ (own - self._errors(own, self.states))
        return numbers, values

    def controller(self, numbers: IntArray) -> Controller:
        """The vectors of the start states as a controller."""
        nodes = vector_nodes(self.problem, self.vectors, numbers, 0)
        state, action, after, roots = nodes.state, nodes.action, nodes.after, nodes.begin.astype(np.int64)
        first = self.problem.first
        for i in np.flatnonzero(roots <= COMMIT):  # a memoryless policy: its first step becomes a node
            s, policy = int(self.states[i]), self.policies[COMMIT - int(roots[i])]
            line = np.full((1, first_width(first)), IMPOSSIBLE, dtype=np.int32)
            line[0, : int(first[s, -1] - first[s, 0])] = roots[i]
            roots[i] = len(state)
            state, action = np.append(state, s), np.append(action, np.int32(np.atleast_2d(policy.actions)[0, s]))
            after = np.concatenate([after.reshape(-1, line.shape[1]), line])
        return controller_of(self.task, self.problem, self.policies, state, action, after, roots)


def first_width(first: IntArray) -> int:
    """The most outcome rows of a state."""
    return int((first[:, -1] - first[:, 0]).max())
