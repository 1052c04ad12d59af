"""Optimal planning in known MDPs: the yardsticks of everything else.

* `backward_induction`: finite horizon, exact.
* `policy_iteration`: infinite horizon, exact up to rounding. Evaluate by a linear solve, improve greedily; an action
  changes only when it is better by more than rounding, so it ends. A handful of solves.
* `value_iteration`: sweeps `V ← max_a Q`. After each sweep MacQueen's bounds hold for every state,
  `V + γ/(1−γ) min ΔV ≤ V* ≤ V + γ/(1−γ) max ΔV`; it stops when they are `epsilon` apart and returns their middle, so
  values are within `epsilon/2` of optimal and the policy is `epsilon`-optimal.
* `modified_policy_iteration`: value iteration with extra sweeps under the current policy between improvements; the same
  stopping rule and guarantee.

`optimal_values` solves every model of a set on its own: the ingredients of `E max` and QMDP.
"""

from typing import NamedTuple

import numpy as np

from beliefbound.beliefs.finite import FiniteBelief
from beliefbound.evaluation import solve_each
from beliefbound.kernels.planning import sweep
from beliefbound.mdp import MDP
from beliefbound.models import HasModels, ModelSet
from beliefbound.planning.mmbi import induct
from beliefbound.planning.plan import Plan
from beliefbound.policy import MemorylessPolicy, StationaryPolicy, TablePolicy
from beliefbound.validation import FloatArray, IntArray, check_count, check_discount, check_positive, frozen

_ROUNDING = 1e-12


class OptimalValues(NamedTuple):
    """Each model on its own, at the first stage: `values[m,s]`, `q[m,s,a]` (−inf where unavailable), `actions[m,s]`."""

    values: FloatArray
    q: FloatArray
    actions: IntArray


def optimal_values(models: HasModels, *, discount: float, horizon: int | None = None) -> OptimalValues:
    """Optimal values of each model by itself, exact up to rounding.

    >>> belief = FiniteBelief([[[[1.0]]], [[[1.0]]]], [[[1.0]], [[2.0]]], reward_signal="unobserved")
    >>> optimal_values(belief, discount=0.5).values.tolist()
    [[2.0], [4.0]]
    """
    discount = check_discount(discount, horizon)
    set_ = models.models
    if horizon is None:
        return _policy_iteration(set_, discount)
    values = np.zeros((set_.n_models, set_.n_states))
    q = np.empty_like(set_.rewards)
    for _ in range(check_count(horizon, "horizon")):
        set_.backup(values, discount, q)
        sweep.best_values(q, set_.available, values)
    q[:, ~set_.available] = -np.inf
    return OptimalValues(values, q, q.argmax(axis=-1))


def _policy_iteration(models: ModelSet, discount: float) -> OptimalValues:
    shape = (models.n_models, models.n_states)
    scale = max(1.0, max(abs(x) for x in models.reward_range) / (1.0 - discount))
    q = np.where(models.available, models.rewards, -np.inf)
    actions = q.argmax(axis=-1)
    values = np.zeros(shape)
    chances = np.empty_like(models.rewards)
    for _ in range(1000 + models.n_states):
        chances[...] = 0.0
        np.put_along_axis(chances, actions[..., None], 1.0, axis=-1)
        values = solve_each(chances, models, discount)
        models.backup(values, discount, q)
        q[:, ~models.available] = -np.inf
        kept = np.take_along_axis(q, actions[..., None], axis=-1)[..., 0]
        better = q.max(axis=-1) > kept + _ROUNDING * scale
        if not better.any():
            break
        actions = np.where(better, q.argmax(axis=-1), actions)
    # Ties go to the lowest action: an action within rounding of the best counts as best.
    actions = (q >= q.max(axis=-1, keepdims=True) - _ROUNDING * scale).argmax(axis=-1)
    return OptimalValues(values, q, actions)


def backward_induction(mdp: MDP, *, discount: float, horizon: int) -> Plan:
    """The optimal time-indexed policy of an MDP and its values, exact.

    >>> mdp = MDP([[[0.0, 1.0], [1.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]]], [[0.0, 0.5], [1.0, 0.0]])
    >>> backward_induction(mdp, discount=1.0, horizon=3).values.tolist()
    [2.0, 3.0]
    """
    horizon = check_count(horizon, "horizon")
    discount = check_discount(discount, horizon)
    actions, values = induct(mdp.models, frozen(np.ones(1)), discount, horizon)
    return _plan(mdp, MemorylessPolicy(actions), values, discount, horizon, "optimal value, exact")


def policy_iteration(mdp: MDP, *, discount: float) -> Plan:
    """The optimal stationary policy of an MDP and its values, exact up to rounding.

    >>> mdp = MDP([[[0.0, 1.0], [1.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]]], [[0.0, 0.5], [1.0, 0.0]])
    >>> policy_iteration(mdp, discount=0.5).values.round(3).tolist()
    [1.0, 2.0]
    """
    discount = check_discount(discount, None)
    values, _, actions = _policy_iteration(mdp.models, discount)
    return _plan(mdp, StationaryPolicy(actions[0]), values, discount, None, "optimal value, exact up to rounding")


def value_iteration(mdp: MDP, *, discount: float, epsilon: float = 1e-6, max_sweeps: int = 1_000_000) -> Plan:
    """An `epsilon`-optimal stationary policy, and values within `epsilon/2` of optimal.

    `plan.converged` is false when `max_sweeps` ended it first; `plan.residual` bounds the error either way.

    >>> mdp = MDP([[[0.0, 1.0], [1.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]]], [[0.0, 0.5], [1.0, 0.0]])
    >>> value_iteration(mdp, discount=0.5).values.round(3).tolist()
    [1.0, 2.0]
    """
    return _iterate(mdp, discount, epsilon, max_sweeps, extra=0)


def modified_policy_iteration(
    mdp: MDP, *, discount: float, epsilon: float = 1e-6, evaluation_sweeps: int = 20, max_sweeps: int = 1_000_000
) -> Plan:
    """Value iteration with `evaluation_sweeps` sweeps under the greedy policy between improvements; same guarantee.

    >>> mdp = MDP([[[0.0, 1.0], [1.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]]], [[0.0, 0.5], [1.0, 0.0]])
    >>> modified_policy_iteration(mdp, discount=0.5).values.round(3).tolist()
    [1.0, 2.0]
    """
    extra = check_count(evaluation_sweeps, "evaluation_sweeps", least=0)
    return _iterate(mdp, discount, epsilon, max_sweeps, extra=extra)


def _iterate(mdp: MDP, discount: float, epsilon: float, max_sweeps: int, *, extra: int) -> Plan:
    discount = check_discount(discount, None)
    epsilon = check_positive(epsilon, "epsilon")
    max_sweeps = check_count(max_sweeps, "max_sweeps")
    models = mdp.models
    weights = frozen(np.ones(1))
    values, q = np.zeros((1, models.n_states)), np.empty_like(models.rewards)
    new = np.empty_like(values)
    actions = np.empty(models.n_states, dtype=np.int64)
    tail = discount / (1.0 - discount)
    error, sweeps = np.inf, 0
    while sweeps < max_sweeps:
        models.backup(values, discount, q)
        sweep.greedy(q, weights, models.available, actions, new)
        sweeps += 1
        change = new - values
        low, high = tail * float(change.min()), tail * float(change.max())
        values, new = new, values
        error = (high - low) / 2
        if error <= epsilon / 2:
            values += (high + low) / 2
            break
        if extra:
            chances = StationaryPolicy(actions).chances(models.n_actions)
            for _ in range(min(extra, max_sweeps - sweeps)):
                models.backup(values, discount, q)
                sweep.follow(q, chances, values)
                sweeps += 1
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
    return Plan(
        policy=policy,
        values=frozen(values[0]),
        model_values=frozen(values),
        belief=FiniteBelief.of(mdp.models, initial=mdp.initial),
        discount=discount,
        horizon=horizon,
        converged=converged,
        residual=residual,
        guarantee=guarantee,
    )
