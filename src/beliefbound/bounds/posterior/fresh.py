"""Values of several policies, and of knowing the model, on the same fresh models of a belief.

Models are drawn in batches, so that memory is that of a batch. The same models for all: differences of policies are
paired. Nothing here was used to choose a policy, so averages are unbiased for the belief.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from beliefbound.base.validation import FloatArray, IntArray
from beliefbound.beliefs.model_source import ModelSource
from beliefbound.models.evaluation import evaluate
from beliefbound.planning.optimal import optimal_values
from beliefbound.planning.task import Task
from beliefbound.policy import TablePolicy

BATCH_BYTES = 128 << 20
_POLICIES, _PRODUCTS, _OVERHEAD = 8.0, 200.0, 1e5  # of policy iteration in compressed rows


@dataclass(frozen=True, eq=False)
class Fresh:
    """Values on `n` models.

    Attributes:
      values: `[policy,m]`, from the start.
      best: `[m]`, of an optimal policy of each model, from the start.
      by_state: `[s]`, mean value of the first policy from each state; `spread`: its standard deviation over models.
      qmdp: `[s,a]`, mean optimal value of each pair; `qmdp_spread`: its standard deviation.
      q: `[s,a]`, mean value of taking an action once and following the first policy afterwards.
    """

    values: FloatArray
    best: FloatArray
    by_state: FloatArray
    spread: FloatArray
    qmdp: FloatArray
    qmdp_spread: FloatArray
    q: FloatArray

    @property
    def n(self) -> int:
        return len(self.best)


def solving(task: Task, source: ModelSource) -> float:
    """Multiply-adds to solve one model, roughly."""
    S, A, entries = task.belief.n_states, task.belief.n_actions, source.entries
    if task.horizon is not None:
        return entries * task.horizon
    if source.compressed:  # some policies, each by tens of products with its chain
        return _POLICIES * (_PRODUCTS * entries / A + 4.0 * entries + _OVERHEAD)
    return 8.0 * S * S * (S / 3.0 + A)


def affordable(task: Task, source: ModelSource, asked: int, *, work: float, least: int) -> int:
    """Models that can be solved with so many multiply-adds: at most `asked`, at least `least`."""
    return max(min(least, asked), min(asked, int(work / solving(task, source))))


def batch_size(source: ModelSource, bytes_: int = BATCH_BYTES) -> int:
    """Models that fit into a batch."""
    return max(1, int(bytes_ / (24.0 * source.entries)))


def fresh_values(
    task: Task,
    policies: Sequence[TablePolicy],
    n: int,
    rng: np.random.Generator,
    *,
    stop: Callable[[], bool] | None = None,
    least: int = 16,
) -> Fresh:
    """Values of `policies` on `n` fresh models; once `stop` says so, on as many as there are, `least` at least."""
    S, A = task.belief.n_states, task.belief.n_actions
    values: list[FloatArray] = []
    best: list[FloatArray] = []
    sums = [np.zeros(S), np.zeros(S), np.zeros((S, A)), np.zeros((S, A)), np.zeros((S, A))]
    source, guess = ModelSource(task.belief), _guess(policies[0])
    done, size = 0, batch_size(source)
    while done < n and not (done >= least and stop is not None and stop()):
        sample = source.sample(min(size, n - done), rng)
        solved = optimal_values(sample, discount=task.discount, horizon=task.horizon, guess=guess)
        found = [
            evaluate(p, sample, discount=task.discount, horizon=None if p.horizon else task.horizon) for p in policies
        ]
        values.append(np.stack([v @ task.start for v in found]))
        best.append(solved.above @ task.start)
        q = np.where(sample.available, solved.q, 0.0)
        after = sample.models.backup(found[0], task.discount)
        parts = (found[0], found[0] ** 2, q, q**2, np.where(sample.available, after, 0.0))
        for total, part in zip(sums, parts, strict=True):
            total += part.sum(axis=0)
        done += sample.n_models
    first, first2, q1, q2, own = (x / done for x in sums)
    return Fresh(
        np.concatenate(values, axis=1),
        np.concatenate(best),
        first,
        np.sqrt(np.maximum(0.0, first2 - first**2)),
        q1,
        np.sqrt(np.maximum(0.0, q2 - q1**2)),
        own,
    )


def _guess(policy: TablePolicy) -> IntArray | None:
    """Where to begin looking for optimal policies."""
    return policy.actions if policy.horizon is None and policy.is_deterministic else None
