"""`certify`: what anybody's policy is worth on a belief, and how far below Bayes-optimal it can be.

*Value.* Exact where it can be: tables by evaluation, finite-state controllers (`bracket`'s policies that settle,
mixtures of them, and policies by alpha vectors whose beliefs repeat) by one linear system per model. Else by
simulation, with intervals proven for bounded samples (`bounds.finite.simulation`); no sample has chosen the policy.

*Distance.* `V* − V^π ≤ upper − V^π`, with the upper bound given, or `bracket`'s: it may be sampled too, and then the
two share the error, half each. Where the value is simulated, the mean *difference* between the policy and an
information relaxation on common scenarios bounds the distance as well, and mostly much better: the least is taken.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from beliefbound.base.errors import ParameterError
from beliefbound.base.validation import (
    FloatArray,
    Rng,
    as_rng,
    check_count,
    check_positive,
    check_probability,
    check_threads,
    frozen,
    shown,
)
from beliefbound.beliefs import Belief
from beliefbound.bounds.bound import BAYES, VALUE, Bound, BoundEntries, Kind, Regret, RegretEntries, missing
from beliefbound.bounds.bracket import bracket_of, limits_of, seed_of
from beliefbound.bounds.dirichlet.arrays import posterior_of
from beliefbound.bounds.dirichlet.certified import LEAST_SAMPLES, certify_counts
from beliefbound.bounds.drawn.certified import certify_drawn
from beliefbound.bounds.finite.relaxation import Certifier
from beliefbound.bounds.finite.simulation import reaching, simulate
from beliefbound.bounds.policies import AnyPolicy, summed
from beliefbound.bounds.policy_files import load_policy, read_policy
from beliefbound.bounds.record import TracePoint
from beliefbound.planning.task import FiniteTask, Task, finite_task
from beliefbound.policy import Policy
from beliefbound.policy.naming import Names, NamesEntries, names_of
from beliefbound.policy.results import Entries, Result, array_of, axis

_EFFORT = 60  # steps of the bracket of a belief that draws, where there is neither a bound nor a time limit


class CertifiedEntries(Entries):
    """A `Certified` in a file."""

    lower: BoundEntries
    upper: BoundEntries
    best: BoundEntries
    regret: RegretEntries
    confidence: float
    model_values: list[float] | None
    effort: int | None
    names: NamesEntries = NamesEntries()


@dataclass(frozen=True)
class Certified(Result):
    """What a policy earns, and how far from Bayes-optimal it can be.

    Attributes:
      lower, upper: the policy's own value lies between them; only rounding keeps them apart where it is exact.
      best: the upper bound on the Bayes-optimal value that it is compared with.
      regret: at most so far below Bayes-optimal.
      confidence: with which all of this holds; 1 where all of it is exact.
      model_values: `[m]`, the exact value on each model, where it is known.
      policy: the policy, where it can be saved.
      names: of states, actions and models, where the belief has any.
      effort: steps of the bracket that `best` comes from; `None` where there was none, or its belief is not finite.
    """

    lower: Bound
    upper: Bound
    best: Bound
    regret: Regret
    confidence: float
    model_values: FloatArray | None = field(default=None, repr=False, compare=False)
    policy: Policy | None = field(default=None, repr=False, compare=False)
    names: Names = field(default=Names(), repr=False, compare=False)
    effort: int | None = field(default=None, repr=False, compare=False)

    _kind, _entries, _version = "certified policy", CertifiedEntries, 3

    @property
    def exact(self) -> bool:
        """Whether the value of the policy is exact; the distance may be sampled all the same."""
        return self.lower.exact

    @property
    def value(self) -> float:
        """The value of the policy: exact up to rounding, or the centre of its interval."""
        return 0.5 * (self.lower.value + self.upper.value) if self.exact else self.lower.centre

    def __repr__(self) -> str:
        value = f"{self.value:.6g} exactly" if self.exact else f"in [{self.lower.value:.6g}, {self.upper.value:.6g}]"
        holds = "proven" if self.confidence == 1.0 else f"{100 * self.confidence:.4g}% confidence"
        return f"Certified(value {value}, at most {self.regret.value:.6g} below Bayes-optimal, {holds})"

    def _rows(self) -> list[tuple[str, str]]:
        value = (
            f"{self.value:.6g}, exact"
            if self.exact
            else (f"in [{self.lower.value:.6g}, {self.upper.value:.6g}], {self.lower.n_samples} samples")
        )
        rows = [("value", f"{value}: {self.lower.method}")]
        rows.append(("Bayes-optimal", f"at most {self.best.value:.6g}: {self.best.method}"))
        rows.append(("distance", f"at most {self.regret.value:.6g} below Bayes-optimal"))
        scale = abs(self.best.value)
        if scale > 0.0:
            rows.append(("share", f"at most {100 * self.regret.value / scale:.3g}% of that bound is missing"))
        holds = "with certainty" if self.confidence == 1.0 else f"with {100 * self.confidence:.4g}% confidence"
        rows.append(("holds", holds))
        if self.model_values is not None:
            worst = int(np.argmin(self.model_values))
            rows.append(("worst model", f"{self.model_values[worst]:.6g}, on {self.names.model(worst)}"))
        return rows

    def plot(self, ax: Any = None) -> Any:
        """The value of the policy, on each model where it is known, and the bound; on a matplotlib axis, returned."""
        ax = axis(ax, figsize=(6, 1.8))
        if self.model_values is not None:
            ax.plot(self.model_values, np.zeros_like(self.model_values), "|", color="0.6", ms=12, label="on each model")
        ends = [self.value, self.value] if self.exact else [self.lower.value, self.upper.value]
        ax.plot(ends, [0.0, 0.0], "o-" if self.exact else "|-", color="tab:blue", lw=3, label="this policy, on average")
        ax.axvline(self.best.value, color="tab:red", label="nobody earns more on average")
        ax.set_yticks([])
        ax.set_xlabel("value")
        ax.legend(frameon=False, fontsize=8, ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0))
        return ax

    def to_dict(self) -> dict[str, Any]:
        """The numbers and words, ready for JSON."""
        return {
            "lower": self.lower.to_dict(),
            "upper": self.upper.to_dict(),
            "best": self.best.to_dict(),
            "regret": self.regret.to_dict(),
            "confidence": float(self.confidence),
            "model_values": None if self.model_values is None else self.model_values.tolist(),
            "effort": self.effort,
            "names": self.names.to_dict(),
        }

    @staticmethod
    def _read_policy(file: Path) -> Policy:
        return load_policy(file)

    @classmethod
    def _from_entries(cls, entries: CertifiedEntries, policy: Policy | None) -> Self:
        lower, upper = Bound._from_entries(entries.lower, policy), Bound._from_entries(entries.upper, None)
        if (lower.side, upper.side) != ("lower", "upper"):
            raise ParameterError("its lower and upper bounds are on the wrong sides")
        values = None if entries.model_values is None else array_of(entries.model_values, (None,), "model_values")
        best, regret = Bound._from_entries(entries.best, None), Regret._from_entries(entries.regret, policy)
        names = Names.from_entries(entries.names, models=None if values is None else len(values))
        return cls(lower, upper, best, regret, entries.confidence, values, policy, names, entries.effort)


def certify(
    policy: Any,
    belief: Belief,
    *,
    discount: float,
    horizon: int | None = None,
    initial: FloatArray | int | None = None,
    upper: Bound | None = None,
    confidence: float = 0.95,
    samples: int = 1000,
    target_gap: float | None = None,
    time_limit: float | None = None,
    effort: int | None = None,
    rng: Rng = None,
    threads: int | None = None,
    progress: bool = False,
    watch: Callable[[TracePoint], object] | None = None,
    stop: Callable[[], bool] | None = None,
) -> Certified:
    """What a policy earns on a belief, and how far below Bayes-optimal it can be.

    Args:
      policy: a table, a policy of `bracket` or `load_policy`, any object with `reset(seed)`, `act(state)` and
        `observe(state, action, reward, next_state)`; or a file: one that `save` wrote, SARSOP's `.policy`, or a CSV
        of states and actions, by name or number (`policy.rule_file`).
      belief: models and their weights, counts (`DirichletBelief`), or anything that draws models (`beliefs.belief`).
      discount, horizon, initial: of the problem; a policy with stages brings its own horizon.
      upper: a bound on the Bayes-optimal value of the same problem; default: `bracket` looks for one.
      confidence: with which value and distance hold together. What is exact holds with certainty.
      samples: walks, where the value is simulated; fewer once `stop` says so. For counts: scenarios, of the policy and
        of a relaxation alike; fewer once `time_limit` is over. For beliefs that draw: fresh models.
      target_gap, time_limit, effort, threads, progress, watch, stop: of `bracket`, where the belief is finite and
        there is no `upper`.
      rng: a generator, a seed, or `None` for fresh randomness.

    >>> from beliefbound import FiniteBelief, StationaryPolicy
    >>> stay, rewards = [[[[1.0], [1.0]]]] * 2, [[[1.0, 0.0]], [[0.0, 3.0]]]
    >>> belief = FiniteBelief(stay, rewards, reward_signal="unobserved")
    >>> certify(StationaryPolicy([0]), belief, discount=0.5, rng=0)
    Certified(value 1 exactly, at most 2 below Bayes-optimal, proven)
    """
    delta, source = 1.0 - check_probability(confidence, "confidence"), as_rng(rng)
    samples, threads = check_count(samples, "samples"), check_threads(threads)
    limits = limits_of(target_gap=target_gap, time_limit=time_limit, effort=effort, stop=stop)
    if upper is not None and (not isinstance(upper, Bound) or upper.side != "upper" or upper.of != BAYES):
        raise ParameterError(f"upper is {shown(upper)}; give an upper bound on the {BAYES}")
    stages = getattr(policy, "horizon", None) if horizon is None else horizon
    given = Task.of(belief, discount=discount, horizon=stages, initial=initial)
    task = finite_task(given)
    if task is None:
        if isinstance(policy, str | Path):
            policy = read_policy(Path(policy), given)
            given = given.lasting(getattr(policy, "horizon", None) if horizon is None else horizon)
        return _counted(AnyPolicy(policy), given, delta, samples, upper, time_limit, source, threads, stop)
    if isinstance(policy, str | Path):
        policy = read_policy(Path(policy), task)
        if horizon is None and policy.horizon is not None:
            task = FiniteTask.of(belief, discount=discount, horizon=policy.horizon, initial=initial)
    known = AnyPolicy(policy)
    known.check(task)
    own, values = _exactly(known, task)
    simulated, graph, steps = own is None, None, None
    if upper is None:
        sure = 1.0 - 0.5 * delta if simulated else confidence
        knobs: dict[str, Any] = {"confidence": sure, "threads": threads, "progress": progress, "watch": watch}
        found, graph = bracket_of(task, limits, seed=seed_of(source), **knobs)
        upper, steps = found.upper if found.upper.exact else _at(found.upper, found.confidence), found.effort
    paired = None
    if own is None:
        error = delta if upper.exact else 0.5 * delta
        low, high, paired = _sampled(known, task, source, samples, error, stop, graph, threads)
        own = low, high
    return replace(_certified(known, task, own, upper, paired, values), effort=steps)


def _counted(
    policy: AnyPolicy,
    task: Task,
    delta: float,
    samples: int,
    upper: Bound | None,
    time_limit: float | None,
    rng: np.random.Generator,
    threads: int | None,
    stop: Callable[[], bool] | None,
) -> Certified:
    """A policy under a belief that is not finite."""
    policy.check(task)
    if posterior_of(task) is None:
        return _drawn(policy, task, delta, samples, upper, time_limit, rng, threads, stop)
    if samples < LEAST_SAMPLES:
        raise ParameterError(f"samples is {samples}; a belief with counts needs at least {LEAST_SAMPLES}")
    limit = None if time_limit is None else check_positive(time_limit, "time_limit")
    knobs: dict[str, Any] = {"samples": samples, "upper": upper, "time_limit": limit, "stop": stop}
    knobs |= {"seed": int(rng.integers(0, 2**62)), "delta": delta, "threads": check_threads(threads)}
    found = certify_counts(policy, task, **knobs)
    confidence, names = found.regret.confidence, names_of(task.belief)
    return Certified(found.lower, found.upper, found.best, found.regret, confidence, None, policy.saved, names)


def _drawn(
    policy: AnyPolicy,
    task: Task,
    delta: float,
    samples: int,
    upper: Bound | None,
    time_limit: float | None,
    rng: np.random.Generator,
    threads: int | None,
    stop: Callable[[], bool] | None,
) -> Certified:
    """A policy under a belief that can only draw models."""
    error = delta
    if upper is None:
        error, effort = 0.5 * delta, _EFFORT if time_limit is None else None
        limits = limits_of(target_gap=None, time_limit=time_limit, effort=effort, stop=stop)
        found = bracket_of(task, limits, seed=seed_of(rng), confidence=1.0 - 0.5 * delta, threads=threads).bracket
        upper = _at(found.upper, found.confidence)
    samples = max(2, samples)
    known = certify_drawn(policy, task, upper, rng=rng, delta=error, samples=samples, stop=stop)
    confidence, names = known.regret.confidence, names_of(task.belief)
    return Certified(known.lower, known.upper, known.best, known.regret, confidence, None, policy.saved, names)


def _exactly(policy: AnyPolicy, task: FiniteTask) -> tuple[tuple[Bound, Bound] | None, FloatArray | None]:
    found = policy.enclosed_on(task)
    if found is None:
        return None, None
    values, error = found
    value, off = float(task.weights @ values), float(task.weights @ (error + summed(task) * np.abs(values)))
    lower = Bound(value - off, "lower", "evaluation on every model", of=VALUE, kind=Kind.POLICY)
    return (lower, replace(lower, value=value + off, estimate=value + off, side="upper")), frozen(values)


def _sampled(
    policy: AnyPolicy,
    task: FiniteTask,
    rng: np.random.Generator,
    samples: int,
    alpha: float,
    stop: Callable[[], bool] | None,
    graph: Certifier | None,
    threads: int | None,
) -> tuple[Bound, Bound, Regret]:
    """The value from below and from above, and the distance on common scenarios; together they fail with `alpha`."""
    knobs: dict[str, Any] = {"samples": samples, "alpha": alpha, "stop": stop, "threads": threads}
    found = simulate(policy.fresh(), task, rng, graph=reaching(graph), **knobs)
    proof: dict[str, Any] = {"exact": False, "confidence": 1.0 - alpha / 3.0, "n_samples": found.samples}
    method = f"{found.samples} walks against upper values as control variate; betting interval"
    value = {"method": method, "estimate": found.estimate, "of": VALUE, "kind": Kind.POLICY, **proof}
    paired = f"{found.samples} walks against information relaxations, with common random numbers; betting interval"
    regret = Regret(found.missing, paired, estimate=found.missing_estimate, **proof)
    return Bound(found.low, "lower", **value), Bound(found.high, "upper", **value), regret


def _at(bound: Bound, confidence: float) -> Bound:
    """The best of several sampled bounds holds with the confidence of all of them together."""
    return replace(bound, confidence=confidence)


def _certified(
    policy: AnyPolicy,
    task: FiniteTask,
    own: tuple[Bound, Bound],
    best: Bound,
    paired: Regret | None,
    values: FloatArray | None,
) -> Certified:
    lower, upper = own
    error = (1.0 - best.confidence) + sum(1.0 - x.confidence for x in (lower, upper, paired) if x is not None)
    confidence = 1.0 if error == 0.0 else max(0.0, 1.0 - error)
    exact = lower.exact and best.exact
    regret = Regret(
        missing(best.value, lower.value, exact=exact),
        f"{best.method}, minus the policy's {'exact value' if lower.exact else 'value'}",
        exact=exact,
        confidence=confidence,
        estimate=max(0.0, best.centre - lower.centre),
        n_samples=max(best.n_samples, lower.n_samples),
        policy=policy.saved,
        asymptotic=best.asymptotic or lower.asymptotic,
    )
    if paired is not None and paired.value < regret.value:
        regret = replace(paired, confidence=confidence, policy=policy.saved)  # of all that is said together
    return Certified(lower, upper, best, regret, confidence, values, policy.saved, names_of(task.belief))
