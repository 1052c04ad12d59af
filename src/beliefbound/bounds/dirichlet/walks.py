"""Anybody's policy under a belief with counts: trajectories whose mean is at most its value, or at least.

The policy is followed under the belief without its rare outcomes (`bounds.dirichlet.rare`), where predictive
probabilities are in closed form (`kernels.particles.hyperstate`). Particles of the posterior, which the policy knows
nothing of, supply a control variate of mean zero, in shares that keep every sample above a floor.

*From below*, what is left at the end of a walk, and what rare outcomes lead to, counts as the least that can be.
*From above*, rewards alone are summed up, and what is left counts as the most: between what any model allows.
"""

from collections.abc import Sequence
from functools import partial
from itertools import islice
from typing import Any, NamedTuple, Protocol

import numpy as np

from beliefbound.base.executors.elsewhere import map_numbered
from beliefbound.base.validation import FloatArray, IntArray
from beliefbound.bounds.dirichlet.arrays import arrival
from beliefbound.bounds.dirichlet.prepared import whole_of
from beliefbound.bounds.dirichlet.rare import SHARE
from beliefbound.bounds.dirichlet.replanning import Replanning, Workspace
from beliefbound.bounds.policies import AnyPolicy
from beliefbound.kernels.particles.hyperstate import step
from beliefbound.kernels.random import inverse_cdf
from beliefbound.planning.lemmas import stages_until
from beliefbound.planning.task import Task
from beliefbound.policy.protocol import checked_action
from beliefbound.policy.stepping import transitions

_LEFT = 5e-4  # of the value: what may be left at the depth
_MOST_STEPS = 2000  # a discount of .996; beyond, what is left counts as the least, and as the most


class Scenarios(NamedTuple):
    """Numbered scenarios: the uniforms of one are those of the start, then of each step."""

    seed: int
    steps: int

    def uniforms(self, number: int) -> FloatArray:
        return np.random.default_rng((self.seed, 20, number)).random(self.steps)


class Earned(NamedTuple):
    """One trajectory: its mean is at most the policy's value; its mean is at least that."""

    low: float
    high: float


class Walks(Protocol):
    """Trajectories of one policy in numbered scenarios.

    Attributes:
      floor: none of them earns less, from below.
      range: what they earn from above lies between these, where that is known (`Earned.high` is ∞ where it is not).
      beyond: their mean from above may be too small by so much.
    """

    floor: float
    range: tuple[float, float]
    beyond: float

    def earn(self, numbers: Sequence[int], scenarios: Scenarios) -> list[Earned]:
        """What the policy earns in the scenarios of these numbers."""


def walk_depth(discount: float, horizon: int | None) -> int:
    """Steps of a walk: after them little is left."""
    return stages_until(_LEFT, discount, most=_MOST_STEPS if horizon is None else min(horizon, _MOST_STEPS))


class FollowedWalks:
    """Walks of any policy, step by step."""

    def __init__(self, policy: AnyPolicy, task: Task, seed: int, levels: tuple[tuple[float, int], ...]) -> None:
        """`levels`: particles of the control variate, as for `Replanning`; none where they would take too long."""
        self.policy, self.task, self.levels = policy, task, levels
        self.guide = Replanning(task, seed, levels or ((0.0, 2),))
        self.depth, self.floor = walk_depth(task.discount, task.horizon), self.guide.floor
        self._seed = seed
        self._space: Workspace | None = None
        problem, self._extremes, whole = self.guide._problem, self.guide._extremes, whole_of(task)
        self.range = whole.ends(task)
        rare = bool((problem.keep < 1.0).any())
        paid = problem.posterior.paid[:, problem.available]
        # What rare outcomes may be worth beyond the least that they are counted as.
        worth = float(np.ptp(paid)) + float((whole.extremes.ever("upper") - whole.extremes.ever("lower")).max())
        self.beyond = SHARE["lower"] * problem.unit * worth if rare else 0.0

    def __reduce__(self) -> tuple[Any, ...]:
        return FollowedWalks, (self.policy, self.task, self._seed, self.levels)

    def earn(self, numbers: Sequence[int], scenarios: Scenarios) -> list[Earned]:
        """What the policy earns in the scenarios of these numbers."""
        return map_numbered(_Followed(self, scenarios), numbers, lambda: [None])  # one policy, which has one walk

    def walk(self, u: FloatArray, seed: int) -> Earned:
        """One, by the uniforms of its scenario; `seed`: the policy's own."""
        guide, policy, task = self.guide, self.policy, self.task
        problem, n_actions = guide._problem, task.belief.n_actions
        if self._space is None:
            self._space = guide.workspace()
        scratch = self._space.spaces[0].rows.scratch
        policy.reset(seed)
        s = int(inverse_cdf(task.start, u[0]))
        counts = np.zeros((guide._pairs, guide._columns), dtype=np.int64)
        none, floor = np.zeros((n_actions, guide._columns)), self.floor / problem.unit
        total, plain, factor, low = 0.0, 0.0, 1.0, self._extremes.low(guide._left(0))
        stage = 0

        def follow(s: int, a: int) -> tuple[float, int]:
            nonlocal total, plain, factor, low, stage
            now, low = float(low[s]), self._extremes.low(guide._left(stage + 1))
            values = self._values(counts, s, stage) if self.levels and stage < guide.depth else none
            drawn, slack = float(u[stage + 1]), max(0.0, (total - floor) / factor + now)
            _, reward = step(problem, counts.copy(), scratch, s, a, none, drawn, now, low, slack)
            column, value = step(problem, counts, scratch, s, a, values, drawn, now, low, slack)
            pair = s * n_actions + a
            total, plain = total + factor * float(value), plain + factor * float(reward)
            factor *= problem.discount * float(problem.keep[pair])
            stage += 1
            return self._shown(pair, int(column)), arrival(problem, pair, int(column))

        check = partial(checked_action, available=task.belief.available)
        for made in islice(transitions(policy, s, follow, check=check), self.depth):
            s = made.next_state
        high = self._extremes.high(guide._left(self.depth))
        least, most = total + factor * float(low[s]), plain + factor * float(high[s])
        return Earned(problem.unit * least, float(np.clip(problem.unit * most, *self.range)))

    def _values(self, counts: IntArray, s: int, stage: int) -> FloatArray:
        """The control variate `[a,column]`."""
        guide, left = self.guide, self.guide._left(stage)
        assert self._space is not None
        return guide._look(self._space, counts, s, -1 if guide._forever(left) else left, guide._level(stage)).guide

    def _shown(self, pair: int, column: int) -> float:
        """The reward that a step shows."""
        problem = self.guide._problem
        paid, (k, j) = problem.posterior.paid, divmod(column, problem.posterior.alpha.shape[1])
        reward = paid[k, pair, j if paid.shape[2] > 1 else 0]
        return float(problem.unit * reward)


class _Followed(NamedTuple):
    """Walks by the numbers of their scenarios, which are also the policy's seeds."""

    walks: FollowedWalks
    scenarios: Scenarios

    def scratch(self) -> None:
        """Walks have their own."""

    def one(self, number: int, scratch: None) -> Earned:
        return self.walks.walk(self.scenarios.uniforms(number), number)
