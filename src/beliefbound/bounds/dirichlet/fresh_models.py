"""Fresh models of a Dirichlet belief, each solved on its own: what perfect information is worth, and a fixed policy.

`E_ξ V*_μ` from above, `E_ξ V^π_μ` from below, without the belief's rare outcomes (`bounds.dirichlet.rare`). Samples are
independent and in a known range.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from beliefbound.bounds.dirichlet.effort import batch, fresh
from beliefbound.bounds.dirichlet.rare import Extremes
from beliefbound.executors.threads import map_with_scratch
from beliefbound.kernels.particles.rows import Problem, draw_models, n_columns, width_of
from beliefbound.kernels.particles.solving import optimal, values_of
from beliefbound.kernels.random import seed_stream
from beliefbound.planning.task import Task
from beliefbound.validation import FloatArray, IntArray

_ROUNDING = 1e-11  # of the values: what policy iteration takes for no improvement
R = TypeVar("R")


class FreshModels:
    """Values at the start of models drawn one after another; of a policy `[s]` or `[stage,s]`, or of each model's own
    best."""

    def __init__(self, task: Task, problem: Problem, address: tuple[int, ...], policy: IntArray | None = None) -> None:
        self.task, self.problem, self.address, self.policy = task, problem, address, policy
        self.n = batch(problem)
        self.each = self.n * fresh(problem)  # operations of a batch
        self.values: list[FloatArray] = []
        extremes, start = Extremes(problem, None if problem.horizon < 0 else problem.horizon), task.start > 0.0
        self.low = problem.unit * float(extremes.low(problem.horizon)[start].min())
        self.high = problem.unit * float(extremes.high(problem.horizon)[start].max())
        if policy is None and problem.horizon < 0:
            self.rounding = _ROUNDING * (problem.unit + max(abs(self.low), abs(self.high))) / (1.0 - task.discount)
        else:
            self.rounding = 0.0

    def sample(self, count: int, scratch: list[Any]) -> None:
        """`count` more batches, on as many threads as there is scratch."""
        first = len(self.values)
        self.values += map_with_scratch(self._batch, range(first, first + count), scratch)

    def scratch(self) -> FloatArray:
        """Room for the models of one thread."""
        return np.empty((len(self.problem.available), width_of(self.problem), self.n))

    def _batch(self, index: int, models: FloatArray) -> FloatArray:
        problem, start = self.problem, self.task.start
        stream = seed_stream(np.array([*self.address, index], dtype=np.uint64))
        pairs, n_states = len(problem.available), problem.n_states
        draw_models(problem, np.zeros((pairs, n_columns(problem)), dtype=np.int64), stream, models)
        slots = np.arange(pairs)
        if self.policy is not None and self.policy.ndim == 2:
            values = np.zeros((n_states, self.n))
            for actions in self.policy[::-1]:
                rows = models[np.arange(n_states) * problem.posterior.n_actions + actions]
                values = rows[:, n_states] + problem.discount * np.einsum("stm,tm->sm", rows[:, :n_states], values)
        elif self.policy is not None:
            values = np.empty((n_states, self.n))
            values_of(problem.discount, models, slots, problem.horizon, self.policy, values)
        else:
            first = np.argmax(self.task.belief.available, axis=1)
            own, q = np.repeat(first[:, None], self.n, axis=1), np.empty((1, pairs, self.n))
            optimal(problem.discount, models, slots, problem.horizon, own, q)
            values = q[0].reshape(n_states, -1, self.n).max(axis=1)
        found: FloatArray = problem.unit * (start @ values)
        return np.clip(found, self.low, self.high)


def workers(threads: int, make: Callable[[], R], nbytes: float, most: float) -> list[R]:
    """Scratch for as many threads as fit into `most` bytes; for one in any case."""
    return [make() for _ in range(max(1, min(threads, int(most / max(1.0, nbytes)))))]
