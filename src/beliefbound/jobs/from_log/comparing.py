"""The chosen policy against others, on the same fresh models; and whether behaviour is worth comparing with at all."""

import math
from typing import Any

import numpy as np

from beliefbound.base.errors import ParameterError
from beliefbound.base.validation import shown
from beliefbound.beliefs.from_log import Learnt
from beliefbound.bounds.posterior.candidates import Candidate
from beliefbound.bounds.posterior.fresh import Fresh
from beliefbound.bounds.posterior.risk import Estimate, mean_interval, worse_interval
from beliefbound.bounds.posterior.safe import MOST_ENTRIES
from beliefbound.bounds.posterior.safe_candidates import policy_of
from beliefbound.logs.log import Log
from beliefbound.planning.expected import expected_optimum
from beliefbound.planning.task import Task
from beliefbound.policy import StationaryPolicy
from beliefbound.report.from_log.result import Comparison

_RANDOM = 4.0  # standard deviations
_SAME = Estimate(0.0, 0.0, 0.0, "the same policy")


def behaviour_of(log: Log, learnt: Learnt, given: Any = None) -> Candidate:
    """The behaviour policy, as given or as the log shows, where an action that is not offered is never taken."""
    policy, offered = log.behaviour() if given is None else _checked(given, log), learnt.belief.available
    if not offered.all():
        chances = policy.probabilities * offered
        policy = StationaryPolicy(probabilities=chances / chances.sum(axis=1, keepdims=True))
    return Candidate("behaviour", policy_of(policy.chances(log.n_actions)))


def _checked(given: Any, log: Log) -> StationaryPolicy:
    """A behaviour that somebody gave."""
    if not isinstance(given, StationaryPolicy) or given.n_states > log.n_states:
        raise ParameterError(
            f"behaviour is {shown(given)[:60]}; give a StationaryPolicy of the {log.n_states} states of the log"
        )
    chances = given.chances(log.n_actions)
    rest = np.full((log.n_states - len(chances), log.n_actions), 1.0 / log.n_actions)  # being over, as a state
    never = (chances[: len(chances)] <= 0.0) & (log.visits[: len(chances)] > 0)
    if never.any():
        s, a = (int(i) for i in np.argwhere(never)[0])
        raise ParameterError(
            f"behaviour never takes action {log.action_name(a)[:60]} in state {log.state_name(s)[:60]}, but the log "
            f"has it {int(log.visits[s, a]):,} times; give the policy that made the log, or none"
        )
    return StationaryPolicy(probabilities=np.vstack([chances, rest]))


def suggest_objective(log: Log, learnt: Learnt, options: Any) -> str:
    """The objective that was asked for; else `safe:0.05` where there is a behaviour worth keeping, `mean` where actions
    look as if they were drawn at random, or what was never tried is to be tried.

    Pearson's statistic `Σ (n − e)²/e` of a state whose `N` actions were drawn evenly among `k` has mean `k − 1` and
    variance `2 (k − 1) (N − 1)/N`, exactly; the sum over states, `_RANDOM` standard deviations above its mean, speaks
    against that.
    """
    if options.objective != "suggest":
        return str(options.objective)
    offered = learnt.belief.available & ~learnt.terminal[:, None]
    k, visits = offered.sum(axis=1), np.where(offered, log.visits, 0)
    times = visits.sum(axis=1)
    met = (times > 0) & (k > 1)
    if options.try_untried or not met.any() or log.n_states**2 * log.n_actions > MOST_ENTRIES:
        return "mean"
    even = times[met] / k[met]
    found = float((((visits[met] - even[:, None]) ** 2 * offered[met]).sum(axis=1) / even - (k[met] - 1.0)).sum())
    spread = math.sqrt(float((2.0 * (k[met] - 1.0) * (times[met] - 1.0) / times[met]).sum()))
    return "safe:0.05" if options.behaviour is not None or found > _RANDOM * spread else "mean"


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
