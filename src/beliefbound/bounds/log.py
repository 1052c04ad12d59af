"""The record of a bracket as it closes: the best bounds so far, when they came, and what time and error are left."""

import math
import time
from collections.abc import Callable
from typing import NamedTuple

from beliefbound.bounds.bound import Bound, Regret
from beliefbound.bounds.decision import Contest
from beliefbound.errors import ContradictionError
from beliefbound.planning.rounding import Allowance

_REFUTED = "sampled bounds that contradicted others were left out; that happens with the probability left to chance"
_ROUNDED = 4.0  # times what is allowed for rounding of each end
_SAME = 1e-12  # of a bound: one that is better by less is not
_NONE = 1e-9  # a gap that is shown as none


class TracePoint(NamedTuple):
    """Both sides of the bracket `seconds` after the start."""

    seconds: float
    lower: Bound
    upper: Bound


class Log:
    """The best bounds so far, when they came, and how much time and error is left."""

    def __init__(
        self,
        clock: float,
        limit: float,
        target: float,
        confidence: float,
        watch: Callable[[TracePoint], object] | None = None,
        stop: Callable[[], bool] | None = None,
        *,
        contest: Contest | None = None,
        decide: bool = False,
        allowance: Allowance | None = None,
    ) -> None:
        """`clock`: when the time began; ∞ as long as it has not. `contest`: the first actions, where they are followed;
        `decide`: whether a decision is the target; `allowance`: for rounding, where bounds are proven."""
        self._allowance = allowance
        self.watch, self.stop, self.contest, self.decide = watch, stop, contest, decide
        self.clock, self.limit, self.target, self.confidence = clock, limit, target, confidence
        self.lower: Bound | None = None
        self.upper: Bound | None = None
        self.regret: Regret | None = None
        self.attempts = 0
        self.effort = 0  # rungs taken (`bounds.ladder`)
        self.ahead = 0.0  # seconds that the next rung may take, where it is known to be long
        self.trace: list[TracePoint] = []
        self.bounds: list[Bound] = []
        self.refuted = False  # whether a sampled bound had to give way

    @property
    def seconds(self) -> float:
        return max(0.0, time.perf_counter() - self.clock)

    @property
    def left(self) -> float:
        """Seconds until the end; none once somebody asked to stop."""
        return 0.0 if self.stopped else self.limit - self.seconds

    @property
    def stopped(self) -> bool:
        return self.stop is not None and self.stop()

    @property
    def done(self) -> bool:
        return self.left <= 0.0 or self.reached

    @property
    def reached(self) -> bool:
        if self.decide and self.contest is not None:
            return self.contest.best is not None
        return self.lower is not None and self.upper is not None and (self.gap <= self.target or self.closed)

    @property
    def gap(self) -> float:
        assert self.lower is not None
        assert self.upper is not None
        return relative(self.lower.value, self.upper.value)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know of how the bounds came about."""
        return (_REFUTED,) if self.refuted else ()

    def next_alpha(self) -> float:
        """The error of the next sampling attempt."""
        self.attempts += 1
        return (1.0 - self.confidence) / (self.attempts * (self.attempts + 1))

    @property
    def closed(self) -> bool:
        """Whether the ends are as close as rounding allows."""
        assert self.lower is not None
        assert self.upper is not None
        low, high, allowance = self.lower.value, self.upper.value, self._allowance
        return allowance is not None and high - low <= _ROUNDED * (allowance(low, "lower") + allowance(high, "upper"))

    def add(self, *bounds: Bound) -> None:
        """Keep what is better than what there was, by more than rounding."""
        before = self.lower, self.upper
        for bound in bounds:
            self.bounds.append(bound)
            if bound.side == "lower" and (self.lower is None or _above(bound.value, self.lower.value)):
                self.lower, self.regret = bound, None
            if bound.side == "upper" and (self.upper is None or _above(self.upper.value, bound.value)):
                self.upper = bound
            if self.lower is not None and self.upper is not None and self.lower.value > self.upper.value:
                self._refute(self.lower, self.upper)
        better = self.lower is not before[0] or self.upper is not before[1]
        if better and self.lower is not None and self.upper is not None:
            self.trace.append(TracePoint(self.seconds, self.lower, self.upper))
            if self.watch is not None:
                self.watch(self.trace[-1])

    def _refute(self, lower: Bound, upper: Bound) -> None:
        """Two bounds contradict each other, so a sampled one is false. That happens with the probability that is left
        to chance, whatever is done about it then: sampled ends give way to proven ones."""
        if not lower.exact:
            self.lower, self.regret = self._proven("lower"), None
        if not upper.exact:
            self.upper = self._proven("upper")
        if self.lower is None or self.upper is None or self.lower.value > self.upper.value:
            raise ContradictionError(contradiction(lower, upper))
        self.refuted = True

    def _proven(self, side: str) -> Bound | None:
        """The best bound of a side that is not sampled."""
        proven = [bound for bound in self.bounds if bound.side == side and bound.exact]
        best = max if side == "lower" else min
        return best(proven, key=lambda bound: bound.value, default=None)


def _above(x: float, y: float) -> bool:
    """Whether one number is above the other by more than rounding."""
    return x - y > _SAME * max(abs(x), abs(y))


def contradiction(lower: Bound, upper: Bound) -> str:
    """What is wrong with a lower bound above an upper one."""
    below, above = (f"{float(bound.value)!r} ({bound.method})" for bound in (lower, upper))
    ends = f"the lower bound {below} is above the upper bound {above}"
    if lower.exact and upper.exact:
        return f"{ends}: both claim to be proven, so they are of different problems, or this is a defect"
    return f"{ends}: one of them is among the sampled bounds that fail by chance; try another seed"


def relative(lower: float, upper: float) -> float:
    """The gap as a share of the larger end."""
    scale = max(abs(lower), abs(upper))
    return 0.0 if upper == lower else (upper - lower) / scale if scale > 0.0 else math.inf


def percent(gap: float) -> str:
    """A gap for people: what only rounding keeps apart is not."""
    return f"{100 * gap:.2g}%" if gap > _NONE else "0%"
