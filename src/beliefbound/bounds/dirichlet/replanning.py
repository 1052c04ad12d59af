"""A policy for a Dirichlet belief that looks ahead on particles of the posterior, new ones after every observation.

`Replanning` looks one step ahead at the particles of the posterior it has reached (`kernels.particles.rows`),
between what a few stationary policies earn from there and what would be earned if the model were then known. Once such
a policy is as good as knowing the model, to within a tolerance, or at a depth where little is left, it follows the
optimal policy of the expected MDP for ever.

The particles at a posterior are a function of the policy's own seed and the counts that lead there. So the policy
is one fixed function of the history: what `bounds.dirichlet.particle_policy` plays is what `simulate` values.

`simulate` follows it under the belief without its rare outcomes (`bounds.dirichlet.rare`), where predictive
probabilities are in closed form (`kernels.particles.hyperstate`); the look-ahead is also the control variate. At the
end, fresh models of the posterior value the last policy. The mean is at most the policy's value under the belief, hence
at most `V*`, however poor the particles are, and no sample is below `floor`. Should a rare outcome be seen after all,
the policy goes on with the belief as a whole.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from beliefbound.base.limits import ROWS_BYTES
from beliefbound.base.validation import FloatArray, IntArray
from beliefbound.bounds.dirichlet.arrays import reward_range
from beliefbound.bounds.dirichlet.effort import TRAJECTORY_STEP, pool, valuing, work
from beliefbound.bounds.dirichlet.prepared import below_of, whole_of
from beliefbound.bounds.dirichlet.rare import Extremes, cut
from beliefbound.kernels.particles.look import (
    EARNED,
    FACTOR,
    STAGE,
    STATE,
    STEPS,
    LookSpace,
    Trajectory,
    TrajectoryParameters,
    expected_policy,
    look,
    new_expected,
    new_look_space,
    walk,
)
from beliefbound.kernels.particles.rows import BAMDP, draw_models, n_columns, width_of
from beliefbound.kernels.particles.solving import values_of
from beliefbound.kernels.random import stream_from
from beliefbound.planning.lemmas import stages_until
from beliefbound.planning.task import Task

_SHORT = 0.1  # a horizon after which more than this share of the value follows is planned for as it is
_TAIL = 0.02  # of the value: what may be left where the policy stops to learn
_LEAF_MODELS = 64  # on which what is left is valued, where rows are short
_TOLERANCE = 3e-4  # of the range of values
MIX = 0.6  # share of what knowing the model is worth in the look-ahead; the rest is what the best of the pool earns
_MOST_STEPS = 1000  # a discount of .995
_TAKEN, _TAKEN_AT_LEAST = 0.6, 0.05  # of what the expected MDP is worth, and of the range of values, above the least


def policy_depth(discount: float, horizon: int | None) -> int:
    """Steps that the policy looks ahead in: after them little is left."""
    return stages_until(_TAIL, discount, most=_MOST_STEPS if horizon is None else min(horizon, _MOST_STEPS))


def leaf_models(pairs: int, wide: int) -> int:
    """Fresh models at the end of a trajectory: as many as fit."""
    return int(np.clip(ROWS_BYTES // (8 * pairs * wide), 2, _LEAF_MODELS))


class ActionAdvice(NamedTuple):
    """What to do at a hyperstate, what knowing the model could still be worth, and the control variate `[a,column]`."""

    action: int
    gap: float
    guide: FloatArray


class Workspace(NamedTuple):
    """Scratch of one thread: for each level, and models for the end of a trajectory."""

    spaces: tuple[LookSpace, ...]
    leaf: FloatArray


class Replanning:
    """What to do after given counts, and what that is worth. A function of them and of its own fixed seed."""

    def __init__(
        self,
        task: Task,
        seed: int,
        levels: Sequence[tuple[float, int]],
        *,
        whole: bool = False,
        problem: BAMDP | None = None,
    ) -> None:
        """`levels`: `(share, particles)`, falling: as long as this share of the value is left, so many particles.
        `whole`: rare outcomes are kept. `problem`: in place of the belief's, where something is known besides."""
        self.task, self.seed, self.levels = task, seed, tuple(levels)
        self.belief, self.start, self.discount, self.horizon = task.belief, task.start, task.discount, task.horizon
        if problem is None:
            own = whole_of(task) if whole else below_of(task)
            self._problem, self._extremes = own.at(seed), own.extremes
        else:
            self._problem = cut(problem, "lower", task.horizon)
            self._extremes = Extremes(self._problem, task.horizon)
        self.depth = policy_depth(task.discount, task.horizon)
        low, high = reward_range(self._problem)
        self._tolerance = _TOLERANCE * (high - low) * task.effective_horizon
        self._pairs, self._n_states = len(self._problem.available), task.belief.n_states
        self._columns = n_columns(self._problem)
        self._first = np.argmax(task.belief.available, axis=1)  # an action that every state offers
        self._all = np.arange(self._pairs)

    def workspace(self) -> Workspace:
        """Scratch for one thread."""
        wide, made = width_of(self._problem), {}
        for n in {n for _, n in self.levels}:
            spare = max(1, ROWS_BYTES // (8 * wide * n * len(self.levels)))
            made[n] = new_look_space(self._problem, n, pool(n), spare)
        leaf = np.empty((self._pairs, wide, leaf_models(self._pairs, wide)))
        return Workspace(tuple(made[n] for _, n in self.levels), leaf)

    @cached_property
    def floor(self) -> float:
        """No sample of `simulate` is below: the least that any policy earns, minus what the control variate may take
        away where the draws were good. The more it may, the less samples spread; the less, the nearer the floor."""
        return self._floors[0]

    @property
    def near_floor(self) -> float:
        """A floor that leaves the control variate little room."""
        return self._floors[1]

    @cached_property
    def _floors(self) -> tuple[float, float]:
        starts, left = self.start > 0.0, self._left(0)
        low, high = (x[starts] for x in (self._extremes.low(left), self._extremes.high(left)))
        left = -1 if self._forever(left) else left
        mdp, counts = new_expected(self._problem), np.zeros((self._pairs, self._columns), dtype=np.int64)
        expected_policy(self._problem, mdp, counts, self._first, left)
        expected = mdp.models.q[0, :, 0].reshape(self._n_states, -1).max(axis=1)[starts]
        least, unit = float(low.min()), self._problem.unit
        little = _TAKEN_AT_LEAST * (float(high.max()) - least)
        much = max(_TAKEN * (float(expected.max()) - least), little)
        return float(unit * (least - much)), float(unit * (least - little))

    def simulate(
        self,
        rng: np.random.Generator,
        space: Workspace,
        uniforms: FloatArray | None = None,
        floor: float | None = None,
    ) -> tuple[float, float]:
        """One trajectory under the belief, which estimates this policy's value from the start or less; and the work it
        took, in operations, if it had been the only one. `uniforms`: for the start and for each step, where it has
        them in common with others. `floor`: another than the policy's own."""
        u = rng.random(self.depth + 1) if uniforms is None else np.append(uniforms[1 : self.depth + 1], uniforms[0])
        state = int(np.searchsorted(np.cumsum(self.start), u[-1], side="right"))
        state = min(state, int(np.flatnonzero(self.start)[-1]))
        counts = np.zeros((self._pairs, self._columns), dtype=np.int64)
        horizon = -1 if self.horizon is None else self.horizon
        place, sums = np.array([0, state], dtype=np.int64), np.array([0.0, 1.0, 0.0])
        trajectory, operations = Trajectory(counts, place, sums), 0.0
        floor = (self.floor if floor is None else floor) / self._problem.unit
        for level, scratch in enumerate(space.spaces):
            before = sums[STEPS]
            parameters = TrajectoryParameters(self._until[level], horizon, self._short, self._tolerance, MIX, floor)
            done = walk(self._problem, scratch, parameters, trajectory, self._first, self._lows, u)
            n = self.levels[level][1]
            operations += (sums[STEPS] - before + done) * (TRAJECTORY_STEP + work(self._problem) * n * valuing(n))
            if done:
                break
        leaf = self._leaf_value(space, counts, int(place[STATE]), self._left(int(place[STAGE])), rng)
        total = sums[EARNED] + sums[FACTOR] * leaf
        return float(self._problem.unit * total), float(operations)

    @cached_property
    def _lows(self) -> FloatArray:
        """The least that can follow, `[stage,s]`; one row where there is no horizon."""
        stages = range(1 if self.horizon is None else self.depth + 1)
        return np.stack([self._extremes.low(self._left(stage)) for stage in stages])

    @cached_property
    def _until(self) -> list[int]:
        """The stage at which each level of particles ends."""
        stages = [self._level(stage) for stage in range(self.depth)]
        return [sum(level <= i for level in stages) for i in range(len(self.levels))]

    @cached_property
    def _short(self) -> int:
        """From so many decisions left on, the horizon does not matter for what to do."""
        if self.horizon is None:
            return 0
        return next((left for left in range(self.horizon + 1) if self._forever(left)), self.horizon + 1)

    def _level(self, stage: int) -> int:
        return next(i for i, (share, _) in enumerate(self.levels) if self.discount**stage >= share)

    def _left(self, stage: int) -> int:
        """Decisions that remain; −1 for ever."""
        return -1 if self.horizon is None else self.horizon - stage

    def _forever(self, left: int) -> bool:
        """Whether so much is left that the horizon does not matter for what to do."""
        return left < 0 or self.discount**left <= _SHORT

    def _advice(self, work: Workspace, counts: IntArray, state: int, stage: int) -> ActionAdvice | None:
        """What to do; nothing where the policy stops to learn."""
        if stage >= self.depth:
            return None
        left = self._left(stage)
        left = -1 if self._forever(left) else left
        level = self._level(stage)
        advice = self._look(work, counts, state, left, level)
        return None if self.discount**stage * advice.gap <= self._tolerance else advice

    def _look(self, work: Workspace, counts: IntArray, state: int, left: int, level: int) -> ActionAdvice:
        space = work.spaces[level]
        action, gap = look(self._problem, space, counts, state, left, self._first, MIX)
        return ActionAdvice(int(action), float(gap), space.guide.copy())

    def _last_policy(self, work: Workspace, counts: IntArray, left: int) -> IntArray:
        """The expected MDP's optimal policy; with a horizon that matters, its first step."""
        left = -1 if self._forever(left) else left
        mdp = work.spaces[0].expected
        expected_policy(self._problem, mdp, counts, self._first, left)
        return mdp.models.policy[:, 0].copy()

    def _leaf_value(self, work: Workspace, counts: IntArray, state: int, left: int, rng: np.random.Generator) -> float:
        """An estimate of what the last policy earns, from fresh models of the posterior."""
        if left == 0:
            return 0.0
        actions = self._last_policy(work, counts, left)
        stream = stream_from(rng)
        draw_models(self._problem, counts, stream, work.leaf)
        values = np.empty((self._n_states, work.leaf.shape[2]))
        values_of(self.discount, work.leaf, self._all, left, actions, values)
        return float(values[state].mean())
