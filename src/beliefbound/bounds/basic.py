"""The paper's bounds: below by the value of a policy, above by models solved on their own.

Lower. The expected value of *any* policy under the belief is at most the Bayes-optimal one. On a finite belief it is
computed exactly. On any other belief it is the mean over *fresh* models, drawn after the policy was fixed, with a
one-sided interval.

Upper. Knowing the model cannot hurt: `V*_ξ(s) ≤ E_ξ V*_μ(s)` (`E max`). Learning it after the first action still
cannot: `V*_ξ(s) ≤ max_a E_ξ Q*_μ(s,a) ≤ E max` (QMDP). Both hold whatever rewards reveal.
"""

from typing import Any, Literal

import numpy as np

from beliefbound.base.errors import ParameterError
from beliefbound.base.validation import FloatArray, Rng, as_rng, check_count, check_probability, frozen, shown
from beliefbound.beliefs import Belief
from beliefbound.beliefs.finite import FiniteBelief
from beliefbound.bounds.bound import BAYES, Bound, Kind, Regret, missing
from beliefbound.bounds.posterior.value_range import simple_range
from beliefbound.bounds.sampled import bound_of_mean, interval_for, qmdp_of_samples
from beliefbound.bounds.statistics.intervals import Interval
from beliefbound.models.enclosing import rounding_of
from beliefbound.models.evaluation import check_fits, evaluate
from beliefbound.planning.optimal import OptimalValues, optimal_values, solved_models
from beliefbound.planning.rounding import Allowance
from beliefbound.planning.task import FiniteTask, Task, finite_task
from beliefbound.policy import TablePolicy


def lower_bound(
    policy: TablePolicy,
    belief: Belief,
    *,
    discount: float,
    horizon: int | None = None,
    initial: FloatArray | int | None = None,
    confidence: float = 0.95,
    n_models: int = 1000,
    interval: Interval | None = None,
    rng: Rng = None,
) -> Bound:
    """The expected value of `policy` under `belief`: a lower bound on the Bayes-optimal value.

    Args:
      initial: start distribution or state; default: the belief's, else uniform over states.
      confidence, n_models, interval, rng: for beliefs that are not finite, how many fresh models are drawn and which
        interval is used: `betting` (default where rewards have a known range; proven), `bernstein`, `hoeffding`, or `t`
        (default otherwise; asymptotic).
        `rng` is a generator, a seed, or `None` for fresh randomness.

    >>> from beliefbound import StationaryPolicy
    >>> belief = FiniteBelief([[[[1.0]]], [[[1.0]]]], [[[1.0]], [[2.0]]], reward_signal="unobserved")
    >>> lower_bound(StationaryPolicy([0]), belief, discount=0.5)
    Bound(lower 3, exact, value of the policy)
    """
    task = Task.of(belief, discount=discount, horizon=horizon, initial=initial, policy=policy)
    finite = finite_task(task)
    if finite is not None:
        below = value_below(policy, finite)
        return Bound(below, "lower", "value of the policy", policy=policy, kind=Kind.POLICY)
    sample = belief.sample(check_count(n_models, "n_models", least=2), as_rng(rng))
    samples = evaluate(policy, sample, discount=discount, horizon=horizon) @ task.start
    range_ = simple_range(task.lasting(task.stages_of(policy)))
    return bound_of_mean(
        samples,
        "lower",
        Kind.POLICY,
        "value of the policy on fresh models",
        alpha=1.0 - check_probability(confidence, "confidence"),
        range_=range_,
        interval=interval_for(range_, interval),
        policy=policy,
    )


def upper_bound(
    belief: Belief,
    *,
    discount: float,
    horizon: int | None = None,
    initial: FloatArray | int | None = None,
    method: Literal["qmdp", "emax"] = "qmdp",
    confidence: float = 0.95,
    n_models: int = 1000,
    interval: Interval | None = None,
    rng: Rng = None,
) -> Bound:
    """QMDP or `E max`, from a start distribution. Exact for a finite belief, else with a one-sided interval.

    Args: as for `lower_bound`; `qmdp` and `e_max` are the same for a finite belief.

    >>> belief = FiniteBelief([[[[1.0]]], [[[1.0]]]], [[[1.0]], [[2.0]]], reward_signal="unobserved")
    >>> upper_bound(belief, discount=0.5, method="emax")
    Bound(upper 3, exact, E max)
    """
    if not isinstance(method, str) or method not in ("qmdp", "emax"):
        raise ParameterError(f"method is {shown(method)}; choose 'qmdp' or 'emax'")
    task = Task.of(belief, discount=discount, horizon=horizon, initial=initial)
    finite = finite_task(task)
    if finite is not None:
        return qmdp_of(finite) if method == "qmdp" else e_max_of(finite)
    sample = belief.sample(check_count(n_models, "n_models", least=2), as_rng(rng))
    solved = optimal_values(sample, discount=task.discount, horizon=horizon)
    range_ = simple_range(task)
    knobs: dict[str, Any] = {"range_": range_, "interval": interval_for(range_, interval)}
    knobs["alpha"] = 1.0 - check_probability(confidence, "confidence")
    if method == "emax":
        return bound_of_mean(solved.above @ task.start, "upper", Kind.E_MAX, "E max on sampled models", **knobs)
    states = np.flatnonzero(task.start)
    what, start, offered = "QMDP on sampled models", task.start[states], belief.available[states]
    return qmdp_of_samples(solved.q_above[:, states], start, offered, what, **knobs)


def policy_regret(
    policy: TablePolicy,
    belief: FiniteBelief,
    upper: Bound,
    *,
    discount: float,
    horizon: int | None = None,
    initial: FloatArray | int | None = None,
) -> Regret:
    """How far `policy` can be from Bayes-optimal: `upper` minus its exact value. Theorem 1, sharp.

    Where Theorem 1 bounds the regret of MMBI by how far beliefs may move, this measures it, for any policy; it is as
    tight as `upper`, which may come from `bracket`, `upper_bound` or a look-ahead for the same start and horizon.

    >>> from beliefbound import StationaryPolicy
    >>> stay, rewards = [[[[1.0], [1.0]]]] * 2, [[[1.0, 0.0]], [[0.0, 3.0]]]
    >>> belief = FiniteBelief(stay, rewards, reward_signal="unobserved")
    >>> upper = upper_bound(belief, discount=0.5)
    >>> round(policy_regret(StationaryPolicy([1]), belief, upper, discount=0.5).value, 9)
    0.5
    """
    if not isinstance(upper, Bound) or upper.side != "upper" or upper.of != BAYES:
        raise ParameterError(f"the regret needs an upper bound on the {BAYES}; got {upper!r}")
    task = FiniteTask.of(belief, discount=discount, horizon=horizon, initial=initial, policy=policy)
    return regret_of(policy, task, upper)


def regret_of(policy: TablePolicy, task: FiniteTask, upper: Bound) -> Regret:
    """`policy_regret` on a task."""
    return Regret(
        missing(upper.value, value_below(policy, task), exact=upper.exact),
        f"{upper.method}, minus the policy's exact value",
        exact=upper.exact,
        confidence=upper.confidence,
        n_samples=upper.n_samples,
        policy=policy,
        asymptotic=upper.asymptotic,
    )


def e_max(
    belief: FiniteBelief,
    *,
    discount: float,
    horizon: int | None = None,
    initial: FloatArray | int | None = None,
) -> Bound:
    """`E_ξ max_π V^π_μ`: the paper's upper bound, exact for a finite belief; `values` are those from each state, `[s]`.

    >>> belief = FiniteBelief([[[[1.0]]], [[[1.0]]]], [[[1.0]], [[2.0]]], reward_signal="unobserved")
    >>> e_max(belief, discount=0.5)
    Bound(upper 3, exact, E max)
    """
    return e_max_of(FiniteTask.of(belief, discount=discount, horizon=horizon, initial=initial))


def e_max_of(task: FiniteTask, solved: OptimalValues | None = None) -> Bound:
    """`E max` of a task; `solved`: values of its models that are no less than the optimal ones, in their place."""
    solved = solved_models(task) if solved is None else solved
    values = frozen(_mixed(task, solved.above))
    return Bound(task.above(solved.above), "upper", "E max", values=values, kind=Kind.E_MAX)


def qmdp(
    belief: FiniteBelief,
    *,
    discount: float,
    horizon: int | None = None,
    initial: FloatArray | int | None = None,
) -> Bound:
    """`max_a E_ξ Q*_μ(s,a)`: never above `E max`, at no extra cost; exact for a finite belief.

    From a start distribution; `values` are those from each state, `[s]`.

    >>> belief = FiniteBelief([[[[1.0]]], [[[1.0]]]], [[[1.0]], [[2.0]]], reward_signal="unobserved")
    >>> qmdp(belief, discount=0.5).values.round(9).tolist()
    [3.0]
    """
    return qmdp_of(FiniteTask.of(belief, discount=discount, horizon=horizon, initial=initial))


def qmdp_of(task: FiniteTask, solved: OptimalValues | None = None) -> Bound:
    """QMDP of a task; `solved` as for `e_max_of`."""
    solved = solved_models(task) if solved is None else solved
    mixed = _mixed(task, np.where(task.models.available, solved.q_above, 0.0))
    values: FloatArray = np.where(task.models.available, mixed, -np.inf).max(axis=-1)
    rounded = rounding_of(task.models.n_states) * float(task.start @ np.abs(values))
    return Bound(float(task.start @ values) + rounded, "upper", "QMDP", values=frozen(values), kind=Kind.QMDP)


def _mixed(task: FiniteTask, values: FloatArray) -> FloatArray:
    """`Σ_m w_m x_m` of `[m,…]`, rounded up."""
    rounded = rounding_of(task.models.n_models) * np.tensordot(task.weights, np.abs(values), axes=1)
    mixed: FloatArray = np.tensordot(task.weights, values, axes=1) + rounded
    return mixed


def value_below(policy: TablePolicy, task: FiniteTask) -> float:
    """The expected value of a table, rounded down."""
    chances, stages = check_fits(policy, task.models), task.stages_of(policy)
    if stages is None:
        return task.below(task.models.below(chances, task.discount))
    return Allowance(task.lasting(stages)).lower(task.policy_value(policy))
