"""k-step look-ahead from above and from below: exact bounds on the Bayes-optimal value of a finite belief.

The recursions are those of `kernels.graph.lookahead`. The outcome of a step includes what the agent sees of the reward,
by the belief's `reward_signal`; an upper look-ahead that only watched next states could lie *below* the Bayes-optimal
value of an agent that learns from rewards.
"""

from collections.abc import Sequence

import numpy as np

from beliefbound.beliefs.finite import FiniteBelief
from beliefbound.bounds.basic import start_of
from beliefbound.bounds.bound import Bound, Side
from beliefbound.bounds.finite.problem import policy_pool, problem_of
from beliefbound.kernels.graph.lookahead import look
from beliefbound.policy import TablePolicy
from beliefbound.validation import FloatArray, check_count, check_discount


def lookahead_upper(
    belief: FiniteBelief,
    *,
    depth: int,
    discount: float,
    horizon: int | None = None,
    initial: FloatArray | int | None = None,
) -> Bound:
    """`U_k` from a start distribution: QMDP after `depth` exact steps. Falls as `depth` grows; `depth=0` is QMDP.

    Cost: `(actions · outcomes)^depth` leaves. Refuses continuous reward signals.

    >>> belief = FiniteBelief([[[[1.0]]], [[[1.0]]]], [[[1.0]], [[2.0]]], reward_signal="unobserved")
    >>> lookahead_upper(belief, depth=2, discount=0.5)
    Bound(upper 3, exact, 2-step look-ahead to QMDP)
    """
    value = _look(belief, depth, discount, horizon, initial, "upper", None)
    return Bound(value, "upper", f"{depth}-step look-ahead to QMDP")


def lookahead_lower(
    belief: FiniteBelief,
    *,
    depth: int,
    discount: float,
    horizon: int | None = None,
    initial: FloatArray | int | None = None,
    policies: Sequence[TablePolicy] | None = None,
) -> Bound:
    """`L_k` from a start distribution: `depth` exact steps, then the best of a pool of memoryless policies.

    Args:
      policies: the pool; default MMBI, CADP, the expected MDP's policy and those of the likeliest models.

    >>> belief = FiniteBelief([[[[1.0]]], [[[1.0]]]], [[[1.0]], [[2.0]]], reward_signal="unobserved")
    >>> lookahead_lower(belief, depth=2, discount=0.5)
    Bound(lower 3, exact, 2-step look-ahead to a pool of 1 policies)
    """
    start = start_of(belief, initial)
    if policies is None:
        policies = policy_pool(belief, discount=discount, horizon=horizon, initial=start)
    value = _look(belief, depth, discount, horizon, initial, "lower", policies)
    return Bound(value, "lower", f"{depth}-step look-ahead to a pool of {len(policies)} policies")


def _look(
    belief: FiniteBelief,
    depth: int,
    discount: float,
    horizon: int | None,
    initial: FloatArray | int | None,
    side: Side,
    policies: Sequence[TablePolicy] | None,
) -> float:
    discount = check_discount(discount, horizon)
    depth = check_count(depth, "depth", least=0)
    if horizon is not None:
        check_count(horizon, "horizon")
    start = start_of(belief, initial)
    problem = problem_of(belief, discount=discount, horizon=horizon, stages=depth, policies=policies or ())
    weights = np.zeros((depth + 1, belief.n_models))
    weights[0] = belief.weights
    states = np.flatnonzero(start)
    return float(sum(start[s] * look(problem, weights, s, 0, depth, side == "upper")[0] for s in states))
