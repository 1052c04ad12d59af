"""An upper bound from models held in pairs (`kernels.graph.pairs` has the mathematics and the proof).

Draw two models from a posterior and tell the agent that its own is one of them: which one remains to be learnt, with
weight ½ each. If its own was the first or the second drawn, as likely, that is extra information about the truth, so
the optimal value `W(½, s)` of the two is at least V* in the mean. It is solved on a grid of weights, from each model's
own optimal values downwards, and is an upper bound after any number of sweeps. An agent told after its first action is
worth `max_a` of the mean over pairs of `Q(½, s, a)`.

A step shows the arrival, and where rewards are learnt success or failure, whose chance is read off the expected reward.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from beliefbound.kernels.options import EXACT
from beliefbound.kernels.reference import by_reference

GRID = 5  # weights of the second model: 0, ¼, ½, ¾, 1


@by_reference
class Pairs(NamedTuple):
    """Values of one pair of models, and scratch. What a step shows is `k·S + t`: value k of the reward, arrival t."""

    paid: np.ndarray  # [k,pair]: one line where steps show arrivals only, else what success and failure pay
    chance: np.ndarray  # [s,a,kt,g] of what a step shows
    place: np.ndarray  # [s,a,kt,g]: the weight that it leads to, on the grid
    q: np.ndarray  # [s,g,a]
    v: np.ndarray  # [s,g]
    mean: np.ndarray  # [a]: of the middle of the grid over pairs


def new_pairs(paid: np.ndarray, n_states: int, n_actions: int, grid: int = GRID) -> Pairs:
    """Empty arrays for pairs of models, the weights of an odd number `grid`."""
    shape = (n_states, n_actions, len(paid) * n_states, grid)
    return Pairs(
        paid=paid,
        chance=np.zeros(shape),
        place=np.zeros(shape),
        q=np.zeros((n_states, grid, n_actions)),
        v=np.zeros((n_states, grid)),
        mean=np.zeros(n_actions),
    )


@njit(**EXACT)
def success_chance(paid, pair, r):
    """The chance of success of a pair whose expected reward is `r`; 1 where success and failure pay the same."""
    if paid.shape[0] == 1 or paid[0, pair] == paid[1, pair]:
        return 1.0
    return min(max((r - paid[1, pair]) / (paid[0, pair] - paid[1, pair]), 0.0), 1.0)


@njit(**EXACT)
def look_ahead(models, i, j, pairs):
    """`chance` and `place` of models i and j."""
    n_states, n_actions, n_shown, n_grid = pairs.chance.shape
    for s in range(n_states):
        for a in range(n_actions):
            one = success_chance(pairs.paid, s * n_actions + a, models.r[s, a, i])
            two = success_chance(pairs.paid, s * n_actions + a, models.r[s, a, j])
            for shown in range(n_shown):
                t = shown % n_states
                first, second = models.p[s, a, t, i], models.p[s, a, t, j]
                first *= one if shown < n_states else 1.0 - one
                second *= two if shown < n_states else 1.0 - two
                for g in range(n_grid):
                    weight = g / (n_grid - 1)
                    total = (1.0 - weight) * first + weight * second
                    pairs.chance[s, a, shown, g] = total
                    pairs.place[s, a, shown, g] = weight * second / total * (n_grid - 1) if total > 0.0 else 0.0


@njit(**EXACT)
def sweep_pair(models, i, j, pairs):
    """One sweep, in place: values that are above stay above. Returns by how much the largest fall was."""
    n_states, n_actions, n_shown, n_grid = pairs.chance.shape
    v, fall = pairs.v, 0.0
    for s in range(n_states):
        for g in range(n_grid):
            best = -np.inf
            for a in range(n_actions):
                if models.available[s, a]:
                    total = 0.0
                    for shown in range(n_shown):
                        x = pairs.place[s, a, shown, g]
                        h, t = min(int(x), n_grid - 2), shown % n_states
                        total += pairs.chance[s, a, shown, g] * (v[t, h] + (x - h) * (v[t, h + 1] - v[t, h]))
                    one, two = models.r[s, a, i], models.r[s, a, j]
                    pairs.q[s, g, a] = one + g / (n_grid - 1) * (two - one) + models.discount * total
                    best = max(best, pairs.q[s, g, a])
            fall = max(fall, v[s, g] - best)
            v[s, g] = min(v[s, g], best)
    return fall


@njit(**EXACT)
def value_of_pairs(models, optimum, pairs, sweeps, tolerance, s):
    """The bound at `s` from the models held, two by two; `optimum` has what each is worth by itself, from above."""
    n_actions, n_grid = pairs.q.shape[2], pairs.v.shape[1]
    count = models.r.shape[2] // 2
    pairs.mean.fill(0.0)
    for c in range(count):
        i, j = 2 * c, 2 * c + 1
        look_ahead(models, i, j, pairs)
        for t in range(pairs.v.shape[0]):
            one = two = -np.inf
            for a in range(n_actions):
                if models.available[t, a]:
                    one, two = max(one, optimum.q[t, a, i]), max(two, optimum.q[t, a, j])
            for g in range(n_grid):
                pairs.v[t, g] = one + g / (n_grid - 1) * (two - one)
        for _ in range(sweeps):
            if sweep_pair(models, i, j, pairs) <= tolerance:
                break
        for a in range(n_actions):
            pairs.mean[a] += pairs.q[s, n_grid // 2, a] / count
    best = -np.inf
    for a in range(n_actions):
        if models.available[s, a]:
            best = max(best, pairs.mean[a])
    return best
