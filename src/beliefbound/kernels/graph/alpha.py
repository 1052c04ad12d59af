"""Alpha vectors: policies for a finite belief whose value on every model is known, valid at every belief.

The model never changes, so a policy that starts in state `s` is worth `Σ_m b_m α(m)` at belief `b`, with `α(m)` its
value on model `m`, whatever `b` is. A *controller* plays action `a` and after outcome row `k` goes on as another
controller, of the state `arrive_k`:

    α(m) = r_m(s,a) + γ Σ_k like[m,k] α_k(m).

The backup of a belief point (Pineau, Gordon & Thrun 2003) chooses `α_k` as the best known vector at the posterior after
`k`, and the action of largest `Σ_m b_m α(m)`. Vectors are only ever added, and refer only to older ones, so each is the
exact value of a finite decision graph that ends in memoryless policies. `max_α Σ_m b_m α(m) ≤ V*(b,s)`.

Without a horizon only: with one, a vector would belong to a stage.

Beliefs to back up come from trajectories that act on `(1 − mix) · lower + mix · QMDP`, one step ahead, with a `mix`
of their own, and now and then at random. Cost of a backup: `rows · vectors · models` multiply-adds, of models that have
weight; values lie model by model, so that these go through many vectors at once.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from beliefbound.kernels.graph.heavy import heavy_models
from beliefbound.kernels.options import FAST, FAST_INLINE
from beliefbound.kernels.out_of_line import out_of_line
from beliefbound.kernels.posterior import copy_into
from beliefbound.kernels.random import below, uniform
from beliefbound.kernels.reference import by_reference
from beliefbound.kernels.sums import sum_of

SIZE = 0  # index of the number of vectors


@by_reference
class Vectors(NamedTuple):
    """Controllers and their values. The first ones of each state are memoryless policies, played for ever."""

    size: np.ndarray  # int64 [1]
    state: np.ndarray  # int32 [v]: where it starts
    value: np.ndarray  # [v,m]
    action: np.ndarray  # int32 [v]: what it plays first; −1 for a memoryless policy
    policy: np.ndarray  # int32 [v]: which memoryless policy; −1 for others
    then: np.ndarray  # int32 [v,row]: the vector after each outcome of the action, −1 for outcomes of other actions
    known: np.ndarray  # [s,m,i]: values of the vectors worth asking, packed
    number: np.ndarray  # int32 [s,i]: which those are
    known_count: np.ndarray  # int64 [s]
    scale: np.ndarray  # [m]: the largest value of each model
    belief: np.ndarray  # scratch [m]
    heavy: np.ndarray  # scratch int64 [m]
    after: np.ndarray  # scratch [m]
    totals: np.ndarray  # scratch [i]
    chosen: np.ndarray  # scratch int64 [2,row]
    used: np.ndarray  # int32 [s,i]: at how many points each was best, when that was last asked (`keep_used`)


@by_reference
class Points(NamedTuple):
    """Beliefs to back up at."""

    state: np.ndarray  # int32 [n]
    weight: np.ndarray  # [n,m]
    depth: np.ndarray  # int32 [n]: steps from the start


def new_vectors(problem, values, capacity: int) -> Vectors:
    """Vectors of memoryless policies with `values[m,s,policy]`, and space for `capacity` more."""
    n_models, n_states, n_policies = values.shape
    rows = int((problem.first[:, -1] - problem.first[:, 0]).max())
    total = n_states * n_policies + capacity
    vectors = Vectors(
        size=np.array([n_states * n_policies], dtype=np.int64),
        state=np.empty(total, dtype=np.int32),
        value=np.empty((total, n_models)),
        action=np.full(total, -1, dtype=np.int32),
        policy=np.full(total, -1, dtype=np.int32),
        then=np.full((total, rows), -1, dtype=np.int32),
        known=np.zeros((n_states, n_models, n_policies + capacity)),
        number=np.empty((n_states, n_policies + capacity), dtype=np.int32),
        known_count=np.full(n_states, n_policies, dtype=np.int64),
        scale=problem.scale,
        belief=np.empty(n_models),
        heavy=np.empty(n_models, dtype=np.int64),
        after=np.empty(n_models),
        totals=np.empty(n_policies + capacity),
        chosen=np.zeros((2, rows), dtype=np.int64),
        used=np.zeros((n_states, n_policies + capacity), dtype=np.int32),
    )
    first = np.arange(n_states * n_policies).reshape(n_states, n_policies)
    vectors.state[: first.size] = np.repeat(np.arange(n_states), n_policies)
    vectors.policy[: first.size] = np.tile(np.arange(n_policies), n_states)
    vectors.value[: first.size] = np.moveaxis(values, 0, -1).reshape(first.size, n_models)
    vectors.known[:, :, :n_policies] = np.moveaxis(values, 0, 1)
    vectors.number[:, :n_policies] = first
    return vectors


def copied(vectors: Vectors) -> Vectors:
    """The vectors worth asking as they are now, for `best_vector` while others are added."""
    count = int(vectors.known_count.max())
    return with_scratch(
        vectors._replace(
            known=np.ascontiguousarray(vectors.known[:, :, :count]),
            number=np.ascontiguousarray(vectors.number[:, :count]),
            known_count=vectors.known_count.copy(),
        )
    )


def with_scratch(vectors: Vectors) -> Vectors:
    """The same vectors, with scratch of their own for `best_vector`."""
    scratch = {name: np.empty_like(getattr(vectors, name)) for name in ("belief", "heavy", "after")}
    return vectors._replace(totals=np.empty(vectors.known.shape[2]), **scratch)


@out_of_line
@njit(**FAST)
def best_vector(vectors, s, weight):
    """`(value, position)` of the known vector of a state that is best at unnormalised weights `[m]`, by the models that
    matter there; ties to the first."""
    known, totals, heavy, count = vectors.known[s], vectors.totals, vectors.heavy, vectors.known_count[s]
    for i in range(count):
        totals[i] = 0.0
    n = heavy_models(weight, vectors.scale, heavy)
    for j in range(0, n, 4):  # four models at a time: a total is read and written once for all of them
        m, m1, m2, m3 = heavy[j], heavy[min(j + 1, n - 1)], heavy[min(j + 2, n - 1)], heavy[min(j + 3, n - 1)]
        w, w1 = weight[m], weight[m1] if j + 1 < n else 0.0
        w2, w3 = weight[m2] if j + 2 < n else 0.0, weight[m3] if j + 3 < n else 0.0
        v, v1, v2, v3 = known[m], known[m1], known[m2], known[m3]
        for i in range(count):
            totals[i] += (w * v[i] + w1 * v1[i]) + (w2 * v2[i] + w3 * v3[i])
    chosen = 0
    for i in range(1, count):
        if totals[i] > totals[chosen]:
            chosen = i
    value = 0.0
    for m in range(weight.size):
        value += weight[m] * known[m, chosen]
    return value, chosen


@njit(**FAST_INLINE)
def after(problem, s, row, weight, out):
    """The unnormalised weights after an outcome row of a state; returns their sum."""
    n_models = weight.size
    base = problem.first[s, 0]
    n_rows = problem.first[s, -1] - base
    for m in range(n_models):
        out[m] = weight[m] * problem.like[base * n_models + m * n_rows + row]
    return sum_of(out)


@out_of_line
@njit(**FAST)
def look_below(problem, vectors, s, a, weight, out, chosen):
    """`r + γ Σ_k max_α b^k·α` of an action; `chosen[row]` are the positions of the vectors, `out[m]` is scratch."""
    total = 0.0
    for m in range(weight.size):
        total += weight[m] * problem.reward[m, s, a]
    base = problem.first[s, 0]
    for k in range(problem.first[s, a], problem.first[s, a + 1]):
        chosen[k - base] = 0
        if after(problem, s, k - base, weight, out) > 0.0:
            value, chosen[k - base] = best_vector(vectors, problem.arrive[k], out)
            total += problem.discount * value
    return total


@out_of_line
@njit(**FAST)
def add_vector(problem, vectors, s, a, chosen):
    """The controller that plays `a` and goes on with the vectors at `chosen[row]`; false when there is no space."""
    v = vectors.size[SIZE]
    if v == vectors.state.size:
        return False
    n_models = vectors.value.shape[1]
    base = problem.first[s, 0]
    n_rows = problem.first[s, -1] - base
    value = vectors.value[v]
    for m in range(n_models):
        value[m] = problem.reward[m, s, a]
    for k in range(problem.first[s, a], problem.first[s, a + 1]):
        t, row = problem.arrive[k], k - base
        vectors.then[v, row] = vectors.number[t, chosen[row]]
        later = vectors.value[vectors.then[v, row]]
        for m in range(n_models):
            value[m] += problem.discount * problem.like[base * n_models + m * n_rows + row] * later[m]
    vectors.state[v], vectors.action[v] = s, a
    i = vectors.known_count[s]
    vectors.number[s, i] = v
    for m in range(n_models):
        vectors.known[s, m, i] = value[m]
    vectors.known_count[s], vectors.size[SIZE] = i + 1, v + 1
    return True


@njit(**FAST)
def back_up_points(problem, vectors, points, order, tolerance):
    """Back up at the points in `order`, adding the vectors that improve theirs by more than `tolerance`.

    Returns the sum of what was gained at the points; stops when there is no more space.
    """
    n_actions, out, chosen = problem.available.shape[1], vectors.after, vectors.chosen
    gained = 0.0
    for x in order:
        s, weight = np.int64(points.state[x]), points.weight[x]
        best, action, here = -np.inf, np.int64(-1), 0
        for a in range(n_actions):
            if problem.available[s, a]:
                value = look_below(problem, vectors, s, a, weight, out, chosen[1 - here])
                if value > best:
                    best, action, here = value, a, 1 - here
        before, _ = best_vector(vectors, s, weight)
        if best > before + tolerance:
            if not add_vector(problem, vectors, s, action, chosen[here]):
                return gained
            gained += best - before
    return gained


@njit(**FAST)
def keep_used(vectors, points, always):
    """Ask from now on only the vectors that are best at some point, and the first `always` of each state."""
    n_states, used = vectors.known_count.size, vectors.used
    for s in range(n_states):
        used[s, : vectors.known_count[s]] = 0
    for x in range(points.state.size):
        _, i = best_vector(vectors, np.int64(points.state[x]), points.weight[x])
        used[points.state[x], i] += 1
    for s in range(n_states):
        kept = 0
        for i in range(vectors.known_count[s]):
            if i < always or used[s, i] > 0:
                if kept < i:
                    vectors.number[s, kept], used[s, kept] = vectors.number[s, i], used[s, i]
                    for m in range(vectors.known.shape[1]):
                        vectors.known[s, m, kept] = vectors.known[s, m, i]
                kept += 1
        vectors.known_count[s] = kept


@njit(**FAST)
def walk(problem, vectors, state, weight, stream, points, first, depth, random, mix):
    """One trajectory of up to `depth` steps from `(state, weight[m])`; its beliefs are written to `points` from `first`
    on. With probability `random` a step is any available action. Returns how many points are in use."""
    n_models, n_actions = weight.size, problem.available.shape[1]
    b, out, chosen = vectors.belief, vectors.after, vectors.chosen[0]
    copy_into(b, weight)
    s, x = state, first
    for d in range(depth):
        if x == points.state.size:
            break
        points.state[x], points.depth[x] = s, d
        for m in range(n_models):
            points.weight[x, m] = b[m]
        x += 1
        action, best = np.int64(-1), -np.inf
        if uniform(stream) < random:
            while action < 0 or not problem.available[s, action]:
                action = np.int64(below(stream, n_actions))
        else:
            for a in range(n_actions):
                if problem.available[s, a]:
                    low, high = look_below(problem, vectors, s, a, b, out, chosen), 0.0
                    for m in range(n_models):
                        high += b[m] * problem.q[0, m, s, a]
                    if low + mix * (high - low) > best:
                        action, best = a, low + mix * (high - low)
        u, base, row = uniform(stream), problem.first[s, 0], -1
        for k in range(problem.first[s, action], problem.first[s, action + 1]):
            chance = after(problem, s, k - base, b, out)
            if chance > 0.0:
                row = k - base
                u -= chance
                if u < 0.0:
                    break
        total = after(problem, s, row, b, out)
        for m in range(n_models):
            b[m] = out[m] / total
        s = problem.arrive[base + row]
    return x
