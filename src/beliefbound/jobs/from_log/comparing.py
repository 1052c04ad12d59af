"""The chosen policy against others, on the same fresh models."""

from beliefbound.beliefs.from_log import Learnt
from beliefbound.bounds.posterior.candidates import Candidate
from beliefbound.bounds.posterior.fresh import Fresh
from beliefbound.bounds.posterior.risk import Estimate, mean_interval, worse_interval
from beliefbound.logs.log import Log
from beliefbound.planning.expected import expected_optimum
from beliefbound.planning.task import Task
from beliefbound.policy import StationaryPolicy
from beliefbound.report.from_log.result import Comparison

_SAME = Estimate(0.0, 0.0, 0.0, "the same policy")


def behaviour_of(log: Log, learnt: Learnt) -> Candidate:
    """The behaviour policy, where an action that is not offered is never taken."""
    policy, offered = log.behaviour(), learnt.belief.available
    if not offered.all():
        chances = policy.probabilities * offered
        policy = StationaryPolicy(probabilities=chances / chances.sum(axis=1, keepdims=True))
    return Candidate("behaviour", policy)


def bolder(task: Task, expected: Candidate) -> list[Candidate]:
    """The expected MDP's policy where it may do what was never tried, if it is another one than that which may not."""
    bold = Candidate("expected MDP, also untried actions", expected_optimum(task))
    return [] if bold.policy == expected.policy else [bold]


def compared(
    others: list[Candidate], chosen: Candidate, fresh: Fresh, error: float, range_: tuple[float, float] | None
) -> tuple[Comparison, ...]:
    """The chosen policy, the first of the fresh values, against those that follow; all intervals share the error."""
    each = error / len(others)
    return tuple(_compared(other, chosen, fresh, k, each, range_) for k, other in enumerate(others, start=1))


def _compared(
    other: Candidate, chosen: Candidate, fresh: Fresh, k: int, error: float, range_: tuple[float, float] | None
) -> Comparison:
    value = mean_interval(fresh.values[k], error / 2.0, range_)
    if other.policy == chosen.policy:
        return Comparison(other, value, _SAME, _SAME)
    gain, wide = fresh.values[0] - fresh.values[k], None if range_ is None else range_[1] - range_[0]
    between = mean_interval(gain, error / 4.0, None if wide is None else (-wide, wide))
    return Comparison(other, value, between, worse_interval(gain, error / 4.0))
