"""The steps (`bounds.steps`) of a belief that counts.

First the extremes of all models of the belief, which are proven, and a memoryless plan. Then, step by step, whichever
of these is most behind its share of the work: fresh models, solved on their own (`E max`) or under the plan;
trajectories of a policy that looks ahead; chains of particle sets (`bounds.dirichlet.sampler`). Stage by stage the last
two get larger particle sets, as `bounds.dirichlet.effort` says; a side whose sizes are those of the stage before goes
on with its samples.

Of the error, a part goes to `E max`, a part to the plan, and the rest to the stages of each side, to each a fixed
share: sizes that serve several stages have the shares of all, since those of all stages are known from the start.
Betting intervals hold at all numbers of samples, so everything that is ever said holds together.
"""

from typing import Any

import numpy as np

from beliefbound.base.executors.ahead import Ahead
from beliefbound.base.executors.threads import available_threads
from beliefbound.base.limits import PARTICLE_BYTES
from beliefbound.bounds.bound import Bound, Kind
from beliefbound.bounds.dirichlet.arrays import tail_correction
from beliefbound.bounds.dirichlet.effort import budget, piece
from beliefbound.bounds.dirichlet.fresh_models import FreshModels, workers
from beliefbound.bounds.dirichlet.prepared import above_of, below_of, whole_of
from beliefbound.bounds.dirichlet.sampler import Sampler
from beliefbound.bounds.drawn.steps import first_plan
from beliefbound.bounds.record import Record
from beliefbound.bounds.sampled import bound_of_mean
from beliefbound.bounds.statistics.intervals import Interval, asymptotic, describe, mean_bound
from beliefbound.bounds.statistics.rounds import rounds_at_least
from beliefbound.bounds.steps import OPERATIONS, STEP_WORK, Meter, Steps
from beliefbound.kernels.particles.rows import width_of
from beliefbound.planning.task import Task

_TOP = 0.2  # of the error of chains that learn from first visits: for what their sets are worth before a search
_STAGES = 12  # the last would take years: budgets grow eightfold
_MODELS, _PLANNED = 0.1, 0.05  # of the error: for `E max`, and for the plan
_SIDE = 0.425  # of the error, for each side of all stages together
_STAGE = (0.1, 0.2, 0.45, 0.15, 0.05)  # of that, by stage; what is left is halved again and again
_SHARES = {"models": 0.15, "lower": 0.425, "upper": 0.425}  # of the work
_ALONE = (0.05, 0.1, 0.15, 0.6, 0.05)  # by stage, where the upper end alone is closed: most for the sizes that last
_LEAST_SHARE = 0.25  # of what both sides get
_ENOUGH = 0.04  # of the bracket's width: an error of `E max` below that is not worth much work
_LITTLE = 0.03  # of the work, for `E max` then
_MOST_MODELS, _MOST_PLANNED = 1 << 22, 1 << 13  # their values are kept: 32 MB
_FEW, _GOALS = 1 << 14, (1 << 12, 1 << 16, 1 << 20)  # models that are bet on one by one; in batches, about
_LONG, _LONG_SHARE = 4.0 * STEP_WORK, 0.04  # operations of a long sample: at least; of all the work before


def dirichlet_steps(
    task: Task,
    rng: np.random.Generator,
    threads: int | None,
    record: Record,
    interval: Interval = "betting",
    *,
    upper_alone: bool = False,
) -> Steps:
    """The steps of a belief that counts. `interval`: `betting`, or on request `t`. `upper_alone`: from below there is a
    memoryless plan, and no more is made of it."""
    seed, error = int(rng.integers(0, 2**63)), 1.0 - record.confidence
    with Ahead(threads or available_threads()) as team:
        work = _Sampled(task, seed, team, error, interval, upper_alone)
        record.add(*work.first())
        yield
        for stage in range(_STAGES):
            work.enter(stage)
            until = work.meter.done + budget(stage)
            while work.meter.done < until:
                ahead = work.ahead(record)
                team.patient = ahead > max(_LONG, _LONG_SHARE * work.meter.done)
                if team.patient:  # whether there is time for it is asked before
                    record.ahead = ahead / OPERATIONS
                    yield
                    record.ahead = 0.0
                bounds = work.step(record)
                if bounds is None:  # nothing that this stage affords
                    break
                record.add(*bounds)
                yield


class _Sampled:
    """What has been sampled so far."""

    def __init__(self, task: Task, seed: int, team: Ahead, error: float, interval: Interval, upper_alone: bool) -> None:
        self.upper_alone = upper_alone
        self.task, self.seed, self.team, self.error, self.interval = task, seed, team, error, interval
        self.meter = Meter()
        self.done = dict.fromkeys(_SHARES, 0.0)
        above = above_of(task).problem
        self.models = FreshModels(task, above_of(task), (seed, 2))
        self.beyond = above.unit * tail_correction(task, above)
        self.plan = first_plan(task, np.random.default_rng((seed, 5)))
        self.planned = FreshModels(task, below_of(task), (seed, 4), np.array(self.plan.actions), like=self.models)
        each = 24.0 * len(above.available) * width_of(above) * self.models.n
        self._scratch = workers(team.threads, self.models.scratch, each, PARTICLE_BYTES)
        self.samplers: dict[str, list[Sampler]] = {"lower": [], "upper": []}  # what goes on is not made anew
        self._sizes = [Sampler(task, seed, 1, stage).effort for stage in range(_STAGES)]
        self.drops: list[float] = []
        self.tops: list[float | None] = []  # what they are below, where it is not `E max`
        self.stage, self._known = 0, np.inf

    def first(self) -> list[Bound]:
        """What any model of the belief allows, and a first look at some."""
        (problem, extremes), start = whole_of(self.task), self.task.start
        ends = extremes.low(problem.horizon), extremes.high(problem.horizon)
        low, high = (float(problem.unit * (start @ x)) for x in ends)
        what = "any policy earns on any model of the belief"
        bounds = [
            Bound(low, "lower", f"the least {what}", policy=self.plan, kind=Kind.EXTREMES),
            Bound(high, "upper", f"the most {what}", kind=Kind.EXTREMES),
        ]
        if self.models.each > STEP_WORK:  # too large to be looked at before there is time
            return bounds
        self._more_models(2)
        return [*bounds, *self._bounds({"models"})]

    def enter(self, stage: int) -> None:
        """Sizes of another stage."""
        self.stage = stage
        for side, own in self.samplers.items():
            sampler = Sampler(self.task, self.seed, self.team.threads, stage, self.team.map)
            if own and sampler.effort.of(side) == own[-1].effort.of(side):
                continue
            if own:
                self.team.forget(own[-1].kind(side))
            own.append(sampler)
            if side == "upper":
                self.drops.append(0.0)
                self.tops.append(None)

    def step(self, record: Record) -> list[Bound] | None:
        """The next piece of work, and what it proves; nothing where the stage affords none."""
        touched: set[str] = set()
        while True:
            part = self._next(self._shares(record))
            if not part:
                return None
            began = self.done[part]
            count = self._count(self._each(part))
            if part == "models":
                self._more_models(count)
            else:
                sampler = self.samplers[part][-1]
                (sampler.simulate if part == "lower" else sampler.relax)(count)
                self.done[part] = sum(x.operations[part] for x in self.samplers[part])
            touched.add(part)
            self.meter.add(self.done[part] - began)
            if self.meter.full():
                return self._bounds(touched)

    def ahead(self, record: Record) -> float:
        """Operations of the next sample, as far as is known."""
        return self._each(self._next(self._shares(record)))

    def _next(self, shares: dict[str, float]) -> str:
        """The part that is most behind its share; nothing where there are no shares."""
        return min(shares, key=lambda name: self.done[name] / shares[name], default="")

    def _each(self, part: str) -> float:
        if part == "models":
            return self.models.each
        return self.samplers[part][-1].each(part) if part else 0.0

    def _shares(self, record: Record) -> dict[str, float]:
        """Of the work, by what there is to do at this stage."""
        shares = dict(_SHARES)
        if record.lower is not None and record.upper is not None:  # more for the side whose samples say less
            below, above = record.lower.centre - record.lower.value, record.upper.value - record.upper.centre
            if below > 0.0 and above > 0.0:
                both = shares["lower"] + shares["upper"]
                shares["lower"] = both * float(np.clip(below / (below + above), _LEAST_SHARE, 1.0 - _LEAST_SHARE))
                shares["upper"] = both - shares["lower"]
        for side, own in self.samplers.items():
            if not own[-1].effort.of(side) or (side == "lower" and self.upper_alone):
                del shares[side]
        if self.models.each > piece(self.stage) or len(self.models.values) * self.models.n >= _MOST_MODELS:
            del shares["models"]
        elif record.upper is not None and record.lower is not None and len(shares) > 1 and np.isfinite(self._known):
            error = self._known - float(np.mean(np.concatenate(self.models.values)))
            if error < _ENOUGH * (record.upper.value - record.lower.value):
                shares["models"] = _LITTLE
        return shares

    def _count(self, each: float) -> int:
        """How many make a step: a few where that is possible, so that threads have something to share."""
        count = int(self.meter.left / max(1.0, each))
        return count if count >= 8 else 4 if count >= 2 else 2 if count >= 1 else 1

    def _more_models(self, count: int) -> None:
        samples = [self.models]
        if len(self.planned.values) * self.planned.n < _MOST_PLANNED:
            samples.append(self.planned)
        if self.models.each > STEP_WORK:  # one of the two is enough for a step
            samples = [min(samples, key=lambda own: len(own.values))]
        for own in samples:
            own.sample(count, self._scratch, self.team.map)
            self.done["models"] += count * own.each

    def _bounds(self, touched: set[str]) -> list[Bound]:
        """What is new after samples of some kinds."""
        found: list[Bound | None] = []
        if "models" in touched:
            self._know()
            found.append(self._by_plan())
        if "lower" in touched:
            below = self.samplers["lower"][-1]
            found.append(below.lower(self._alpha("lower", below), self.interval))
        if "upper" in touched:
            above = self.samplers["upper"][-1]
            alpha, share = self._alpha("upper", above), _TOP if above.learns else 0.0
            self.drops[-1] = above.drop((1.0 - share) * alpha, self.interval)
            self.tops[-1] = above.top(share * alpha, self.interval) if above.learns else None
        if touched != {"lower"}:
            found.append(self._upper())
        return [bound for bound in found if bound is not None]

    def _know(self) -> None:
        """`E max` from above."""
        if len(self.models.values) * self.models.n > 1:
            x, low, high = np.concatenate(self.models.values), self.models.low, self.models.high
            alpha = _MODELS * self.error
            knobs: dict[str, Any] = {"range_": (low, high), "interval": self.interval}
            if self.interval == "betting":  # of the first few by single samples, of all by batches
                known = mean_bound(x[:_FEW], "upper", confidence=1.0 - 0.5 * alpha, **knobs)
                batches = rounds_at_least(high - x, (0,) * self.models.n, 0.5 * alpha, goals=_GOALS)
                known = min(known, high - batches)
            else:
                known = mean_bound(x, "upper", confidence=1.0 - alpha, **knobs)
            self._known = min(high, known)

    def _by_plan(self) -> Bound | None:
        if len(self.planned.values) * self.planned.n < 2:
            return None
        x, alpha = np.concatenate(self.planned.values), _PLANNED * self.error
        range_ = self.planned.low, self.planned.high
        what, policy = f"value of a memoryless policy on {len(x)} fresh models", self.plan
        knobs: dict[str, Any] = {"alpha": alpha, "range_": range_, "interval": self.interval}
        return bound_of_mean(x, "lower", Kind.TABLE, what, policy=policy, **knobs)

    def _alpha(self, side: str, sampler: Sampler) -> float:
        """The error of one side: that of all stages which have the sizes of this sampler, one after another, and of
        those before that have none."""
        sizes, stage, rest = [each.of(side) for each in self._sizes], sampler.stage, 1.0 - sum(_STAGE)
        first, last = stage, stage
        while first > 0 and not sizes[first - 1]:
            first -= 1
        while last + 1 < _STAGES and sizes[last + 1] == sizes[stage]:
            last += 1
        of_stages = _ALONE if self.upper_alone else _STAGE
        shares = [*of_stages, *(rest * 0.5 ** (i + 1) for i in range(_STAGES - len(of_stages)))]
        return sum(shares[first : last + 1]) * (2.0 if self.upper_alone else 1.0) * _SIDE * self.error

    def _upper(self) -> Bound | None:
        """`E max`, or what models are worth to somebody who learns from first visits, lowered by the chains that prove
        most."""
        if not np.isfinite(self._known):
            return None
        x, alpha = np.concatenate(self.models.values), _MODELS * self.error
        method, n_samples, estimate = f"E max on {len(x)} fresh models", len(x), float(x.mean())
        each = [(self._known if top is None else top) - drop for top, drop in zip(self.tops, self.drops, strict=True)]
        best = int(np.argmin(each)) if each else 0
        high = self._known
        if each and each[best] < high:
            high, sampler = each[best], self.samplers["upper"][best]
            n_samples, alpha = len(sampler.drops), alpha + self._alpha("upper", sampler)
            if sampler.learns:
                alpha = self._alpha("upper", sampler)
                method, estimate = "what models are worth to somebody who learns on first visits", sampler.mean_top
            method += f", lowered by information relaxations on {n_samples} chains of sets of "
            method += f"{sampler.effort.particles} particles"
            estimate -= sampler.mean_drop
        return Bound(
            high - self.beyond,
            "upper",
            f"{method}; {describe(self.interval)} intervals",
            exact=False,
            confidence=1.0 - alpha,
            estimate=estimate - self.beyond,
            n_samples=n_samples,
            kind=Kind.PARTICLES if high < self._known else Kind.E_MAX,
            asymptotic=asymptotic(self.interval),
        )
