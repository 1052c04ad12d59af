"""The steps of a belief of which no more is known than how to draw models.

*Fresh models*, each solved on its own, ever more of them. Below, the value of a memoryless plan. Above, QMDP, `V* ≤
max_a E Q*_μ(s,a)`, with an interval for every start state and action at once, and `E max`.

*Sets of models* (`bounds.drawn.sets`), where rewards show one of finitely many values. Above, `E max` lowered by what
the brackets of independent sets are below theirs. Below, the policy of the bracket of one set, which learns, on models
drawn after it. Stage by stage sets are larger and their policies better; each stage has a share of the error for each
side, so that everything that is ever said holds together.

Means over fresh models have betting intervals where values have a known range; where they have none, Student's, which
are asymptotic.
"""

from typing import Any, NamedTuple

import numpy as np

from beliefbound.base.validation import FloatArray
from beliefbound.beliefs import FiniteBelief
from beliefbound.bounds.bound import Bound, Kind
from beliefbound.bounds.dirichlet.sampler import least_mean
from beliefbound.bounds.drawn.policy import CompletedPolicy
from beliefbound.bounds.drawn.sets import Closed, closing, task_on
from beliefbound.bounds.policies import AnyPolicy
from beliefbound.bounds.posterior.value_range import simple_range, value_range
from beliefbound.bounds.record import Record
from beliefbound.bounds.sampled import bound_of_mean, interval_for, qmdp_of_samples
from beliefbound.bounds.statistics.intervals import Interval, asymptotic, describe, mean_bound
from beliefbound.bounds.steps import STEP_WORK, Meter, Steps
from beliefbound.models.evaluation import evaluate
from beliefbound.planning.expected import expected_optimum
from beliefbound.planning.mmbi import mmbi_plan
from beliefbound.planning.optimal import optimal_values
from beliefbound.planning.task import FiniteTask, Task
from beliefbound.policy import TablePolicy

_DESIGN = 64  # models that a plan is made on, where that is cheap
_SWEEPS = 20.0  # of MMBI, for each step that counts
_BATCH_BYTES, _DRAW = 8 << 20, 100  # models drawn together; operations to draw a number
_MOST_MODELS = 1 << 18
_SET_ENTRIES = 2_000_000  # probabilities of a set: larger ones are not searched
_SETS, _MOST_SETS = 4, 1 << 13  # brackets of sets in a step; and of all
_BATCHES = 4  # of models in a step
_FIRST, _ENOUGH = 2000, 100  # models that are solved before there are sets, and for each set
_VALUED = 128  # fresh models that a policy that learns is valued on in a step


class _Size(NamedTuple):
    """Of a stage: models of the set that a policy is made on, and of those whose brackets are averaged; steps that a
    bracket may take; rounds until the next stage; its share of what the stages of a side have."""

    policy: int
    set_: int
    effort: int
    rounds: int
    share: float


# Larger sets lower the upper end further and make better policies, and take longer: on one state and two arms brackets
# of 8, 32 and 128 models take 6, 10 and 40 ms.
_STAGES = (_Size(24, 8, 6, 6, 0.2), _Size(80, 20, 12, 24, 0.35), _Size(240, 50, 30, 1 << 30, 0.45))
# Of the error: for the plan and for QMDP where there are no stages; where there are, for the plan, for the policies
# that learn, for QMDP, for `E max`, and for what sets lower it by.
_HALF = 0.5
_PLAN, _POLICIES, _QMDP, _KNOWN, _DROPS = 0.1, 0.4, 0.1, 0.15, 0.25


def first_plan(task: Task, rng: np.random.Generator) -> TablePolicy:
    """A memoryless policy: MMBI on a few models where that takes no longer than a step, else the expected MDP's."""
    belief, discount, horizon = task.belief, task.discount, task.horizon
    lasts = _SWEEPS / (1.0 - discount) if horizon is None else float(horizon)
    if _DESIGN * belief.n_states**2 * belief.n_actions * lasts <= 2.0 * STEP_WORK:
        drawn = FiniteTask.of(belief.sample(_DESIGN, rng), discount=discount, horizon=horizon)
        return mmbi_plan(drawn, most_work=STEP_WORK).policy
    return expected_optimum(task)


def drawn_steps(
    task: Task, rng: np.random.Generator, threads: int | None, record: Record, interval: Interval = "betting"
) -> Steps:
    """The steps of a belief that draws. `interval`: `betting`, or on request `t`."""
    work = _Drawn(task, rng, threads, 1.0 - record.confidence, interval)
    record.add(*work.extremes())
    if work.stage is None:
        while work.n_models < _MOST_MODELS:
            if work.more_models():
                record.add(*work.by_models())
                yield
        return
    while len(work.stage.drops) < _MOST_SETS:
        if work.n_models < _ENOUGH * len(work.stage.drops) + _FIRST:
            for _ in range(_BATCHES):
                work.more_models()
            record.add(*work.by_models())
            yield
        if work.stage.policy is None:
            yield from work.make_policy()
        yield from work.more_sets()
        work.value_policy()
        record.add(*work.by_sets())
        yield
        work.enter_next()


class _Stage:
    """A policy that learns, its values on fresh models, and how far sets are below their `E max`."""

    def __init__(self, size: _Size) -> None:
        self.size, self.rounds = size, 0
        self.policy: TablePolicy | CompletedPolicy | None = None
        self.values: list[FloatArray] = []
        self.drops: list[float] = []


class _Drawn:
    """What has been drawn so far."""

    def __init__(
        self, task: Task, rng: np.random.Generator, threads: int | None, error: float, interval: Interval
    ) -> None:
        belief = task.belief
        self.task, self.rng, self.threads, self.error = task, rng, threads, error
        self.range_ = value_range(task)
        self.asked: Interval = interval
        self.interval = self._interval(self.range_)
        self.plan, self.meter, self.states = first_plan(task, rng), Meter(), np.flatnonzero(task.start)
        self.size = belief.n_states**2 * belief.n_actions
        self.batch = int(np.clip(_BATCH_BYTES // (8 * self.size), 2, 256))
        self.below, self.above, self.best = list[FloatArray](), list[FloatArray](), list[FloatArray]()
        self.stages: list[_Stage] = []
        self.stage: _Stage | None = None
        if self._searchable(_STAGES[0]) and belief.sample(1, 0).signal.finite:
            self.enter(0)
        self._known = np.inf

    @property
    def n_models(self) -> int:
        return len(self.below) * self.batch

    def extremes(self) -> list[Bound]:
        """What any model of the belief allows, where that is known."""
        if self.range_ is None:
            return []
        what = "any policy earns on any model of the belief"
        return [
            Bound(self.range_[0], "lower", f"the least {what}", policy=self.plan, kind=Kind.EXTREMES),
            Bound(self.range_[1], "upper", f"the most {what}", kind=Kind.EXTREMES),
        ]

    def more_models(self) -> bool:
        """Another batch for the plan, another that is solved; whether they fill a step."""
        task, belief = self.task, self.task.belief
        earned = evaluate(
            self.plan, belief.sample(self.batch, self.rng), discount=task.discount, horizon=task.stages_of(self.plan)
        )
        self.below.append(earned @ task.start)
        solved = optimal_values(belief.sample(self.batch, self.rng), discount=task.discount, horizon=task.horizon)
        self.above.append(solved.q_above[:, self.states])
        self.best.append(solved.above @ task.start)
        self.meter.add(self.batch * (belief.n_states**3 + _DRAW * self.size))
        return self.meter.full()

    def by_models(self) -> list[Bound]:
        """The plan from below, QMDP and `E max` from above."""
        plan, qmdp = (_HALF, _HALF) if self.stage is None else (_PLAN, _QMDP)
        x, q = np.concatenate(self.below), np.concatenate(self.above)
        knobs: dict[str, Any] = {"range_": self.range_, "interval": self.interval}
        start, offered = self.task.start[self.states], self.task.belief.available[self.states]
        each = simple_range(self.task)  # of every start state, not of their mean
        what = f"on {len(x)} fresh models"
        below = f"value of a memoryless policy {what}"
        found = [
            bound_of_mean(x, "lower", Kind.TABLE, below, policy=self.plan, alpha=plan * self.error, **knobs),
            qmdp_of_samples(
                q, start, offered, f"QMDP {what}", alpha=qmdp * self.error, range_=each, interval=self._interval(each)
            ),
        ]
        if self.stage is not None:
            best, sure = np.concatenate(self.best), 1.0 - _KNOWN * self.error
            self._known = mean_bound(best, "upper", confidence=sure, **knobs)
        return found

    def _searchable(self, size: _Size) -> bool:
        return size.policy * self.size <= _SET_ENTRIES

    def enter(self, number: int) -> None:
        """Sizes of another stage."""
        self.stage = _Stage(_STAGES[number])
        self.stages.append(self.stage)

    def enter_next(self) -> None:
        """The next stage, after as many rounds as this one has, where its sets can be searched."""
        assert self.stage is not None
        self.stage.rounds += 1
        number = len(self.stages)
        if self.stage.rounds >= self.stage.size.rounds and self._searchable(_STAGES[number]):
            self.enter(number)

    def make_policy(self) -> Steps:
        """The policy of the bracket of one set."""
        assert self.stage is not None
        size = self.stage.size
        found: Closed = yield from closing(
            self._set(size.policy), self.task, self._seed(), 2 * size.effort, self.threads
        )
        self.stage.policy = found.policy
        self.meter.add(found.steps * STEP_WORK)

    def more_sets(self) -> Steps:
        """How far the brackets of a few more sets are below their `E max`."""
        assert self.stage is not None
        size = self.stage.size
        for _ in range(_SETS):
            found: Closed = yield from closing(self._set(size.set_), self.task, self._seed(), size.effort, self.threads)
            self.stage.drops.append(found.drop)
        yield

    def value_policy(self) -> None:
        """What the policy earns on more fresh models."""
        assert self.stage is not None
        sample = self._set(min(self.batch, _VALUED))
        found = AnyPolicy(self.stage.policy).enclosed_on(task_on(sample, self.task))
        assert found is not None  # a table, or a controller
        below = found[0] - found[1]
        self.stage.values.append(below if self.range_ is None else np.clip(below, *self.range_))

    def by_sets(self) -> list[Bound]:
        """The policy of the present stage from below; `E max`, lowered by the sets that lower it most, from above."""
        assert self.stage is not None
        knobs: dict[str, Any] = {"range_": self.range_, "interval": self.interval}
        x, policy = np.concatenate(self.stage.values), self.stage.policy
        alpha = _POLICIES * self.stage.size.share * self.error
        what = f"value of a policy made on {self.stage.size.policy} models, on {len(x)} fresh models"
        found = [bound_of_mean(x, "lower", Kind.DRAWN, what, policy=policy, alpha=alpha, **knobs)]
        lowered = [least_mean(np.array(x.drops), 0.0, self._alpha(x)) for x in self.stages]
        most = int(np.argmax(lowered))
        if lowered[most] > 0.0 and np.isfinite(self._known):
            found.append(self._lowered(self.stages[most], lowered[most]))
        return found

    def _lowered(self, stage: _Stage, drop: float) -> Bound:
        best, n = np.concatenate(self.best), len(stage.drops)
        method = f"E max on {len(best)} fresh models, {describe(self.interval)} interval, lowered by the brackets of "
        return Bound(
            self._known - drop,
            "upper",
            f"{method}{n} sets of {stage.size.set_} models, betting interval",
            exact=False,
            confidence=1.0 - _KNOWN * self.error - self._alpha(stage),
            estimate=float(best.mean()) - float(np.mean(stage.drops)),
            n_samples=n,
            kind=Kind.DRAWN,
            asymptotic=asymptotic(self.interval),
        )

    def _interval(self, range_: tuple[float, float] | None) -> Interval:
        return interval_for(range_, None if range_ is None else self.asked)

    def _alpha(self, stage: _Stage) -> float:
        """The error of what a stage lowers the upper end by."""
        return _DROPS * stage.size.share * self.error

    def _set(self, n: int) -> FiniteBelief:
        return self.task.belief.sample(n, self.rng)

    def _seed(self) -> int:
        return int(self.rng.integers(0, 2**62))
