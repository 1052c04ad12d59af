"""`bracket`: the Bayes-optimal value between two bounds, as tight as the time allows.

What a belief can do decides how (`beliefs.capabilities`): one whose models can be enumerated by `bounds.finite.search`,
one that counts by `bounds.dirichlet.steps`, any other by `bounds.drawn.steps`. All are sequences of steps
(`bounds.steps`): the clock decides only after which one to stop, so seed and effort say which certificate it is.
"""

import operator
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self, get_args

import numpy as np

from beliefbound.base.errors import ContradictionError, ParameterError
from beliefbound.base.progress import closing_display
from beliefbound.base.validation import (
    FloatArray,
    Rng,
    as_rng,
    check_count,
    check_function,
    check_gap,
    check_positive,
    check_probability,
    check_threads,
    shown,
)
from beliefbound.beliefs import Belief
from beliefbound.beliefs.capabilities import notes as notes_of
from beliefbound.bounds.bound import Bound, BoundEntries, Regret, RegretEntries
from beliefbound.bounds.decision import Contest, Decision, DecisionEntries
from beliefbound.bounds.dirichlet.arrays import posterior_of
from beliefbound.bounds.finite.first_bounds import first_bounds
from beliefbound.bounds.finite.relaxation import Certifier
from beliefbound.bounds.finite.search import finite_steps
from beliefbound.bounds.policy_files import load_policy
from beliefbound.bounds.record import Record, TracePoint, contradiction, percent, relative
from beliefbound.bounds.steps import Limits, take
from beliefbound.bounds.warmup import warm_up
from beliefbound.kernels.compiling import clock, seconds
from beliefbound.planning.rounding import Allowance
from beliefbound.planning.task import FiniteTask, Task, finite_task
from beliefbound.policy import Policy
from beliefbound.policy.naming import Names, NamesEntries, names_of
from beliefbound.policy.results import Entries, Result, axis

Target = Literal["value", "decision", "upper"]
DEFAULT_GAP, DEFAULT_SECONDS = 0.01, 60.0


class TracePointEntries(Entries):
    """A point of the trace in a file: `lower` and `upper` are positions in the list of bounds."""

    seconds: float
    lower: int
    upper: int


class BracketEntries(Entries):
    """A `Bracket` in a file."""

    lower: BoundEntries
    upper: BoundEntries
    regret: RegretEntries
    confidence: float
    width: float
    relative_gap: float
    bounds: list[BoundEntries]
    trace: list[TracePointEntries]
    asymptotic: bool
    notes: list[str]
    compile_seconds: float
    seed: int
    effort: int
    library: str
    decision: DecisionEntries | None
    names: NamesEntries = NamesEntries()


@dataclass(frozen=True)
class Bracket(Result):
    """The Bayes-optimal value lies in `[lower.value, upper.value]`.

    Attributes:
      lower, upper: the best bounds found; each says how it was proven.
      policy: attains `lower`: a table, or one that learns; it plays, and is saved and loaded, like any `Policy`.
      regret: at most so far is `policy` from Bayes-optimal; no more than `width`, and less where policy and relaxation,
        measured on the same scenarios, are closer than the two ends.
      confidence: probability with which everything here holds; 1 when all of it is exact.
      trace: `(seconds, lower, upper)` as the bracket closed.
      bounds: every bound computed on the way.
      notes: what a reader should know besides, such as how much of the value rests on the prior; mostly empty.
      compile_seconds: time spent on compiling what was new, while the clock of the trace stood still.
      seed, effort, version: what makes it again: `bracket(…, rng=seed, effort=effort)` of that version of the library,
        with the same belief, task, target and confidence, gives the same bounds and the same policy, bit for bit, on
        the same kind of machine with any number of threads. `effort`: the steps taken (`bounds.steps`).
      decision: what each first action is worth, and whether one is proven optimal (`bounds.decision`): for finite
        beliefs and one start state, whatever the target is; else `None`.
      names: of states, actions and models, where the belief has any.

    `save` keeps the policy of `lower`, in a file beside its own, and no other bound's.
    """

    lower: Bound
    upper: Bound
    policy: Policy
    regret: Regret
    confidence: float
    trace: tuple[TracePoint, ...] = field(repr=False)
    bounds: tuple[Bound, ...] = field(repr=False)
    notes: tuple[str, ...] = ()
    compile_seconds: float = field(default=0.0, compare=False)
    seed: int = field(default=0, repr=False)
    effort: int = field(default=0, repr=False)
    version: str = field(default="", repr=False)
    decision: Decision | None = field(default=None, repr=False, compare=False)
    names: Names = field(default=Names(), repr=False, compare=False)

    _kind, _entries, _version = "bracket", BracketEntries, 3

    def __post_init__(self) -> None:
        if self.lower.value > self.upper.value:
            raise ContradictionError(contradiction(self.lower, self.upper))

    @property
    def width(self) -> float:
        """`upper − lower`, in units of value; never negative."""
        return self.upper.value - self.lower.value

    @property
    def relative_gap(self) -> float:
        """`width` as a share of the larger of `|upper|` and `|lower|`: what `target_gap` refers to."""
        return relative(self.lower.value, self.upper.value)

    def __repr__(self) -> str:
        kind = "proven" if self.confidence == 1.0 else f"{100 * self.confidence:.4g}% confidence"
        kind += ", asymptotic" if self.lower.asymptotic or self.upper.asymptotic else ""
        return f"Bracket([{self.lower.value:.6g}, {self.upper.value:.6g}], {percent(self.relative_gap)} wide, {kind})"

    def summary(self) -> str:
        """What is proven and what is estimated, in a few lines."""
        lines = [repr(self)]
        ends = (self.lower, self.upper)
        lines += [f"  {bound.side} {bound.value:.6g}  {_how(bound)}: {bound.method}" for bound in ends]
        how = "proven" if self.regret.exact else f"holds with probability {self.regret.confidence:.4g}"
        lines.append(f"  the policy is within {self.regret.value:.6g} of Bayes-optimal, {how}")
        lines += [f"  {note}" for note in self.notes]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """The numbers and words, ready for JSON; a point of the trace names its bounds by their place in the list."""
        bounds, place = list(self.bounds), {id(bound): k for k, bound in enumerate(self.bounds)}
        for bound in (bound for point in self.trace for bound in point[1:]):
            if id(bound) not in place:
                place[id(bound)] = len(bounds)
                bounds.append(bound)
        return {
            "lower": self.lower.to_dict(),
            "upper": self.upper.to_dict(),
            "regret": self.regret.to_dict(),
            "confidence": float(self.confidence),
            "width": self.width,
            "relative_gap": self.relative_gap,
            "bounds": [bound.to_dict() for bound in bounds],
            "trace": [
                {"seconds": float(seconds), "lower": place[id(lower)], "upper": place[id(upper)]}
                for seconds, lower, upper in self.trace
            ],
            "asymptotic": self.lower.asymptotic or self.upper.asymptotic,
            "notes": list(self.notes),
            "compile_seconds": float(self.compile_seconds),
            "seed": self.seed,
            "effort": self.effort,
            "library": self.version,
            "decision": None if self.decision is None else self.decision.to_dict(),
            "names": self.names.to_dict(),
        }

    def _rows(self) -> list[tuple[str, str]]:
        rows = [
            (str(bound.side), f"{bound.value:.6g}, {_how(bound)}: {bound.method}") for bound in (self.lower, self.upper)
        ]
        rows.append(("relative gap", percent(self.relative_gap)))
        return [*rows, ("policy", f"within {self.regret.value:.6g} of Bayes-optimal: {self.policy!r}")]

    @staticmethod
    def _read_policy(file: Path) -> Policy:
        return load_policy(file)

    @classmethod
    def _from_entries(cls, entries: BracketEntries, policy: Policy | None) -> Self:
        if policy is None:
            raise ParameterError("it names no policy")
        lower, upper = Bound._from_entries(entries.lower, policy), Bound._from_entries(entries.upper, None)
        if (lower.side, upper.side) != ("lower", "upper"):
            raise ParameterError("its lower and upper bounds are on the wrong sides")
        bounds = [Bound._from_entries(bound, None) for bound in entries.bounds]
        for end in (lower, upper):  # one object each, as before: the lower one brings its policy along
            if end in bounds:
                bounds[bounds.index(end)] = end
        for point in entries.trace:
            if not (0 <= point.lower < len(bounds) and 0 <= point.upper < len(bounds)):
                raise ParameterError("its trace names bounds that it does not have")
        trace = [TracePoint(point.seconds, bounds[point.lower], bounds[point.upper]) for point in entries.trace]
        regret = Regret._from_entries(entries.regret, None)
        names = Names.from_entries(entries.names)
        return cls(
            lower,
            upper,
            policy,
            regret,
            entries.confidence,
            tuple(trace),
            tuple(bounds),
            notes=tuple(entries.notes),
            compile_seconds=entries.compile_seconds,
            seed=entries.seed,
            effort=entries.effort,
            version=entries.library,
            decision=None if entries.decision is None else Decision.from_entries(entries.decision, names),
            names=names,
        )

    def plot(self, ax: Any = None) -> Any:
        """Both sides closing over time, on a matplotlib axis; returns the axis."""
        from matplotlib.ticker import LogLocator

        ax = axis(ax, figsize=(6, 3.5))
        points = list(self.trace) or [TracePoint(0.0, self.lower, self.upper)]
        seconds = [max(point.seconds, 1e-3) for point in points]
        lower = [point.lower.value for point in points]
        upper = [point.upper.value for point in points]
        if len(points) == 1:  # closed at once: a mark at each end, and a band to the right of them
            ax.plot(seconds, lower, "^", color="tab:blue")
            ax.plot(seconds, upper, "v", color="tab:red")
            seconds, lower, upper = [seconds[0], 2.0 * seconds[0]], 2 * lower, 2 * upper
        ax.fill_between(seconds, lower, upper, step="post", alpha=0.15, color="tab:blue", linewidth=0)
        for values, side, colour in ((lower, "lower", "tab:blue"), (upper, "upper", "tab:red")):
            ax.step(seconds, values, where="post", color=colour, label=side)
            sampled = [i for i, point in enumerate(points) if not getattr(point, side).exact]
            ax.plot([seconds[i] for i in sampled], [values[i] for i in sampled], ".", color=colour)
        ax.set_xscale("log")
        ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        ax.xaxis.set_major_formatter("{x:g}")
        ax.xaxis.set_minor_formatter("")
        ax.set_xlabel("seconds")
        ax.set_ylabel("Bayes-optimal value")
        ax.legend(frameon=False, ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1.0))
        return ax


def _how(bound: Bound) -> str:
    if bound.exact:
        return "proven"
    return f"estimated {bound.estimate:.6g}, holds with probability {bound.confidence:.4g}"


def bracket(
    belief: Belief,
    *,
    initial: FloatArray | int | None = None,
    discount: float,
    horizon: int | None = None,
    confidence: float = 0.95,
    target: Target = "value",
    target_gap: float | None = None,
    time_limit: float | None = None,
    effort: int | None = None,
    interval: Literal["betting", "t"] = "betting",
    rng: Rng = None,
    threads: int | None = None,
    progress: bool = False,
    watch: Callable[[TracePoint], object] | None = None,
    stop: Callable[[], bool] | None = None,
) -> Bracket:
    """Bounds on the Bayes-optimal value of a belief, closing until the target or the limit is reached.

    Args:
      belief: finite, `DirichletBelief`, or any other that can draw models (`beliefs.belief`).
      initial: start distribution or state; default: the belief's, else uniform over states.
      discount, horizon: of the problem; no horizon means for ever, and then `discount < 1`.
      confidence: with which all bounds hold together. Exact bounds hold with certainty.
      target: what to close on. `"decision"`: stop as soon as one first action is proven optimal, that is, its lower
        bound is above the upper bounds of all others (`found.decision`); exact bounds only, for finite beliefs and one
        start state. `"upper"`: for beliefs that count; nothing but a memoryless plan is made from below, for somebody
        who has a policy of his own.
      target_gap: for a value, stop when `upper − lower` is at most this share of the larger of `|upper|` and `|lower|`.
        Default: 0.01, unless there is a time limit or an effort; then 0.
      time_limit: seconds, kept within a tenth of itself or 0.3 s; the first bounds are found however short it is.
        Compiling, where that is needed, is not counted. Default: 60.
      effort: in place of a time limit, at most so many steps of work (`bounds.steps`): the same bracket every time,
        bit for bit. `found.effort` says how many a time limit was enough for.
      interval: of what is sampled from a belief that is not finite: `betting`, which is proven for samples in a known
        range (Normal rewards have none, and get `t`), or `t`, Student's, which is narrower and only asymptotic: what no
        sample has shown it does not know of.
      rng: source of all randomness: a generator, a seed, or `None` for fresh randomness, from the system. What is
        found depends on the belief, the task, the confidence, on it, and on the number of steps taken; `found.seed`
        is a seed that gives the same again.
      threads: default: the cores this process may use. Changes no bound of a given effort.
      progress: show the bracket as it closes, on standard error.
      watch: called with every new point of the trace, as it happens; small finite beliefs have one at 0 s, before
        anything is compiled.
      stop: asked between steps: once it says true, what was found so far is returned, as if time were up.

    >>> from beliefbound import FiniteBelief
    >>> belief = FiniteBelief([[[[1.0]]], [[[1.0]]]], [[[1.0]], [[2.0]]], reward_signal="unobserved")
    >>> bracket(belief, discount=0.5, rng=0)
    Bracket([3, 3], 0% wide, proven)
    """
    task = Task.of(belief, discount=discount, horizon=horizon, initial=initial)
    limits = limits_of(target_gap=target_gap, time_limit=time_limit, effort=effort, stop=stop)
    if not isinstance(interval, str) or interval not in ("betting", "t"):
        raise ParameterError(f"interval is {shown(interval)}; choose 'betting' or 't'")
    check_function(watch, "watch")
    knobs: dict[str, Any] = {"target": target, "interval": interval, "threads": check_threads(threads)}
    knobs |= {"confidence": check_probability(confidence, "confidence"), "progress": progress, "watch": watch}
    return bracket_of(task, limits, seed=seed_of(rng), **knobs).bracket


class Closed(NamedTuple):
    """A bracket, and the graph of histories that its search has grown, where there is one."""

    bracket: Bracket
    graph: Certifier | None


def bracket_of(
    task: Task,
    limits: Limits,
    *,
    seed: int,
    confidence: float = 0.95,
    target: Target = "value",
    interval: Literal["betting", "t"] = "betting",
    threads: int | None = None,
    progress: bool = False,
    watch: Callable[[TracePoint], object] | None = None,
) -> Closed:
    """`bracket` of a task. What is made of the task on the way is had by whoever works on the same one later; the
    bracket is the same whatever was made before."""
    finite = finite_task(task)
    contest = _contest(task, finite, target)
    with closing_display(show=progress, watch=watch) as seen:
        allowance = None if finite is None else Allowance(finite)
        record = Record(confidence, seen, contest=contest, decide=target == "decision", allowance=allowance)
        source = np.random.default_rng(seed)
        record.add(*(() if finite is None else first_bounds(finite)))
        warm_up(task)
        record.began, compiled = clock(), seconds()
        if finite is not None:
            steps = finite_steps(finite, source, threads, record)
        elif posterior_of(task) is not None:
            from beliefbound.bounds.dirichlet.steps import dirichlet_steps  # a finite belief needs none of it

            steps = dirichlet_steps(task, source, threads, record, interval, upper_alone=target == "upper")
        else:
            from beliefbound.bounds.drawn.steps import drawn_steps

            steps = drawn_steps(task, source, threads, record, interval)
        taken = take(steps, record, limits)
    belief = task.belief
    notes = notes_of(belief)
    made: dict[str, Any] = {"compile_seconds": seconds() - compiled, "seed": seed, "effort": taken}
    return Closed(_result(record, notes=notes + record.notes, names=names_of(belief), **made), record.graph)


def limits_of(
    *, target_gap: float | None, time_limit: float | None, effort: int | None, stop: Callable[[], bool] | None
) -> Limits:
    """When to stop, checked: at a gap of 1% or after a minute, unless something is asked for."""
    seconds = DEFAULT_SECONDS if time_limit is None else check_positive(time_limit, "time_limit")
    if effort is not None:
        effort = check_count(effort, "effort")
        if time_limit is not None:
            raise ParameterError("give an effort, which is the same every time, or a time limit, not both")
    if target_gap is None:
        target_gap = DEFAULT_GAP if time_limit is None and effort is None else 0.0
    check_function(stop, "stop")
    return Limits(check_gap(target_gap, "target_gap"), effort, seconds, stop)


def _contest(task: Task, finite: FiniteTask | None, target: Target) -> Contest | None:
    """The first actions, where they can be told apart."""
    if target not in get_args(Target):
        raise ParameterError(f"target is {shown(target)}; choose one of {', '.join(get_args(Target))}")
    states = np.flatnonzero(task.start)
    told = finite is not None and len(states) == 1 and finite.belief.signal.finite
    if target == "decision" and not told:
        raise ParameterError(
            "a decision is proven for finite beliefs whose reward signal is not continuous, and one start state; "
            + (f"this one starts in any of {len(states)}: give initial=state" if len(states) > 1 else "use a value")
        )
    if target == "upper" and posterior_of(task) is None:
        raise ParameterError("the upper end alone is closed for beliefs that count; here, use a value")
    return Contest(int(states[0]), finite.models.available[states[0]]) if told and finite is not None else None


def seed_of(rng: Rng) -> int:
    """The seed itself where it is one; else one that the generator draws."""
    source = as_rng(rng)
    if rng is None or isinstance(rng, np.random.Generator):
        return int(source.integers(0, 2**63))
    return operator.index(rng)


def _result(
    record: Record, *, notes: tuple[str, ...], compile_seconds: float, seed: int, effort: int, names: Names
) -> Bracket:
    best, upper, policy = record.lower, record.upper, record.policy
    assert best is not None
    assert upper is not None
    assert policy is not None
    lower = replace(best, policy=policy)
    exact = lower.exact and upper.exact
    confidence = 1.0 if exact else record.confidence
    width = Regret(
        upper.value - lower.value,
        "upper bound minus lower bound",
        exact=exact,
        confidence=confidence,
        n_samples=0 if exact else max(lower.n_samples, upper.n_samples),
        asymptotic=lower.asymptotic or upper.asymptotic,
    )
    regret = width if record.regret is None or record.regret.value >= width.value else record.regret
    return Bracket(
        lower,
        upper,
        policy,
        regret,
        confidence,
        tuple(point._replace(lower=lower) if point.lower is best else point for point in record.trace),
        tuple(lower if bound is best else bound for bound in record.bounds),
        notes,
        compile_seconds,
        seed,
        effort,
        version("beliefbound"),
        None if record.contest is None else record.contest.decision(names),
        names,
    )
