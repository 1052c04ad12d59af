"""`bracket`: the Bayes-optimal value between two bounds, as tight as the time allows.

Finite belief, in this order, each step kept only if it helps:

1. the paper's bounds: MMBI and CADP from below, `E max` and QMDP from above. Exact.
2. search in the belief graph (`bounds.relaxation`), doubling it. Exact at any time.
3. information relaxation and the adaptive policy on the graph, by scenarios. After each doubling a pilot says what
   sampling would give; the bounds themselves come from fresh scenarios.

Error. Exact bounds cost none. Sampling attempt `j` gets the share `δ/(j(j+1))` of the error `δ = 1 − confidence`,
split over its three statements; within an attempt the betting intervals hold at all sample sizes at once, so it may
stop whenever it likes. All bounds of the trace hold together with the confidence asked for.

Other beliefs: `bounds.particles`.
"""

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from beliefbound.beliefs import Belief
from beliefbound.beliefs.finite import FiniteBelief
from beliefbound.bounds.adaptive import AdaptivePolicy
from beliefbound.bounds.bound import Bound
from beliefbound.bounds.problem import policy_pool
from beliefbound.bounds.relaxation import BLOCK, Address, Certifier, Costs, Relaxed, extended, limits, read_costs
from beliefbound.bounds.simple import e_max, qmdp, start_of
from beliefbound.errors import ParameterError
from beliefbound.evaluation import evaluate
from beliefbound.planning.mmbi import mmbi
from beliefbound.policy import MemorylessPolicy
from beliefbound.validation import FloatArray, check_count, check_discount, check_positive, check_probability

DEFAULT_GAP, DEFAULT_SECONDS = 0.01, 60.0
_FIRST_NODES = 500
_PILOT = 2 * BLOCK
_CHUNK = 4000  # beliefs between looks at the clock
_SAMPLING = 0.45  # share of the time kept for scenarios
_LEAST_ROUND = 0.1  # share of the time that another round of growing and sampling is worth


class TracePoint(NamedTuple):
    """Both sides of the bracket `seconds` after the start."""

    seconds: float
    lower: Bound
    upper: Bound


@dataclass(frozen=True)
class Bracket:
    """The Bayes-optimal value lies in `[lower.value, upper.value]`.

    Attributes:
      lower, upper: the best bounds found; each says how it was proven.
      policy: attains `lower`: a memoryless policy, or an adaptive one with `.act(history, state)`.
      regret: bound on how far `policy` is from Bayes-optimal; at most `gap`, and often less, because policy and
        relaxation are measured on the same scenarios.
      confidence: probability with which everything here holds; 1 when all of it is exact.
      trace: `(seconds, lower, upper)` as the bracket closed.
      bounds: every bound computed on the way.
    """

    lower: Bound
    upper: Bound
    policy: Any
    regret: Bound
    confidence: float
    trace: tuple[TracePoint, ...] = field(repr=False)
    bounds: tuple[Bound, ...] = field(repr=False)

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
            ax.step(seconds, values, where="post", color=colour, label=side)
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
    rng: np.random.Generator,
    threads: int | None = None,
    watch: Callable[[TracePoint], None] | None = None,
) -> Bracket:
    """Bounds on the Bayes-optimal value of a belief, closing until the target or the limit is reached.

    Args:
      belief: finite, or `DirichletBelief` with known or Bernoulli rewards.
      initial: start distribution or state; default: the belief's, else uniform over states.
      discount, horizon: of the problem; no horizon means for ever, and then `discount < 1`.
      confidence: with which all bounds hold together. Exact bounds hold with certainty.
      target_gap: stop when `upper − lower` is at most this share of the larger of `|upper|` and `|lower|`. Default:
        0.01, unless there is a time limit; then 0.
      time_limit: seconds, roughly; compilation included. Default: 60.
      rng: source of all randomness. What is computed depends on it, and on the time taken.
      threads: default: the cores this process may use. Changes no bound of a given size of graph and sample.
      watch: called with every new point of the trace, as it happens.

    >>> belief = FiniteBelief([[[[1.0]]], [[[1.0]]]], [[[1.0]], [[2.0]]], reward_signal="unobserved")
    >>> bracket(belief, discount=0.5, rng=np.random.default_rng(0))
    Bracket([3, 3], 0% wide, proven)
    """
    clock = time.perf_counter()
    discount = check_discount(discount, horizon)
    if horizon is not None:
        horizon = check_count(horizon, "horizon")
    check_probability(confidence, "confidence")
    limit = DEFAULT_SECONDS if time_limit is None else check_positive(time_limit, "time_limit")
    if target_gap is None:
        target = DEFAULT_GAP if time_limit is None else 0.0
    elif not target_gap >= 0.0:
        raise ParameterError(f"target_gap is {target_gap}; give a share of the value, 0 or more")
    else:
        target = float(target_gap)
    log = Log(clock, limit, target, confidence, watch)
    start = start_of(belief, initial)
    if isinstance(belief, FiniteBelief):
        _finite(belief, start, discount, horizon, rng, threads, log)
    else:
        from beliefbound.bounds.particles import bracket_sampled

        bracket_sampled(belief, start, discount, horizon, rng, threads, log)
    return log.bracket()


def relative(lower: float, upper: float) -> float:
    """The gap as a share of the larger end."""
    scale = max(abs(lower), abs(upper))
    return 0.0 if upper <= lower else (upper - lower) / scale if scale > 0.0 else math.inf


class Log:
    """The best bounds so far, when they came, and how much time and error is left."""

    def __init__(
        self,
        clock: float,
        limit: float,
        target: float,
        confidence: float,
        watch: Callable[[TracePoint], None] | None = None,
    ) -> None:
        self.watch = watch
        self.clock, self.limit, self.target, self.confidence = clock, limit, target, confidence
        self.lower: Bound | None = None
        self.upper: Bound | None = None
        self.regret: Bound | None = None
        self.attempts = 0
        self.trace: list[TracePoint] = []
        self.bounds: list[Bound] = []

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.clock

    @property
    def left(self) -> float:
        return self.limit - self.seconds

    @property
    def done(self) -> bool:
        return self.left <= 0.0 or self.reached

    @property
    def reached(self) -> bool:
        return self.lower is not None and self.upper is not None and self.gap <= self.target

    @property
    def gap(self) -> float:
        assert self.lower is not None
        assert self.upper is not None
        return relative(self.lower.value, self.upper.value)

    def next_alpha(self) -> float:
        """The error of the next sampling attempt."""
        self.attempts += 1
        return (1.0 - self.confidence) / (self.attempts * (self.attempts + 1))

    def add(self, *bounds: Bound) -> None:
        """Keep what is better than what there was."""
        better = False
        for bound in bounds:
            self.bounds.append(bound)
            if bound.side == "lower" and (self.lower is None or bound.value > self.lower.value):
                self.lower, self.regret, better = bound, None, True
            if bound.side == "upper" and (self.upper is None or bound.value < self.upper.value):
                self.upper, better = bound, True
        if better and self.lower is not None and self.upper is not None:
            self.trace.append(TracePoint(self.seconds, self.lower, self.upper))
            if self.watch is not None:
                self.watch(self.trace[-1])

    def bracket(self) -> Bracket:
        assert self.lower is not None
        assert self.upper is not None
        exact = self.lower.exact and self.upper.exact
        confidence = 1.0 if exact else self.confidence
        gap = Bound(
            max(0.0, self.upper.value - self.lower.value),
            "upper",
            "upper bound minus lower bound",
            exact=exact,
            confidence=confidence,
            n_samples=0 if exact else max(self.lower.n_samples, self.upper.n_samples),
        )
        regret = gap if self.regret is None or self.regret.value >= gap.value else self.regret
        return Bracket(
            self.lower,
            self.upper,
            self.lower.policy,
            regret,
            confidence,
            tuple(self.trace),
            tuple(self.bounds),
        )


def _finite(
    belief: FiniteBelief,
    start: FloatArray,
    discount: float,
    horizon: int | None,
    rng: np.random.Generator,
    threads: int | None,
    log: Log,
) -> None:
    plan = mmbi(belief, discount=discount, horizon=horizon)
    log.add(
        Bound(plan.value(start), "lower", "MMBI", policy=plan.policy),
        Bound(float(start @ e_max(belief, discount=discount, horizon=horizon)), "upper", "E max"),
        Bound(float(start @ qmdp(belief, discount=discount, horizon=horizon)), "upper", "QMDP"),
    )
    if log.done:
        return
    pool = policy_pool(belief, discount=discount, horizon=horizon, initial=start)
    for policy in pool:
        stages = None if isinstance(policy, MemorylessPolicy) else horizon
        value = float(belief.weights @ evaluate(policy, belief, discount=discount, horizon=stages) @ start)
        log.add(Bound(value, "lower", "best memoryless policy of the pool (CADP and others)", policy=policy))
    if log.done or belief.reward_signal == "continuous":
        return
    try:
        certifier = Certifier(
            belief, discount=discount, horizon=horizon, initial=start, policies=pool, core_nodes=1_000_000
        )
    except ParameterError as too_large:
        warnings.warn(f"no search and no sampling: {too_large}", stacklevel=3)
        return
    address = rng.integers(0, 2**64, size=4, dtype=np.uint64)
    nodes, growing, attempt, reserve = _FIRST_NODES, True, 0, _SAMPLING * log.limit
    while True:
        while growing and certifier.n_nodes < nodes and log.left > reserve:
            growing = certifier.grow(certifier.n_nodes + _CHUNK, log.target * abs(certifier.upper))
        note_exact(certifier, log)
        if log.done:
            return
        certifier.settle()
        note_exact(certifier, log)
        if log.done:
            return
        late = not growing or log.left <= reserve
        attempt += 1
        more = sample_until(certifier, address, attempt, threads, log, late=late)
        if log.done or not growing:
            return
        if late and not more:  # the gap is the graph's own: half of what is left goes into a larger one
            if log.left < _LEAST_ROUND * log.limit:
                return
            reserve, nodes = 0.5 * log.left, certifier.core_nodes
        keep_policies(log)
        certifier.reopen()
        nodes *= 2 if nodes > 20_000 else 4


def note_exact(certifier: Certifier, log: Log) -> None:
    """The bounds that the search has proven so far."""
    method = f"search in a graph of {certifier.n_nodes} beliefs"
    log.add(
        Bound(certifier.lower, "lower", method, policy=AdaptivePolicy(certifier)),
        Bound(certifier.upper, "upper", method),
    )


def keep_policies(log: Log) -> None:
    """Before the graph changes, give the policies of sampled bounds their own copy: that is what they were proven for.
    Exact bounds only rise with the graph."""
    for policy in {id(x.policy): x.policy for x in log.bounds if not x.exact and x.policy is not None}.values():
        policy.detach()


def sample_until(
    certifier: Certifier, address: Address, attempt: int, threads: int | None, log: Log, *, late: bool
) -> bool:
    """A pilot; then, if it promises to reach the target or time is running out, scenarios until that or the end of
    time. False when sampling had no more to give."""
    assert log.lower is not None
    assert log.upper is not None
    began = time.perf_counter()
    pilot_address = extended(address, attempt, 0)
    pilot = certifier.sample(pilot_address, 0, _PILOT, clip=np.inf, stop=np.inf, threads=threads)
    each = (time.perf_counter() - began) / _PILOT
    clip, stop = limits(certifier, pilot)
    differences = pilot.below - pilot.above
    hope = float(differences.mean())
    goal = log.target * abs(certifier.upper)
    if not late:
        # Growth narrows the exact bounds and whatever is sampled later; until late, sample only to end the matter.
        noise = 3.0 * float(differences.std()) / math.sqrt(max(1.0, 0.5 * log.left / each))
        if hope + noise > 0.9 * goal:
            return True
    if hope >= log.upper.value - log.lower.value:
        return False
    alpha = log.next_alpha()
    own, policy = extended(address, attempt, 1), AdaptivePolicy(certifier, stop=stop)
    parts: list[Costs] = []
    done, batch = 0, 4 * BLOCK
    began = time.perf_counter()
    while True:
        parts.append(certifier.sample(own, done, batch, clip=clip, stop=stop, threads=threads))
        done += batch
        costs = Costs(*(np.concatenate(part) for part in zip(*parts, strict=True)))
        found = read_costs(certifier, costs, pilot, alpha=alpha, clip=clip, stop=stop)
        note_sampled(policy, found, log)
        if log.done:
            return True
        own_gap = float((costs.below - costs.above).mean())
        noise = found.upper.value - found.lower.value - own_gap
        if noise < (0.02 if late and log.left < 3.0 * _LEAST_ROUND * log.limit else 0.1) * max(goal, hope):
            return False  # what is left is the gap of the graph itself
        each = (time.perf_counter() - began) / done
        room = 0.8 * max(0.0, log.left) / each
        # Betting intervals fall like 1/n while they are wide and like 1/√n in the end.
        if not late and own_gap + noise * (1.0 + 0.5 * room / done) ** -0.75 > goal:
            return True  # the pilot was too hopeful
        batch = max(BLOCK, min(done, int(room) // BLOCK * BLOCK))


def note_sampled(policy: AdaptivePolicy, found: Relaxed, log: Log) -> None:
    """Add sampled bounds; the regret belongs to the adaptive policy."""
    lower = replace(found.lower, policy=policy)
    log.add(lower, found.upper)
    if log.lower is lower:
        log.regret = found.regret
