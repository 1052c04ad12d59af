"""Values of several policies, and of knowing the model, on the same fresh models of a belief.

Models are drawn in batches, so that memory is that of a batch. The same models for all: differences of policies are
paired. Nothing here was used to choose a policy, so averages are unbiased for the belief.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from beliefbound.base.validation import FloatArray, IntArray
from beliefbound.beliefs.capabilities import terminal
from beliefbound.beliefs.finite import FiniteBelief
from beliefbound.beliefs.model_source import ModelSource
from beliefbound.models.evaluation import check_fits, evaluate
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
      best: `[k]`, of an optimal policy of each of the first `k` models, from the start.
      drawn: `[m]`, of the first policy from starts that were drawn too; `None` where the start is known.
      by_state: `[s]`, mean value of the first policy from each state; `spread`: its standard deviation over models.
      qmdp: `[s,a]`, mean optimal value of each pair; `qmdp_spread`: its standard deviation.
      q: `[s,a]`, mean value of taking an action once and following the first policy afterwards.
    """

    values: FloatArray
    best: FloatArray
    drawn: FloatArray | None
    by_state: FloatArray
    spread: FloatArray
    qmdp: FloatArray
    qmdp_spread: FloatArray
    q: FloatArray

    @property
    def n(self) -> int:
        return int(self.values.shape[1])


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
    solved: int | None = None,
    starts: IntArray | None = None,
) -> Fresh:
    """Values of `policies` on `n` fresh models; once `stop` says so, on as many as there are, `least` at least.

    Args:
      solved: of how many models optimal policies are found, which takes most of the time; default: of all.
      starts: `[s]`, how many episodes began in each state: start distributions are then drawn with the models, from a
        Dirichlet posterior with a prior of one observation's weight, even on all states where something happens.
    """
    S, A = task.belief.n_states, task.belief.n_actions
    values: list[FloatArray] = []
    best: list[FloatArray] = []
    drawn: list[FloatArray] = []
    begun = None if starts is None else np.flatnonzero(~terminal(task.belief) | (starts > 0))
    sums = [np.zeros(S), np.zeros(S), np.zeros((S, A)), np.zeros((S, A)), np.zeros((S, A))]
    source, guess = ModelSource(task.belief), _guess(policies[0], A)
    done, ended, size = 0, 0, batch_size(source)
    while done < n and not (done >= least and stop is not None and stop()):
        sample = source.sample(min(size, n - done), rng)
        few = sample.n_models if solved is None else max(0, min(sample.n_models, solved - ended))
        found = [_values(p, sample, task) for p in policies]
        values.append(np.stack([v @ task.start for v in found]))
        if starts is not None and begun is not None:
            chances = rng.dirichlet(starts[begun] + 1.0 / len(begun), sample.n_models)
            drawn.append(np.einsum("ms,ms->m", chances, found[0][:, begun]))
        parts = [
            found[0],
            found[0] ** 2,
            np.where(sample.available, sample.models.backup(found[0], task.discount), 0.0),
        ]
        if few:
            first_ones = sample.models if few == sample.n_models else sample.models.select(np.arange(few))
            top = optimal_values(first_ones, discount=task.discount, horizon=task.horizon, guess=guess)
            best.append(top.above @ task.start)
            q = np.where(sample.available, top.q, 0.0)
            parts += [q, q**2]
        for total, part in zip(sums, parts, strict=False):
            total += part.sum(axis=0)
        done, ended = done + sample.n_models, ended + few
    first, first2, own = (x / done for x in sums[:3])
    q1, q2 = (x / ended for x in sums[3:])
    return Fresh(
        np.concatenate(values, axis=1),
        np.concatenate(best),
        np.concatenate(drawn) if drawn else None,
        first,
        np.sqrt(np.maximum(0.0, first2 - first**2)),
        q1,
        np.sqrt(np.maximum(0.0, q2 - q1**2)),
        own,
    )


def _values(policy: TablePolicy, sample: FiniteBelief, task: Task) -> FloatArray:
    """Values `[m,s]` as a solver leaves them: what a mean over models is told to is far more than their rounding."""
    if policy.horizon is None and task.horizon is None:
        return sample.models.solve(check_fits(policy, sample.models), task.discount)
    return evaluate(policy, sample, discount=task.discount, horizon=None if policy.horizon else task.horizon)


def _guess(policy: TablePolicy, n_actions: int) -> IntArray | None:
    """Where to begin looking for optimal policies."""
    return None if policy.horizon is not None else policy.chances(n_actions).argmax(axis=-1)
