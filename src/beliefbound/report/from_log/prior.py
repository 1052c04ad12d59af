"""How much of the value rests on the prior alone.

*Along the way.* Of what is expected of a pair, the share `α_0/(α_0 + n)` is the prior's, `n` its visits in the log. The
discounted visits of the policy in the expected MDP weigh these shares: the part of the policy's steps about which the
log says nothing.

*Other priors.* The same policy and the same upper bound (`E max`) under other reasonable priors: if they disagree, it
is the prior that speaks. And under the chosen prior without any data.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from beliefbound.beliefs.dirichlet import DirichletBelief
from beliefbound.beliefs.from_log import Learnt, learn
from beliefbound.beliefs.log_priors import PRIORS
from beliefbound.beliefs.model_source import ModelSource
from beliefbound.bounds.posterior.fresh import affordable, fresh_values
from beliefbound.bounds.posterior.risk import mean_interval
from beliefbound.bounds.posterior.value_range import value_range
from beliefbound.logs.log import Log
from beliefbound.planning.task import Task
from beliefbound.policy import TablePolicy
from beliefbound.validation import FloatArray, frozen

_MODELS, _FEW, _WORK = 300, 8, 2e9  # of each row: at most, at least, and multiply-adds to solve them
_ERROR = 0.05  # of each interval in the table
_MOST = 0.5
_RISKY = 0.001  # of a policy's steps, actions never tried: once, and an episode may go wrong


class UnderPrior(NamedTuple):
    """What the policy and perfect knowledge are worth under one prior: estimates, and 95% intervals of each."""

    prior: str
    words: str
    value: float
    low: float
    high: float
    best: float
    best_high: float


@dataclass(frozen=True, eq=False)
class Reliance:
    """What rests on the prior.

    Attributes:
      table: one row per prior, the chosen one first, that without data last.
      visits: `[s,a]`, expected discounted visits of the policy in the expected MDP, as shares of all.
      share: of the policy's steps, the part about which the prior speaks.
      warnings: sentences, where it is most of the value.
    """

    table: tuple[UnderPrior, ...]
    visits: FloatArray
    share: float
    warnings: tuple[str, ...]


def reliance(
    log: Log,
    learnt: Learnt,
    task: Task,
    policy: TablePolicy,
    options: dict[str, Any],
    rng: np.random.Generator,
) -> Reliance:
    """How much of the value of a policy rests on the prior."""
    visits = occupancy(task, policy)
    share = float((visits * learnt.prior_share).sum())
    rows = [_row(learnt.name, learnt.prior, learnt.belief, task, policy, rng)]
    for other in PRIORS:
        if other != learnt.name:
            found = learn(log, prior=other, initial=task.start, **options)
            rows.append(_row(other, found.prior, found.belief, task, policy, rng))
    blank = _without_data(learnt)
    rows.append(_row(f"{learnt.name}, without data", "the prior alone", blank, task, policy, rng))
    untried = float(visits[(log.visits == 0) & learnt.belief.available].sum())
    return Reliance(tuple(rows), visits, share, _warnings(rows, share, untried))


def occupancy(task: Task, policy: TablePolicy) -> FloatArray:
    """Shares `[s,a]` of the policy's discounted steps in the expected MDP, steps in terminal states left out."""
    mean = task.belief.mean()
    p, chances = mean.models.dense()[0], policy.chances(mean.n_actions)
    total = np.zeros(p.shape[:2])
    if chances.ndim == 2 and task.horizon is None:
        moves = np.einsum("sa,sat->st", chances, p)
        met = np.linalg.solve(np.eye(len(moves)) - task.discount * moves.T, task.start)
        total = met[:, None] * chances
    else:
        now, weight = np.array(task.start), 1.0
        for k in range(task.horizon or policy.horizon or 1):
            here = now[:, None] * (chances if chances.ndim == 2 else chances[k])
            total += weight * here
            now, weight = np.einsum("sa,sat->t", here, p), weight * task.discount
    terminal = getattr(task.belief, "terminal", None)
    if terminal is not None:
        total[terminal] = 0.0
    return frozen(total / max(float(total.sum()), 1e-300))


def _row(
    name: str,
    words: str,
    belief: DirichletBelief,
    task: Task,
    policy: TablePolicy,
    rng: np.random.Generator,
) -> UnderPrior:
    here = Task(belief, task.start, task.discount, task.horizon)
    n = affordable(here, ModelSource(belief), _MODELS, work=_WORK, least=_FEW)
    found, range_ = fresh_values(here, [policy], n, rng), value_range(here)
    value, best = mean_interval(found.values[0], _ERROR, range_), mean_interval(found.best, _ERROR, range_)
    return UnderPrior(name, words, value.value, value.low, value.high, best.value, best.high)


def _without_data(learnt: Learnt) -> DirichletBelief:
    """The prior of transitions, with what is believed about rewards now."""
    belief = learnt.belief
    return belief._with(learnt.concentration, belief.rewards, np.zeros_like(belief.observed))


def _warnings(rows: list[UnderPrior], share: float, untried: float) -> tuple[str, ...]:
    """Plain words where the prior speaks louder than the data."""
    words = []
    if share > _MOST:
        fitted = " (which was fitted to the log as a whole)" if rows[0].prior in ("empirical", "local") else ""
        words.append(
            f"WARNING: most of this value rests on the prior: on {100 * share:.0f}% of the policy's (discounted) steps "
            f"what is expected comes from the prior{fitted} and not from what was seen there"
        )
    if untried > _RISKY:
        words.append(
            f"WARNING: on {100 * untried:.1f}% of its steps the policy does what was never tried there, on the prior's "
            f"word alone; with --only-tried (only_tried=True) it never does"
        )
    values = np.array([row.value for row in rows[:-1]])
    if np.ptp(values) > _MOST * float(np.abs(values).max()):
        low, high = rows[int(values.argmin())], rows[int(values.argmax())]
        words.append(
            f"WARNING: the value depends on the prior: the same policy is worth {low.value:.4g} under {low.prior} and "
            f"{high.value:.4g} under {high.prior}"
        )
    return tuple(words)
