"""Soft-SPIBB (Nadjahi, Laroche & Tachet des Combes, ECML 2019): behaviour may be left by as much as data allow.

In every state `Σ_a e(s,a) |π(a|s) − b(a|s)| ≤ ε`, with errors `e = 1/√n` of pairs tried `n` times; what was never tried
keeps behaviour's chance. The step is the paper's approximate one: of the actions, the worst first, chance is moved to
the action that gains most per unit of error, until the budget is spent. It is exact for two actions, and respects the
budget for any number. Rounds of it end when the value no longer rises.
"""

import numpy as np

from beliefbound.base.validation import FloatArray
from beliefbound.planning.safe.bounded import value_of
from beliefbound.planning.safe.frequencies import Frequencies

_ROUNDS = 50
_CLOSE = 1e-12


def soft_spibb(data: Frequencies, *, budget: float, discount: float) -> FloatArray:
    """Chances `[s,a]` of Approx-Soft-SPIBB."""
    rows, rewards = data.model()
    with np.errstate(divide="ignore"):
        errors = np.where(data.tried, 1.0 / np.sqrt(np.where(data.terminal[:, None], 1.0, data.visits)), np.inf)
    policy = data.behaviour
    values = _values(policy, rows, rewards, discount)
    for _ in range(_ROUNDS):
        q = (rewards + discount * rows @ values)[:-1]
        after = np.stack([moved(*state, budget) for state in zip(data.behaviour, q, errors, strict=True)])
        risen = _values(after, rows, rewards, discount)
        if float((risen - values).max()) <= _CLOSE * max(1.0, float(np.abs(values).max())):
            break
        policy, values = after, risen
    return policy


def moved(behaviour: FloatArray, q: FloatArray, errors: FloatArray, budget: float) -> FloatArray:
    """Chances `[a]` of one state after the step.

    >>> moved(np.array([0.5, 0.5]), np.array([0.0, 1.0]), np.array([1.0, 0.5]), 0.3).round(9).tolist()
    [0.3, 0.7]
    """
    policy = np.array(behaviour)
    for a in np.argsort(q, kind="stable"):
        if not np.isfinite(errors[a]):
            continue
        gain = np.where(np.isfinite(errors), (q - q[a]) / (errors + errors[a]), 0.0)
        best = int(gain.argmax())
        if gain[best] <= 0.0:
            break
        step = min(float(policy[a]), budget / float(errors[a] + errors[best]))
        policy[a] -= step
        policy[best] += step
        budget -= step * float(errors[a] + errors[best])
    return policy


def _values(policy: FloatArray, rows: FloatArray, rewards: FloatArray, discount: float) -> FloatArray:
    worst = np.full((1, policy.shape[1]), 1.0 / policy.shape[1])
    return value_of(np.vstack([policy, worst]), rows, rewards, discount)
