"""The policy of `bounds.dirichlet.replanning`, as something to act with: it keeps counts of what it has seen.

A walk is the counts, until the policy stops to learn; from there on it is one action per state. A step needs the same
memory and time at step 10 000 as at step 1.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from beliefbound.base.errors import ObservationError, PolicyError
from beliefbound.base.executors.elsewhere import map_numbered
from beliefbound.base.limits import PARTICLE_BYTES
from beliefbound.base.validation import FloatArray, IntArray, check_seed
from beliefbound.beliefs import Belief
from beliefbound.bounds.dirichlet.arrays import column_of, posterior_of
from beliefbound.bounds.dirichlet.fresh_models import workers
from beliefbound.bounds.dirichlet.policy_file import KIND, arrays_of, read_particle
from beliefbound.bounds.dirichlet.prepared import whole_of
from beliefbound.bounds.dirichlet.replanning import Replanning, Workspace
from beliefbound.bounds.dirichlet.walks import Earned, Scenarios
from beliefbound.kernels.particles.rows import BAMDP, width_of
from beliefbound.planning.task import Task
from beliefbound.policy.files import ArchivedPolicy
from beliefbound.policy.protocol import check_id, check_left, check_reward, check_transition


@dataclass
class _Walk:
    """Where observations have led."""

    counts: IntArray  # [pair,column]
    stage: int = 0
    at: int = -1  # the state; −1 before the first observation
    last: IntArray | None = None  # [s]: actions from here on
    decided: tuple[int, int, IntArray | None] | None = None  # `(state, action, last)` at this stage, once asked for
    planner: Replanning | None = None  # of the whole belief, once an outcome was seen that the certificate leaves out


class ParticlePolicy(ArchivedPolicy, Replanning):
    """Acts under a Dirichlet belief; made by `bracket`. A function of what it observes and of its own fixed seed.

    After an action it did not advise, its counts are still right and it goes on from there; the certificate is for its
    own advice only.
    """

    _archive = KIND

    def __init__(
        self,
        belief: Belief,
        start: FloatArray,
        discount: float,
        horizon: int | None,
        seed: int,
        levels: Sequence[tuple[float, int]],
    ) -> None:
        """`levels`: `(share, particles)`, falling: as long as this share of the value is left, so many particles."""
        super().__init__(Task(belief, start, discount, horizon), seed, levels)
        self._begin()

    @classmethod
    def of(cls, task: Task, seed: int, levels: Sequence[tuple[float, int]]) -> "ParticlePolicy":
        """The policy of a task, which has what was made of it."""
        policy = cls.__new__(cls)
        Replanning.__init__(policy, task, seed, levels)
        policy._begin()
        return policy

    def _begin(self) -> None:
        self._walk = _Walk(np.zeros((self._pairs, self._columns), dtype=np.int64))
        self._own: Workspace | None = None

    def __repr__(self) -> str:
        return f"ParticlePolicy({self.belief!r}, {self.levels[0][1]} particles)"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ParticlePolicy):
            return NotImplemented
        return self._settings() == other._settings() and _alike(self._problem, other._problem)

    def __hash__(self) -> int:
        return hash(self._settings())

    def __reduce__(self) -> tuple[Any, ...]:
        return ParticlePolicy, (self.belief, self.start, self.discount, self.horizon, self.seed, self.levels)

    def _settings(self) -> tuple[object, ...]:
        return self.discount, self.horizon, self.seed, self.levels, self.start.tobytes()

    @property
    def n_states(self) -> int:
        return self.belief.n_states

    @property
    def n_actions(self) -> int:
        return self.belief.n_actions

    def reset(self, seed: int = 0) -> None:
        """Begin again at the start. The policy's particles come from its own seed: it behaves alike under every one."""
        check_seed(seed)
        counts, surprised = self._walk.counts, self._walk.planner is not None
        counts[:] = 0
        self._walk = _Walk(counts)
        if surprised:
            self._own = None  # its scratch arrays held draws of the whole belief

    def act(self, state: int) -> int:
        """The action in `state`, where the observations have led.

        Raises:
          ObservationError: they have led elsewhere, or the certificate is not for a start in this state.
          PolicyError: the horizon is over.
        """
        s = check_id(state, self.n_states, "state")
        check_left(self._walk.stage, self.horizon)
        self._check_at(s)
        return self._decide(s)[1]

    def observe(self, state: int, action: int, reward: float | None, next_state: int) -> None:
        """Count one transition; `reward` may be `None` where the belief does not learn from rewards.

        Raises:
          ObservationError: it does not begin where the walk is, or is outside the belief's support.
          PolicyError: the horizon is over.
        """
        s, a, t = check_transition(self, self._walk.stage, state, action, next_state)
        self._check_at(s)
        pair, column = column_of(self._whole, s, a, check_reward(reward), t)
        walk = self._walk
        walk.last = self._decide(s)[2]
        if walk.planner is None and not self._foreseen(pair, column):
            walk.planner, walk.last, self._own = self._anew(), None, None
        if walk.last is None:
            walk.counts[pair, column] += 1
        walk.at, walk.stage, walk.decided = t, walk.stage + 1, None

    def walks_on(self, task: Task, *, seed: int, threads: int) -> "CompiledWalks | None":
        """Its trajectories under the belief that it was made for, compiled; `None` for another task."""
        same = (task.discount, task.horizon) == (self.discount, self.horizon) and np.array_equal(task.start, self.start)
        if not same or posterior_of(task) is None:
            return None
        same = task is self.task or _alike(whole_of(task).problem, whole_of(self.task).problem)
        return CompiledWalks(self, seed, threads) if same else None

    def fresh(self) -> "ParticlePolicy":
        """The same policy at its start, with a walk and scratch arrays of its own."""
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._begin()
        return other

    def _arrays(self) -> Mapping[str, Any]:
        arrays = arrays_of(self.belief, self.start, self.discount, self.horizon, self.seed, self.levels)
        if ParticlePolicy(**read_particle(Path("the policy"), arrays)) != self:
            raise PolicyError(f"a policy for {self.belief!r} cannot be saved: the form of file does not describe it")
        return arrays

    @cached_property
    def _whole(self) -> BAMDP:
        """The problem with its rare outcomes."""
        return whole_of(self.task).at(self.seed, 1)

    def _foreseen(self, pair: int, column: int) -> bool:
        """Whether what was seen is no outcome that was cut off."""
        posterior = self._problem.posterior
        row = posterior.row[pair] if posterior.tied else pair
        return bool(posterior.alpha[row, column % posterior.alpha.shape[1]] > 0.0)

    def _anew(self) -> Replanning:
        """The same way to plan, with rare outcomes."""
        return Replanning(self.task, self.seed, self.levels, whole=True)

    def _check_at(self, s: int) -> None:
        if self._walk.at < 0 and not self.start[s] > 0.0:
            raise ObservationError(f"the walk starts in state {s}, which is not a start state of the certificate")
        if self._walk.at not in (-1, s):
            raise ObservationError(f"the last transition ended in state {self._walk.at}, not in state {s}")

    def _decide(self, s: int) -> tuple[int, int, IntArray | None]:
        """`(state, action, last)`: `last` are the actions from here on where the policy stops to learn."""
        walk = self._walk
        if walk.last is not None:
            return s, int(walk.last[s]), walk.last
        if walk.decided is None or walk.decided[0] != s:
            planner = self if walk.planner is None else walk.planner
            if self._own is None:
                self._own = planner.workspace()
            advice = planner._advice(self._own, walk.counts, s, walk.stage)
            if advice is not None:
                walk.decided = s, advice.action, None
            else:
                last = planner._last_policy(self._own, walk.counts, self._left(walk.stage))
                walk.decided = s, int(last[s]), last
        return walk.decided


class CompiledWalks:
    """Trajectories of a policy by its own compiled walk (`bounds.dirichlet.walks.Walks`); from above they say nothing.
    What is drawn at their ends has seeds of its own."""

    range, beyond = (0.0, 0.0), 0.0

    def __init__(self, policy: ParticlePolicy, seed: int, threads: int) -> None:
        self.policy, self.seed, self.floor = policy, seed, policy.floor
        sizes = 64 + 2 * sum(n for _, n in policy.levels)
        each = 8.0 * len(policy._whole.available) * width_of(policy._whole) * sizes
        self._spaces = workers(threads, policy.workspace, each, 8.0 * PARTICLE_BYTES)

    def earn(self, numbers: Sequence[int], scenarios: Scenarios) -> list[Earned]:
        """What the policy earns in the scenarios of these numbers."""
        return map_numbered(_Compiled(self.policy, self.seed, scenarios), numbers, lambda: self._spaces)


class _Compiled(NamedTuple):
    """Such walks by the numbers of their scenarios."""

    policy: ParticlePolicy
    seed: int
    scenarios: Scenarios

    def scratch(self) -> Workspace:
        return self.policy.workspace()

    def one(self, number: int, space: Workspace) -> Earned:
        rest = np.random.default_rng((self.seed, 21, number))
        return Earned(self.policy.simulate(rest, space, self.scenarios.uniforms(number))[0], np.inf)


def _alike(one: Any, other: Any) -> bool:
    """Whether two tuples, nested or not, hold equal arrays and numbers."""
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(_alike(x, y) for x, y in zip(one, other, strict=True))
    return bool(np.array_equal(one, other))
