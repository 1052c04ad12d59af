"""A certified policy as frozen data, apart from the search that found it.

`Controller`: what the policy does that looks ahead for the lower value alone (`kernels.graph.controller`). A node is a
belief; it has one action, and each outcome leads to a node or to a policy of the pool, for ever. `Lookahead`: what a
policy needs besides that looks ahead between lower and upper values, inside the graph and beyond it.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from beliefbound.bounds.finite.outcomes import outcome_rows
from beliefbound.bounds.finite.relaxation import Certifier, settle
from beliefbound.errors import ObservationError
from beliefbound.kernels.graph.controller import compile_controller, fill_table, join
from beliefbound.kernels.graph.nodes import Graph, Problem, new_graph
from beliefbound.kernels.graph.search import make_child
from beliefbound.validation import BoolArray, FloatArray, IntArray

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
        begin, end = int(self.first[s, a]), int(self.first[s, a + 1])
        rows = begin + np.flatnonzero(self.arrive[begin:end] == t)
        if len(rows) and not np.isnan(self.seen[rows[0]]):
            if reward is None:
                raise ObservationError("the transition has no reward, but the belief learns from rewards")
            rows = rows[np.argsort(np.abs(self.seen[rows] - reward), kind="stable")[:1]]
            rows = rows[np.isclose(self.seen[rows], reward, rtol=1e-9, atol=1e-12)]
        if not len(rows):
            raise ObservationError(
                f"state {s}, action {a}, reward {reward}, next state {t} is impossible in every model"
            )
        return int(rows[0] - self.first[s, 0])

    def follow(self, policy: int, stage: int, s: int) -> int:
        """The action of a policy of the pool."""
        first, last = int(self.pool_first[policy]), int(self.pool_first[policy + 1]) - 1
        return int(self.pool[min(first + stage, last), s])


class Lookahead(NamedTuple):
    """The problem, the frozen graph (the fields `KEPT` and its table), and when to look ahead no more."""

    problem: Problem
    graph: Graph
    powers: FloatArray  # [stage]: γ^k up to the depth
    tolerance: float
    stop: float


def freeze(certifier: Certifier, stop: float) -> tuple[Controller, Lookahead | None]:
    """What a certifier's policy is now, apart from the search, which may go on; it looks ahead unless `stop` is below
    0."""
    opened = certifier.graph.size[2] == 0
    if opened:
        settle(certifier.problem, certifier.graph)
    controller = _controller(certifier)
    lookahead = None if stop < 0.0 else _lookahead(certifier, stop)
    if opened:
        certifier.reopen()
    return controller, lookahead


def _controller(certifier: Certifier) -> Controller:
    problem, graph = certifier.problem, certifier.graph
    n = int(graph.size[2])
    action, after = np.empty(n, dtype=np.int32), np.empty((n, graph.child.shape[1]), dtype=np.int32)
    compile_controller(problem, graph, 0, n, action, after)
    tables = [np.atleast_2d(policy.actions) for policy in certifier.policies]
    return Controller(
        graph.state[:n].copy(),
        action,
        after,
        np.array(certifier.roots, dtype=np.int64),
        problem.first,
        problem.arrive,
        outcome_rows(certifier.belief).reward,
        problem.available,
        np.concatenate(tables),
        np.cumsum([0] + [len(table) for table in tables]),
        certifier.horizon,
    )


def _lookahead(certifier: Certifier, stop: float) -> Lookahead:
    problem, (n, entries) = certifier.problem, (int(x) for x in certifier.graph.size[2:4])
    ends = {"begin": n + 1, "model": entries, "weight": entries}
    kept = {name: getattr(certifier.graph, name)[: ends.get(name, n)].copy() for name in KEPT}
    rows = (problem.first[:, -1] - problem.first[:, 0])[kept["state"]]
    beyond = np.arange(kept["prob"].shape[1]) >= rows[:, None]
    for name in ("prob", "above", "below"):
        kept[name][beyond] = 0.0  # rows that the state does not have were never written
    powers = np.power(problem.discount, np.arange(certifier.depth + 1))
    return Lookahead(problem, frozen_graph(problem, kept), powers, certifier.tolerance, stop)


class Outside:
    """One belief outside the frozen graph: node `HERE` of a little graph, whose node 0 is the one it came from."""

    HERE = 1

    def __init__(self, problem: Problem) -> None:
        self.graph = new_graph(problem, 2, 2 * len(problem.reward))
        self._action = np.empty(1, dtype=np.int32)
        self._after = np.empty((1, self.graph.child.shape[1]), dtype=np.int32)

    def move(self, problem: Problem, frozen: Graph, source: Graph, node: int, row: int) -> None:
        """To the belief after outcome `row` of a node of `source`, which is the frozen graph or this one."""
        own = self.graph
        begin, end = int(source.begin[node]), int(source.begin[node + 1])
        own.model[: end - begin], own.weight[: end - begin] = source.model[begin:end], source.weight[begin:end]
        for name in ("state", "stage", "key", "prob", "above", "below"):
            getattr(own, name)[0] = getattr(source, name)[node]
        own.child[0], own.table[:], own.begin[1], own.size[:] = -1, -1, end - begin, 0
        own.size[:4] = 1, end - begin, 1, end - begin
        make_child(problem, own, 0, row)
        join(problem, frozen, own, self.HERE)

    def secure(self, problem: Problem) -> tuple[int, npt.NDArray[np.int32]]:
        """`(action, after[row])` of the belief, as in a controller."""
        compile_controller(problem, self.graph, self.HERE, self.HERE + 1, self._action, self._after)
        return int(self._action[0]), self._after[0]


def frozen_graph(problem: Problem, kept: dict[str, np.ndarray]) -> Graph:
    """A frozen graph of the nodes in `kept`, without room to grow."""
    n = len(kept["state"])
    table = np.full(1 << max(4, (2 * n).bit_length()), -1, dtype=np.int32)
    graph = new_graph(problem, 1, 0)._replace(table=table, **kept)
    graph.size[0] = graph.size[2] = n
    graph.size[1] = graph.size[3] = len(kept["weight"])
    graph.size[6] = int(kept["stage"].max())
    fill_table(graph)
    return graph
