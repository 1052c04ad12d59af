"""The best deterministic policy of one action per state, without a horizon, by valuing every one of them.

States that no model reaches from the start do not matter and keep the action of a policy that is given; states with one
action have no choice. What is left are `Π_s |A_s|` policies: few in small problems, where a local search may still stop
short of the best. (A policy that also knows the time, or that draws its actions, may be better than all of them.)
"""

import itertools
import math

import numpy as np
import numpy.typing as npt

from beliefbound.planning.task import FiniteTask
from beliefbound.policy import StationaryPolicy, TablePolicy

_WORK = 1e8  # multiply-adds in all, a few tenths of a second
_OVERHEAD = 2000.0  # what a solve costs besides, in multiply-adds
_AT_ONCE = 1 << 22  # entries of the systems that are solved at once
_SAME = 1e-12  # of the value: a policy that is better by less is not


def best_stationary_of(task: FiniteTask, given: TablePolicy) -> TablePolicy | None:
    """The best of all, `given` where none is better than that by more than rounding; `None` where there are too many
    of them, or the models are too large."""
    models = task.models
    if models.is_sparse or given.horizon is not None or not given.is_deterministic:
        return None
    open_ = np.flatnonzero(_reached(task) & (models.available.sum(axis=1) > 1))
    choices = [np.flatnonzero(models.available[s]) for s in open_]
    count = math.prod(map(len, choices))
    solve = models.n_states**3 / 3.0 + _OVERHEAD
    if count * models.n_models * solve > _WORK:
        return None
    p, states = models.dense(), np.arange(models.n_states)
    n, most = models.n_states, max(1, _AT_ONCE // (models.n_models * models.n_states**2))
    best, value = np.array(given.actions), float(task.start @ (task.weights @ task.policy_values(given)))
    combinations = itertools.product(*choices)
    while lines := list(itertools.islice(combinations, most)):
        actions = np.tile(np.array(given.actions), (len(lines), 1))
        actions[:, open_] = np.array(lines, dtype=np.int64).reshape(len(lines), -1)
        moves, rewards = p[:, states, actions], models.rewards[:, states, actions]  # [m,policy,s,s], [m,policy,s]
        values = np.linalg.solve(np.eye(n) - task.discount * moves, rewards[..., None])[..., 0]
        worth = np.tensordot(task.weights, values @ task.start, 1)
        k = int(worth.argmax())
        if worth[k] - value > _SAME * max(abs(worth[k]), abs(value)):
            best, value = actions[k], float(worth[k])
    return given if np.array_equal(best, given.actions) else StationaryPolicy(best)


def _reached(task: FiniteTask) -> npt.NDArray[np.bool_]:
    """States `[s]` that some model reaches from the start by some actions."""
    after: npt.NDArray[np.bool_] = np.any(task.models.dense() > 0.0, axis=(0, 2))
    reached: npt.NDArray[np.bool_] = np.asarray(task.start > 0.0)
    while (wider := reached | after[reached].any(axis=0)).sum() > reached.sum():
        reached = wider
    return reached
