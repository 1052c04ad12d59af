"""What both sides of a bracket need to know of a Dirichlet belief: simple policies, the range of values, the horizon to
plan for.

A horizon so long that what follows is worth under 0.1% of the range of values is planned for as if it were infinite;
rewards are still counted to the horizon only. From above this is valid because with rewards at least `r_min`, `V_T ≤
V_∞ − r_min γ^T/(1−γ)`.
"""

import numpy as np

from beliefbound.beliefs import BetaRewards, DirichletBelief, KnownRewards
from beliefbound.beliefs.finite import FiniteBelief
from beliefbound.bounds.simple import effective_horizon
from beliefbound.planning.optimal import backward_induction, optimal_values, policy_iteration
from beliefbound.policy import Policy, StationaryPolicy

_TAIL = 1e-3


def few_policies(
    belief: DirichletBelief, sample: FiniteBelief, discount: float, horizon: int | None, count: int
) -> list[Policy]:
    """The expected MDP's policy and the optimal ones of the first few models, as stationary policies."""
    pool: list[Policy] = [stationary_optimum(belief, discount, horizon)]
    chosen = FiniteBelief.of(
        sample.models.select(np.arange(min(count - 1, sample.n_models))), reward_signal="unobserved"
    )
    pool += [StationaryPolicy(x) for x in optimal_values(chosen, discount=discount, horizon=horizon).actions]
    return list(dict.fromkeys(pool))


def stationary_optimum(belief: DirichletBelief, discount: float, horizon: int | None) -> StationaryPolicy:
    """The expected MDP's optimal policy; with a horizon, its first step."""
    if horizon is None:
        policy = policy_iteration(belief.mean(), discount=discount).policy
        assert isinstance(policy, StationaryPolicy)
        return policy
    return backward_induction(belief.mean(), discount=discount, horizon=horizon).policy.first_step()  # type: ignore[union-attr]


def span(belief: DirichletBelief, discount: float, horizon: int | None) -> float:
    """Width of the range of values."""
    low, high = reward_range(belief)
    return float((high - low) * effective_horizon(discount, horizon))


def reward_range(belief: DirichletBelief) -> tuple[float, float]:
    """Least and largest possible mean reward."""
    assert isinstance(belief.rewards, KnownRewards | BetaRewards)
    return belief.rewards.range


def planned(belief: DirichletBelief, discount: float, horizon: int | None) -> int | None:
    """The horizon to plan for: none where what comes after is worth less than 0.1% of the range of values."""
    if horizon is None or (discount < 1.0 and discount**horizon <= _TAIL):
        return None
    return horizon


def tail_correction(belief: DirichletBelief, discount: float, horizon: int | None, planned_: int | None) -> float:
    """What an infinite-horizon upper bound may be lowered by for a horizon: `r_min γ^T/(1−γ)`."""
    if horizon is None or planned_ is not None:
        return 0.0
    return float(reward_range(belief)[0] * discount**horizon / (1.0 - discount))
