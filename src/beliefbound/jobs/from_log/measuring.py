"""What to measure next, in the time there is: `value_of_information` with as many draws as are affordable.

Nothing is worth more to know than everything: no interval reaches above `E max`, from above, minus what the policy is
certain to earn. Both are taken from the certificate, which has sampled them, on as many models as are enough for this.
"""

from typing import Any

import numpy as np

from beliefbound.bounds.bracket import Bracket
from beliefbound.bounds.information.dirichlet import Known
from beliefbound.bounds.information.result import Information
from beliefbound.bounds.information.value import information_of
from beliefbound.bounds.information.worth import between
from beliefbound.planning.task import Task

_PER_DRAW, _POOL = 200, 12  # models that a draw is worth in time, and policies that are valued on them
_RATE, _OVERHEAD = 5e8, 2e-6  # multiply-adds a second, seconds a solve
_LEAST, _MOST, _MODELS = 12, 100, 1000
_BYTES = 1 << 29
_POLICY = 1.0 / 16.0  # of the error, which the policy's value, from the certificate, may have
_KNOWN = 1.0 / 4.0  # and the two ends of `E max`
_BRACKET = 1.0 / 4.0  # and a bracket that is given
_MOST_ERROR = 0.75


def measure_next(
    task: Task,
    known: Known,
    n_models: int,
    least: float,
    error: float,
    bounds: Bracket | None,
    rng: np.random.Generator,
    seconds: float,
) -> Information | None:
    """The rise of the best plan's value from making each pair known; `None` where it would take too long.

    Args:
      known: `E max` on `n_models` models, both ends with a quarter of the error.
      least: what the policy earns at least, with a sixteenth of it.
      error: of all intervals together.
      bounds: a bracket of the task, where there is one, with a quarter of the error.
    """
    belief = task.belief
    S, A = belief.n_states, belief.n_actions
    stages = S / 3.0 + A if task.horizon is None else float(task.horizon * A)
    solve = S * S * stages / _RATE + _OVERHEAD
    used = 0.3 * S * A * _POOL + _POOL  # a policy is valued again only where it takes the pair
    affordable = max(5.0, seconds) / (used * _PER_DRAW * solve)
    draws = int(min(_MOST, affordable, _BYTES // (16 * _PER_DRAW * S * A * S)))
    if draws < _LEAST:
        return None
    # Of the error of `information_of` a quarter goes to measurements, a quarter to `E max` and half to a bracket, where
    # it samples them itself. The end of `E max` that the certificate has told is taken off in any case.
    again = n_models < _MODELS  # too few: `E max` is sampled for this
    told = _POLICY + (_KNOWN / 2.0 if again else 0.0)
    rest = (1.0 - told - (0.0 if again else _KNOWN)) * error
    share = 0.25 + (0.25 if again else 0.0) + (0.5 if bounds is None else 0.0)
    own = (rest if bounds is None else rest - _BRACKET * error) / share
    knobs: dict[str, Any] = {"draws": draws, "confidence": 1.0 - min(own, _MOST_ERROR), "rng": rng}
    found = information_of(task, bounds=bounds, known=None if again else known, n_models=_MODELS, **knobs)
    most, all_, sure = max(0.0, known.high - least), found.evpi, found.confidence - told * error
    low, high = min(all_.low, most), min(all_.high, most)
    capped = between(low, high, all_.of, all_.method, confidence=sure, asymptotic=all_.asymptotic)
    return Information(capped, np.minimum(found.low, most), np.minimum(found.high, most), sure, found.tries)
