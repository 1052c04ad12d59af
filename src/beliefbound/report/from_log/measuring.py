"""What to measure next, in the time there is: `value_of_information` with as many draws as are affordable.

Nothing is worth more to know than everything: no interval reaches above `E max`, from above, minus what the policy is
certain to earn, which the certificate has already.
"""

import numpy as np

from beliefbound.bounds.bracket import Bracket
from beliefbound.bounds.information.result import Information
from beliefbound.bounds.information.value import value_of_information
from beliefbound.bounds.information.worth import between
from beliefbound.planning.task import Task

_PER_DRAW, _POOL = 200, 12  # models that a draw is worth in time, and policies that are valued on them
_RATE, _OVERHEAD = 5e8, 2e-6  # multiply-adds a second, seconds a solve
_LEAST, _MOST, _MODELS = 12, 100, 1000
_BYTES = 1 << 29
_OTHER = 3.0 / 16.0  # of the error, which the policy's value and `E max`, from the certificate, may have
_BRACKET = 1.0 / 4.0  # and a bracket that is given
_MOST_ERROR = 0.75


def measure_next(
    task: Task, most: float, error: float, bounds: Bracket | None, rng: np.random.Generator, seconds: float
) -> Information | None:
    """The rise of the best plan's value from making each pair known; `None` where it would take too long.

    Args:
      most: what knowing everything is worth at most, apart from three sixteenths of the error.
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
    own = (1.0 - _OTHER) * error if bounds is None else 2.0 * (1.0 - _OTHER - _BRACKET) * error  # half is the bracket's
    found = value_of_information(
        belief,
        discount=task.discount,
        horizon=task.horizon,
        initial=task.start,
        draws=draws,
        bounds=bounds,
        n_models=_MODELS,
        confidence=1.0 - min(own, _MOST_ERROR),
        rng=rng,
    )
    known, sure = found.evpi, found.confidence - _OTHER * error
    capped = between(
        min(known.low, most),
        min(known.high, most),
        known.of,
        known.method,
        confidence=sure,
        asymptotic=known.asymptotic,
    )
    return Information(capped, np.minimum(found.low, most), np.minimum(found.high, most), sure, found.tries)
