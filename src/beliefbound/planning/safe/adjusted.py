"""Reward-adjusted and robust MDPs (Petrik, Ghavamzadeh & Chow, NIPS 2016): pessimism in proportion to `1/√n`.

* *Reward-adjusted*: the best policy of the frequencies where a pair of `n` visits pays `κ/√n` less.
* *Robust*: the best policy against the worst transitions within an L1 distance `κ/√n` of the frequencies, pair by pair:
  half of the distance goes from the best outcomes to the worst state. Value iteration, until values move by less than
  1e-9 of the largest.

Only what was tried is done; where nothing was, behaviour goes on.
"""

import numpy as np

from beliefbound.base.validation import FloatArray
from beliefbound.planning.safe.bounded import bounded_optimum
from beliefbound.planning.safe.frequencies import Frequencies

_CLOSE = 1e-9
_SWEEPS = 100_000


def reward_adjusted(data: Frequencies, *, penalty: float, discount: float, horizon: int | None = None) -> FloatArray:
    """Chances `[s,a]`, or `[t,s,a]` with a horizon."""
    rows, rewards = data.model()
    paid = np.array(rewards)
    paid[:-1] -= penalty * np.where(data.terminal[:, None], 0.0, 1.0 / np.sqrt(np.maximum(data.visits, 1.0)))
    low, high = _ends(data)
    return bounded_optimum(rows, paid, low, high, discount=discount, horizon=horizon)[..., :-1, :]


def robust_l1(data: Frequencies, *, distance: float, discount: float) -> FloatArray:
    """Chances `[s,a]` of the policy that is best against the worst rows."""
    rows, rewards = data.model()
    reach = np.zeros(rewards.shape)
    reach[:-1] = np.where(data.terminal[:, None], 0.0, distance / np.sqrt(np.maximum(data.visits, 1.0)))
    low, high = _ends(data)
    values, q = np.zeros(len(rows)), rewards
    for _ in range(_SWEEPS):
        q = rewards + discount * worst_mean(rows, values, reach)
        after = np.where(high > 0.0, q, -np.inf).max(axis=1)
        gap = float(np.abs(after - values).max())
        values = after
        if gap <= _CLOSE * max(1.0, float(np.abs(values).max())) * (1.0 - discount):
            break
    best = np.where(high > 0.0, q, -np.inf).argmax(axis=1)
    return np.asarray(np.where(low.sum(axis=1, keepdims=True) > 0.0, low, np.eye(data.n_actions)[best])[:-1])


def worst_mean(rows: FloatArray, values: FloatArray, reach: FloatArray) -> FloatArray:
    """The least mean of values `[t]` under rows `[s,a,t]` moved by at most `reach` `[s,a]` in L1.

    >>> worst_mean(np.array([[[0.0, 0.5, 0.5]]]), np.array([0.0, 1.0, 2.0]), np.array([[0.6]])).round(3).tolist()
    [[0.9]]
    """
    order = np.argsort(-values, kind="stable")
    ranked, worth = rows[..., order], values[order]
    gone = np.minimum(0.5 * reach, 1.0 - ranked[..., -1])
    before = np.cumsum(ranked, axis=-1) - ranked
    taken = np.clip(gone[..., None] - before, 0.0, ranked)
    taken[..., -1] = 0.0
    return np.asarray((ranked - taken) @ worth + taken.sum(axis=-1) * worth[-1])


def _ends(data: Frequencies) -> tuple[FloatArray, FloatArray]:
    """Bounds `[s+1,a]`: what was tried, behaviour where nothing was."""
    tried = data.tried & data.available
    blank = ~tried.any(axis=1, keepdims=True)
    low = np.where(blank, data.behaviour, 0.0)
    high = np.where(blank, data.behaviour, tried.astype(np.float64))
    return np.vstack([low, np.zeros((1, data.n_actions))]), np.vstack([high, np.ones((1, data.n_actions))])
