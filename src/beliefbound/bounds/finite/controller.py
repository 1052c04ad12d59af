"""A certified policy as frozen data, apart from the search that found it.

`Controller`: what the policy does that looks ahead for the lower value alone (`kernels.graph.controller`). A node is a
belief; it has one action, and each outcome leads to a node or to a policy of the pool, for ever. `FrozenSearch`: what a
policy needs besides that looks ahead between lower and upper values, inside the graph and beyond it.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from beliefbound.base.errors import ObservationError
from beliefbound.base.validation import BoolArray, FloatArray, IntArray
from beliefbound.beliefs.amounts import alike
from beliefbound.bounds.finite.joined import told_states
from beliefbound.bounds.finite.outcomes import rows_of
from beliefbound.bounds.finite.relaxation import Certifier, freeze_values
from beliefbound.kernels.graph.alpha import Vectors
from beliefbound.kernels.graph.controller import COMMIT, IMPOSSIBLE, compile_controller, fill_table, join
from beliefbound.kernels.graph.nodes import (
    DEEPEST,
    ENTRIES,
    FROZEN_ENTRIES,
    FROZEN_NODES,
    NODES,
    BeliefMDP,
    Graph,
    new_graph,
)
from beliefbound.kernels.graph.search import make_child
from beliefbound.planning.task import FiniteTask
from beliefbound.policy import TablePolicy

_CHUNK = 1000  # beliefs at which vectors are compared at a time

KEPT = (
    "state",
    "stage",
    "key",
    "begin",
    "model",
    "weight",
    "upper",
    "lower",
    "prob",
    "above",
    "below",
    "loss",
    "action",
)


class Controller(NamedTuple):
    """Nodes, and what an observation and a policy of the pool are. Outcome rows are as in `kernels.graph.nodes`."""

    state: IntArray  # [n]
    action: npt.NDArray[np.int32]  # [n]
    after: npt.NDArray[np.int32]  # [n,row]: a node; −1 where impossible; −2 − i for policy i of the pool
    roots: IntArray  # [start]: nodes of the start states
    first: IntArray  # [s,a+1]
    arrive: IntArray  # [k]
    seen: FloatArray  # [k]: the reward that row k shows, NaN where none is seen
    available: BoolArray  # [s,a]
    pool: IntArray  # [line,s]: actions of the pool's policies, stage by stage
    pool_first: IntArray  # [policy+1]: lines of a policy; one that has a single line is stationary
    horizon: int | None

    def row(self, s: int, a: int, reward: float | None, t: int) -> int:
        """The outcome row of a transition, counted from the first row of `s`."""
        return outcome_row(self.first, self.arrive, self.seen, s, a, reward, t)

    def follow(self, policy: int, stage: int, s: int) -> int:
        """The action of a policy of the pool."""
        first, last = int(self.pool_first[policy]), int(self.pool_first[policy + 1]) - 1
        return int(self.pool[min(first + stage, last), s])


def outcome_row(
    first: IntArray, arrive: IntArray, seen: FloatArray, s: int, a: int, reward: float | None, t: int
) -> int:
    """The outcome row of a transition, counted from the first row of `s`; an error where no model allows it."""
    begin, end = int(first[s, a]), int(first[s, a + 1])
    rows = begin + np.flatnonzero(arrive[begin:end] == t)
    if len(rows) and not np.isnan(seen[rows[0]]):
        if reward is None:
            raise ObservationError("the transition has no reward, but the belief learns from rewards")
        rows = rows[np.argsort(np.abs(seen[rows] - reward), kind="stable")[:1]]
        rows = rows[(seen[rows] == reward) | alike(seen[rows], reward, seen)]
    if not len(rows):
        raise ObservationError(f"state {s}, action {a}, reward {reward}, next state {t} is impossible in every model")
    return int(rows[0] - first[s, 0])


class FrozenSearch(NamedTuple):
    """The problem, the frozen graph (the fields `KEPT` and its table), and when to look ahead no more."""

    problem: BeliefMDP
    graph: Graph
    powers: FloatArray  # [stage]: γ^k up to the depth
    tolerance: float
    stop: float


def freeze(certifier: Certifier, stop: float) -> tuple[Controller, FrozenSearch | None]:
    """What a certifier's policy is now, apart from the search, which may go on; it looks ahead unless `stop` is below
    0."""
    opened = certifier.graph.size[FROZEN_NODES] == 0
    if opened:
        freeze_values(certifier.problem, certifier.graph)
    controller = _controller(certifier)
    lookahead = None if stop < 0.0 else _lookahead(certifier, stop)
    if opened:
        certifier.reopen()
    return controller, lookahead


def _controller(certifier: Certifier) -> Controller:
    problem, graph = certifier.problem, certifier.graph
    n = int(graph.size[FROZEN_NODES])
    action, after = np.empty(n, dtype=np.int32), np.empty((n, graph.child.shape[1]), dtype=np.int32)
    compile_controller(problem, graph, 0, n, action, after)
    state, roots = graph.state[:n].copy(), np.array(certifier.roots, dtype=np.int64)
    if certifier.vectors is not None:
        x, row = np.argwhere(after <= COMMIT - len(certifier.policies)).T
        asked = (COMMIT - after[x, row] - len(certifier.policies)).astype(np.int64)
        weak, better = _better_vectors(problem, graph, certifier.vectors, action)
        own = vector_nodes(problem, certifier.vectors, np.concatenate([asked, better]), n)
        after[x, row] = own.begin[: len(asked)]
        state, action = np.concatenate([state, own.state]), np.concatenate([action, own.action])
        after = np.concatenate([after, own.after])
        for y, begin in zip(weak, own.begin[len(asked) :], strict=True):
            if begin >= 0:
                action[y], after[y] = action[begin], after[begin]
            else:
                s = int(state[y])
                action[y] = np.atleast_2d(certifier.policies[COMMIT - begin].actions)[0, s]
                after[y, : problem.first[s, -1] - problem.first[s, 0]] = begin
    return controller_of(certifier.task, problem, certifier.policies, state, action, after, roots)


def _better_vectors(
    problem: BeliefMDP, graph: Graph, vectors: Vectors, action: npt.NDArray[np.int32]
) -> tuple[IntArray, IntArray]:
    """`(nodes, vectors)`: nodes that have their lower value from a vector, which looking ahead one step does not reach,
    and the best vector there. (What a vector goes on as need not be among the leaves of the graph.)"""
    n = len(action)
    state, row = graph.state[:n], np.arange(graph.prob.shape[1])
    base = problem.first[state, 0]
    own = (row >= (problem.first[state, action] - base)[:, None]) & (
        row < (problem.first[state, action + 1] - base)[:, None]
    )
    later = np.where(own, graph.prob[:n], 0.0) * np.where(own, graph.below[:n], 0.0)
    ahead = graph.reward[np.arange(n), action] + problem.discount * later.sum(axis=1)
    lower = graph.lower[:n]
    weak = np.flatnonzero(lower > ahead + 1e-12 * np.abs(lower))
    chosen = np.empty(len(weak), dtype=np.int64)
    known = vectors.state[: int(vectors.size[0])]
    for start in range(0, len(weak), _CHUNK):
        nodes = weak[start : start + _CHUNK]
        beliefs = np.zeros((len(nodes), vectors.value.shape[1]))
        for i, x in enumerate(nodes):
            held = slice(int(graph.begin[x]), int(graph.begin[x + 1]))
            beliefs[i, graph.model[held]] = graph.weight[held]
        for s in np.unique(state[nodes]):
            here, numbers = np.flatnonzero(state[nodes] == s), np.flatnonzero(known == s)
            chosen[start + here] = numbers[np.argmax(beliefs[here] @ vectors.value[numbers].T, axis=1)]
    return weak, chosen


class VectorNodes(NamedTuple):
    """Alpha vectors as nodes of a controller."""

    state: IntArray  # [n]
    action: npt.NDArray[np.int32]  # [n]
    after: npt.NDArray[np.int32]  # [n,row]
    begin: npt.NDArray[np.int32]  # [asked]: the node of each vector that was asked for, or the policy it is


def vector_nodes(problem: BeliefMDP, vectors: Vectors, asked: IntArray, first: int) -> VectorNodes:
    """The controllers `asked` and all that they go on as; nodes are numbered from `first`. Outcomes of actions that a
    controller does not take lead to a memoryless policy: nothing is promised there."""
    node = np.zeros(int(vectors.size[0]), dtype=np.int32)
    waiting, kept = list(dict.fromkeys(int(v) for v in asked)), list[int]()
    met = set(waiting)
    while waiting:
        v = waiting.pop()
        if vectors.action[v] < 0:
            node[v] = COMMIT - vectors.policy[v]
            continue
        node[v] = first + len(kept)
        kept.append(v)
        for w in vectors.then[v][vectors.then[v] >= 0]:
            if int(w) not in met:
                met.add(int(w))
                waiting.append(int(w))
    state, action = vectors.state[kept].astype(np.int64), vectors.action[kept]
    then = vectors.then[kept]
    rows = (problem.first[:, -1] - problem.first[:, 0])[state]
    after = np.where(then >= 0, node[then], COMMIT).astype(np.int32)
    after[np.arange(then.shape[1]) >= rows[:, None]] = -1
    return VectorNodes(state, action, after, node[np.asarray(asked, dtype=np.int64)])


def controller_of(
    task: FiniteTask,
    problem: BeliefMDP,
    policies: Sequence[TablePolicy],
    state: IntArray,
    action: npt.NDArray[np.int32],
    after: npt.NDArray[np.int32],
    roots: IntArray,
) -> Controller:
    """A controller from its nodes, with what observations and the policies of the pool are."""
    tables, rows = [np.atleast_2d(policy.actions) for policy in policies], rows_of(task)
    return Controller(
        *told_states(task, problem, state, action, after, roots),
        problem.first,
        rows.arrive,
        rows.reward,
        problem.available,
        np.concatenate(tables),
        np.cumsum([0] + [len(table) for table in tables]),
        task.horizon,
    )


def table_controller(policy: TablePolicy, task: FiniteTask) -> Controller:
    """A deterministic table as a controller: one node per start state, and then the table for ever."""
    _, arrive, first, seen, _ = rows_of(task)
    states = np.flatnonzero(task.start)
    lines = np.atleast_2d(policy.actions)
    rows = first[:, -1] - first[:, 0]
    inside = np.arange(int(rows.max())) < rows[states][:, None]
    return Controller(
        states.astype(np.int64),
        lines[0, states].astype(np.int32),
        np.where(inside, COMMIT, IMPOSSIBLE).astype(np.int32),
        np.arange(len(states)),
        first,
        arrive,
        seen,
        task.models.available,
        lines,
        np.array([0, len(lines)]),
        task.horizon,
    )


def _lookahead(certifier: Certifier, stop: float) -> FrozenSearch:
    problem = certifier.problem
    kept = {name: field.copy() for name, field in kept_fields(certifier.graph).items()}
    rows = (problem.first[:, -1] - problem.first[:, 0])[kept["state"]]
    beyond = np.arange(kept["prob"].shape[1]) >= rows[:, None]
    for name in ("prob", "above", "below"):
        kept[name][beyond] = 0.0  # rows that the state does not have were never written
    powers = np.power(problem.discount, np.arange(certifier.depth + 1))
    return FrozenSearch(problem, frozen_graph(problem, kept), powers, certifier.tolerance, stop)


def kept_fields(graph: Graph) -> dict[str, Any]:
    """What is kept of a frozen graph, as long as what it holds: there may be space for more."""
    n, entries = int(graph.size[FROZEN_NODES]), int(graph.size[FROZEN_ENTRIES])
    ends = {"begin": n + 1, "model": entries, "weight": entries}
    return {name: getattr(graph, name)[: ends.get(name, n)] for name in KEPT}


class Outside:
    """One belief outside the frozen graph: node `HERE` of a little graph, whose node 0 is the one it came from."""

    HERE = 1

    def __init__(self, problem: BeliefMDP) -> None:
        self.graph = new_graph(problem, 2, 2 * len(problem.reward))
        self._action = np.empty(1, dtype=np.int32)
        self._after = np.empty((1, self.graph.child.shape[1]), dtype=np.int32)

    def move(self, problem: BeliefMDP, frozen: Graph, source: Graph, node: int, row: int) -> None:
        """To the belief after outcome `row` of a node of `source`, which is the frozen graph or this one."""
        own = self.graph
        begin, end = int(source.begin[node]), int(source.begin[node + 1])
        own.model[: end - begin], own.weight[: end - begin] = source.model[begin:end], source.weight[begin:end]
        for name in ("state", "stage", "key", "prob", "above", "below"):
            getattr(own, name)[0] = getattr(source, name)[node]
        own.child[0], own.table[:], own.begin[1], own.size[:] = -1, 0, end - begin, 0
        own.size[NODES] = own.size[FROZEN_NODES] = 1
        own.size[ENTRIES] = own.size[FROZEN_ENTRIES] = end - begin
        make_child(problem, own, 0, row)
        join(problem, frozen, own, self.HERE)

    def secure(self, problem: BeliefMDP) -> tuple[int, npt.NDArray[np.int32]]:
        """`(action, after[row])` of the belief, as in a controller."""
        compile_controller(problem, self.graph, self.HERE, self.HERE + 1, self._action, self._after)
        return int(self._action[0]), self._after[0]


def frozen_graph(problem: BeliefMDP, kept: dict[str, Any]) -> Graph:
    """A frozen graph of the nodes in `kept`."""
    n = len(kept["state"])
    table = np.zeros(1 << max(4, (2 * n).bit_length()), dtype=np.int32)
    graph = new_graph(problem, n, len(kept["weight"]))._replace(table=table)
    for name, field in kept.items():
        getattr(graph, name)[: len(field)] = field
    graph.size[NODES] = graph.size[FROZEN_NODES] = n
    graph.size[ENTRIES] = graph.size[FROZEN_ENTRIES] = len(kept["weight"])
    graph.size[DEEPEST] = int(kept["stage"].max())
    fill_table(graph)
    return graph
