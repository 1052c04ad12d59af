"""The record of a bracket as it closes: the best bounds so far, when they came, and what time and error are left."""

import math
from collections.abc import Callable
from typing import NamedTuple

from beliefbound.bounds.bound import Bound, Regret
from beliefbound.bounds.decision import Contest
from beliefbound.kernels.compiling import clock


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
    ) -> None:
        """`clock`: when the time began; ∞ as long as it has not. `contest`: the first actions, where they are followed;
        `decide`: whether a decision is the target."""
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

    @property
    def seconds(self) -> float:
        return max(0.0, clock() - self.clock)

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


def relative(lower: float, upper: float) -> float:
    """The gap as a share of the larger end."""
    scale = max(abs(lower), abs(upper))
    return 0.0 if upper <= lower else (upper - lower) / scale if scale > 0.0 else math.inf
