"""Alpha vectors as best responses: policies, with their values on every model, that are good at a prior asked for.

A vector is the value of one controller on every model (`kernels.graph.alpha`), whatever the prior: those found for one
prior serve all others. `improve` backs up at beliefs along trajectories from a prior; `best` is the best known policy
at a prior, one controller for each start state. Without a horizon only.
"""

import numpy as np

from beliefbound.bounds.finite.controller import Controller, controller_of, vector_nodes
from beliefbound.bounds.finite.pool import policies_of
from beliefbound.bounds.finite.problem import problem_of, scale_of
from beliefbound.kernels.graph import alpha as kernel
from beliefbound.kernels.graph.alpha import Points, new_vectors
from beliefbound.kernels.graph.controller import COMMIT, IMPOSSIBLE
from beliefbound.kernels.random import seed_stream, uniform
from beliefbound.planning.rounding import ChainErrors
from beliefbound.planning.task import FiniteTask
from beliefbound.validation import FloatArray, IntArray

_SWEEPS = 3  # over the beliefs of a round: values travel back along trajectories
_DEPTH = 60  # steps of a trajectory, where the discount allows as many
_RANDOM = 0.15  # share of its steps that are random
_GAIN = 1e-7  # of the scale of values: what a new vector must add
_CAPACITY, _MOST_BYTES = 100_000, 1 << 28  # vectors, and the memory that they may take
_KEPT = 8192  # latest beliefs at which vectors stay in use


class VectorOracle:
    """Vectors found so far for a task without a horizon."""

    def __init__(self, task: FiniteTask, rng: np.random.Generator) -> None:
        self.task = task
        self.policies = policies_of(task)
        self.problem = problem_of(task, stages=1, policies=self.policies)
        each = 16 * task.models.n_models * (1 + task.models.n_states)
        self.vectors = new_vectors(self.problem, self.problem.v[0], min(_CAPACITY, _MOST_BYTES // each))
        self.states = np.flatnonzero(task.start)
        self._stream = seed_stream(rng.integers(0, 2**64, size=4, dtype=np.uint64))
        self._seen: list[Points] = []
        self._errors = ChainErrors(task)
        self._gain = _GAIN * scale_of(self.problem, task.weights, task.start, task.largest_value)

    @property
    def full(self) -> bool:
        """Whether there is no space for another round."""
        return int(self.vectors.size[0]) + 2000 > len(self.vectors.state)

    def improve(self, prior: FloatArray, count: int) -> float:
        """Back up at `count` beliefs on the way from a prior; what was gained at them in all."""
        points = self._trajectories(prior, count, random=_RANDOM, mix=0.8)
        order, gained = np.argsort(-points.depth, kind="stable"), 0.0
        for _ in range(_SWEEPS):
            more = kernel.back_up_points(self.problem, self.vectors, points, order, self._gain)
            gained += more
            if more == 0.0:
                break
        self._seen.append(points)
        while len(self._seen) > 1 and sum(len(part.state) for part in self._seen[1:]) > _KEPT:
            self._seen.pop(0)
        kernel.keep_used(self.vectors, Points(*map(np.concatenate, zip(*self._seen, strict=True))), len(self.policies))
        return float(gained)

    def follow(self, prior: FloatArray, count: int) -> Points:
        """Beliefs that are met when the best vectors are followed from a prior."""
        return self._trajectories(prior, count, random=0.0, mix=0.0)

    def _trajectories(self, prior: FloatArray, count: int, *, random: float, mix: float) -> Points:
        """The start, and beliefs on the way from there; each trajectory is drawn to upper values by up to `mix`."""
        used, weights = len(self.states), np.array(prior)
        points = _empty(max(count, used), len(prior))
        depth = max(1, min(_DEPTH, int(np.ceil(np.log(1e-4) / np.log(max(self.task.discount, 1e-6))))))
        points.state[:used], points.weight[:used], points.depth[:used] = self.states, weights, 0
        chances, last = np.cumsum(self.task.start[self.states]), len(self.states) - 1
        while used < count:
            s = int(self.states[min(int(np.searchsorted(chances, uniform(self._stream), side="right")), last)])
            drawn = mix * uniform(self._stream)
            used = kernel.walk(self.problem, self.vectors, s, weights, self._stream, points, used, depth, random, drawn)
        return points

    def known(self, s: int) -> tuple[IntArray, FloatArray]:
        """`(numbers [i], values [i,m])` of the vectors of a state that are in use."""
        count = int(self.vectors.known_count[s])
        return self.vectors.number[s, :count].astype(np.int64), self.vectors.known[s, :count]

    def first_action(self, number: int, s: int) -> int:
        """What a vector of state `s` plays first."""
        action, policy = int(self.vectors.action[number]), int(self.vectors.policy[number])
        return action if action >= 0 else int(np.atleast_2d(self.policies[policy].actions)[0, s])

    def best(self, prior: FloatArray) -> tuple[IntArray, FloatArray]:
        """`(vectors [start], values [m])`: the best known policy at a prior, and its value on every model, rounded
        down."""
        weights = np.array(prior)
        found = [kernel.best_vector(self.vectors, int(s), weights)[1] for s in self.states]
        numbers = np.array([self.vectors.number[s, i] for s, i in zip(self.states, found, strict=True)], dtype=np.int64)
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


def _empty(n: int, n_models: int) -> Points:
    return Points(np.empty(n, dtype=np.int32), np.empty((n, n_models)), np.empty(n, dtype=np.int32))
