"""What to measure next, in the time there is: `value_of_information` with as many draws as are affordable."""

import numpy as np

from beliefbound.bounds.bound import Bound
from beliefbound.bounds.information.result import Information
from beliefbound.bounds.information.value import value_of_information
from beliefbound.planning.task import Task

_PER_DRAW, _POOL = 128, 12  # models that a draw takes, and policies that are valued on them
_RATE, _OVERHEAD = 5e8, 2e-6  # multiply-adds a second, seconds a solve
_LEAST, _MOST = 12, 100
_BYTES = 1 << 29


def measure_next(task: Task, lower: Bound, rng: np.random.Generator, seconds: float) -> Information | None:
    """The rise of the best plan's value from making each pair known; `None` where it would take too long."""
    belief = task.belief
    S, A = belief.n_states, belief.n_actions
    stages = S / 3.0 + A if task.horizon is None else float(task.horizon * A)
    solve = S * S * stages / _RATE + _OVERHEAD
    used = 0.3 * S * A * _POOL + _POOL  # a policy is valued again only where it takes the pair
    affordable = max(5.0, seconds) / (used * _PER_DRAW * solve)
    draws = int(min(_MOST, affordable, _BYTES // (16 * _PER_DRAW * S * A * S)))
    if draws < _LEAST:
        return None
    return value_of_information(
        belief,
        discount=task.discount,
        horizon=task.horizon,
        initial=task.start,
        draws=draws,
        n_models=100,
        rng=rng,
    )
