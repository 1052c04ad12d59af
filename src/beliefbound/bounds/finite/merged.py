"""Exact bounds of a finite belief without a horizon: alpha vectors from below, cells of models from above, and a search
in the graph of beliefs in which equal beliefs are one node (`kernels.graph.search`).

Nothing here is sampled, and nothing depends on the clock but how far it gets:

1. *Vectors.* Rounds of point-based backups (`kernels.graph.alpha`), each with twice as many beliefs, met on
   trajectories that act on what is known so far. The best vector at the start is a policy and its exact value.
2. *Cells* (`bounds.finite.cells`): the agent is told which few models hold the true one.
3. *Search*, with the vectors that are used most and the cells as leaf values. The policy of its lower bound is a
   finite-state controller: it ends in vectors, which are controllers themselves.
"""

from collections.abc import Sequence

import numpy as np

from beliefbound.bounds.bound import Bound
from beliefbound.bounds.finite.adaptive import AdaptivePolicy
from beliefbound.bounds.finite.cells import best_cells
from beliefbound.bounds.finite.controller import controller_of, vector_nodes
from beliefbound.bounds.finite.pairs import pair_gains
from beliefbound.bounds.finite.relaxation import Address, Certifier, extended
from beliefbound.bounds.log import Log
from beliefbound.kernels.graph import alpha as kernel
from beliefbound.kernels.graph.alpha import Points, Vectors, new_vectors
from beliefbound.kernels.graph.nodes import Problem
from beliefbound.kernels.random import seed_stream, uniform
from beliefbound.planning.task import FiniteTask
from beliefbound.policy import TablePolicy
from beliefbound.validation import FloatArray, IntArray

_FIRST_POINTS, _MOST_POINTS = 128, 4096  # beliefs backed up in the first round and in the last
_SWEEPS = 3  # over the beliefs of a round: values travel back along trajectories
_CAPACITY = 20_000  # vectors
_DEPTH = 60  # steps of a trajectory, where the discount allows as many
_RANDOM = 0.15  # share of its steps that are random: beliefs beside the way
_GAIN = 1e-6  # of the largest value: what a new vector must add
_LEAVES = 48  # vectors of a state at the leaves of the graph: each costs a look at every node
_CHUNK = 1000  # beliefs between looks at the clock
_VECTORS = 0.35  # share of the time for vectors
_MOST_BYTES = 1 << 28  # of vectors: beyond, fewer of them


def bracket_merged(
    task: FiniteTask, problem: Problem, policies: Sequence[TablePolicy], address: Address, log: Log, seconds: float
) -> None:
    """Add exact bounds to `log` for about `seconds`. `problem` has pairs solved and the values of `policies`."""
    end = log.left - seconds
    each = 16 * task.models.n_models * (1 + task.models.n_states)
    vectors = new_vectors(problem, problem.v[0], min(_CAPACITY, _MOST_BYTES // each))
    leaves = _improve(task, problem, policies, vectors, extended(address, 7), log, log.left - _VECTORS * seconds)
    if log.done:
        return
    gain = pair_gains(problem, task.weights, task.start)
    found = best_cells(problem, gain, task.weights, task.start, seconds)
    problem = problem._replace(v=_with_leaves(problem, vectors, leaves), merged=True)
    if found is not None:
        cells, bound = found
        log.add(bound)
        problem = problem._replace(cells=cells)
    certifier = Certifier(
        task.belief,
        discount=task.discount,
        horizon=None,
        initial=task.start,
        policies=policies,
        core_nodes=2_000_000,
        max_nodes=1,
        problem=problem,
        vectors=vectors,
        leaves=leaves,
    )
    growing = True
    while growing and log.left > end and not log.done:
        for _ in range(10):
            growing = certifier.grow(certifier.n_nodes + _CHUNK, log.target * abs(certifier.upper))
            if not growing or log.left <= end:
                break
        note_merged(certifier, log)
    certifier.settle()
    note_merged(certifier, log)


def note_merged(certifier: Certifier, log: Log) -> None:
    """The bounds that the search has proven so far."""
    method = f"search in a graph of {certifier.n_nodes} distinct beliefs"
    log.add(
        Bound(certifier.lower, "lower", method, policy=AdaptivePolicy(certifier)),
        Bound(certifier.upper, "upper", method),
    )


def _improve(
    task: FiniteTask,
    problem: Problem,
    policies: Sequence[TablePolicy],
    vectors: Vectors,
    address: Address,
    log: Log,
    end: float,
) -> IntArray:
    """Rounds of backups until `log.left` is `end`; the vectors `[s,i]` to be asked at the leaves of a graph."""
    tolerance, always = _GAIN * task.largest_value, len(policies)
    stream, weights = seed_stream(address), np.array(task.weights)
    states = np.flatnonzero(task.start)
    chances = np.cumsum(task.start[states])
    depth = max(1, min(_DEPTH, int(np.ceil(np.log(1e-4) / np.log(max(task.discount, 1e-6))))))
    n, points = _FIRST_POINTS, _new_points(0, len(weights))
    while log.left > end:
        points, used = _new_points(n, len(weights)), 0
        while used < n:
            s = int(states[min(np.searchsorted(chances, uniform(stream), side="right"), len(states) - 1)])
            mix = 0.8 * uniform(stream)
            used = kernel.walk(problem, vectors, s, weights, stream, points, used, depth, _RANDOM, mix)
        points = _distinct(points, states, weights)
        order, gained = np.argsort(-points.depth, kind="stable"), 0.0
        for _ in range(_SWEEPS):
            gained = kernel.back_up_points(problem, vectors, points, order, tolerance)
            if gained == 0.0 or log.left <= end:
                break
        kernel.keep_used(vectors, points, always)
        _note_vectors(task, problem, policies, vectors, states, log)
        full = int(vectors.size[0]) + 2 * n > len(vectors.state)
        if log.done or full or (gained == 0.0 and n == _MOST_POINTS):
            break
        n = min(2 * n, _MOST_POINTS)
    return _most_used(vectors, points)


def _new_points(n: int, n_models: int) -> Points:
    return Points(np.empty(n, dtype=np.int32), np.empty((n, n_models)), np.empty(n, dtype=np.int32))


def _distinct(points: Points, states: IntArray, weights: FloatArray) -> Points:
    """Each belief once, and those of the start."""
    state = np.concatenate([states.astype(np.int32), points.state])
    weight = np.concatenate([np.repeat(weights[None], len(states), axis=0), points.weight])
    depth = np.concatenate([np.zeros(len(states), dtype=np.int32), points.depth])
    key = np.column_stack([state, np.round(weight, 9)])
    first = np.sort(np.unique(key, axis=0, return_index=True)[1])
    return Points(state[first].copy(), weight[first].copy(), depth[first].copy())


def _note_vectors(
    task: FiniteTask,
    problem: Problem,
    policies: Sequence[TablePolicy],
    vectors: Vectors,
    states: IntArray,
    log: Log,
) -> None:
    """The best vector at each start state, as a bound and the policy that attains it."""
    best = [kernel.best_vector(vectors, s, np.array(task.weights)) for s in states]
    value = float(task.start[states] @ [v for v, _ in best])
    asked = np.array([vectors.number[s, i] for s, (_, i) in zip(states, best, strict=True)], dtype=np.int64)
    better = log.lower is None or value > log.lower.value
    if not better or (vectors.action[asked] < 0).any():  # a memoryless policy, which the log has
        return
    nodes = vector_nodes(problem, vectors, asked, 0)
    roots = nodes.begin.astype(np.int64)
    controller = controller_of(task, problem, policies, nodes.state, nodes.action, nodes.after, roots)
    method = f"finite-state controller of {len(nodes.state)} nodes, by point-based backups"
    log.add(Bound(value, "lower", method, policy=AdaptivePolicy.of(controller, None)))


def _most_used(vectors: Vectors, points: Points) -> IntArray:
    """`[s,i]`: the vectors that are best at most points, as many for every state (repeated where there are fewer)."""
    n_states = len(vectors.known_count)
    leaves = np.empty((n_states, _LEAVES), dtype=np.int64)
    for s in range(n_states):
        count = int(vectors.known_count[s])
        here = points.weight[points.state == s]
        use = np.zeros(count, dtype=np.int64)
        if len(here):
            use = np.bincount((here @ vectors.known[s, :count].T).argmax(axis=1), minlength=count)
        order = np.argsort(-use, kind="stable")[:_LEAVES]
        leaves[s] = vectors.number[s, order[np.arange(_LEAVES) % len(order)]]
    return leaves


def _with_leaves(problem: Problem, vectors: Vectors, leaves: IntArray) -> FloatArray:
    """Values `[1,m,s,i]` of the policies, then of the vectors at the leaves."""
    own = np.moveaxis(vectors.value[leaves], -1, 0)  # [m,s,i]
    return np.ascontiguousarray(np.concatenate([problem.v[0], own], axis=-1))[None]
