"""MMBI: multi-MDP backwards induction (Algorithm 1 of the paper).

Backwards from `V_m = 0`, for every stage and state,

    Q_m(s,a) = r_m(s,a) + γ Σ_t P_m(t|s,a) V_m(t)
    a*(s)    = argmax_a Σ_m w_m Q_m(s,a)          ties: lowest action
    V_m(s)   = Q_m(s, a*(s))

The belief is *not* conditioned on how a state was reached: that is the approximation. The policy is memoryless and
time-indexed, and `Σ_m w_m V_m(s)` is its exact expected value, hence a lower bound on the Bayes-optimal value of the
finite belief from every start state at once. Cost: `M·S²·A` multiply-adds a stage.

Infinite horizon: with `epsilon`, truncate as in Lemma 1. Without, sweep until the values converge, to a stationary
policy. That fixed point need not exist: the greedy policies may cycle. Then the best policy of the cycle is returned,
and the plan says so.
"""

import hashlib
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from beliefbound.base.errors import ParameterError
from beliefbound.base.limits import check_horizon
from beliefbound.base.validation import IntArray, check_positive
from beliefbound.beliefs.finite import FiniteBelief
from beliefbound.models import ModelSet
from beliefbound.models.on_device import OnDevice
from beliefbound.planning.lemmas import truncation_stages
from beliefbound.planning.plan import Plan, plan_for, plan_of
from beliefbound.planning.task import FiniteTask
from beliefbound.policy import MemorylessPolicy, StationaryPolicy

_MAX_SWEEPS = 100_000  # then the last policies met are compared; sweeping on would hardly change them
_MOST_WORK = 1e12  # multiply-adds, some minutes: where states cycle apart from each other, the whole hardly ever does
_LEAST_SWEEPS = 30  # however large the models are
_SWEEP_WORK = 20_000  # what a sweep of tiny models takes, in multiply-adds
_TOLERANCE = 1e-10  # of the largest value: how close two sweeps must come to count as equal
_MIXED = 1e3  # times the values met: larger ones are of another scale
_SEEN_BYTES = 1 << 27  # that policies of a cycle may take
_SPARSE_SOLVE = 100  # products with a sparse model that valuing a policy for ever takes, about
_MOST_CANDIDATES = 1000  # policies of a cycle that are valued exactly: each takes a linear solve


def mmbi(
    belief: FiniteBelief,
    *,
    discount: float,
    horizon: int | None = None,
    epsilon: float | None = None,
    device: Any = None,
    dtype: str = "float64",
) -> Plan:
    """A near-optimal memoryless policy for a finite belief, and its exact value on every model.

    Args:
      belief: models and weights.
      discount: in [0, 1]; below 1 when there is no horizon.
      horizon: number of decisions; the policy is then time-indexed, `[t,s]`.
      epsilon: without a horizon, truncate where the neglected tail is at most `epsilon` (Lemma 1). Without
        either, the answer is a stationary policy: the fixed point of the sweep, or the best of its cycle.
      device: where to sweep, as for `FiniteBelief.on`: `cuda`, for example. Default: where the models are.
      dtype: on a device, `float32` sweeps twice as fast; `plan.guarantee` says how far its values may be off.

    Returns:
      A `Plan`; `plan.values` is a lower bound on the Bayes-optimal value of the belief. For a truncated infinite
      horizon it is the value of the first `plan.horizon` decisions; `plan.guarantee` says what that proves.

    >>> left, right = [[[1.0, 0.0], [0.0, 1.0]]] * 2, [[[0.0, 1.0], [1.0, 0.0]]] * 2
    >>> belief = FiniteBelief([left, right], [[1.0, 1.0], [0.0, 0.0]], [0.75, 0.25])
    >>> plan = mmbi(belief, discount=0.9, horizon=2)
    >>> plan.policy.actions.tolist(), plan.values.round(4).tolist()
    ([[0, 0], [0, 0]], [1.675, 0.675])
    """
    if horizon is not None and epsilon is not None:
        raise ParameterError("give a horizon or epsilon, not both")
    task = FiniteTask.of(belief, discount=discount, horizon=horizon)
    if device is not None:
        task = replace(task, belief=task.belief.on(device, dtype))
    elif dtype != "float64":
        raise ParameterError(f"dtype is {dtype!r}, but there is no device; give device='cuda', or leave it out")
    if epsilon is None:
        return mmbi_plan(task, most_work=_MOST_WORK)
    stages = truncation_horizon(task.models, task.discount, epsilon)
    stages = check_horizon(stages, task.models.n_entries, 8 * task.models.n_states)
    plan = mmbi_plan(task.lasting(stages))
    return replace(plan, guarantee=truncated_guarantee(task, stages))


def mmbi_plan(task: FiniteTask, *, most_work: float = np.inf) -> Plan:
    """MMBI for a task: time-indexed with a horizon, else stationary; then after so many multiply-adds, or a few sweeps,
    the best policy met last is taken."""
    if task.horizon is None:
        return _fixed_point(task, most_work)
    actions, model_values = task.models.induct_greedy(task.weights, task.discount, task.horizon)
    plan = plan_of(MemorylessPolicy(actions), model_values, task)
    off = single_precision_error(task)
    if off == 0.0:
        return plan
    words = f"value of the policy on this finite belief, swept in single precision: off by at most {off:.3g}"
    return replace(plan, residual=off, guarantee=words)


def single_precision_error(task: FiniteTask) -> float:
    """How far values swept over the task's horizon can be off where the models are in single precision on a device; 0
    where they are not.

    Probabilities, rewards and each of a row's `S` products and sums are off by a share of `2⁻²⁴` at most, so a backup
    is by `κ = (S + 8) 2⁻²⁴` of `max |V|`, and a stage passes on `γ` of the error that it was given.
    """
    transitions = task.models.transitions
    if not isinstance(transitions, OnDevice) or transitions.on.dtype == "float64":
        return 0.0
    share = (task.models.n_states + 8) * transitions.unit
    return 2.0 * share * task.largest_value * task.effective_horizon


def truncation_horizon(models: ModelSet, discount: float, epsilon: float) -> int:
    """Lemma 1: decisions after which everything still to come is worth at most `epsilon` in any of the models."""
    largest = models.largest_reward
    epsilon = check_positive(epsilon, "epsilon")
    return truncation_stages(epsilon, discount=discount, r_max=largest) if largest > 0.0 else 1


def truncated_guarantee(task: FiniteTask, stages: int) -> str:
    """What the value of the first `stages` decisions proves about the task, which goes on for ever."""
    low, _ = task.models.reward_range
    what = f"exact value of the first {stages} decisions on this finite belief"
    if low >= 0.0:
        return f"{what}; rewards are not negative, so it is a lower bound on its Bayes-optimal value from every state"
    tail = -low * task.discount**stages / (1.0 - task.discount)
    return (
        f"{what}; what comes after may cost up to {tail:.3g}, as rewards can be negative: subtract it for a lower "
        f"bound on the Bayes-optimal value"
    )


def _fixed_point(task: FiniteTask, most_work: float) -> Plan:
    """Sweep until the values repeat, watching for cycles with Brent's method: compare with a checkpoint that moves
    forward at powers of two, so a cycle of any length is met."""
    models, discount = task.models, task.discount
    values, q = np.zeros(models.rewards.shape[:2]), np.empty_like(models.rewards)
    actions = np.zeros(models.n_states, dtype=np.int64)
    checkpoint, since, power = values.copy(), 0, 1
    seen: dict[bytes, IntArray | None] = {}  # by digest; the last ones that fit in memory
    small, kept = np.min_scalar_type(models.n_actions), max(1, int(_SEEN_BYTES // models.n_states))
    converged, cycled, residual = False, False, np.inf
    least = _TOLERANCE * (1.0 - discount)  # what is to be avoided may be worth far more than any value that is met
    still = (least * task.largest_value, _MIXED * least)

    def remember(policy: IntArray) -> None:
        seen.setdefault(hashlib.sha256(policy.tobytes()).digest(), policy.astype(small))
        if len(seen) > kept:
            seen[next(islice(seen, len(seen) - kept - 1, None))] = None

    sweeps, most_sweeps = 0, int(min(_MAX_SWEEPS, max(_LEAST_SWEEPS, most_work / (_SWEEP_WORK + models.n_entries))))
    while sweeps < most_sweeps and not (converged or cycled):
        last = actions.copy()
        now, residual, converged, cycled = models.greedy_sweeps(
            values,
            task.weights,
            discount,
            q=q,
            actions=actions,
            checkpoint=checkpoint,
            most=min(power - since, most_sweeps - sweeps),
            still=still,
        )
        cycled = cycled and not converged
        sweeps, since = sweeps + now, since + now
        if now > 1:  # it changes with the last sweep, if at all
            remember(last)
        remember(actions)
        if since == power and not (converged or cycled):
            checkpoint, since, power = values.copy(), 0, 2 * power
            seen.clear()
    if converged:
        candidates = [actions]
        note = ""
    else:
        solving = models.n_models * models.n_states**2 * max(10.0, 0.1 * models.n_states)
        solving = min(solving, _SPARSE_SOLVE * models.n_entries) if models.is_sparse else solving
        most_solved = int(min(_MOST_CANDIDATES, max(1.0, most_work / solving)))
        candidates = [policy.astype(np.int64) for policy in list(seen.values())[-most_solved:] if policy is not None]
        what = f"cycles through {len(seen)} policies" if cycled else f"did not settle in {most_sweeps} sweeps"
        note = f"the fixed point of MMBI {what}; the best of them is returned"
    plans = [
        plan_for(StationaryPolicy(candidate), task, converged=converged, residual=residual, note=note)
        for candidate in candidates
    ]
    return max(plans, key=lambda plan: plan.value(task.start))
