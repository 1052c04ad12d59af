"""Brackets for beliefs that are not finite. Where the belief has counts (`Belief.compiled`), by particles:

*From above.* `E max` on fresh models, lowered by how far information relaxations stay below it. `V*_ξ` is convex in
`ξ` and a particle set is unbiased for `ξ`, so in expectation its Bayes-optimal value is at least `V*_ξ`; but even
thousands of particles are learnt much sooner than the belief. So particles are renewed from the exact posterior as they
are used up, in a way that stays an upper bound (`kernels.particles.renewal` has the proof). A chain of particle sets
gives one sample of what its relaxation is below the mean of `V*_m` over its first models, `D ≥ 0`, and `V* ≤ E max −
E D`. `E max` has a betting interval on the range of values; `D` one from below, of short and long chains together.

*From below.* A policy that sees the history only has a value that is linear in the belief, so it can be simulated
under the belief itself (`bounds.dirichlet.replanning`): unbiased however poor its particles, and never below a floor
that is known, so that there is a betting interval from below, whatever lies above.

Rare outcomes are in neither sample: they are bounded (`bounds.dirichlet.rare`). Betting intervals hold at all sample
sizes at once, so it does not matter when the clock stops the work. Student's interval, on request, is asymptotic.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from beliefbound.base.executors.elsewhere import Numbered, map_numbered
from beliefbound.base.executors.threads import available_threads
from beliefbound.base.limits import PARTICLE_BYTES
from beliefbound.base.validation import FloatArray
from beliefbound.bounds.bound import Bound, Kind
from beliefbound.bounds.dirichlet.arrays import planned
from beliefbound.bounds.dirichlet.chains import Chain, Drop, kinds_in_round, lasting, lengths_of
from beliefbound.bounds.dirichlet.charges import chosen_memory, most_paid_back
from beliefbound.bounds.dirichlet.effort import Effort, effort, piece
from beliefbound.bounds.dirichlet.fresh_models import workers
from beliefbound.bounds.dirichlet.particle_policy import ParticlePolicy
from beliefbound.bounds.dirichlet.prepared import above_of
from beliefbound.bounds.dirichlet.replanning import Workspace, policy_depth
from beliefbound.bounds.dirichlet.walks import Scenarios
from beliefbound.bounds.statistics.betting import mean_at_least
from beliefbound.bounds.statistics.intervals import Interval, asymptotic, describe, mean_bound
from beliefbound.bounds.statistics.rounds import rounds_at_least
from beliefbound.kernels.particles.memory import Memory, memory_of, solves
from beliefbound.kernels.particles.opened import order_of
from beliefbound.kernels.particles.rows import width_of
from beliefbound.planning.task import Task

_STAGES = 8  # with a horizon: stages a set may serve
_GOALS = (32, 256, 2048)  # samples of a stage, about
_PILOT = 8  # samples that say where to cap the others, and no more
_ROOM = 3  # of them, that say whether their control variate needs room
_MEMORY = 8 * PARTICLE_BYTES  # of all threads together
_ALONE = 8192  # histories of chains that are all of one length


class Sampler:
    """Simulations under a belief with counts, of the sizes of one stage, kept as they accumulate."""

    def __init__(
        self,
        task: Task,
        seed: int,
        threads: int | None = None,
        stage: int = 1,
        mapped: Callable[..., list[Any]] = map_numbered,
    ) -> None:
        """`mapped`: who makes the samples (`base.executors`)."""
        self.task, self.seed, self.threads, self.stage = task, seed, threads or available_threads(), stage
        self._mapped = mapped
        ahead = planned(task.discount, task.horizon)
        self.stages = 1 if ahead is None else 1 + min(_STAGES, ahead)  # of a set
        self.problem = above_of(task).problem
        depth = policy_depth(task.discount, task.horizon)
        lasts = lasting(task)
        self.memory = chosen_memory(task) if lasts else self._plain
        knobs: dict[str, Any] = {"lasting": lasts, "tables": solves(self.memory), "places": len(self.memory.state)}
        self.effort: Effort = effort(self.problem, stage, self.stages, depth, **knobs)
        self.values: list[float] = []
        self.drops: list[float] = []  # of chains; their mean is that over whole rounds
        self.ordered: list[float] = []  # what their particles lose to order and charges
        self.tops: list[float] = []  # what they are worth then
        self.operations = {"lower": 0.0, "upper": 0.0}

    @property
    def _plain(self) -> Memory:
        """Of alike actions alone: nothing is charged."""
        return memory_of(self.problem, order_of(self.problem))

    @cached_property
    def _trajectories(self) -> "_Trajectories":
        return _Trajectories(self.task, self.seed, self.effort.levels)

    @property
    def policy(self) -> ParticlePolicy:
        return self._trajectories.policy

    @cached_property
    def _workspaces(self) -> list[Workspace]:
        sizes = {n for _, n in self.effort.levels}
        each = 8 * len(self.problem.available) * width_of(self.problem) * (64 + 2 * sum(sizes))
        return workers(self.threads, self._trajectories.scratch, each, _MEMORY)

    @cached_property
    def _chains(self) -> "_Chains":
        return _Chains(self.task, self.seed, self.stages, self.effort, self.memory)

    @cached_property
    def chains(self) -> list[Chain]:
        return workers(self.threads, self._chains.scratch, 2 * PARTICLE_BYTES, _MEMORY)

    def each(self, side: str) -> float:
        """Operations of a sample, as far as is known."""
        done = len(self.values if side == "lower" else self.drops)
        if done:
            return self.operations[side] / done
        return piece(self.stage) * (1.0 + 2.0 * _ROOM if side == "lower" else 1.0)

    def simulate(self, count: int) -> None:
        """`count` more trajectories."""
        first = len(self.values)
        if first == 0:
            self._settle()
        numbers = range(first, first + count)
        for value, operations in self._mapped(self._trajectories, numbers, lambda: self._workspaces):
            self.values.append(value)
            self.operations["lower"] += operations

    def _settle(self) -> None:
        """Whether trajectories have the floor that is near: if those that say where to cap have no use for the room
        that the other one leaves. Then all others are of the same law, and none is below that floor."""
        pilots = _Pilots(self._trajectories)
        found = map_numbered(pilots, range(_ROOM), lambda: self._workspaces)
        self.operations["lower"] += sum(operations for _, operations in found)
        if all(alike for alike, _ in found):
            self._trajectories.floor = self.policy.near_floor

    @property
    def floor(self) -> float:
        """No trajectory is below."""
        return self.policy.floor if self._trajectories.floor is None else self._trajectories.floor

    def relax(self, count: int) -> None:
        """`count` more chains."""
        first = len(self.drops)
        for drop in self._mapped(self._chains, range(first, first + count), lambda: self.chains):
            self.drops.append(drop.value)
            self.ordered.extend(drop.ordered)
            self.tops.extend(drop.tops)
            self.operations["upper"] += drop.operations

    def drops_in(self, numbers: Sequence[int], scenarios: Scenarios) -> list[float]:
        """What chains of one length drop by in the scenarios of these numbers. Nothing is charged, so that none is
        below 0."""
        return map_numbered(_ChainsIn(self._free, scenarios), numbers, lambda: self._free_chains)

    @cached_property
    def _free(self) -> "_Chains":
        return self._chains._replace(memory=self._plain)

    @cached_property
    def _free_chains(self) -> list[Chain]:
        return workers(self.threads, self._free.scratch, 2 * PARTICLE_BYTES, _MEMORY)

    def kind(self, side: str) -> Numbered:
        """What its samples are of."""
        return self._trajectories if side == "lower" else self._chains

    def lower(self, alpha: float, interval: Interval = "betting") -> Bound | None:
        """The lower bound from the trajectories so far; nothing from very few."""
        x = np.array(self.values)
        if len(x) < _PILOT + 2:
            return None
        if interval == "betting":
            value = least_mean(x, self.floor, alpha)
        else:
            value = mean_bound(x, "lower", confidence=1.0 - alpha, range_=None, interval=interval)
        return Bound(
            value,
            "lower",
            f"re-planning look-ahead policy simulated under the belief, {len(x)} trajectories; "
            f"{describe(interval)} interval",
            exact=False,
            confidence=1.0 - alpha,
            estimate=float(x.mean()),
            n_samples=len(x),
            policy=self.policy,
            kind=Kind.PARTICLES,
            asymptotic=asymptotic(interval),
        )

    @property
    def kinds_of_chains(self) -> list[int]:
        """The levels of the chains of a round."""
        return kinds_in_round(1 if self.learns else len(lengths_of(self.effort)))

    @property
    def mean_drop(self) -> float:
        """Over whole rounds; 0 where there is none."""
        period = len(self.kinds_of_chains)
        whole = len(self.drops) // period * period
        ordered = np.mean(self.ordered) if self.ordered and not self.learns else 0.0
        return float(np.mean(self.drops[:whole]) + ordered) if whole else 0.0

    @cached_property
    def _back(self) -> float:
        return self.problem.unit * most_paid_back(self.problem, self.memory)

    @property
    def learns(self) -> bool:
        """Whether relaxations learn from first visits: then drops are below what sets are worth so, not `E max`."""
        return len(self.memory.visits) > 0

    @property
    def mean_top(self) -> float:
        """What sets are worth to somebody who learns from first visits."""
        return float(np.mean(self.tops))

    def top(self, alpha: float, interval: Interval = "betting") -> float:
        """With probability `1 − alpha` the mean of that is at most this."""
        x, most = np.array(self.tops), above_of(self.task).ends(self.task)[1] + self._back  # no model is worth more
        if len(x) < _PILOT + 2:
            return float("inf")
        if interval == "betting":
            return most - rounds_at_least(most - x, [0], alpha)
        return mean_bound(x, "upper", confidence=1.0 - alpha, range_=None, interval=interval)

    def drop(self, alpha: float, interval: Interval = "betting") -> float:
        """With probability `1 − alpha` the mean drop of chains is at least this; 0 from very few."""
        kinds, x = self.kinds_of_chains, np.array(self.drops)
        if len(x) < _PILOT + 2:
            return 0.0
        first = 0.0
        if self.ordered and not self.learns:
            alpha *= 0.5
            lost = np.maximum(0.0, np.array(self.ordered) + self._back)
            first = _at_least(lost, [0], alpha, interval) - self._back
        return first + _at_least(x, kinds, alpha, interval)


@dataclass
class _Trajectories:
    """Trajectories of a policy that looks ahead, by their numbers."""

    task: Task
    seed: int
    levels: tuple[tuple[float, int], ...]
    floor: float | None = None  # another than the policy's own

    @cached_property
    def policy(self) -> ParticlePolicy:
        return ParticlePolicy.of(self.task, self.seed, self.levels)

    def __reduce__(self) -> tuple[Any, ...]:
        return _Trajectories, (self.task, self.seed, self.levels, self.floor)

    def scratch(self) -> Workspace:
        return self.policy.workspace()

    def one(self, number: int, space: Workspace) -> tuple[float, float]:
        return self.policy.simulate(np.random.default_rng((self.seed, 1, number)), space, floor=self.floor)


class _Pilots(NamedTuple):
    """Whether trajectories are the same for both floors of their policy, and the work that this took."""

    trajectories: _Trajectories

    def scratch(self) -> Workspace:
        return self.trajectories.scratch()

    def one(self, number: int, space: Workspace) -> tuple[bool, float]:
        policy, address = self.trajectories.policy, (self.trajectories.seed, 1, number)
        floors = policy.floor, policy.near_floor
        both = [policy.simulate(np.random.default_rng(address), space, floor=floor) for floor in floors]
        return both[0][0] == both[1][0], both[0][1] + both[1][1]


class _Chains(NamedTuple):
    """Chains of particle sets, by their numbers."""

    task: Task
    seed: int
    stages: int
    effort: Effort
    memory: Memory

    def scratch(self) -> Chain:
        return Chain(self.task, above_of(self.task).problem, self.seed, self.stages, self.effort, self.memory)

    def one(self, number: int, chain: Chain) -> Drop:
        return chain.run(number, lengths=() if len(self.memory.visits) else lengths_of(self.effort))


class _ChainsIn(NamedTuple):
    """The same, from where the scenarios of others start."""

    chains: _Chains
    scenarios: Scenarios

    def scratch(self) -> Chain:
        return self.chains.scratch()

    def one(self, number: int, chain: Chain) -> float:
        lengths = (min(_ALONE, self.chains.effort.nodes),)
        return chain.run(number, float(self.scenarios.uniforms(number)[0]), lengths).whole


def _at_least(x: FloatArray, kinds: list[int], alpha: float, interval: Interval) -> float:
    """Of samples that are not negative, in rounds of these kinds."""
    if interval == "betting":
        return rounds_at_least(x, kinds, alpha)
    x = x[: len(x) // len(kinds) * len(kinds)].reshape(-1, len(kinds)).mean(axis=1)
    if len(x) < 2:
        return 0.0
    return max(0.0, mean_bound(x, "lower", confidence=1.0 - alpha, range_=None, interval=interval))


def least_mean(samples: FloatArray, floor: float, alpha: float) -> float:
    """With probability `1 − alpha` the mean of independent samples, none below `floor`, is at least this, at all
    numbers of samples at once. The first few only say where to cap the rest, which makes their mean no larger.

    >>> least_mean(np.tile([1.0, 3.0], 500), 0.0, 0.01) > 1.85
    True
    """
    pilot, rest = samples[:_PILOT], samples[_PILOT:]
    cap = float(pilot.mean() + 4.0 * pilot.std())
    if len(rest) == 0 or cap <= floor:
        return floor
    capped = np.clip(rest, floor, cap)
    return mean_at_least(capped, low=floor, high=cap, alpha=alpha, pilot=np.clip(pilot, floor, cap), goals=_GOALS)
