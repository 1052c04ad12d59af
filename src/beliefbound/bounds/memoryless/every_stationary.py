"""The best deterministic policy of one action per state, without a horizon, by valuing every one of them.

States that no model reaches from the start do not matter and keep the action of a policy that is given; states with one
action have no choice. What is left are `Π_s |A_s|` policies: few in small problems, where a local search may still stop
short of the best. (A policy that also knows the time, or that draws its actions, may be better than all of them.)

Values are enclosed (`models.enclosing`), so that *best* holds whatever the scales of rewards are: no policy's upper end
is above the lower end of the one returned by more than a billionth.
"""

import itertools
import math

import numpy as np
import numpy.typing as npt

from beliefbound.base.validation import FloatArray
from beliefbound.models.enclosing import enclosed, rounding_of
from beliefbound.planning.task import FiniteTask
from beliefbound.policy import StationaryPolicy, TablePolicy

_WORK = 3e7  # multiply-adds in all, a few tenths of a second
_OVERHEAD = 2000.0  # what a solve costs besides, in multiply-adds
_AT_ONCE = 1 << 22  # entries of the systems that are solved at once
_SAME = 1e-12  # of the value: a policy that is better by less is not
_CLOSE = 1e-9  # of the value: ends of two policies that are further apart tell them apart


def best_stationary_of(task: FiniteTask, given: TablePolicy) -> TablePolicy | None:
    """The best of all, `given` where none is better than that by more than rounding; `None` where there are too many
    of them, the models are too large, or rounding leaves open which one is."""
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
    lower, upper = -np.inf, -np.inf  # of the best; of all
    combinations = itertools.product(*choices)
    while lines := list(itertools.islice(combinations, most)):
        actions = np.tile(np.array(given.actions), (len(lines), 1))
        actions[:, open_] = np.array(lines, dtype=np.int64).reshape(len(lines), -1)
        moves, rewards = p[:, states, actions], models.rewards[:, states, actions]  # [m,policy,s,s], [m,policy,s]
        values, error = _enclosed(moves.reshape(-1, n, n), rewards.reshape(-1, n), task.discount)
        worth, off, size = (
            np.tensordot(task.weights, x.reshape(rewards.shape) @ task.start, 1)  # [policy]
            for x in (values, error, np.abs(values))
        )
        off = off + rounding_of(2 * n * models.n_models) * size
        k = int(worth.argmax())
        if worth[k] - value > _SAME * max(abs(worth[k]), abs(value)):
            best, value = actions[k], float(worth[k])
        same = (actions == best).all(axis=1)
        if same.any():
            lower = float((worth - off)[same].max())
        upper = max(upper, float((worth + off).max()))
    if not upper - lower <= _CLOSE * max(abs(upper), abs(lower)):
        return None
    return given if np.array_equal(best, given.actions) else StationaryPolicy(best)


def _enclosed(moves: FloatArray, rewards: FloatArray, discount: float) -> tuple[FloatArray, FloatArray]:
    """Values `[i,s]` of chains `moves[i,s,t]` that pay `rewards[i,s]`, and how far they can be from the true ones."""
    system = np.eye(rewards.shape[1]) - discount * moves

    def solve(r: FloatArray) -> FloatArray:
        return np.asarray(np.linalg.solve(system, r[..., None])[..., 0], dtype=np.float64)

    def ahead(x: FloatArray) -> FloatArray:
        return np.asarray(discount * np.einsum("ist,it->is", moves, x))

    rounding = rounding_of(rewards.shape[1])
    return enclosed(solve, ahead, rewards, np.abs(rewards), rounding, discount, rounding)


def _reached(task: FiniteTask) -> npt.NDArray[np.bool_]:
    """States `[s]` that some model reaches from the start by some actions."""
    after: npt.NDArray[np.bool_] = np.any(task.models.dense() > 0.0, axis=(0, 2))
    reached: npt.NDArray[np.bool_] = np.asarray(task.start > 0.0)
    while (wider := reached | after[reached].any(axis=0)).sum() > reached.sum():
        reached = wider
    return reached
