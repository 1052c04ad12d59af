"""How much of the value rests on the prior alone.

*Along the way.* Of what is expected of a pair, the share `α_0/(α_0 + n)` is the prior's, `n` its visits in the log. The
discounted visits of the policy in the expected MDP weigh these shares: the part of the policy's steps about which the
log says nothing.

*Other priors.* The same policy and the same upper bound (`E max`) under other reasonable priors, and what the truth
pays with some probability under each of them; and under the chosen prior without any data. How well a prior predicts
the log is known (`beliefs.log_priors`): one that does so a thousand times worse than another is refuted, and
its word does not count. If those that are left disagree, it is the prior that speaks. Among them are rows with few
successors (`beliefs.few_successors`), which plans cannot be made with as quickly.
"""

import math
from typing import Any

import numpy as np

from beliefbound.base.validation import FloatArray, IntArray, frozen
from beliefbound.beliefs.belief import Belief
from beliefbound.beliefs.capabilities import expected, terminal
from beliefbound.beliefs.dirichlet import DirichletBelief
from beliefbound.beliefs.few_successors import FEW, few_successors
from beliefbound.beliefs.from_log import Learnt, learn
from beliefbound.beliefs.log_priors import PRIORS
from beliefbound.beliefs.model_source import ModelSource
from beliefbound.bounds.posterior.fresh import Fresh, affordable, fresh_values
from beliefbound.bounds.posterior.risk import credible_lower, mean_interval
from beliefbound.bounds.posterior.value_range import value_range
from beliefbound.logs.log import Log
from beliefbound.planning.task import Task
from beliefbound.policy import TablePolicy
from beliefbound.report.from_log.result import Reliance, UnderPrior

_MODELS, _FEW, _WORK = 120, 8, 2e9  # of each row: at most, at least, and multiply-adds to solve them
_SOLVED = 12  # of which optimal policies are found
FEW_WORDS = "rows with few successors, nobody knows which or how few"
_MOST = 0.5
_RISKY = 0.001  # of a policy's steps, actions never tried: once, and an episode may go wrong


def reliance(
    log: Log,
    learnt: Learnt,
    task: Task,
    policy: TablePolicy,
    fresh: Fresh,
    options: dict[str, Any],
    rng: np.random.Generator,
    *,
    confidence: float = 0.95,
    starts: IntArray | None = None,
) -> Reliance:
    """How much of the value of a policy rests on the prior; `confidence` of each interval in the table. `fresh`: values
    under the posterior, of that policy first; `starts`: as it was drawn with."""
    visits = occupancy(task, policy)
    share = float((visits * learnt.prior_share).sum())
    rows, scores = [_told(learnt.name, learnt.prior, task, fresh, confidence)], [learnt.foretold]
    for other in PRIORS:
        if other != learnt.name:
            found = learn(log, prior=other, initial=task.start, **options)
            rows.append(_row(other, found.prior, found.belief, task, policy, starts, rng, confidence))
            scores.append(found.foretold)
    best = max(score for score in scores if score is not None)
    if isinstance(learnt.belief, DirichletBelief):
        few = few_successors(log, learnt.belief)
        rows.append(_row(FEW, FEW_WORDS, few.belief, task, policy, starts, rng, confidence))
        scores.append(few.foretold)
    rows = [
        row if score is None else row._replace(evidence=(score - best) / math.log(10.0))
        for row, score in zip(rows, scores, strict=True)
    ]
    blank = learnt.without_data()
    alone = _row(f"{learnt.name}, without data", "the prior alone", blank, task, policy, starts, rng, confidence)
    counted = [rows[0], *(row for row in rows[1:] if not row.refuted)]
    untried = float(visits[(log.visits == 0) & learnt.belief.available].sum())
    warnings = _warnings([row for row in rows if row.prior != FEW], counted, share, untried, log)
    least = min(counted, key=lambda row: row.credible)
    return Reliance((*rows, alone), least, visits, share, untried, warnings)


def occupancy(task: Task, policy: TablePolicy) -> FloatArray:
    """Shares `[s,a]` of the policy's discounted steps in the expected MDP, steps in terminal states left out."""
    mean = expected(task.belief)
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
    total[terminal(task.belief)] = 0.0
    return frozen(total / max(float(total.sum()), 1e-300))


def _row(
    name: str,
    words: str,
    belief: Belief,
    task: Task,
    policy: TablePolicy,
    starts: IntArray | None,
    rng: np.random.Generator,
    confidence: float,
) -> UnderPrior:
    here = Task(belief, task.start, task.discount, task.horizon)
    few = max(_FEW, min(_MODELS, math.ceil(1.0 / (1.0 - confidence))))  # so that something is credible
    n = affordable(here, ModelSource(belief), _MODELS, work=_WORK, least=few)
    found = fresh_values(here, [policy], n, rng, solved=_SOLVED, starts=starts)
    return _told(name, words, here, found, confidence)


def _told(name: str, words: str, task: Task, found: Fresh, confidence: float) -> UnderPrior:
    """A row from values on fresh models."""
    range_ = value_range(task)
    value, best = (mean_interval(x, 1.0 - confidence, range_) for x in (found.values[0], found.best))
    credible = credible_lower(
        found.values[0] if found.drawn is None else found.drawn, confidence, -np.inf if range_ is None else range_[0]
    ).low
    return UnderPrior(name, words, value.value, value.low, value.high, credible, best.value, best.high)


def _warnings(
    rows: list[UnderPrior], counted: list[UnderPrior], share: float, untried: float, log: Log
) -> tuple[str, ...]:
    """Plain words where the prior speaks louder than the data; `counted`: the rows that are not refuted."""
    words = []
    if share > _MOST:
        fitted = " (which was fitted to the log as a whole)" if rows[0].prior in ("empirical", "local") else ""
        words.append(
            f"WARNING: most of this value rests on the prior: on {100 * share:.0f}% of the policy's (discounted) steps "
            f"what is expected comes from the prior{fitted} and not from what was seen there"
        )
    if untried > _RISKY:
        where = (
            "" if (log.visits.sum(axis=1) == 0).any() else "; without --try-untried (try_untried=True) it never does"
        )
        words.append(
            f"WARNING: on {100 * untried:.1f}% of its steps the policy is expected to do what was never tried there, "
            f"from the prior alone{where}"
        )
    values = np.array([row.value for row in counted])
    if np.ptp(values) > _MOST * float(np.abs(values).max()):
        low, high = counted[int(values.argmin())], counted[int(values.argmax())]
        words.append(
            f"WARNING: the value depends on the prior: the same policy is worth {low.value:.4g} under {low.prior} and "
            f"{high.value:.4g} under {high.prior}"
        )
    if rows[0].refuted:
        best = max(rows, key=lambda row: row.evidence or 0.0)
        words.append(
            f"WARNING: the log speaks against the prior {rows[0].prior}: the leave-one-pair-out likelihood "
            f"of {best.prior} is 10^{-(rows[0].evidence or 0.0):.0f} times higher"
        )
    return tuple(words)
