"""A decision graph of at most `N` nodes that people can read, with its exact value on every model.

Several beginnings, and the best end of them (`bounds.finite.local_search` improves, splits and merges nodes):

* *Vectors.* Of all alpha vectors found (`bounds.finite.vector_oracle`) the `N` that serve best the beliefs met when
  they are followed, chosen one after the other; they are linked by what is best on average where each stands. And
  several times as many, merged until `N` are left.
* *A table.* CADP's memoryless policy, one node for each state that it meets.

The value is that of the graph itself, from a linear system a model: what was lost on the way from vectors to few nodes
is lost, and known. Without a horizon only.
"""

from typing import Any

import numpy as np

from beliefbound.base.errors import ParameterError
from beliefbound.base.validation import FloatArray, IntArray, Rng, as_rng, check_count
from beliefbound.beliefs import FiniteBelief
from beliefbound.bounds.finite.controller import Controller
from beliefbound.bounds.finite.decision_graph import DecisionGraph
from beliefbound.bounds.finite.local_search import Nodes, Search, Valued, reachable
from beliefbound.bounds.finite.outcomes import outcomes_of
from beliefbound.bounds.finite.pool import cadp_of
from beliefbound.bounds.finite.vector_oracle import VectorOracle
from beliefbound.kernels.graph.controller import COMMIT, IMPOSSIBLE
from beliefbound.planning.task import FiniteTask

_ROUNDS = (128, 256, 512, 1024, 2048)  # beliefs backed up for the vectors
_FOLLOWED = 2048  # beliefs met when they are followed
_MOST = 200  # nodes: more is not small
_LARGE, _TIMES = 40, 3  # nodes, and times those asked for, of the graph that is merged down


def small_controller(
    belief: FiniteBelief,
    *,
    nodes: int,
    discount: float,
    initial: FloatArray | int | None = None,
    rng: Rng = None,
) -> DecisionGraph:
    """The best decision graph found of at most `nodes` nodes.

    Args:
      belief: finite, with rewards that show one of finitely many values.
      nodes: at least one for every state that is met; at most 200.
      discount, initial: of the problem, which has no horizon.
      rng: a generator, a seed, or `None` for fresh randomness; nothing depends on the clock.

    >>> stay, rewards = [[[[1.0], [1.0]]]] * 2, [[[1.0, 0.0]], [[0.0, 3.0]]]
    >>> belief = FiniteBelief(stay, rewards, reward_signal="deterministic")
    >>> graph = small_controller(belief, nodes=2, discount=0.5, rng=0)
    >>> graph.value  # the second arm; if it pays 3 again, if it pays 0 the first from then on
    3.5
    """
    return small_controller_of(FiniteTask.of(belief, discount=discount, initial=initial), nodes=nodes, rng=rng)


def small_controller_of(task: FiniteTask, *, nodes: int, rng: Rng = None) -> DecisionGraph:
    """The same for a task."""
    most = check_count(nodes, "nodes")
    if most > _MOST:
        raise ParameterError(f"nodes is {most}; a small controller has at most {_MOST}")
    if task.horizon is not None:
        raise ParameterError("a decision graph of few nodes is for problems without a horizon; leave one of them out")
    if not task.belief.signal.finite:
        raise ParameterError("rewards are continuous: a decision graph cannot look them up")
    source, search = as_rng(rng), Search(task, outcomes_of(task))
    many = min(_MOST, max(_LARGE, _TIMES * most))
    oracle = _prepared(task, source)
    beginnings = [_table(search), _vectors(search, oracle, many), _vectors(search, oracle, most)]
    ends = [search.grow(search.shrink(search.value(begun), most), most) for begun in beginnings if begun]
    few = min(len(end.nodes.state) for end in ends)
    if few > most:
        raise ParameterError(
            f"nodes is {most}, but the policy meets {few} states and needs a node in each; give at least {few}"
        )
    best = max((end for end in ends if len(end.nodes.state) <= most), key=lambda end: end.value)
    best = reachable(search.shake(best, most, source))
    return DecisionGraph.of(task, controller_from(task, search, best), best.values, best.visits)


def controller_from(task: FiniteTask, search: Search, found: Valued) -> Controller:
    """The nodes as a controller; after outcomes of other actions than its own it follows CADP's table."""
    like, arrive, first, seen = search.outcomes
    rows = (first[:, -1] - first[:, 0])[found.nodes.state]
    inside = np.arange(found.nodes.after.shape[1]) < rows[:, None]
    after = np.where(found.nodes.after >= 0, found.nodes.after, np.where(inside, COMMIT, IMPOSSIBLE))
    return Controller(
        found.nodes.state,
        found.nodes.action.astype(np.int32),
        after.astype(np.int32),
        found.roots,
        first,
        arrive,
        seen,
        task.models.available,
        np.atleast_2d(cadp_of(task).policy.actions),
        np.array([0, 1]),
        None,
    )


def _table(search: Search) -> Nodes:
    """CADP's policy: one node for each state that it can meet."""
    actions, (_, arrive, first, _) = cadp_of(search.task).policy.actions, search.outcomes
    met = [int(s) for s in search.starts]
    for s in met:
        for t in arrive[first[s, actions[s]] : first[s, actions[s] + 1]].tolist():
            if t not in met:
                met.append(t)
    place = {s: i for i, s in enumerate(met)}
    after = np.full((len(met), int((first[:, -1] - first[:, 0]).max())), -1)
    for s, i in place.items():
        for k in range(first[s, actions[s]], first[s, actions[s] + 1]):
            after[i, k - first[s, 0]] = place[int(arrive[k])]
    return Nodes(np.array(met), np.array([int(actions[s]) for s in met]), after)


def _prepared(task: FiniteTask, rng: np.random.Generator) -> VectorOracle:
    """Vectors that are good at the belief."""
    oracle = VectorOracle(task, rng)
    for count in _ROUNDS:
        if oracle.full or oracle.improve(task.weights, count) == 0.0:
            break
    return oracle


def _vectors(search: Search, oracle: VectorOracle, most: int) -> Nodes | None:
    """A few vectors, linked; `None` where they would have to cover more states than there may be nodes."""
    task = search.task
    points = oracle.follow(task.weights, _FOLLOWED)
    weights = task.discount ** points.depth.astype(np.float64)
    here = [np.flatnonzero(points.state == s) for s in range(task.models.n_states)]
    if sum(len(own) > 0 for own in here) > most:
        return None
    known = [_candidates(oracle, s, points.weight[own]) for s, own in enumerate(here)]
    chosen = _serve(
        [points.weight[own] @ value.T for own, (_, value) in zip(here, known, strict=True)],
        [weights[own] for own in here],
        most,
    )
    state = np.array([s for s, _ in chosen])
    value = np.array([known[s][1][i] for s, i in chosen])
    first_actions = np.array([oracle.first_action(int(known[s][0][i]), s) for s, i in chosen])
    total = np.zeros((len(chosen), task.models.n_models))  # the beliefs that each vector serves
    for s, own in enumerate(here):
        mine = np.flatnonzero(state == s)
        if len(own):
            served = mine[np.argmax(points.weight[own] @ value[mine].T, axis=1)]
            np.add.at(total, served, weights[own, None] * points.weight[own])
    like, arrive, first, _ = search.outcomes
    after = np.full((len(chosen), int((first[:, -1] - first[:, 0]).max())), -1)
    for x, (s, a) in enumerate(zip(state, first_actions, strict=True)):
        for k in range(first[s, a], first[s, a + 1]):
            there = np.flatnonzero(state == arrive[k])
            if not len(there):
                return None
            after[x, k - first[s, 0]] = there[int(np.argmax(value[there] @ (total[x] * like[:, k])))]
    return Nodes(state, first_actions, after)


def _candidates(oracle: VectorOracle, s: int, beliefs: FloatArray) -> tuple[IntArray, FloatArray]:
    """Numbers and values of the vectors of a state that are best at some belief, and of all memoryless policies."""
    numbers, values = oracle.known(s)
    best = np.argmax(beliefs @ values.T, axis=1) if len(beliefs) else np.empty(0, dtype=np.int64)
    kept = np.union1d(best, np.arange(len(oracle.policies)))
    return numbers[kept], values[kept]


def _serve(values: list[Any], weights: list[FloatArray], most: int) -> list[tuple[int, int]]:
    """`(state, vector)` chosen one after the other, each the one that adds most to `Σ weight · best value`; one for
    each state that has beliefs comes first. `values[s][point, vector]`."""
    chosen: list[tuple[int, int]] = []
    best: list[Any] = [None] * len(values)
    for s, table in enumerate(values):
        if len(table):
            i = int(np.argmax(weights[s] @ table))
            chosen.append((s, i))
            best[s] = table[:, i]
    while len(chosen) < most:
        gains: list[tuple[float, int, int]] = []
        for s, table in enumerate(values):
            if len(table):
                gain: IntArray = weights[s] @ np.maximum(table - best[s][:, None], 0.0)
                gains.append((float(gain.max()), -s, -int(np.argmax(gain))))
        gain_, s, i = max(gains)
        if gain_ <= 0.0:
            break
        chosen.append((-s, -i))
        best[-s] = np.maximum(best[-s], values[-s][:, -i])
    return chosen
