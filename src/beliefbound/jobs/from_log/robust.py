"""An objective that looks at bad models, over finitely many models drawn from the posterior: `robust_bracket`.

`cvar:a` is the worst prior of density at most `1/a`, `l1:e` the worst within that distance in L1, `worst` the worst of
all priors, so they are games that `bounds.robust` brackets: between what a mixture of policies secures, some of which
learn as they act, and what nobody can exceed. The bracket is about the *drawn* models and about no others; what it says
of the posterior is how much the chosen memoryless policy, valued on the same models, leaves on the table. A percentile
is no such game.
"""

from collections.abc import Callable

import numpy as np

from beliefbound.bounds.posterior.candidates import Candidate
from beliefbound.bounds.posterior.risk import Objective
from beliefbound.bounds.robust import robust_bracket
from beliefbound.models.evaluation import evaluate
from beliefbound.planning.task import Task
from beliefbound.report.from_log.result import DrawnModels

_MODELS = 20
_ENTRIES = 400_000  # probabilities of all drawn models up to which the search is quick


def drawn_models(
    task: Task,
    objective: Objective,
    chosen: Candidate,
    *,
    seconds: float,
    rounds: int | None,
    rng: np.random.Generator,
    threads: int | None,
    stop: Callable[[], bool] | None,
) -> DrawnModels | None:
    """The bracket of an objective on drawn models; `None` where it is no game, or the problem too large."""
    priors = {"cvar": str(objective), "l1": str(objective), "worst": "all"}.get(objective.kind)
    belief = task.belief
    if priors is None or _MODELS * belief.n_states**2 * belief.n_actions > _ENTRIES or seconds <= 0.0:
        return None
    sample = belief.sample(_MODELS, rng)
    found = robust_bracket(
        sample,
        priors=priors,
        initial=task.start,
        discount=task.discount,
        horizon=task.horizon,
        time_limit=seconds if rounds is None else None,
        effort=rounds,
        rng=rng,
        threads=threads,
        stop=stop,
    )
    stages = None if chosen.policy.horizon else task.horizon
    values = evaluate(chosen.policy, sample, discount=task.discount, horizon=stages) @ task.start
    return DrawnModels(_MODELS, found, float(objective.of(values)))
