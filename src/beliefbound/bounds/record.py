"""The record of a bracket as it closes: the best bounds so far, when they came, and what is left of the error.

What finds bounds adds them here, as it finds them, and may read what there is: bounds, never the time.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from beliefbound.base.errors import ContradictionError
from beliefbound.bounds.bound import Bound, Regret, Side
from beliefbound.bounds.decision import Contest
from beliefbound.kernels.compiling import clock
from beliefbound.planning.rounding import Allowance
from beliefbound.policy import Policy

_REFUTED = "sampled bounds that contradicted others were left out; that happens with the probability left to chance"
ROUNDED = 4.0  # times what is allowed for rounding of each end: what counts as nothing
_SAME = 1e-12  # of a bound: one that is better by less is not
_NONE = 1e-9  # a gap that is shown as none


class TracePoint(NamedTuple):
    """Both sides of the bracket `seconds` after the start."""

    seconds: float
    lower: Bound
    upper: Bound


class Record:
    """The best bounds so far.

    Attributes:
      lower, upper: the best of each side; `None` as long as there is none.
      policy: attains `lower`.
      regret: how far `policy` is from the best at most, where that is known better than by the two ends.
      bounds, trace: every bound, and every point at which one of the ends moved.
      contest: the first actions, where they are followed; `decide`: whether a decision is the target.
      began: when the clock of the trace did; ∞ as long as it has not.
      ahead: seconds that the next step may take, where it is known to be long.
      refuted: whether a sampled bound had to give way.
      graph: the graph of histories that a search has grown (`bounds.finite.relaxation.Certifier`), where there is one.
    """

    def __init__(
        self,
        confidence: float,
        watch: Callable[[TracePoint], object] | None = None,
        *,
        contest: Contest | None = None,
        decide: bool = False,
        allowance: Allowance | None = None,
    ) -> None:
        """`allowance`: for rounding, where bounds are proven."""
        self.confidence, self.watch, self.contest, self.decide = confidence, watch, contest, decide
        self._allowance = allowance
        self.lower: Bound | None = None
        self.upper: Bound | None = None
        self.policy: Policy | None = None
        self.regret: Regret | None = None
        self.bounds: list[Bound] = []
        self.trace: list[TracePoint] = []
        self.began, self.ahead, self.refuted = math.inf, 0.0, False
        self.graph: Any = None
        self._attempts = 0

    @property
    def seconds(self) -> float:
        """Since the clock began."""
        return max(0.0, clock() - self.began)

    @property
    def width(self) -> float:
        """Between the two ends; ∞ as long as one of them is missing."""
        return math.inf if self.lower is None or self.upper is None else self.upper.value - self.lower.value

    @property
    def gap(self) -> float:
        """The same as a share of the larger end."""
        return math.inf if self.lower is None or self.upper is None else relative(self.lower.value, self.upper.value)

    def reached(self, gap: float) -> bool:
        """Whether the target is: the decision where that is one, else a gap."""
        if self.decide and self.contest is not None:
            return self.contest.best is not None
        return self.gap <= gap or self.closed

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know of how the bounds came about."""
        return (_REFUTED,) if self.refuted else ()

    def next_alpha(self) -> float:
        """The error of the next sampling attempt: attempt `j` gets the share `1/(j(j+1))`."""
        self._attempts += 1
        return (1.0 - self.confidence) / (self._attempts * (self._attempts + 1))

    @property
    def closed(self) -> bool:
        """Whether the ends are as close as rounding allows."""
        low, high, allowance = self.lower, self.upper, self._allowance
        if low is None or high is None or allowance is None:
            return False
        return self.width <= ROUNDED * (allowance(low.value, "lower") + allowance(high.value, "upper"))

    def add(self, *bounds: Bound, policy: Policy | None = None, regret: Regret | None = None) -> None:
        """Keep what is better than what there was, by more than rounding.

        `policy`, `regret`: of the lower bound among them, where they are not part of it: a policy that must be put
        aside once it is the best, and not for each bound on the way.
        """
        before = self.lower, self.upper
        for bound in bounds:
            self.bounds.append(bound)
            if bound.side == "lower" and (self.lower is None or _above(bound.value, self.lower.value)):
                self._take(bound, bound.policy if policy is None else policy, regret)
            if bound.side == "upper" and (self.upper is None or _above(self.upper.value, bound.value)):
                self.upper = bound
            if self.lower is not None and self.upper is not None and self.lower.value > self.upper.value:
                self._refute(self.lower, self.upper)
        better = self.lower is not before[0] or self.upper is not before[1]
        if better and self.lower is not None and self.upper is not None:
            self.trace.append(TracePoint(self.seconds, self.lower, self.upper))
            if self.watch is not None:
                self.watch(self.trace[-1])

    def _take(self, lower: Bound | None, policy: Policy | None, regret: Regret | None) -> None:
        self.lower, self.policy, self.regret = lower, policy, regret

    def _refute(self, lower: Bound, upper: Bound) -> None:
        """Two bounds contradict each other, so a sampled one is false. That happens with the probability that is left
        to chance, whatever is done about it then: sampled ends give way to proven ones."""
        if not lower.exact:
            proven = self._proven("lower")
            self._take(proven, None if proven is None else proven.policy, None)
        if not upper.exact:
            self.upper = self._proven("upper")
        if self.lower is None or self.upper is None or self.lower.value > self.upper.value:
            raise ContradictionError(contradiction(lower, upper))
        self.refuted = True

    def _proven(self, side: Side) -> Bound | None:
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
