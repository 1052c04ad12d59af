"""What a policy is worth under a belief with counts, and how far below Bayes-optimal it can be.

*Tables* are valued exactly on fresh models. Others are simulated under the belief (`bounds.dirichlet.walks`; the
policies of `bracket` by their own compiled walk): `L` with `E L ≤ V^π`, none below a floor.

*The distance is one mean of differences on common scenarios.* A chain of particle sets (`bounds.dirichlet.chains`)
gives `D ≥ 0` with `V* ≤ E max − E D`, so

    V* − V^π ≤ E max − E[L + D],

with `L` and `D` from the same start: one interval, from below, for a sum that no sample has below its floor.
For a table `V^π_m` and `V*_m` are taken on the same models, so that `E max` cancels model by model:

    V* − V^π ≤ E[V*_m − V^π_m] − E D.

All that is said holds together with the confidence asked for. Betting intervals hold at all numbers of samples, so
that the clock may stop at any.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from beliefbound.base.executors.elsewhere import at_once
from beliefbound.base.executors.threads import available_threads
from beliefbound.base.limits import PARTICLE_BYTES
from beliefbound.base.validation import FloatArray
from beliefbound.bounds.bound import VALUE, Bound, Kind, Regret, missing
from beliefbound.bounds.dirichlet.arrays import planned, tail_correction
from beliefbound.bounds.dirichlet.effort import valued
from beliefbound.bounds.dirichlet.fresh_models import FreshModels, workers
from beliefbound.bounds.dirichlet.prepared import above_of, whole_of
from beliefbound.bounds.dirichlet.sampler import Sampler, least_mean
from beliefbound.bounds.dirichlet.walks import Earned, FollowedWalks, Scenarios, Walks, walk_depth
from beliefbound.bounds.finite.problem import stage_values
from beliefbound.bounds.policies import AnyPolicy
from beliefbound.bounds.sampled import bound_of_mean
from beliefbound.bounds.statistics.betting import mean_at_most
from beliefbound.bounds.steps import OPERATIONS
from beliefbound.kernels.particles.rows import width_of
from beliefbound.planning.optimal import optimal_values
from beliefbound.planning.task import Task
from beliefbound.policy import TablePolicy

_MODELS, _EACH = 4.0 * OPERATIONS, 128  # for fresh models; how many for each scenario: they are cheap
_LEAST_MODELS = 512  # however long they take
_BATCH = 1024  # models that a table is valued on together, where they are small
_BATCH_BYTES = 64 << 20  # of them
_STAGE, _LAST_STAGE = 2, 6  # of `bounds.dirichlet.effort`: sizes of particle sets, larger where a problem needs them
_TOGETHER = 8  # scenarios between two looks at the clock
LEAST_SAMPLES = 2 * _TOGETHER  # scenarios to read an interval from
# Shares of the error: for `E max`, the drops of chains, the distance, and the value from below and from above.
_KNOWN, _DROP, _DISTANCE, _BELOW, _ABOVE = 0.15, 0.15, 0.4, 0.2, 0.1


class Found(NamedTuple):
    """The value from below and from above, an upper bound on the Bayes-optimal value, and the distance."""

    lower: Bound
    upper: Bound
    best: Bound
    regret: Regret


def certify_counts(
    policy: AnyPolicy,
    task: Task,
    *,
    seed: int,
    delta: float,
    samples: int,
    upper: Bound | None,
    time_limit: float | None = None,
    threads: int | None = None,
    stop: Callable[[], bool] | None = None,
) -> Found:
    """All of it fails together with probability at most `delta`; more by what `upper`, where it is given, may fail."""
    work, table = _Certifying(policy, task, seed, threads or available_threads()), policy.as_table()
    until = np.inf if time_limit is None else time.perf_counter() + time_limit
    earned, drops = work.scenarios(samples, lambda: _over(until, stop, len(work.drops)), walks=table is None)
    known = work.known(delta * _KNOWN)
    drop = least_mean(drops, 0.0, delta * _DROP)
    best = Bound(
        known - drop,
        "upper",
        f"E max on fresh models, lowered by information relaxations on {len(drops)} chains; betting intervals",
        exact=False,
        confidence=1.0 - delta * (_KNOWN + _DROP),
        estimate=work.known_estimate - float(drops.mean()),
        n_samples=len(drops),
        kind=Kind.PARTICLES,
    )
    best = best if upper is None or best.value < upper.value else upper
    if table is not None:
        lower, high, apart = work.table(table, delta)
        closest = max(0.0, apart - drop) if apart is not None else np.inf
        how = f"the policy and each model's own on the same models, minus what {len(drops)} chains leave to be known"
    else:
        lower, high = work.walked(earned, best, delta)
        closest = max(0.0, known - least_mean(earned[:, 0] + drops, work.floor, delta * _DISTANCE))
        how = f"E max, minus {len(drops)} walks and information relaxations in the same scenarios"
    error = delta + (1.0 - upper.confidence if upper is not None else 0.0)
    if upper is not None:
        missing(upper.value, lower.value, exact=False)  # where they contradict each other, that is said
    separate = max(0.0, best.value - lower.value)
    regret = Regret(
        min(closest, separate),
        f"{how}; betting intervals" if closest < separate else f"{best.method}, minus the policy's value",
        exact=False,
        confidence=max(0.0, 1.0 - error),
        estimate=max(0.0, best.centre - lower.centre),
        n_samples=len(drops),
        policy=policy.saved,
        asymptotic=best.asymptotic,
    )
    return Found(lower, high, best, regret)


def _over(until: float, stop: Callable[[], bool] | None, done: int) -> bool:
    """Whether to end: never before there are samples to read an interval from."""
    return done >= LEAST_SAMPLES and (time.perf_counter() > until or (stop is not None and stop()))


class _Certifying:
    """What is sampled for one policy."""

    def __init__(self, policy: AnyPolicy, task: Task, seed: int, threads: int) -> None:
        self.policy, self.task, self.seed, self.threads = policy, task, seed, threads
        stages = range(_STAGE, _LAST_STAGE)
        candidates = (Sampler(task, seed, threads, stage) for stage in stages)
        self.sampler = next((x for x in candidates if x.effort.particles), Sampler(task, seed, threads, _LAST_STAGE))
        ahead = planned(task.discount, task.horizon)
        self.same = self.sampler.problem.keep.min() == 1.0 and ahead == task.horizon
        self.drops: list[float] = []
        self.known_estimate, self.floor, self.range, self.beyond = 0.0, 0.0, (0.0, 0.0), 0.0

    def known(self, alpha: float) -> float:
        """`E max` from above."""
        problem = self.sampler.problem
        models = FreshModels(self.task, above_of(self.task), (self.seed, 2))
        n = self._models()
        each = 24.0 * len(problem.available) * width_of(problem) * models.n
        models.sample(-(-n // models.n), workers(self.threads, models.scratch, each, PARTICLE_BYTES))
        x, beyond = np.concatenate(models.values), problem.unit * tail_correction(self.task, problem)
        self.known_estimate = float(x.mean()) - beyond
        most = mean_at_most(x, low=models.low, high=models.high, alpha=alpha)
        return min(models.high, most) - beyond

    def _models(self) -> int:
        """Fresh models, so many that their noise is small beside that of scenarios."""
        return max(_LEAST_MODELS, int(min(_MODELS / valued(self.sampler.problem), _EACH * len(self.drops))))

    def scenarios(self, chains: int, over: Callable[[], bool], *, walks: bool) -> tuple[FloatArray, FloatArray]:
        """What walks `[i,2]` earn at least and at most, and drops `[i]` of chains in the same scenarios."""
        steps = max(walk_depth(self.task.discount, self.task.horizon), self._chain_depth()) + 2
        earned: list[Earned] = []
        own, scenarios = self._walks() if walks else None, Scenarios(self.seed, steps)
        while len(self.drops) < chains and not over():
            block = range(len(self.drops), min(chains, len(self.drops) + at_once(_TOGETHER)))
            if self.sampler.effort.particles:
                self.drops += self.sampler.drops_in(block, scenarios)
            else:
                self.drops += [0.0 for _ in block]
            if own is not None:
                earned += own.earn(block, scenarios)
        return np.array(earned).reshape(-1, 2), np.array(self.drops)

    def _walks(self) -> Walks:
        """Of the policy: its own compiled ones where it has them."""
        known = self.policy.walks_on(self.task, seed=self.seed, threads=self.threads)
        walks = (
            FollowedWalks(self.policy.fresh(), self.task, self.seed, self.sampler.effort.levels)
            if known is None
            else known
        )
        self.floor, self.range, self.beyond = walks.floor, walks.range, walks.beyond
        return walks

    def _chain_depth(self) -> int:
        return int(self.sampler.chains[0].depth) if self.sampler.effort.particles else 0

    def walked(self, earned: FloatArray, best: Bound, delta: float) -> tuple[Bound, Bound]:
        """The value of a policy that was simulated; never above what any is worth."""
        low, n = least_mean(earned[:, 0], self.floor, delta * _BELOW), len(earned)
        lower = Bound(
            low,
            "lower",
            f"{n} walks under the belief; betting interval",
            exact=False,
            confidence=1.0 - delta * _BELOW,
            estimate=float(earned[:, 0].mean()),
            n_samples=n,
            of=VALUE,
            kind=Kind.POLICY,
        )
        high = np.inf
        if np.isfinite(earned).all():
            high = self.beyond + mean_at_most(earned[:, 1], low=self.range[0], high=self.range[1], alpha=delta * _ABOVE)
        if high < best.value:
            return lower, replace(lower, value=high, side="upper", confidence=1.0 - delta * _ABOVE)
        top = f"no policy is worth more than Bayes-optimal: {best.method}"
        return lower, replace(best, value=max(low, best.value), method=top, estimate=lower.estimate, of=VALUE)

    def table(self, policy: TablePolicy, delta: float) -> tuple[Bound, Bound, float | None]:
        """The value of a table on fresh models of the whole belief; and from above how far it is below each model's own
        best on average, where chains are for the same problem."""
        task, belief = self.task, self.task.belief
        rng = np.random.default_rng((self.seed, 22))
        size = belief.n_states**2 * belief.n_actions
        batch = int(np.clip(_BATCH_BYTES // (8 * size), 1, _BATCH))
        n = self._models()
        own, lost = [], []
        for _ in range(-(-n // batch)):
            sample = belief.sample(batch, rng)
            own.append(stage_values(policy, sample.models, task.discount, task.horizon, 0)[0] @ task.start)
            if self.same:
                best = optimal_values(sample, discount=task.discount, horizon=task.horizon).above @ task.start
                lost.append(best - own[-1])
        least, most = whole_of(task).ends(task)
        x = np.clip(np.concatenate(own), least, most)
        what = f"evaluation on {len(x)} fresh models"
        knobs: dict[str, Any] = {"range_": (least, most), "interval": "betting", "of": VALUE}
        lower = bound_of_mean(x, "lower", Kind.POLICY, what, alpha=delta * _BELOW, **knobs)
        upper = bound_of_mean(x, "upper", Kind.POLICY, what, alpha=delta * _ABOVE, **knobs)
        apart = None
        if self.same:
            gaps, span = np.clip(np.concatenate(lost), 0.0, most - least), most - least
            apart = mean_at_most(gaps, low=0.0, high=span, alpha=delta * _DISTANCE)
        return lower, upper, apart
