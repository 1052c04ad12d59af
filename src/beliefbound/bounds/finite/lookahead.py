"""k-step look-ahead from above and from below: exact bounds on the Bayes-optimal value of a finite belief.

The recursions are those of `kernels.graph.lookahead`. The outcome of a step includes what the agent sees of the reward,
by the belief's `reward_signal`; an upper look-ahead that only watched next states could lie *below* the Bayes-optimal
value of an agent that learns from rewards.
"""

import math
from collections.abc import Sequence

import numpy as np

from beliefbound.base.errors import ParameterError
from beliefbound.base.limits import MOST_STAGES, MOST_WORK
from beliefbound.base.validation import FloatArray, check_count, check_sequence
from beliefbound.beliefs.finite import FiniteBelief
from beliefbound.bounds.bound import Bound, Kind, Side
from beliefbound.bounds.finite.pool import policies_of
from beliefbound.bounds.finite.problem import allowance_of, problem_of
from beliefbound.kernels.graph.lookahead import look_ahead
from beliefbound.kernels.graph.nodes import BeliefMDP
from beliefbound.models.evaluation import check_fits
from beliefbound.planning.task import FiniteTask
from beliefbound.policy import TablePolicy

_MOST_DEPTH = 10_000  # even a problem without choice or chance takes a table a step


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
    task = FiniteTask.of(belief, discount=discount, horizon=horizon, initial=initial)
    value = _value(task, depth, "upper", ())
    return Bound(value, "upper", f"{depth}-step look-ahead to QMDP", kind=Kind.LOOK_AHEAD)


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
    task = FiniteTask.of(belief, discount=discount, horizon=horizon, initial=initial)
    if policies is None:
        policies = policies_of(task)
    policies = check_sequence(policies, "policies", ParameterError, fix="give a list of policies")
    if len(policies) == 0:
        raise ParameterError("policies is empty; give at least one policy, or leave it out for the default pool")
    for policy in policies:
        check_fits(policy, task.models)
    value = _value(task, depth, "lower", policies)
    method = f"{depth}-step look-ahead to a pool of {len(policies)} policies"
    return Bound(value, "lower", method, kind=Kind.LOOK_AHEAD)


def _value(task: FiniteTask, depth: int, side: Side, policies: Sequence[TablePolicy]) -> float:
    depth = min(check_count(depth, "depth", least=0), MOST_STAGES if task.horizon is None else task.horizon)
    if depth > _MOST_DEPTH:
        raise ParameterError(f"depth is {depth}; give at most {_MOST_DEPTH}, or use bracket")
    problem = problem_of(task, stages=depth, policies=policies)
    _check_leaves(problem, depth)
    weights = np.zeros((depth + 1, task.models.n_models))
    weights[0] = task.weights
    states = np.flatnonzero(task.start)
    value = float(sum(task.start[s] * look_ahead(problem, weights, s, 0, depth, side == "upper")[0] for s in states))
    allowance = allowance_of(task, problem)
    return allowance.upper(value) if side == "upper" else allowance.lower(value)


def _check_leaves(problem: BeliefMDP, depth: int) -> None:
    """Refuse a tree that would never end: `(actions · outcomes)^depth` leaves, of as many models each."""
    widest = int((problem.first[:, -1] - problem.first[:, 0]).max())
    depth = min(depth, problem.horizon)
    if depth * math.log(max(1, widest)) + math.log(problem.reward.shape[0]) > math.log(MOST_WORK):
        raise ParameterError(
            f"depth is {depth}, and a step has up to {widest} outcomes: {widest}^{depth} leaves are too many; "
            f"look less far ahead, or use bracket"
        )
