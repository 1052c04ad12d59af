"""Optimal planning in known MDPs: the yardsticks of everything else.

* `backward_induction`: finite horizon, exact.
* `policy_iteration`: infinite horizon, exact up to rounding. Evaluate by a linear solve, improve greedily; an action
  changes only when it is better by more than rounding, so it ends. A handful of solves.
* `value_iteration`: sweeps `V ← max_a Q`. After each sweep MacQueen's bounds hold for every state,
  `V + γ/(1−γ) min ΔV ≤ V* ≤ V + γ/(1−γ) max ΔV`; it stops when they are `epsilon` apart, or after a number of sweeps,
  and returns their middle: values are within half their distance of optimal, and the policy within all of it.
  With extra sweeps under the greedy policy between improvements (modified policy iteration) the same holds.

`optimal_values` solves every model of a set on its own: the ingredients of `E max` and QMDP.
"""

from typing import NamedTuple

import numpy as np

from beliefbound.beliefs.finite import FiniteBelief
from beliefbound.errors import ModelError
from beliefbound.evaluation import models_of
from beliefbound.limits import check_horizon
from beliefbound.mdp import MDP
from beliefbound.models import HasModels, ModelSet
from beliefbound.planning.plan import Plan, plan_of
from beliefbound.planning.task import FiniteTask
from beliefbound.policy import MemorylessPolicy, StationaryPolicy, TablePolicy
from beliefbound.validation import FloatArray, IntArray, check_count, check_discount, check_positive, frozen

_ROUNDING = 1e-12  # of the largest value there can be


class OptimalValues(NamedTuple):
    """Each model on its own, at the first stage: `values[m,s]`, `q[m,s,a]` (−inf where unavailable), `actions[m,s]`."""

    values: FloatArray
    q: FloatArray
    actions: IntArray


def optimal_values(
    models: HasModels, *, discount: float, horizon: int | None = None, guess: IntArray | None = None
) -> OptimalValues:
    """Optimal values of each model by itself, exact up to rounding.

    `guess`: a stationary policy `[s]` that may be near them all, to begin with; it changes how long it takes.

    >>> belief = FiniteBelief([[[[1.0]]], [[[1.0]]]], [[[1.0]], [[2.0]]], reward_signal="unobserved")
    >>> optimal_values(belief, discount=0.5).values.tolist()
    [[2.0], [4.0]]
    """
    discount = check_discount(discount, horizon)
    set_ = models_of(models)
    if horizon is None:
        return _policy_iteration(set_, discount, guess)
    values, q = set_.induct_best(discount, check_horizon(horizon, set_.n_entries))
    q[:, ~set_.available] = -np.inf
    return OptimalValues(values, q, q.argmax(axis=-1))


def _policy_iteration(models: ModelSet, discount: float, guess: IntArray | None = None) -> OptimalValues:
    rounding = _ROUNDING * models.largest_reward / (1.0 - discount)
    q = np.where(models.available, models.rewards, -np.inf)
    actions = q.argmax(axis=-1) if guess is None else np.broadcast_to(guess, q.shape[:2])
    values = np.zeros(models.rewards.shape[:2])
    chances = np.empty_like(models.rewards)
    for _ in range(1000 + models.n_states):
        chances[...] = 0.0
        np.put_along_axis(chances, actions[..., None], 1.0, axis=-1)
        values = models.solve(chances, discount)
        models.backup(values, discount, q)
        q[:, ~models.available] = -np.inf
        kept = np.take_along_axis(q, actions[..., None], axis=-1)[..., 0]
        better = q.max(axis=-1) > kept + rounding
        if not better.any():
            break
        actions = np.where(better, q.argmax(axis=-1), actions)
    # Ties go to the lowest action: an action within rounding of the best counts as best.
    actions = (q >= q.max(axis=-1, keepdims=True) - rounding).argmax(axis=-1)
    return OptimalValues(values, q, actions)


def backward_induction(mdp: MDP, *, discount: float, horizon: int) -> Plan:
    """The optimal time-indexed policy of an MDP and its values, exact.

    >>> mdp = MDP([[[0.0, 1.0], [1.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]]], [[0.0, 0.5], [1.0, 0.0]])
    >>> backward_induction(mdp, discount=1.0, horizon=3).values.tolist()
    [2.0, 3.0]
    """
    models = _one(mdp)
    horizon = check_horizon(horizon, models.n_entries, 8 * models.n_states)
    discount = check_discount(discount, horizon)
    actions, values = models.induct_greedy(frozen(np.ones(1)), discount, horizon)
    return _plan(mdp, MemorylessPolicy(actions), values, discount, horizon, "optimal value, exact")


def policy_iteration(mdp: MDP, *, discount: float) -> Plan:
    """The optimal stationary policy of an MDP and its values, exact up to rounding.

    >>> mdp = MDP([[[0.0, 1.0], [1.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]]], [[0.0, 0.5], [1.0, 0.0]])
    >>> policy_iteration(mdp, discount=0.5).values.round(3).tolist()
    [1.0, 2.0]
    """
    models = _one(mdp)
    discount = check_discount(discount, None)
    values, _, actions = _policy_iteration(models, discount)
    return _plan(mdp, StationaryPolicy(actions[0]), values, discount, None, "optimal value, exact up to rounding")


def value_iteration(
    mdp: MDP, *, discount: float, epsilon: float = 1e-6, evaluation_sweeps: int = 0, max_sweeps: int = 1_000_000
) -> Plan:
    """An `epsilon`-optimal stationary policy, and values within `epsilon/2` of optimal.

    With `evaluation_sweeps` sweeps under the greedy policy between improvements it is modified policy iteration.
    `plan.converged` is false when `max_sweeps` ended it first, or rounding did; `plan.residual` bounds the error either
    way.

    >>> mdp = MDP([[[0.0, 1.0], [1.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]]], [[0.0, 0.5], [1.0, 0.0]])
    >>> value_iteration(mdp, discount=0.5).values.round(3).tolist()
    [1.0, 2.0]
    """
    extra = check_count(evaluation_sweeps, "evaluation_sweeps", least=0)
    return _iterate(mdp, discount, epsilon, max_sweeps, extra=extra)


def _one(mdp: MDP) -> ModelSet:
    """The MDP as a set of one; a belief is refused, as its models have no values in common."""
    if not isinstance(mdp, MDP):
        raise ModelError(
            f"expected an MDP, got {type(mdp).__name__}; for a belief use mmbi or cadp, "
            f"or its expected MDP, belief.mean()"
        )
    return mdp.models


def _iterate(mdp: MDP, discount: float, epsilon: float, max_sweeps: int, *, extra: int) -> Plan:
    """The last sweep is always a greedy one, and its bounds, whatever ended it, give the values and the error."""
    models = _one(mdp)
    discount = check_discount(discount, None)
    epsilon = check_positive(epsilon, "epsilon")
    max_sweeps = check_count(max_sweeps, "max_sweeps")
    weights = frozen(np.ones(1))
    values, q = np.zeros((1, models.n_states)), np.empty_like(models.rewards)
    new = np.empty_like(values)
    actions = np.empty(models.n_states, dtype=np.int64)
    tail = discount / (1.0 - discount)
    # A backup's sum over next states is off by this much at most, and the tail multiplies it.
    rounding = (models.n_states + 2) * np.finfo(np.float64).eps * models.largest_reward / (1.0 - discount) ** 2
    sweeps = 0
    while True:
        models.greedy(values, weights, discount, q=q, actions=actions, out=new)
        sweeps += 1
        change = new - values
        low, high = tail * float(change.min()), tail * float(change.max())
        values, new = new, values
        error = float((high - low) / 2 + rounding)
        if error <= max(epsilon / 2, 2.0 * rounding) or sweeps >= max_sweeps:
            break
        if extra:
            chances = StationaryPolicy(actions).chances(models.n_actions)
            for _ in range(min(extra, max_sweeps - sweeps - 1)):
                models.follow(values, chances, discount, q=q, out=values)
                sweeps += 1
    values += (high + low) / 2
    guarantee = f"within {error:.3g} of the optimal value in every state; the policy is {2 * error:.3g}-optimal"
    policy = StationaryPolicy(actions)
    return _plan(mdp, policy, values, discount, None, guarantee, residual=error, converged=error <= epsilon / 2)


def _plan(
    mdp: MDP,
    policy: TablePolicy,
    values: FloatArray,
    discount: float,
    horizon: int | None,
    guarantee: str,
    *,
    residual: float = 0.0,
    converged: bool = True,
) -> Plan:
    task = FiniteTask.of(FiniteBelief.of(mdp.models, initial=mdp.initial), discount=discount, horizon=horizon)
    return plan_of(policy, values, task, converged=converged, residual=residual, guarantee=guarantee)
