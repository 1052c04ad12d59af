"""Fresh models of a Dirichlet belief, each valued on its own: what perfect information is worth, and a fixed policy.

`E_ξ V*_μ` from above, `E_ξ V^π_μ` from below, without the belief's rare outcomes (`bounds.dirichlet.rare`). Samples are
independent and in a known range.

Small models are solved. Large ones are swept, which bounds their values after any number of sweeps (MacQueen): with
`V' = TV`, `D` the largest and `d` the least entry of `V' − V`, and rows of `γP` that sum to between `ρ` and `σ`,

    V' + ρ/(1−ρ) d⁺ − σ/(1−σ) d⁻  ≤  the fixed point  ≤  V' + σ/(1−σ) D⁺ − ρ/(1−ρ) D⁻.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from beliefbound.base.executors.elsewhere import map_numbered
from beliefbound.base.validation import FloatArray, IntArray
from beliefbound.bounds.dirichlet.effort import batch, most_sweeps, valued
from beliefbound.bounds.dirichlet.prepared import Ranged
from beliefbound.kernels.particles.rows import draw_models, n_columns, width_of
from beliefbound.kernels.particles.solving import optimal, values_of
from beliefbound.kernels.random import seed_stream
from beliefbound.models.enclosing import rounding_of
from beliefbound.planning.task import Task

_ELIMINATION = 12.0  # times rounding of a sum, and 1/(1 − γ): that of a linear system, of its largest value
_EPSILON = 1e-4  # of the range of values: sweeps end
R = TypeVar("R")


class FreshModels:
    """Values at the start of models drawn one after another; of a policy `[s]` or `[stage,s]`, or of each model's own
    best. `like`: others whose scratch is used, so that batches are as large."""

    def __init__(
        self,
        task: Task,
        ranged: Ranged,
        address: tuple[int, ...],
        policy: IntArray | None = None,
        like: "FreshModels | None" = None,
    ) -> None:
        problem = ranged.problem
        self.task, self.problem, self.address, self.policy = task, problem, address, policy
        self.n: int = batch(problem) if like is None else like.n
        self.sweeps, self.each = most_sweeps(problem), self.n * valued(problem)  # `each`: operations of a batch
        self.values: list[FloatArray] = []
        self.low, self.high = ranged.ends(task)

    def sample(self, count: int, scratch: list[Any], mapped: Callable[..., list[Any]] = map_numbered) -> None:
        """`count` more batches, on as many threads as there is scratch; `mapped`: who makes them."""
        first = len(self.values)
        self.values += mapped(self, range(first, first + count), lambda: scratch)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "values": []}

    def scratch(self) -> FloatArray:
        """Empty arrays for the models of one thread."""
        return np.empty((len(self.problem.available), width_of(self.problem), self.n))

    def one(self, index: int, models: FloatArray) -> FloatArray:
        """The values of a batch."""
        problem, start = self.problem, self.task.start
        stream = seed_stream(np.array([*self.address, index], dtype=np.uint64))
        pairs, n_states = len(problem.available), problem.n_states
        draw_models(problem, np.zeros((pairs, n_columns(problem)), dtype=np.int64), stream, models)
        slots = np.arange(pairs)
        if self.sweeps:
            values = self._swept(models[:, :, 0])[:, None]
        elif self.policy is not None and self.policy.ndim == 2:
            values = np.zeros((n_states, self.n))
            for actions in self.policy[::-1]:
                rows = models[np.arange(n_states) * problem.posterior.n_actions + actions]
                values = rows[:, n_states] + problem.discount * np.einsum("stm,tm->sm", rows[:, :n_states], values)
        elif self.policy is not None:
            values = np.empty((n_states, self.n))
            values_of(problem.discount, models, slots, problem.horizon, self.policy, values)
            if problem.horizon < 0:  # elimination without pivots, which the diagonal dominates
                off = _ELIMINATION * rounding_of(n_states) / (1.0 - problem.discount)
                values -= off * np.abs(values).max(axis=0)
        else:
            first = np.argmax(self.task.belief.available, axis=1)
            own, q = np.repeat(first[:, None], self.n, axis=1), np.empty((1, pairs, self.n))
            optimal(problem.discount, models, slots, problem.horizon, own, q)
            values = q[0].reshape(n_states, -1, self.n).max(axis=1)
        found: FloatArray = problem.unit * (start @ values)
        return np.clip(found, self.low, self.high)

    def _swept(self, rows: FloatArray) -> FloatArray:
        """`[s]`: values of one model `rows[pair,t + 1 …]`, or a bound on the side that is wanted."""
        problem, n_states = self.problem, self.problem.n_states
        p, rewards = rows[:, :n_states], rows[:, n_states]
        inside = problem.available
        actions = None if self.policy is None else np.atleast_2d(self.policy)
        if actions is not None and len(actions) == 1:  # only the rows that the policy meets
            met = np.arange(n_states) * problem.posterior.n_actions + actions[0]
            p, rewards, inside = p[met], rewards[met], inside[met]
        values, change = np.zeros(n_states), np.zeros(n_states)
        sums = problem.discount * p[inside].sum(axis=1)
        least, most = float(sums.min()), float(sums.max())
        enough = _EPSILON * (self.high - self.low) / problem.unit
        for k in range(self.sweeps):
            q = (rewards + problem.discount * np.einsum("pt,t->p", p, values)).reshape(n_states, -1)
            if actions is None:
                better = q.max(axis=1)
            elif len(actions) == 1:
                better = q[:, 0]
            else:
                better = q[np.arange(n_states), actions[self.sweeps - 1 - k]]
            values, change = better, better - values
            if problem.horizon < 0 and np.ptp(change) * most / (1.0 - most) <= enough:
                break
        if problem.horizon >= 0:
            return values
        end = float(change.max() if self.policy is None else change.min())
        sure = most if (end > 0.0) == (self.policy is None) else least
        return np.asarray(values + end * sure / (1.0 - sure))


def workers(threads: int, make: Callable[[], R], nbytes: float, most: float) -> list[R]:
    """Scratch for as many threads as fit into `most` bytes; for one in any case."""
    return [make() for _ in range(max(1, min(threads, int(most / max(1.0, nbytes)))))]
