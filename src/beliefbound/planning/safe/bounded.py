"""The best policy whose chances stay between a floor and a ceiling, by policy iteration or backward induction.

Under `low ≤ π(·|s) ≤ high` the greedy policy gives every action its floor, and what is left to the best actions up to
their ceilings. Policy iteration with it rises until nothing can, as without bounds: the set of policies of a state is a
polytope, whose vertices are taken. All SPIBB variants are such bounds (`planning.safe.spibb`).
"""

import numpy as np

from beliefbound.base.validation import FloatArray

_ROUNDS = 1000
_CLOSE = 1e-12  # of the largest value


def bounded_optimum(
    rows: FloatArray, rewards: FloatArray, low: FloatArray, high: FloatArray, *, discount: float, horizon: int | None
) -> FloatArray:
    """Chances `[s,a]`, or `[t,s,a]` with a horizon, of the best policy within bounds `[s,a]`.

    Args:
      rows, rewards: of one model, `[s,a,t]` and `[s,a]`.
      low, high: floors that sum to at most 1 and ceilings that sum to at least 1, in every state.

    >>> rows, rewards = np.ones((1, 2, 1)), np.array([[1.0, 0.0]])
    >>> found = bounded_optimum(rows, rewards, np.zeros((1, 2)), np.array([[0.7, 1.0]]), discount=0.5, horizon=None)
    >>> found.round(9).tolist()
    [[0.7, 0.3]]
    """
    if horizon is not None:
        values, stages = np.zeros(len(rows)), []
        for _ in range(horizon):
            q = rewards + discount * rows @ values
            stages.append(greedy_within(q, low, high))
            values = (stages[-1] * q).sum(axis=1)
        return np.stack(stages[::-1])
    policy = greedy_within(rewards, low, high)
    values = value_of(policy, rows, rewards, discount)
    for _ in range(_ROUNDS):
        after = greedy_within(rewards + discount * rows @ values, low, high)
        risen = value_of(after, rows, rewards, discount)
        if float((risen - values).max()) <= _CLOSE * max(1.0, float(np.abs(values).max())):
            break
        policy, values = after, risen
    return policy


def greedy_within(q: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """Chances `[s,a]` between bounds with the largest `Σ_a π(a|s) q(s,a)`; ties go to the lowest action."""
    policy, left = np.array(low), 1.0 - low.sum(axis=1)
    every = np.arange(len(q))
    for a in np.argsort(-q, axis=1, kind="stable").T:
        more = np.minimum(left, high[every, a] - low[every, a])
        policy[every, a] += more
        left -= more
    return np.asarray(policy / policy.sum(axis=1, keepdims=True))


def value_of(policy: FloatArray, rows: FloatArray, rewards: FloatArray, discount: float) -> FloatArray:
    """Value `[s]` of chances `[s,a]` on one model, for ever."""
    chain = (policy[:, None, :] @ rows)[:, 0]
    return np.asarray(np.linalg.solve(np.eye(len(rows)) - discount * chain, (policy * rewards).sum(axis=1)))
