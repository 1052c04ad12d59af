"""What is made of a task with counts, once: its posterior compiled, the problems that bounds are made for, and what
values can be in each.

    whole   the belief as it is, to its horizon
    ahead   the same for the horizon that is planned for: none where what comes after it is worth next to nothing
    above   `ahead` without rare outcomes, worth at least as much (`bounds.dirichlet.rare`)
    below   `whole` without rare outcomes, worth at most as much

Particles have an address of their own: `problem._replace(address=…)` where a problem is used.
"""

from typing import NamedTuple

import numpy as np

from beliefbound.bounds.bound import Side
from beliefbound.bounds.dirichlet.arrays import planned, problem_of
from beliefbound.bounds.dirichlet.rare import Extremes, cut
from beliefbound.kernels.particles.rows import BAMDP
from beliefbound.planning.task import Task, made_once

_NOWHERE = np.empty(0, dtype=np.uint64)


class Ranged(NamedTuple):
    """A problem, and the least and largest values of any policy on any of its models."""

    problem: BAMDP
    extremes: Extremes

    def at(self, *address: int) -> BAMDP:
        """The problem with particles at an address."""
        return self.problem._replace(address=np.array(address, dtype=np.uint64))

    def ends(self, task: Task) -> tuple[float, float]:
        """Least and largest value from any of the task's start states."""
        left, start, unit = self.problem.horizon, task.start > 0.0, self.problem.unit
        low, high = self.extremes.low(left)[start].min(), self.extremes.high(left)[start].max()
        return float(unit * low), float(unit * high)


def _ranged(problem: BAMDP) -> Ranged:
    return Ranged(problem, Extremes(problem, None if problem.horizon < 0 else problem.horizon))


@made_once
def whole_of(task: Task) -> Ranged:
    """The belief as it is."""
    return _ranged(problem_of(task, _NOWHERE, horizon=task.horizon))


@made_once
def ahead_of(task: Task) -> Ranged:
    """The same for the horizon that is planned for."""
    ahead = planned(task.discount, task.horizon)
    whole = whole_of(task)
    return whole if ahead == task.horizon else _ranged(whole.problem._replace(horizon=-1 if ahead is None else ahead))


@made_once
def above_of(task: Task) -> Ranged:
    """That without rare outcomes, worth at least as much."""
    return _cut(ahead_of(task), "upper")


@made_once
def below_of(task: Task) -> Ranged:
    """The whole without rare outcomes, worth at most as much."""
    return _cut(whole_of(task), "lower")


def _cut(ranged: Ranged, side: Side) -> Ranged:
    whole = ranged.problem
    problem = cut(whole, side, None if whole.horizon < 0 else whole.horizon, ranged.extremes)
    return ranged if problem is ranged.problem else _ranged(problem)
