"""What both sides of a bracket need to know of a Dirichlet belief: its arrays, the range of values, the horizon to plan
for.

A horizon so long that what follows is worth under 0.1% of the range of values is planned for as if it were infinite;
rewards are still counted to the horizon only. From above this is valid because with rewards at least `r_min`, `V_T ≤
V_∞ − r_min γ^T/(1−γ)`.
"""

import numpy as np
import numpy.typing as npt

from beliefbound.beliefs import BetaRewards, DirichletBelief, KnownRewards
from beliefbound.bounds.basic import effective_horizon
from beliefbound.kernels.particles.rows import Prior

_TAIL = 1e-3


def prior_of(belief: DirichletBelief, discount: float, horizon: int | None, address: npt.NDArray[np.uint64]) -> Prior:
    """The belief as arrays over pairs (state, action), with particles at `address`."""
    rewards = belief.rewards
    n_states, n_actions, _ = belief.concentration.shape
    pairs = n_states * n_actions
    success, failure, (low, high) = np.ones(pairs), np.ones(pairs), (0.0, 1.0)
    if isinstance(rewards, BetaRewards):
        success, failure = np.array(rewards.alpha).ravel(), np.array(rewards.beta).ravel()
        low, high = rewards.low, rewards.high
    return Prior(
        alpha=np.array(belief.concentration).reshape(pairs, n_states),
        success=success,
        failure=failure,
        known=np.array(rewards.mean()).ravel(),
        low=float(low),
        high=float(high),
        bernoulli=isinstance(rewards, BetaRewards),
        n_actions=n_actions,
        discount=float(discount),
        horizon=-1 if horizon is None else int(horizon),
        address=address,
    )


def span(belief: DirichletBelief, discount: float, horizon: int | None) -> float:
    """Width of the range of values."""
    low, high = reward_range(belief)
    return float((high - low) * effective_horizon(discount, horizon))


def reward_range(belief: DirichletBelief) -> tuple[float, float]:
    """Least and largest possible mean reward."""
    assert isinstance(belief.rewards, KnownRewards | BetaRewards)
    return belief.rewards.range


def planned(discount: float, horizon: int | None) -> int | None:
    """The horizon to plan for: none where what comes after is worth less than 0.1% of the range of values."""
    if horizon is None or (discount < 1.0 and discount**horizon <= _TAIL):
        return None
    return horizon


def tail_correction(belief: DirichletBelief, discount: float, horizon: int | None, planned_: int | None) -> float:
    """What an infinite-horizon upper bound may be lowered by for a horizon: `r_min γ^T/(1−γ)`."""
    if horizon is None or planned_ is not None:
        return 0.0
    return float(reward_range(belief)[0] * discount**horizon / (1.0 - discount))
