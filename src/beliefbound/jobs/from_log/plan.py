"""`plan_log`: which policy, how good for sure, what next.

1. The posterior of the log (`beliefs.from_log`).
2. A memoryless policy, chosen among candidates on models of the posterior (`bounds.posterior.candidates`); where
   whoever made the log did not act at random, one that is hardly ever worse than that (`bounds.posterior.safe`).
   It does what was never tried in a state only where nothing ever was, or where somebody says so: how such pairs
   behave is from the prior alone, and of many pairs that only look good the best looks best. The bounds below are
   those of the posterior as it is, in which every action is offered.
3. *Certificate.* On fresh models: `lower ≤ E V^π`, what the chosen policy is worth on average over the posterior. From
   above, no policy, not even one that learns as it acts, is worth more than `upper`: `E max` on the same models, and
   the bracket of `bounds.bracket` where the problem is small enough. Hence `lower ≤ Bayes-optimal value ≤ upper`.
   An average is no promise about the one process that made the log: that pays less than `credible.low` with a
   probability of at most `1 − confidence` (`bounds.posterior.risk`), a statement of its own, if the prior is right;
   and another one whatever the process is (`bounds.posterior.prior_free`). Where episodes are known, an independent
   check beside them: a policy chosen from half of the episodes and valued on the others (`bounds.posterior.held_out`).
4. Comparison with the behaviour policy of the log and with the expected MDP's policy, on the same models; the
   distribution of the value under the posterior.
5. How much rests on the prior (`jobs.from_log.prior`), and what to measure next (`bounds.information`), each with
   intervals of its own.

The error `1 − confidence` is split: a quarter each to the bracket and to the comparisons, an eighth each to the
policy's value, to `E max`, to statements about risk, and to the bars of single states. So all of them hold together
(the bars, and what says so, in the limit of many models only).

All of it is about the posterior: if the prior or the family of rewards is wrong, so is the certificate.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from beliefbound.base.errors import ParameterError
from beliefbound.base.options import chosen
from beliefbound.base.validation import (
    FloatArray,
    as_flag,
    as_rng,
    check_count,
    check_function,
    check_not_below,
    check_probability,
    check_threads,
    shown,
)
from beliefbound.beliefs.belief import Belief
from beliefbound.beliefs.capabilities import terminal
from beliefbound.beliefs.from_log import learn
from beliefbound.beliefs.log_checks import check_learnt
from beliefbound.beliefs.log_priors import Prior
from beliefbound.beliefs.log_rewards import RewardChoice
from beliefbound.beliefs.model_source import ModelSource
from beliefbound.beliefs.rewards import RewardBelief
from beliefbound.bounds.bound import Bound, Kind, Side
from beliefbound.bounds.bracket import bracket_of, seed_of
from beliefbound.bounds.information.dirichlet import Known
from beliefbound.bounds.posterior.candidates import choose
from beliefbound.bounds.posterior.fresh import Fresh, affordable, fresh_values
from beliefbound.bounds.posterior.held_out import held_out
from beliefbound.bounds.posterior.prior_free import prior_free
from beliefbound.bounds.posterior.risk import (
    LEVELS,
    Estimate,
    Objective,
    credible_lower,
    cvar_interval,
    is_wide,
    mean_interval,
    objective_interval,
    quantile_interval,
)
from beliefbound.bounds.posterior.safe import Safety, choose_safe
from beliefbound.bounds.posterior.value_range import value_range
from beliefbound.bounds.record import TracePoint
from beliefbound.bounds.steps import Limits
from beliefbound.jobs.from_log.comparing import behaviour_of, bolder, compared, suggest_objective
from beliefbound.jobs.from_log.measuring import measure_next
from beliefbound.jobs.from_log.prior import reliance
from beliefbound.jobs.from_log.robust import drawn_models
from beliefbound.logs.files import as_log
from beliefbound.logs.log import Log
from beliefbound.planning.safe.frequencies import Frequencies
from beliefbound.planning.task import Task
from beliefbound.policy.naming import Names
from beliefbound.report.from_log.result import LogPlan

BRACKET_ENTRIES = 60_000  # states² × actions up to which the bracket's own samples fit and are quick
_WORK, _LEAST = 1e10, 30  # multiply-adds that fresh models may take to be solved; and how many there are in any case
_MODELS, _SOME, _ENOUGH = 2000, 300, 100  # where nobody says how many: at most, at least, and at least for `E max`
_QUICK, _SOLVED = 1.4e8, 4.2e7  # and multiply-adds to solve them: tenths of a second
_MOST_MODELS = 1_000_000
_TAIL = 0.1  # of the CVaR that is always shown
_SECONDS = 20.0
_STEPS = 8  # of the bracket, for a round of the robust one


@dataclass(frozen=True, kw_only=True, eq=False)
class PlanOptions:
    """What can be asked of `plan_log`, which says what each of them is; checked when it is made."""

    discount: float
    horizon: int | None = None
    initial: Any = None
    prior: Prior | float | Belief = "suggest"
    rewards: RewardChoice | RewardBelief = "suggest"
    known: Any = None
    terminal: Any = None
    only_tried: bool = False
    try_untried: bool = False
    objective: str = "suggest"
    behaviour: Any = None
    confidence: float = 0.95
    n_models: int | None = None
    time_limit: float | None = None
    effort: int | None = None
    interval: Literal["betting", "t"] = "betting"
    measure: bool = True
    seed: int = 1
    threads: int | None = None

    def __post_init__(self) -> None:
        check_probability(self.confidence, "confidence")
        if self.objective != "suggest":
            Objective.parse(self.objective)
        if self.n_models is not None and check_count(self.n_models, "n_models", least=50) > _MOST_MODELS:
            raise ParameterError(f"n_models is {self.n_models}; give at most {_MOST_MODELS}")
        if self.time_limit is not None:
            check_not_below(self.time_limit, "time_limit")
        if self.effort is not None:
            check_count(self.effort, "effort")
            if self.time_limit is not None:
                raise ParameterError("give an effort, which is the same every time, or a time limit, not both")
        if as_flag(self.try_untried, "try_untried") and as_flag(self.only_tried, "only_tried"):
            raise ParameterError("give only_tried or try_untried, not both")
        as_flag(self.measure, "measure")
        check_threads(self.threads)
        if not isinstance(self.interval, str) or self.interval not in ("betting", "t"):
            raise ParameterError(f"interval is {shown(self.interval)}; give 'betting' or 't'")

    @property
    def of_posterior(self) -> dict[str, Any]:
        """Those of the posterior under any prior, as for `beliefs.from_log.learn`."""
        return {name: getattr(self, name) for name in ("rewards", "known", "terminal", "only_tried")}

    @property
    def most_models(self) -> int:
        """Fresh models, at most."""
        return _MODELS if self.n_models is None else self.n_models

    @property
    def seconds(self) -> float:
        """For the bracket, roughly."""
        return _SECONDS if self.time_limit is None else float(self.time_limit)


def plan_log(
    log: Log,
    *,
    discount: float,
    horizon: int | None = None,
    initial: Any = None,
    prior: Prior | float | Belief = "suggest",
    rewards: RewardChoice | RewardBelief = "suggest",
    known: Any = None,
    terminal: Any = None,
    only_tried: bool = False,
    try_untried: bool = False,
    objective: str = "suggest",
    behaviour: Any = None,
    confidence: float = 0.95,
    n_models: int | None = None,
    time_limit: float | None = None,
    effort: int | None = None,
    interval: Literal["betting", "t"] = "betting",
    measure: bool = True,
    seed: int = 1,
    threads: int | None = None,
    watch: Callable[[TracePoint], object] | None = None,
    stop: Callable[[], bool] | None = None,
    say: Callable[[str], object] | None = None,
) -> LogPlan:
    """A policy for whatever made the log, and what is certain about it.

    Args:
      log: from `read_log`, `roll_out` or `read_minari`; or a file, a DataFrame or a dictionary of columns, as for
        `read_log`.
      discount, horizon, initial: of the problem; default start: as episodes of the log begin.
      prior, rewards, known, terminal, only_tried: of the posterior, as for `DirichletBelief.from_log`.
      try_untried: let the policy do what was never tried in a state, by the prior alone.
      objective: what a good policy is, over models of the posterior: `mean`, `safe:0.05` (the best of those that are
        worse than behaviour with a probability of at most 5%, else behaviour), `cvar:0.1`, `percentile:0.1`,
        `l1:0.2`, `worst`. Default: `safe:0.05` if the actions of the log were not chosen at random, else `mean`.
      behaviour: the policy that made the log, where it is known; default: as often as the log shows.
      confidence: of all statements together.
      n_models: fresh models that value policies; fewer are drawn where they would take too long; default: as many as
        take a few tenths of a second, 2000 at most and 300 at least.
      time_limit: seconds for the bracket, roughly; 0: no bracket, `E max` alone from above; default 20.
      effort: in place of a time limit, so many steps of the bracket: the same result every time, bit for bit.
      interval: of means over fresh models: `betting` is proven wherever rewards are bounded, `t`, Student's, only in
        the limit of many models, and narrower where values could be far from all that were drawn.
      measure: whether to find out what to measure next.
      seed: of all randomness.
      watch, stop, say: told of the closing bracket; asked whether to end early; told what is being done.

    >>> from beliefbound.logs import log_of
    >>> log = log_of([0, 1] * 30, [0, 0, 1, 0] * 15, [0.0, 1.0] * 30, [1, 0] * 30)
    >>> found = plan_log(log, discount=0.9, n_models=200, time_limit=0, measure=False)
    >>> found.lower.value <= found.upper.value
    True
    """
    return plan_of(log, chosen(PlanOptions, locals()), watch=watch, stop=stop, say=say)


class Taken(NamedTuple):
    """How far the searches of a plan went: steps of the bracket, rounds of the robust one; `None`: there was none."""

    effort: int | None
    rounds: int | None


def plan_of(
    log: Log,
    options: PlanOptions,
    *,
    taken: Taken | None = None,
    watch: Callable[[TracePoint], object] | None = None,
    stop: Callable[[], bool] | None = None,
    say: Callable[[str], object] | None = None,
) -> LogPlan:
    """`plan_log` with its options as one object; `taken`: how far searches go, in place of their limits."""
    log = as_log(log)
    for name, function in (("watch", watch), ("stop", stop), ("say", say)):
        check_function(function, name)
    rng, limit = as_rng(options.seed), options.seconds
    threads, confidence = check_threads(options.threads), options.confidence
    rounds = None if options.effort is None else max(1, options.effort // _STEPS)
    effort, rounds = taken or Taken(options.effort, rounds)
    say = say or (lambda text: None)
    say("learning the posterior")
    learnt = learn(log, prior=options.prior, initial=options.initial, **options.of_posterior)
    task = Task.of(learnt.belief, discount=options.discount, horizon=options.horizon, initial=learnt.initial)
    source, most = ModelSource(learnt.belief), options.most_models
    few = min(most, affordable(task, source, most, work=_QUICK, least=_SOME)) if options.n_models is None else most
    n = affordable(task, source, few, work=_WORK, least=_LEAST)
    error = 1.0 - confidence
    say("choosing a policy")
    behaviour = behaviour_of(log, learnt, options.behaviour)
    goal = Objective.parse(suggest_objective(log, learnt, options))
    careful = task if options.try_untried else replace(task, belief=learnt.tried())
    data = Frequencies.of(log, behaviour.policy.chances(log.n_actions), learnt.belief.available, learnt.terminal)
    safety: Safety | None = None
    if goal.kind == "safe":
        choice, safety = choose_safe(careful, data, goal.level, rng, behaviour=behaviour.policy)
    else:
        choice = choose(careful, goal, rng, behaviour=behaviour.policy, n_select=min(1000, n))
    say(f"valuing it on {n} fresh models")
    others = [behaviour, choice.expected, *bolder(task, choice.expected)]
    starts = log.starts if options.initial is None else None
    solved = n if options.n_models else affordable(task, source, n, work=_SOLVED, least=_ENOUGH)
    policies = [choice.chosen.policy, *(other.policy for other in others)]
    fresh = fresh_values(task, policies, n, rng, stop=stop, solved=solved, starts=starts)
    ends = value_range(task)
    range_ = None if options.interval == "t" else ends
    value = mean_interval(fresh.values[0], error / 8.0, range_)
    own = choice.chosen.policy
    lower = _bound("lower", Kind.TABLE, value.low, value, "the policy", error / 16.0, fresh.n, own)
    best = mean_interval(fresh.best, error / 4.0, range_)  # of which one side is used here, and both for measuring
    upper = _bound("upper", Kind.E_MAX, best.high, best, "E max", error / 8.0, len(fresh.best))
    hints = _wide(fresh.values[0], error / 8.0, range_)
    closed = None
    if limit > 0.0 and log.n_states**2 * log.n_actions <= BRACKET_ENTRIES:
        say("closing the bracket")
        limits = Limits(effort=effort, seconds=limit, stop=stop)
        asked: dict[str, Any] = {"confidence": 1.0 - error / 4.0, "interval": options.interval, "threads": threads}
        closed = bracket_of(task, limits, seed=seed_of(rng), watch=watch, **asked).bracket
        if closed.upper.value < upper.value:
            upper = closed.upper
    robust = None
    if not goal.is_mean and limit > 0.0:
        say("bracketing the objective on drawn models")
        robust = drawn_models(
            task, goal, choice.chosen, seconds=limit, rounds=rounds, rng=rng, threads=threads, stop=stop
        )
    comparisons = compared(others, choice.chosen, fresh, error / 4.0, range_)
    each = error / 8.0 / (len(LEVELS) + 3)
    if goal.kind == "safe":
        wide = None if range_ is None else (range_[0] - range_[1], range_[1] - range_[0])
        certified = comparisons[0].gain
        attainable = mean_interval(fresh.best - fresh.values[1][: len(fresh.best)], each, wide)
    else:
        certified, attainable = (
            mean if goal.is_mean else objective_interval(x, goal, each, range_)
            for mean, x in ((value, fresh.values[0]), (best, fresh.best))
        )
    state_lower, state_upper = _states(fresh, task, error / 8.0)
    say("looking at what rests on the prior")
    rests = reliance(log, learnt, task, own, fresh, options.of_posterior, rng, confidence=confidence, starts=starts)
    information = None
    if options.measure and not (stop is not None and stop()):
        say("valuing measurements")
        known = Known(best.low, best.high, error / 8.0, f"E max on {len(fresh.best)} fresh models", best.asymptotic)
        information = measure_next(task, known, len(fresh.best), lower.value, error, closed, rng, limit)
    free = None
    if log.values is not None:  # else what a step paid is not known outcome by outcome
        free = prior_free(
            data,
            log.starts,
            own.chances(log.n_actions),
            discount=task.discount,
            horizon=task.horizon,
            error=error,
            given=task.start if starts is None else None,
        )
    checked = held_out(
        log,
        data if learnt.belief.available.all() or not options.only_tried else replace(data, available=log.visits >= 0),
        given=options.behaviour is not None,
        start=task.start if starts is None else None,
        discount=task.discount,
        horizon=task.horizon,
        error=error,
    )
    names = Names(log.states, log.actions)
    return LogPlan(
        log=log,
        learnt=learnt,
        task=task,
        checks=check_learnt(log, learnt),
        choice=choice,
        objective=goal,
        certified=certified,
        attainable=attainable,
        lower=lower,
        upper=upper,
        safety=safety,
        prior_free=free,
        held_out=checked,
        credible=credible_lower(
            fresh.values[0] if fresh.drawn is None else fresh.drawn, confidence, -np.inf if ends is None else ends[0]
        ),
        bracket=None if closed is None else replace(closed, names=names),
        robust=robust,
        fresh=fresh,
        comparisons=comparisons,
        quantiles=tuple(quantile_interval(fresh.values[0], level, each) for level in LEVELS),
        cvar=cvar_interval(fresh.values[0], _TAIL, each),
        state_lower=state_lower,
        state_upper=state_upper,
        reliance=rests,
        information=None if information is None else replace(information, names=names),
        confidence=confidence,
        interrupted=stop is not None and stop(),
        hints=hints,
    )


def _bound(
    side: Side, kind: Kind, value: float, estimate: Estimate, of: str, alpha: float, n: int, policy: Any = None
) -> Bound:
    return Bound(
        value,
        side,
        f"{of} on {n} fresh models, {estimate.method}",
        exact=False,
        confidence=1.0 - alpha,
        estimate=estimate.value,
        n_samples=n,
        policy=policy,
        kind=kind,
        asymptotic=estimate.asymptotic,
    )


def _wide(values: FloatArray, alpha: float, range_: tuple[float, float] | None) -> tuple[str, ...]:
    """What Student's interval would say, where the proven one is wide because of what no model drawn shows."""
    if range_ is None or not is_wide(values, range_):
        return ()
    near = mean_interval(values, alpha, None)
    return (
        f"the interval is proven and therefore wide: it holds for values between {range_[0] + 0.0:.4g} and "
        f"{range_[1]:.4g}, all that the posterior allows; more models narrow it (--models). Student's is "
        f"{near.low:.6g} to {near.high:.6g}, true in the limit of many models (--interval t)",
    )


def _states(fresh: Fresh, task: Task, alpha: float) -> tuple[FloatArray, FloatArray]:
    """Bounds from each state: the policy's mean value, and QMDP; Student's intervals (asymptotic), all of them at once.

    Proven ones would take the values of every state on every model.
    """
    S, A = fresh.qmdp.shape
    low = fresh.by_state - _reach(fresh.n, alpha / (2 * S)) * fresh.spread
    high = fresh.qmdp + _reach(len(fresh.best), alpha / (2 * S * A)) * fresh.qmdp_spread
    ends = terminal(task.belief)
    top = np.where(task.belief.available, high, -np.inf).max(axis=1)
    return np.where(ends, 0.0, low), np.where(ends, 0.0, top)


def _reach(n: int, alpha: float) -> float:
    """Student's, in standard deviations of `n` values."""
    import scipy.stats as stats

    return float(stats.t(n - 1).ppf(1.0 - alpha) / np.sqrt(max(1, n - 1)))
