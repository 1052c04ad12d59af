"""MMBI: multi-MDP backwards induction (Algorithm 1 of the paper).

Backwards from `V_m = 0`, for every stage and state,

    Q_m(s,a) = r_m(s,a) + γ Σ_t P_m(t|s,a) V_m(t)
    a*(s)    = argmax_a Σ_m w_m Q_m(s,a)          ties: lowest action
    V_m(s)   = Q_m(s, a*(s))

The belief is *not* conditioned on how a state was reached: that is the approximation. The policy is memoryless and
time-indexed, and `Σ_m w_m V_m(s)` is its exact expected value, hence a lower bound on the Bayes-optimal value of the
finite belief from every start state at once. Cost: `M·S²·A` multiply-adds a stage.

Infinite horizon: with `epsilon`, truncate as in Lemma 1. Without, sweep until the values settle on a stationary policy.
That fixed point need not exist: the greedy policies may cycle. Then the best policy of the cycle is returned, and the
plan says so.
"""

import numpy as np

from beliefbound.beliefs.finite import FiniteBelief
from beliefbound.errors import ParameterError
from beliefbound.kernels.planning import sweep
from beliefbound.models import LANES_BYTES, ModelSet
from beliefbound.planning.lemmas import truncation_stages
from beliefbound.planning.plan import LOWER_BOUND, Plan, plan_for, uniform_if_none
from beliefbound.policy import MemorylessPolicy, StationaryPolicy
from beliefbound.validation import FloatArray, IntArray, check_count, check_discount, frozen

_MAX_SWEEPS = 100_000
_TOLERANCE = 1e-10


def mmbi(belief: FiniteBelief, *, discount: float, horizon: int | None = None, epsilon: float | None = None) -> Plan:
    """A near-optimal memoryless policy for a finite belief, and its exact value on every model.

    Args:
      belief: models and weights.
      discount: in [0, 1]; below 1 when there is no horizon.
      horizon: number of decisions; the policy is then time-indexed, `[t,s]`.
      epsilon: without a horizon, truncate where the neglected tail is at most `epsilon` (Lemma 1). Without
        either, the answer is a stationary policy: the fixed point of the sweep, or the best of its cycle.

    Returns:
      A `Plan`; `plan.values` is a lower bound on the Bayes-optimal value of the belief. For a truncated infinite
      horizon it is the value of the first `plan.horizon` decisions; with rewards ≥ 0 still a lower bound.

    >>> left, right = [[[1.0, 0.0], [0.0, 1.0]]] * 2, [[[0.0, 1.0], [1.0, 0.0]]] * 2
    >>> belief = FiniteBelief([left, right], [[1.0, 1.0], [0.0, 0.0]], [0.75, 0.25])
    >>> plan = mmbi(belief, discount=0.9, horizon=2)
    >>> plan.policy.actions.tolist(), plan.values.round(4).tolist()
    ([[0, 0], [0, 0]], [1.675, 0.675])
    """
    discount = check_discount(discount, horizon)
    if horizon is not None:
        if epsilon is not None:
            raise ParameterError("give a horizon or epsilon, not both")
        return _finite(belief, discount, check_count(horizon, "horizon"))
    if epsilon is not None:
        return _finite(belief, discount, truncation_horizon(belief.models, discount, epsilon))
    return _fixed_point(belief, discount)


def truncation_horizon(models: ModelSet, discount: float, epsilon: float) -> int:
    """Lemma 1: decisions after which everything still to come is worth at most `epsilon` in any of the models."""
    largest = max(abs(x) for x in models.reward_range)
    return truncation_stages(epsilon, discount=discount, r_max=largest) if largest > 0.0 else 1


def _finite(belief: FiniteBelief, discount: float, horizon: int) -> Plan:
    actions, model_values = induct(belief.models, belief.weights, discount, horizon)
    return Plan(
        policy=MemorylessPolicy(actions),
        values=frozen(belief.weights @ model_values),
        model_values=frozen(model_values),
        belief=belief,
        discount=discount,
        horizon=horizon,
        converged=True,
        residual=0.0,
        guarantee=LOWER_BOUND,
    )


def induct(
    models: ModelSet, weights: FloatArray, discount: float, horizon: int, terminal: FloatArray | None = None
) -> tuple[IntArray, FloatArray]:
    """The recursion: `(actions [t,s], values [m,s])`, from terminal values `[m,s]` (zero by default)."""
    actions = np.empty((horizon, models.n_states), dtype=np.int64)
    values = np.zeros((models.n_models, models.n_states)) if terminal is None else terminal.copy()
    if use_lanes(models):
        lanes = np.ascontiguousarray(values.T)
        sweep.induct_lanes(
            models.transitions.lanes(),
            np.ascontiguousarray(np.moveaxis(models.rewards, 0, -1)),
            weights,
            models.available,
            discount,
            lanes,
            actions,
        )
        return actions, np.ascontiguousarray(lanes.T)
    q = np.empty_like(models.rewards)
    for k in range(horizon - 1, -1, -1):
        models.backup(values, discount, q)
        sweep.greedy(q, weights, models.available, actions[k], values)
    return actions, values


def use_lanes(models: ModelSet) -> bool:
    """Whether a models-last copy pays: several models, and small enough to stay in cache."""
    dense_bytes = 8 * models.n_models * models.n_states**2 * models.n_actions
    return models.n_models > 1 and dense_bytes <= LANES_BYTES


def _fixed_point(belief: FiniteBelief, discount: float) -> Plan:
    """Sweep until the values repeat, watching for cycles with Brent's method: compare with a checkpoint that moves
    forward at powers of two, so a cycle of any length is met."""
    models, weights = belief.models, belief.weights
    shape = (models.n_models, models.n_states)
    scale = max(1.0, max(abs(x) for x in models.reward_range) / (1.0 - discount))
    tolerance = _TOLERANCE * scale * (1.0 - discount)
    values, q = np.zeros(shape), np.empty_like(models.rewards)
    actions = np.empty(models.n_states, dtype=np.int64)
    checkpoint, since, power = values.copy(), 0, 1
    seen: dict[bytes, IntArray] = {}
    cycled, residual = False, np.inf
    for _ in range(_MAX_SWEEPS):
        previous = values.copy()
        models.backup(values, discount, q)
        sweep.greedy(q, weights, models.available, actions, values)
        seen[actions.tobytes()] = actions.copy()
        since += 1
        residual = float(np.abs(values - previous).max())
        if residual <= tolerance:
            break
        if float(np.abs(values - checkpoint).max()) <= tolerance:
            cycled = True
            break
        if since == power:
            checkpoint, since, power = values.copy(), 0, 2 * power
            seen.clear()
    converged = residual <= tolerance
    if converged:
        candidates = [actions]
        note = ""
    else:
        candidates = list(seen.values())
        what = f"cycles through {len(candidates)} policies" if cycled else f"did not settle in {_MAX_SWEEPS} sweeps"
        note = f"the fixed point of MMBI {what}; the best of them is returned"
    plans = [
        plan_for(
            StationaryPolicy(candidate),
            belief,
            discount=discount,
            horizon=None,
            converged=converged,
            residual=residual,
            note=note,
        )
        for candidate in candidates
    ]
    start = uniform_if_none(belief.initial, belief.n_states)
    return max(plans, key=lambda plan: plan.value(start))
