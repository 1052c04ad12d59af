"""`safe:LEVEL`: the best candidate among those that are hardly ever worse than behaviour; else behaviour itself.

*Candidates* (`bounds.posterior.safe_candidates`) are made of the log's frequencies and of models of the posterior.

*Screen*. On models of a posterior that doubts a pair as if it had led to the worst `SCREEN` times already, a candidate
may be worth less than behaviour with a probability of at most the level: of `n` models at most `level (n + 1) − 1`.
*Choice*. Of those that pass, the one with the largest mean gain under a posterior with little doubt. If none passes,
or none gains, behaviour is kept.

What the level promises is a probability under that posterior; how often a truth that no posterior has drawn is worse,
docs/improvement.md has measured.
"""

import math
from typing import NamedTuple

import numpy as np

from beliefbound.base.errors import ParameterError
from beliefbound.base.validation import BoolArray, FloatArray
from beliefbound.bounds.posterior.candidates import Candidate, Choice
from beliefbound.bounds.posterior.doubtful import Doubtful
from beliefbound.bounds.posterior.safe_candidates import distinct, of_frequencies, of_posterior
from beliefbound.planning.expected import expected_optimum
from beliefbound.planning.safe.frequencies import Frequencies
from beliefbound.planning.task import Task
from beliefbound.policy import TablePolicy

SCREEN, SCORE = 2.0, 0.1  # doubt of the posteriors that screen and that choose
_MODELS, _FEW = 200, 40
_WORK = 2e9  # multiply-adds to solve them
MOST_ENTRIES = 20_000_000  # states² × actions
KEEP = "behaviour"


class Safety(NamedTuple):
    """How each candidate fared against behaviour.

    Attributes:
      names: of candidates; `worse`: how likely each is worse than behaviour, under the posterior that screens.
      gain: mean gain over behaviour under the posterior that chooses.
      level: of the screen; `n`: models.
      kept: whether behaviour was kept, since nothing passed.
      changed: `[s]`, states in which the chosen policy does something else than behaviour.
    """

    names: tuple[str, ...]
    worse: FloatArray
    gain: FloatArray
    level: float
    n: int
    kept: bool
    changed: BoolArray


def choose_safe(
    task: Task, data: Frequencies, level: float, rng: np.random.Generator, *, behaviour: TablePolicy
) -> tuple[Choice, Safety]:
    """The choice, and how candidates fared.

    Raises:
      ParameterError: the problem is too large.
    """
    S, A = data.behaviour.shape
    if S * S * A > MOST_ENTRIES:
        raise ParameterError(
            f"{S:,} states and {A:,} actions are too many for the objective safe ({MOST_ENTRIES:,} transitions at "
            f"most); give another, such as mean"
        )
    expected = Candidate("expected MDP", expected_optimum(task))
    made = of_frequencies(data, discount=task.discount, horizon=task.horizon)
    pool = distinct(made | of_posterior(task, data, expected.policy, rng))
    n = int(min(_MODELS, max(_FEW, math.ceil(2.0 / level), _WORK / (len(pool) * (S + 1.0) ** 3))))
    n = max(n, math.ceil(2.0 / level))
    gains = []
    for doubt in (SCREEN, SCORE):
        models = Doubtful.drawn(data, doubt, n, rng)
        own = models.values(data.behaviour, task.start, task.discount, task.horizon)
        found = [models.values(c.policy.chances(A), task.start, task.discount, task.horizon) for c in pool]
        gains.append(np.stack(found) - own)
    worse = ((gains[0] <= 0.0).sum(axis=1) + 1.0) / (n + 1.0)
    score = gains[1].mean(axis=1)
    passed = np.flatnonzero((worse <= level) & (score > 0.0))
    kept = len(passed) == 0
    chosen = Candidate(KEEP, behaviour) if kept else pool[int(passed[score[passed].argmax()])]
    chances = chosen.policy.chances(A)
    stages = chances if chances.ndim == 3 else chances[None]
    changed = (np.abs(stages - data.behaviour).max(axis=(0, 2)) > 1e-9) & ~data.terminal
    safety = Safety(tuple(c.name for c in pool), worse, score, level, n, kept, changed)
    return Choice(chosen, expected, (*pool, Candidate(KEEP, behaviour)), np.append(score, 0.0), 0, n), safety
