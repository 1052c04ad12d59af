"""Anybody's policy under a belief that draws: trajectories in fresh models, one each.

A model is drawn, the policy walks in it and sees what the model's signal shows. Rewards are counted as the model
expects them, and what a step leads to as it is expected on average: with any function `V` of the model's states,

    Σ_k γ^k [ r(s_k, a_k) + γ β_k (E V(s_{k+1}) − V(s_{k+1})) ]

has the policy's value as its mean, whatever the shares `β_k ∈ [0, 1]` that are decided before `s_{k+1}` is drawn. `V`
is the model's own optimal value, which takes away most of the noise, and `β_k` the largest share that keeps every
sample between the least and the largest value there can be. What is left after the last step counts as the least, from
below, and as the most, from above.
"""

from typing import NamedTuple

import numpy as np

from beliefbound.base.errors import ParameterError
from beliefbound.base.validation import FloatArray
from beliefbound.beliefs import FiniteBelief
from beliefbound.bounds.dirichlet.walks import Earned, walk_depth
from beliefbound.bounds.policies import AnyPolicy
from beliefbound.kernels.random import inverse_cdf
from beliefbound.planning.optimal import optimal_values
from beliefbound.planning.task import Task, effective_horizon
from beliefbound.policy.protocol import checked_action


class _Ends(NamedTuple):
    """Least and largest reward of a step; infinite where there are none."""

    low: float
    high: float


def walks(policy: AnyPolicy, sample: FiniteBelief, task: Task, rng: np.random.Generator, first: int) -> list[Earned]:
    """One walk in each of the models drawn; the policy's own seeds are `first`, `first + 1`, …"""
    if not sample.signal.finite:
        raise ParameterError(
            f"rewards of {task.belief!r} are seen, and are any number: no walk of a policy that learns can be drawn; "
            "give a table"
        )
    solved = optimal_values(sample, discount=task.discount, horizon=task.horizon).values
    range_ = task.belief.reward_range
    ends = _Ends(-np.inf, np.inf) if range_ is None else _Ends(*range_)
    return [_walk(policy, sample, m, solved[m], task, ends, rng, first + m) for m in range(sample.n_models)]


def _walk(
    policy: AnyPolicy,
    sample: FiniteBelief,
    m: int,
    values: FloatArray,
    task: Task,
    ends: _Ends,
    rng: np.random.Generator,
    seed: int,
) -> Earned:
    depth, discount = walk_depth(task.discount, task.horizon), task.discount
    left = [None if task.horizon is None else task.horizon - k for k in range(depth + 1)]
    lasts = [0.0 if n == 0 else effective_horizon(discount, n) for n in left]
    low, high = ends.low * lasts[0], ends.high * lasts[0]
    policy.reset(seed)
    s, total, factor = int(inverse_cdf(task.start, rng.random())), 0.0, 1.0
    for k in range(depth):
        a = checked_action(s, policy.act(s), sample.available)
        arrivals, chances = sample.models.transitions.entries(s, a)
        total += factor * float(sample.rewards[m, s, a])
        factor *= discount
        after = values[arrivals[chances[m] > 0.0]]
        mean = float(chances[m] @ values[arrivals])
        above, below = float(after.max()) - mean, mean - float(after.min())
        share = 1.0
        if np.isfinite(low) and factor > 0.0:
            share = min(share, _share(total + factor * ends.low * lasts[k + 1] - low, factor * above))
            share = min(share, _share(high - total - factor * ends.high * lasts[k + 1], factor * below))
        reward, t = sample.step(m, s, a, rng)
        total += factor * share * (mean - float(values[t]))
        policy.observe(s, a, reward, t)
        s = t
    rest = factor * lasts[depth]
    if not np.isfinite(low):
        return Earned(total, total)
    return Earned(
        float(np.clip(total + rest * ends.low, low, high)), float(np.clip(total + rest * ends.high, low, high))
    )


def _share(slack: float, most: float) -> float:
    """The largest share of `most` that `slack` has room for."""
    return 1.0 if most <= 0.0 else max(0.0, min(1.0, slack / most))
