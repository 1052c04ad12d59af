"""Pessimistic improvement: SPIBB's bounds, planned on frequencies of which a share leads to the worst.

Behaviour is often good *because* whoever made it knew the process, so what it rarely does is worse than its few trials,
or any prior over rows, suggest. Hence two cautions:

* *Doubt.* A pair of `n` visits leads to the worst (`planning.safe.frequencies`) with the chance `doubt/(n + doubt)`, as
  if it had been seen to happen `doubt` times. Actions that are tried often are doubted little.
* *Bootstrapping.* An action may be taken more often than behaviour does only if it was tried at least twice, or once
  and behaviour takes it at least half as often as the action that it prefers there. Of two actions that were tried once
  each, that which behaviour likes is the better bet.

With little doubt this is near the best policy of the frequencies, with much of it near the action that is tried most.
How much is right the data say (`bounds.posterior.safe`).
"""

import numpy as np

from beliefbound.base.validation import FloatArray
from beliefbound.planning.safe.frequencies import Frequencies
from beliefbound.planning.safe.spibb import within

_TWICE, _LIKED = 2.0, 0.5


def ceiling(data: Frequencies) -> FloatArray:
    """The largest chance `[s,a]` that a cautious policy gives to each action."""
    b = data.behaviour
    liked = (data.visits > 0.0) & (b >= _LIKED * b.max(axis=1, keepdims=True))
    free = ((data.visits >= _TWICE) | liked | data.terminal[:, None]) & data.available
    return np.where(free, 1.0, b)


def pessimistic(data: Frequencies, *, doubt: float, discount: float, horizon: int | None = None) -> FloatArray:
    """Chances `[s,a]`, or `[t,s,a]` with a horizon."""
    return within(data, data.model(doubt), np.zeros_like(data.behaviour), ceiling(data), discount, horizon)


def bootstrapped(data: Frequencies, chances: FloatArray) -> FloatArray:
    """A policy `[s,a]` or `[t,s,a]` that gives way to behaviour where it would do more of something than it may."""
    over = (chances > ceiling(data) + 1e-9).any(axis=-1, keepdims=True)
    return np.where(over, data.behaviour, chances)
