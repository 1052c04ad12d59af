"""`bracket`: the Bayes-optimal value between two bounds, as tight as the time allows.

Finite beliefs: `bounds.finite.search`. Other beliefs: `bounds.dirichlet.sampler`.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from beliefbound.beliefs import Belief, DirichletBelief
from beliefbound.bounds.bound import Bound
from beliefbound.bounds.dirichlet.sampler import bracket_sampled
from beliefbound.bounds.finite.search import bracket_finite
from beliefbound.bounds.log import Log, TracePoint, relative
from beliefbound.bounds.warmup import warm_up
from beliefbound.errors import ParameterError
from beliefbound.planning.task import Task, finite_task
from beliefbound.policy import Policy
from beliefbound.validation import (
    FloatArray,
    as_rng,
    check_gap,
    check_positive,
    check_probability,
    check_threads,
    shown,
)

DEFAULT_GAP, DEFAULT_SECONDS = 0.01, 60.0


@dataclass(frozen=True)
class Bracket:
    """The Bayes-optimal value lies in `[lower.value, upper.value]`.

    Attributes:
      lower, upper: the best bounds found; each says how it was proven.
      policy: attains `lower`: a table, or one that learns; it plays, and is saved and loaded, like any `Policy`.
      regret: bound on how far `policy` is from Bayes-optimal; at most `gap`, and less where policy and relaxation,
        measured on the same scenarios, are closer than the two ends.
      confidence: probability with which everything here holds; 1 when all of it is exact.
      trace: `(seconds, lower, upper)` as the bracket closed.
      bounds: every bound computed on the way.
      notes: what a reader should know besides, such as how much of the value rests on the prior; mostly empty.
      compile_seconds: time spent on compiling before the clock of the trace started.
    """

    lower: Bound
    upper: Bound
    policy: Policy
    regret: Bound
    confidence: float
    trace: tuple[TracePoint, ...] = field(repr=False)
    bounds: tuple[Bound, ...] = field(repr=False)
    notes: tuple[str, ...] = ()
    compile_seconds: float = field(default=0.0, compare=False)

    @property
    def gap(self) -> float:
        """`upper − lower`, in units of value."""
        return self.upper.value - self.lower.value

    @property
    def relative_gap(self) -> float:
        """`gap` as a share of the larger end: what `target_gap` refers to."""
        return relative(self.lower.value, self.upper.value)

    def __repr__(self) -> str:
        kind = "proven" if self.confidence == 1.0 else f"{100 * self.confidence:.4g}% confidence"
        return f"Bracket([{self.lower.value:.6g}, {self.upper.value:.6g}], {100 * self.relative_gap:.2g}% wide, {kind})"

    def summary(self) -> str:
        """What is proven and what is estimated, in a few lines."""
        lines = [repr(self)]
        for bound in (self.lower, self.upper):
            if bound.exact:
                how = "proven"
            else:
                how = f"estimated {bound.estimate:.6g}, holds with probability {bound.confidence:.4g}"
            lines.append(f"  {bound.side} {bound.value:.6g}  {how}: {bound.method}")
        how = "proven" if self.regret.exact else f"holds with probability {self.regret.confidence:.4g}"
        lines.append(f"  the policy is within {self.regret.value:.6g} of Bayes-optimal, {how}")
        lines += [f"  {note}" for note in self.notes]
        return "\n".join(lines)

    def plot(self, ax: Any = None) -> Any:
        """Both sides closing over time, on a matplotlib axis; returns the axis."""
        import matplotlib.pyplot as plt
        from matplotlib.ticker import LogLocator

        if ax is None:
            _, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
        seconds = [max(point.seconds, 1e-3) for point in self.trace]
        lower = [point.lower.value for point in self.trace]
        upper = [point.upper.value for point in self.trace]
        ax.fill_between(seconds, lower, upper, step="post", alpha=0.15, color="tab:blue", linewidth=0)
        for values, side, colour in ((lower, "lower", "tab:blue"), (upper, "upper", "tab:red")):
            alone = "o" if len(seconds) == 1 else None  # closed at once: a line of one point would not be seen
            ax.step(seconds, values, where="post", color=colour, label=side, marker=alone)
            sampled = [i for i, point in enumerate(self.trace) if not getattr(point, side).exact]
            ax.plot([seconds[i] for i in sampled], [values[i] for i in sampled], ".", color=colour)
        ax.set_xscale("log")
        ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        ax.xaxis.set_major_formatter("{x:g}")
        ax.xaxis.set_minor_formatter("")
        ax.set_xlabel("seconds")
        ax.set_ylabel("Bayes-optimal value")
        ax.legend(frameon=False, loc="lower right")
        return ax


def bracket(
    belief: Belief,
    *,
    initial: FloatArray | int | None = None,
    discount: float,
    horizon: int | None = None,
    confidence: float = 0.95,
    target_gap: float | None = None,
    time_limit: float | None = None,
    rng: np.random.Generator | int,
    threads: int | None = None,
    watch: Callable[[TracePoint], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> Bracket:
    """Bounds on the Bayes-optimal value of a belief, closing until the target or the limit is reached.

    Args:
      belief: finite, or `DirichletBelief` with known or Bernoulli rewards.
      initial: start distribution or state; default: the belief's, else uniform over states.
      discount, horizon: of the problem; no horizon means for ever, and then `discount < 1`.
      confidence: with which all bounds hold together. Exact bounds hold with certainty.
      target_gap: stop when `upper − lower` is at most this share of the larger of `|upper|` and `|lower|`. Default:
        0.01, unless there is a time limit; then 0.
      time_limit: seconds, roughly; compiling, where that is needed, comes before and is not counted. Default: 60.
      rng: source of all randomness, a generator or a seed. What is computed depends on it, and on the time taken.
      threads: default: the cores this process may use. Changes no bound of a given size of graph and sample.
      watch: called with every new point of the trace, as it happens.
      stop: asked between pieces of work: once it says true, what was found so far is returned, as if time were up.

    >>> from beliefbound import FiniteBelief
    >>> belief = FiniteBelief([[[[1.0]]], [[[1.0]]]], [[[1.0]], [[2.0]]], reward_signal="unobserved")
    >>> bracket(belief, discount=0.5, rng=np.random.default_rng(0))
    Bracket([3, 3], 0% wide, proven)
    """
    task = Task.of(belief, discount=discount, horizon=horizon, initial=initial)
    check_probability(confidence, "confidence")
    rng, threads = as_rng(rng), check_threads(threads)
    limit = DEFAULT_SECONDS if time_limit is None else check_positive(time_limit, "time_limit")
    if target_gap is None:
        target_gap = DEFAULT_GAP if time_limit is None else 0.0
    for name, function in (("watch", watch), ("stop", stop)):
        if function is not None and not callable(function):
            raise ParameterError(f"{name} is {shown(function)}; give a function, or leave it out")
    target_gap = check_gap(target_gap, "target_gap")
    compiling = warm_up(task)
    log = Log(time.perf_counter(), limit, target_gap, confidence, watch, stop)
    finite = finite_task(task)
    if finite is not None:
        bracket_finite(finite, rng, threads, log)
    else:
        bracket_sampled(task, rng, threads, log)
    return _result(log, notes=belief.notes() if isinstance(belief, DirichletBelief) else (), compile_seconds=compiling)


def _result(log: Log, *, notes: tuple[str, ...], compile_seconds: float) -> Bracket:
    assert log.lower is not None
    assert log.upper is not None
    assert log.lower.policy is not None
    exact = log.lower.exact and log.upper.exact
    confidence = 1.0 if exact else log.confidence
    gap = Bound(
        max(0.0, log.upper.value - log.lower.value),
        "upper",
        "upper bound minus lower bound",
        exact=exact,
        confidence=confidence,
        n_samples=0 if exact else max(log.lower.n_samples, log.upper.n_samples),
    )
    regret = gap if log.regret is None or log.regret.value >= gap.value else log.regret
    return Bracket(
        log.lower,
        log.upper,
        log.lower.policy,
        regret,
        confidence,
        tuple(log.trace),
        tuple(log.bounds),
        notes,
        compile_seconds,
    )
