"""Optimal planning in known MDPs: the yardsticks of everything else.

* `backward_induction`: finite horizon, exact.
* `policy_iteration`: infinite horizon, exact up to rounding, and how far rounding may reach is bounded. Evaluate by a
  linear solve, improve greedily; an action changes only when it is better by more than rounding of the values that meet
  in its state, so it ends. A handful of solves.
* `value_iteration`: sweeps `V ← max_a Q`. After each sweep MacQueen's bounds hold for every state,
  `V + γ/(1−γ) min ΔV ≤ V* ≤ V + γ/(1−γ) max ΔV`; it stops when they are `epsilon` apart, or after a number of sweeps,
  and returns their middle: values are within half their distance of optimal, and the policy within all of it.
  With extra sweeps under the greedy policy between improvements (modified policy iteration) the same holds.

`optimal_values` solves every model of a set on its own: the ingredients of `E max` and QMDP.

*From above.* The value `V` of the policy that policy iteration ends with is at most `V*`. With the advantages
`A(s,a) = Q(s,a) − V(s)`, `V* − V` is the optimal value of the same MDP with rewards `A`; so `V* ≤ V + ε` wherever
`ε(s) ≥ A(s,a) + γ Σ_t P(t|s,a) ε(t)` for all actions, with `A` rounded up (`models.enclosing`). One number for all
states, `max A⁺/(1−γ)`, is mostly small enough. Where values differ in scale it would drown the small ones: a state
worth −10⁹ for ever has a large rounding error, which says nothing about states that lead elsewhere. There `ε` is itself
found by policy iteration, on rewards `A`.
"""

from typing import NamedTuple

import numpy as np

from beliefbound.base.errors import ModelError
from beliefbound.base.limits import check_horizon
from beliefbound.base.validation import FloatArray, IntArray, check_count, check_discount, check_positive, frozen
from beliefbound.beliefs.finite import FiniteBelief
from beliefbound.models import HasModels, ModelSet
from beliefbound.models.enclosing import UNIT, divided, enough, left_after
from beliefbound.models.evaluation import models_of
from beliefbound.models.mdp import MDP
from beliefbound.planning.plan import Plan, plan_of
from beliefbound.planning.rounding import induction_errors
from beliefbound.planning.task import FiniteTask, made_once_for_models
from beliefbound.policy import MemorylessPolicy, StationaryPolicy, TablePolicy

_ROUNDING = 1e-12  # of the values that meet in a state: what an action must be better by
_REFINED = 3  # times that values of a policy are refined, at most
_NESTED = 3  # times that errors are solved for, and errors of errors


class OptimalValues(NamedTuple):
    """Each model on its own, at the first stage: `values[m,s]`, `q[m,s,a]` (−inf where unavailable), `actions[m,s]`,
    all as computed; and from above: `above[m,s] ≥ V*`, `q_above[m,s,a] ≥ Q*`, rounding included."""

    values: FloatArray
    q: FloatArray
    actions: IntArray
    above: FloatArray
    q_above: FloatArray


def optimal_values(
    models: HasModels, *, discount: float, horizon: int | None = None, guess: IntArray | None = None
) -> OptimalValues:
    """Optimal values of each model by itself: exact up to rounding, and from above with rounding.

    `guess`: a stationary policy `[s]` that may be near them all, to begin with; it changes how long it takes.

    >>> belief = FiniteBelief([[[[1.0]]], [[[1.0]]]], [[[1.0]], [[2.0]]], reward_signal="unobserved")
    >>> optimal_values(belief, discount=0.5).values.tolist()
    [[2.0], [4.0]]
    """
    discount = check_discount(discount, horizon)
    set_ = models_of(models)
    if horizon is None:
        return _for_ever(set_, discount, guess)
    values, q = set_.induct_best(discount, check_horizon(horizon, set_.n_entries))
    return inducted(set_, values, q, discount, horizon)


@made_once_for_models
def solved_models(task: FiniteTask) -> OptimalValues:
    """The same of a task's models, made once for all weights."""
    return optimal_values(task.models, discount=task.discount, horizon=task.horizon)


def optimal_actions(task: FiniteTask, chosen: IntArray) -> IntArray:
    """`[i,s]`: the first optimal actions of some of a task's models; where few are asked for, and not all have been
    solved, they alone are."""
    if solved_models.made(task) or 2 * len(chosen) >= task.models.n_models:
        return solved_models(task).actions[chosen]
    return optimal_values(task.models.select(chosen), discount=task.discount, horizon=task.horizon).actions


def surely(models: ModelSet, solved: OptimalValues, discount: float, horizon: int | None) -> FloatArray:
    """`[m,s]`, no more than the optimal values: what the policies found earn, rounded down."""
    if horizon is None:
        return models.below(solved.actions, discount)
    return solved.values - (solved.above - solved.values)  # backwards induction is off by as much on either side


def inducted(models: ModelSet, values: FloatArray, q: FloatArray, discount: float, horizon: int) -> OptimalValues:
    """What backwards induction found at the first stage, and from above."""
    error, of_pairs = induction_errors(models, values, q, discount, horizon)
    q_above = q + of_pairs
    q[:, ~models.available] = q_above[:, ~models.available] = -np.inf
    return OptimalValues(values, q, q.argmax(axis=-1), values + error, q_above)


class _Found(NamedTuple):
    """What policy iteration ends with; `sizes = |r| + γP|V|`, the numbers that meet in `q`."""

    values: FloatArray  # [m,s], of the actions
    q: FloatArray  # [m,s,a], −inf where unavailable
    sizes: FloatArray  # [m,s,a]
    own: IntArray  # [m,s]: where the actions are in `q`, flat


def _for_ever(models: ModelSet, discount: float, guess: IntArray | None = None) -> OptimalValues:
    found = _policy_iteration(models, discount, guess)
    values, q, sizes, own = found
    small = enough(sizes.reshape(-1)[own], models.rewards)
    error, alike = _excess(models, found, discount, small, _NESTED)
    above = values + error
    above += 4.0 * UNIT * (np.abs(values) + error)
    most = error.max(axis=1)[:, None, None]
    q_above = q + discount * most if alike else models.backup(above, discount)
    q_above += 2.0 * models.rounding * (sizes + most)
    np.minimum(q_above, above[..., None], out=q_above)
    if not models.available.all():
        q_above[:, ~models.available] = -np.inf
    # Ties go to the lowest action: an action within rounding of the best counts as best.
    rounding = _ROUNDING * sizes
    near = q + rounding >= (q - rounding).max(axis=-1, keepdims=True)
    return OptimalValues(values, q, near.argmax(axis=-1), above, q_above)


def _policy_iteration(models: ModelSet, discount: float, guess: IntArray | None = None) -> _Found:
    every, rewards = bool(models.available.all()), np.abs(models.rewards)
    q = models.rewards.copy() if every else np.where(models.available, models.rewards, -np.inf)
    actions = q.argmax(axis=-1) if guess is None else np.broadcast_to(guess, q.shape[:2])
    begin = np.arange(0, q.size, models.n_actions).reshape(q.shape[:2])
    for _ in range(1000 + models.n_states):
        own, values = begin + actions, models.solve(actions, discount)
        for refined in range(_REFINED + 1):
            models.backup(values, discount, q)
            if values.min() >= 0.0 or values.max() <= 0.0:
                sizes = np.abs(q - models.rewards)
            else:
                sizes = models.backup(np.abs(values), discount)
                sizes -= models.rewards
            sizes += rewards
            kept, size = q.reshape(-1)[own], sizes.reshape(-1)[own]
            residual = kept - values
            if refined == _REFINED or not (np.abs(residual) > models.transitions.close * size).any():
                break
            values = values + models.solve(actions, discount, residual)
        if not every:
            q[:, ~models.available] = -np.inf
        surely = q - _ROUNDING * sizes
        better = surely.max(axis=-1) > kept + _ROUNDING * size
        if not better.any():
            break
        actions = np.where(better, surely.argmax(axis=-1), actions)
    return _Found(values, q, sizes, own)


def _excess(
    models: ModelSet, found: _Found, discount: float, small: FloatArray, nested: int
) -> tuple[FloatArray, bool]:
    """`ε[m,s]` with `V* ≤ V + ε`, one number for a model, or one per state where that is more than `small[m]`; and
    whether it is one number for each."""
    values, q, sizes, own = found
    advantage = q - values[..., None]
    advantage += models.rounding * (sizes + np.abs(values)[..., None])
    alike = divided(np.maximum(advantage.max(axis=(1, 2)), 0.0), left_after(discount))
    error = np.repeat(alike[:, None], models.n_states, axis=1)
    loose = np.flatnonzero(alike > small)
    if nested == 0 or len(loose) == 0 or not np.isfinite(alike[loose]).all():
        return error, True
    advantage[:, ~models.available] = 0.0
    inner, actions = ModelSet(models.transitions, advantage, models.available), own % models.n_actions
    if len(loose) < models.n_models:
        inner, actions, small = inner.select(loose), actions[loose], small[loose]
    later = _policy_iteration(inner, discount, actions)
    per_state = later.values + _excess(inner, later, discount, small, nested - 1)[0]
    error[loose] = np.minimum(error[loose], per_state)
    return error, False


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
    """The optimal stationary policy of an MDP and its values, exact up to rounding: the optimal value of a state, and
    that of the policy, are no further from them than `plan.residual`.

    >>> mdp = MDP([[[0.0, 1.0], [1.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]]], [[0.0, 0.5], [1.0, 0.0]])
    >>> policy_iteration(mdp, discount=0.5).values.round(3).tolist()
    [1.0, 2.0]
    """
    models = _one(mdp)
    discount = check_discount(discount, None)
    found = _for_ever(models, discount)
    policy, values = StationaryPolicy(found.actions[0]), found.values
    below = surely(models, found, discount, None)
    left = float(max((found.above - values).max(), (values - below).max()))
    guarantee = f"optimal value, exact up to rounding: within {left:.3g} in every state"
    return _plan(mdp, policy, values, discount, None, guarantee, residual=left)


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
