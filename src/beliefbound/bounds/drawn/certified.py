"""What a policy is worth under a belief that draws, and how far below Bayes-optimal it can be.

*Value.* On models drawn after the policy was fixed: exactly on each where the policy is a table or a finite-state
controller, else by one walk in each (`bounds.drawn.walks`). Betting intervals where rewards have a range, else
Student's, which is asymptotic.

*Distance.* `V* − V^π ≤ upper − V^π`; where values are exact on each model also `V* − V^π ≤ E[V*_m − V^π_m]`, on the
same models: the least of the two.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from beliefbound.base.validation import FloatArray
from beliefbound.bounds.bound import VALUE, Bound, Kind, Regret, missing
from beliefbound.bounds.dirichlet.certified import Found
from beliefbound.bounds.drawn.sets import task_on
from beliefbound.bounds.drawn.walks import walks
from beliefbound.bounds.policies import AnyPolicy
from beliefbound.bounds.posterior.value_range import simple_range
from beliefbound.bounds.sampled import bound_of_mean, interval_for
from beliefbound.bounds.statistics.intervals import Interval, asymptotic, describe, mean_bound
from beliefbound.planning.optimal import solved_models
from beliefbound.planning.task import Task

_BATCH, _BATCH_BYTES = 128, 64 << 20  # models drawn together
_BELOW, _ABOVE, _DISTANCE = 0.5, 0.2, 0.3  # of the error


def certify_drawn(
    policy: AnyPolicy,
    task: Task,
    best: Bound,
    *,
    rng: np.random.Generator,
    delta: float,
    samples: int,
    stop: Callable[[], bool] | None = None,
) -> Found:
    """All of it fails together with probability at most `delta`, and what `best` may fail by."""
    low, high, lost = _values(policy, task, samples, rng, stop)
    range_ = simple_range(task)
    interval: Interval = interval_for(range_)
    how = "walks in fresh models" if lost is None else "evaluation on fresh models"
    knobs: dict[str, Any] = {"range_": range_, "interval": interval, "of": VALUE}
    what = f"{how}, {len(low)} of them"
    lower = bound_of_mean(low, "lower", Kind.POLICY, what, alpha=delta * _BELOW, **knobs)
    upper = bound_of_mean(high, "upper", Kind.POLICY, what, alpha=delta * _ABOVE, **knobs)
    regret, method = missing(best.value, lower.value, exact=False), f"{best.method}, minus the policy's value"
    if lost is not None:
        span = None if range_ is None else (0.0, range_[1] - range_[0])
        sure = 1.0 - delta * _DISTANCE
        apart = mean_bound(lost, "upper", confidence=sure, range_=span, interval=interval)
        if apart < regret:
            regret, method = max(0.0, apart), f"the policy and each model's own on the same {len(lost)} models"
            method += f", {describe(interval)} interval"
    return Found(
        lower,
        upper,
        best,
        Regret(
            regret,
            method,
            exact=False,
            confidence=max(0.0, best.confidence - delta),
            estimate=max(0.0, best.centre - lower.centre),
            n_samples=len(low),
            policy=policy.saved,
            asymptotic=best.asymptotic or asymptotic(interval),
        ),
    )


def _values(
    policy: AnyPolicy, task: Task, samples: int, rng: np.random.Generator, stop: Callable[[], bool] | None
) -> tuple[FloatArray, FloatArray, FloatArray | None]:
    """What the policy earns on fresh models `[m]`, at least and at most, and how far below each model's own best that
    is; `None` where it is simulated."""
    size, range_ = 8 * task.belief.n_states**2 * task.belief.n_actions, simple_range(task)
    batch = int(np.clip(_BATCH_BYTES // size, 1, _BATCH))
    low, high, lost, done = list[FloatArray](), list[FloatArray](), list[FloatArray](), 0
    own = policy.fresh()
    while done < samples and not (done > 1 and stop is not None and stop()):
        drawn = task_on(task.belief.sample(min(batch, samples - done), rng), task)
        found = policy.enclosed_on(drawn)
        if found is None:
            earned = np.array(walks(own, drawn.belief, task, rng, done)).reshape(-1, 2)
            low.append(earned[:, 0])
            high.append(earned[:, 1])
        else:
            values, error = found
            low.append(values - error)
            high.append(values + error)
            lost.append(np.maximum(0.0, solved_models(drawn).above @ task.start - low[-1]))
        done += drawn.models.n_models
    ends = [np.concatenate(x) if range_ is None else np.clip(np.concatenate(x), *range_) for x in (low, high)]
    if not lost:
        return ends[0], ends[1], None
    gaps = np.concatenate(lost)
    return ends[0], ends[1], gaps if range_ is None else np.clip(gaps, 0.0, range_[1] - range_[0])
