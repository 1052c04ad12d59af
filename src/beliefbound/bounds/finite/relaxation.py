"""Certificates on a belief graph: exact bounds by search, tighter ones by information relaxation.

A `Certifier` holds the belief graph of `kernels.graph.search` for one finite belief.

1. *Search* (`grow`). Nodes are added where the gap at the root comes from; `lower` and `upper` at the root are exact
   bounds at any time.
2. *Information relaxation* (`freeze_values`, then `sample`). With the graph's upper values `W` as penalty and control
   variate, a scenario `U` of uniforms gives two costs with `0 ≤ c⁺(U) ≤ c⁻(U)`: `W(root) − E c⁺ ≥ V*` and
   `W(root) − E c⁻ = value of the graph's policy ≤ V*`. Their means are read off with the confidence bounds of
   `bounds.statistics.betting`, which hold at all sample sizes at once. The interval is on the costs, not on the values:
   what the graph has proven is not sampled again. `E (c⁻ − c⁺)` bounds how far the policy is from Bayes-optimal.

Costs are bounded, as betting demands: `c⁺` is clipped (which only raises the upper bound), and a policy that has lost
more than a stop settles for what is proven where it stands, so `c⁻` is at most the stop plus two gaps; a gap is at
most `min_π max_{m,s} V*_m(s) − V^π_m(s)`.

Scenarios are addresses (`kernels.random`) and are run in blocks, each from the frozen graph. How long these are follows
from how many scenarios are asked for, so the numbers do not depend on the number of threads.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from beliefbound.base.errors import ParameterError
from beliefbound.base.executors.team import ALONE, Team
from beliefbound.base.limits import GRAPH_BYTES
from beliefbound.base.validation import (
    FloatArray,
    IntArray,
    Rng,
    as_flag,
    as_rng,
    check_count,
    check_probability,
    check_threads,
)
from beliefbound.beliefs.finite import FiniteBelief
from beliefbound.bounds.bound import Bound, Kind, Regret
from beliefbound.bounds.finite.pairs import with_pairs
from beliefbound.bounds.finite.pool import policies_of
from beliefbound.bounds.finite.problem import LEAF, allowance_of, problem_of, search_depth
from beliefbound.bounds.statistics.betting import mean_at_least, mean_at_most
from beliefbound.bounds.steps import CALL, Meter, Stepwise, finish
from beliefbound.kernels.graph import crew, growth, ways
from beliefbound.kernels.graph import search as kernel
from beliefbound.kernels.graph.actions import told_at
from beliefbound.kernels.graph.alpha import Vectors, with_scratch
from beliefbound.kernels.graph.cells import Cells, new_corners
from beliefbound.kernels.graph.information_relaxation import ScenarioLimits, run_block
from beliefbound.kernels.graph.nodes import (
    ENTRIES,
    FROZEN_ENTRIES,
    FROZEN_NODES,
    NODES,
    NOTED,
    BeliefMDP,
    Graph,
    for_another_thread,
    new_graph,
)
from beliefbound.kernels.graph.secure import ask, leaves_below
from beliefbound.kernels.random import GOLDEN
from beliefbound.planning.task import FiniteTask
from beliefbound.policy import TablePolicy

Address = npt.NDArray[np.uint64]
_TASKS = 4  # that scenarios are divided into where there are few
BLOCK = 64  # scenarios between two restorations of the graph: what they share they build once, whoever runs them
_CONVERGED = 1e-12  # of the largest value: when sweeps over a graph with cycles end
_MOST_NODES = 1_000_000  # beliefs expanded in one scenario
FEW_NODES, MANY_NODES = 25, 2000  # that bounds let one expand, by what they may take; it is valid with any number
_MOST_SCENARIOS = 100_000_000  # their costs take 2.4 GB
_CLOSED = 1e-10  # of the value: a gap that counts as none
_TINY = 1e-290  # a tolerance above 0 where every value is 0
_LAST = 1000  # nodes at which cells are compared
_MOST_PRODUCTS = 10**8  # of weights, some 0.1 s
_ASK, _TOLD = 0.2, 10.0  # operations, in time, of one model of one vector at a leaf; and of one model besides
SECURED = 0.05  # of the work so far: what asking all vectors may take
_ASKING, _ASKED = 16, 16  # tasks that asking them is divided into; leaves in one at least
_ALLOCATE = 2.0  # operations, in time, for each node that there is space for
_WIDE = (0.02, 0.45)  # of the work, at least and at most: for leaves by all ways that lead to them
_ASTRAY, _STRAIGHT = 0.4, 0.8  # of all nodes are where greedy actions lead: as much work as that, and as little
_TURN = 2e6  # operations of descents between two of these, at least
_LEADING, _BUILT = 0.1, 0.02  # of all leaves that greedy actions lead to, and of all nodes: so many are built at once


def extended(address: Address, *words: int) -> Address:
    """The address of a part of what lies at `address`."""
    return np.concatenate([address, np.array(words, dtype=np.uint64)])


class Costs(NamedTuple):
    """Costs of scenarios, measured downwards from the root's upper value, in the order in which they were run."""

    above: FloatArray  # of the relaxation, where it was run
    below: FloatArray  # of the policy
    between: FloatArray  # the policy's minus the relaxation's, where both were run; never negative
    nodes: IntArray  # expanded by the relaxation, where it was run
    built: IntArray  # by the policy, outside the graph


class Certifier:
    """The belief graph of one finite belief, and what can be proven on it. Internal to `bounds`."""

    def __init__(
        self,
        task: FiniteTask,
        problem: BeliefMDP,
        policies: Sequence[TablePolicy],
        *,
        core_nodes: int = 200_000,
        max_nodes: int = 2000,
        entries: int | None = None,
        vectors: Vectors | None = None,
        paid: float = 0.0,
        begun: bool = True,
    ) -> None:
        """`problem` has leaf values for the task, from below those of `policies`. `vectors`: where they are alpha
        vectors too, which are called by their number, counted from behind the policies. `entries`: weights of
        models that there is space for, by default of all in every node. `paid`: for states that were joined
        (`bounds.finite.joined`). Unless `begun`, `beginning` comes next."""
        self.task, self.problem, self.policies, self.vectors = task, problem, list(policies), vectors
        self.belief, self.start, self.max_nodes = task.belief, task.start, max_nodes
        low, high = task.models.reward_range
        self.span = (high - low) * task.effective_horizon
        self.depth = search_depth(task, len(self.policies))
        self.allowance = allowance_of(self.task, self.problem, paid)
        rows = int((self.problem.first[:, -1] - self.problem.first[:, 0]).max())
        each = 28 * rows + 16 * task.models.n_actions + 120 + 12 * task.models.n_models
        self.core_nodes = int(min(core_nodes, max(64, GRAPH_BYTES // each)))
        extra = int(min(BLOCK * max_nodes, max(4 * max_nodes, GRAPH_BYTES // each)))
        self._capacity = self.core_nodes + extra + task.models.n_states
        self.graph: Graph = new_graph(problem, self._capacity, entries or self._capacity * task.models.n_models)
        self.states = np.flatnonzero(self.start)
        self.weights = self.start[self.states]
        self.roots: IntArray = np.empty(0, dtype=np.int64)
        self._copies: list[Graph] = []  # for threads that sample; so many are of the graph as it is
        self._copied = 0
        self._idle, self.work = 0, 0.0  # walks that built nothing, and operations so far
        self._wide = self._next = 0.0  # of these, by all the ways that lead to leaves; and what that takes once more
        self._share = _WIDE[1]  # of the work, for that
        self._passed: tuple[IntArray, FloatArray] | None = None  # scratch for that: nodes, and how they are reached
        self.tolerance = _TINY
        if begun:
            finish(self.beginning(Meter()))

    def beginning(self, meter: Meter) -> Stepwise[None]:
        """The nodes of the start states, step by step: there may be thousands, with thousands of outcomes each."""
        rows = self.problem.first[self.states, -1] - self.problem.first[self.states, 0]
        each = self.node_work * self.belief.n_models * rows
        meter.add(_ALLOCATE * self._capacity)
        roots = []
        for s, work in zip(self.states, each, strict=True):
            roots.append(self._add_root(int(s)))
            meter.add(float(work))
            if meter.full():
                yield
        self.roots = np.array(roots)
        self.tolerance = max(LEAF * max(abs(self.upper), abs(self.lower)), _TINY)

    def _add_root(self, s: int) -> int:
        """The node of a start state. It is at stage 0, where no outcome leads, so the table need not hold it."""
        problem, graph, weights = self.problem, self.graph, self.belief.weights
        node, entry = int(graph.size[NODES]), int(graph.size[ENTRIES])
        held = np.flatnonzero(weights)
        graph.model[entry : entry + len(held)] = held
        graph.weight[entry : entry + len(held)] = weights[held]
        graph.size[NODES], graph.size[ENTRIES] = node + 1, entry + len(held)
        graph.begin[node + 1] = graph.size[ENTRIES]
        graph.state[node], graph.stage[node], graph.stamp[node] = s, 0, -1
        graph.key[node] = (s + 1) * int(GOLDEN) % 2**64
        graph.upper[node] = np.inf
        graph.lower[node] = (weights @ problem.v[0, :, s]).max(initial=-np.inf)
        kernel.expand(problem, graph, node)
        return node

    @property
    def n_nodes(self) -> int:
        return int(self.graph.size[FROZEN_NODES] or self.graph.size[NODES])

    @property
    def lower(self) -> float:
        return float(self.weights @ self.graph.lower[self.roots])

    @property
    def upper(self) -> float:
        return float(self.weights @ self.graph.upper[self.roots])

    @property
    def proven(self) -> tuple[float, float]:
        """`(lower, upper)`, rounding included."""
        return self.allowance.lower(self.lower), self.allowance.upper(self.upper)

    @property
    def rounding(self) -> float:
        """A gap that counts as none: where the search ends."""
        size = _CLOSED * max(abs(self.lower), abs(self.upper))
        return size + self.allowance(self.lower, "lower") + self.allowance(self.upper, "upper")

    def grow(
        self,
        nodes: int,
        tolerance: float = 0.0,
        *,
        work: float = np.inf,
        forced: int = -1,
        team: Team = ALONE,
    ) -> bool:
        """Search until the graph has `nodes` nodes or the gap is at most `tolerance`, or for `work` operations; false
        when nothing is left to gain or it is full. `forced`: the first action of every walk. `team`: whose threads help
        while they have nothing else to do."""
        nodes, left = min(nodes, self.core_nodes), float(work)
        while self.n_nodes < nodes and self._idle < growth.IDLE and left > 0.0:
            before, idle = self.work, 0 if forced >= 0 else self._idle
            turns = self.problem.merged and forced < 0  # where equal beliefs are one node, ways to a leaf add up
            if turns and self._wide + self._next <= self._share * self.work and self.upper - self.lower > tolerance:
                self._grow_widely(nodes, team)
            due = (self._wide + self._next) / self._share - self.work
            left -= self.work - before
            turn = min(left, max(_TURN, due)) if turns else left
            until = growth.GrowthLimits(
                nodes, turn, self.node_work, float(tolerance), self.depth - 1, int(forced), int(idle)
            )
            idle, done = self._beside(partial(growth.grow, *self._here, self.weights, self.roots, until), team)
            self.work += done
            left -= done
            if forced >= 0:
                return bool(idle < growth.IDLE)
            self._idle = int(idle)
        return self.n_nodes < self.core_nodes and self._idle < growth.IDLE

    def _grow_widely(self, nodes: int, team: Team) -> None:
        """Build the nodes that count most by all ways that lead to them, as long as it takes to find out which.

        How much of the work is for this follows from how many nodes greedy actions still lead to. Where these are few,
        descents have gone astray, and a pass over them is short; where they are most, it takes long, and descents do
        as well.
        """
        problem, graph, n_rows = self.problem, self.graph, self.graph.child.shape[1]
        if self._passed is None:
            self._passed = np.empty(self._capacity, dtype=np.int64), np.empty(self._capacity)
        order, reach = self._passed
        order = order[: ways.followed(problem, graph, self.roots, self.depth, order)]
        n_leaves = ways.spread(problem, graph, self.weights, self.roots, order, reach)
        places, shares = np.empty(n_leaves, dtype=np.int64), np.empty(n_leaves)
        ways.measure_leaves(problem, graph, order, reach, places, shares)
        each = growth.NODE + (growth.ROW + self.node_work * self.belief.n_models) * n_rows
        lasting = max(_BUILT * self.n_nodes, ways.PASSED * len(order) / each)
        most = int(min(_LEADING * n_leaves, lasting, nodes - self.n_nodes - 1)) + 1
        least = np.partition(shares, n_leaves - most)[n_leaves - most] if most < n_leaves else 0.0
        chosen = places[(shares >= least) & (shares > 0.0)][:most]
        done = CALL + self._beside(partial(ways.build, *self._here, chosen, order, self.node_work), team)
        self.work, self._wide, self._next = self.work + done, self._wide + done, done
        astray = (_STRAIGHT - len(order) / self.n_nodes) / (_STRAIGHT - _ASTRAY)
        self._share = max(_WIDE[0], _WIDE[1] * min(1.0, astray))

    @property
    def _here(self) -> tuple[BeliefMDP, Graph]:
        return self.problem, self.graph

    def _beside(self, first: Callable[[crew.Crew], Any], team: Team) -> Any:
        """What a compiled loop finds, while other threads help it."""
        problem, graph, shared = self.problem, self.graph, crew.new_crew()

        def begin() -> Any:
            try:
                return first(shared)
            finally:
                crew.close(shared)

        def helper() -> None:
            if crew.closed(shared):
                return
            growth.help_growing(problem, for_another_thread(graph), shared)

        return team.run([begin, *[helper] * (team.threads - 1)])[0]

    def use(self, problem: BeliefMDP) -> None:
        """From now on, new nodes have leaf values of another problem of the same task; and those where a way ends, if
        it is of a later edition."""
        if problem.cells is not self.problem.cells:
            self.graph = self.graph._replace(corners=new_corners(problem.cells.models.shape[1]))
        self.problem = problem

    def secure(self, vectors: Vectors, team: Team = ALONE) -> float:
        """Ask all of these vectors where the policy of the lower bound leaves the graph; the operations it takes."""
        problem, graph = self.problem, self.graph
        each = work_of_asking(vectors)
        places = np.empty(min(int(SECURED * self.work / each), len(graph.batch.node) * graph.child.shape[1]), np.int64)
        found = leaves_below(problem, graph, self.roots, places)

        def work(begin: int, own: Vectors) -> None:
            ask(problem, graph, own, places[begin : min(begin + block, found)], len(self.policies))

        block = max(_ASKED, -(-found // _ASKING))
        team.map(work, range(0, found, block), [with_scratch(vectors) for _ in range(team.threads)])
        _back_up(problem, graph, graph.batch.node[: graph.batch.size[NOTED]].copy(), np.inf)
        return float(found * each)

    def together(self) -> FloatArray:
        """`[m,n]`: the mean product of the weights of two models at the nodes that were built last."""
        n_models, end = self.belief.n_models, self.n_nodes
        begin = max(0, end - min(_LAST, max(1, _MOST_PRODUCTS // n_models**2)))
        products = np.zeros((n_models, n_models))
        kernel.add_products(self.graph, begin, end, products)
        return products / (end - begin)

    def told(self, cells: Cells) -> float:
        """The mean upper value by cells of models at the nodes that were built last."""
        begin, end = max(0, self.n_nodes - _LAST), self.n_nodes
        graph = self.graph._replace(corners=new_corners(cells.models.shape[1]))
        return float(told_at(self.problem._replace(cells=cells), graph, begin, end)) / (end - begin)

    @property
    def node_work(self) -> float:
        """Operations for one model and one outcome row that is given leaf values."""
        problem = self.problem
        n_actions, (n_cells, k) = problem.available.shape[1], problem.cells.models.shape
        below = 2.0 + 0.4 * problem.v.shape[3]
        if n_cells > 0:
            return float(below + 1.2 * (n_actions + 8.0 + k))
        return float(below + 2.0 * n_actions + len(problem.partner) * (n_actions + 6.0))

    def make_consistent(self) -> None:
        """Make all values of the graph consistent."""
        make_consistent(self.problem, self.graph)
        self._idle = 0

    def freeze_values(self) -> None:
        """Freeze the graph's values; searching may go on after `reopen`."""
        freeze_values(self.problem, self.graph)
        self._copied = 0

    def reopen(self) -> None:
        """Let the graph grow again."""
        self.graph.size[FROZEN_NODES:] = 0
        self._idle = 0

    def widest(self) -> float:
        """The largest gap any belief can have: `min_π max_{m,s} V*_m(s) − V^π_m(s)`, over all stages."""
        v, q = self.problem.v, self.problem.q
        best = np.where(self.problem.available, q, -np.inf).max(axis=-1, keepdims=True)
        gaps: FloatArray = (best - v).max(axis=(1, 2))
        return float(max(0.0, gaps.min(axis=-1).max()))

    def sample(
        self,
        address: Address,
        first: int,
        count: int,
        *,
        clip: float,
        stop: float,
        team: Team = ALONE,
        relax: bool = True,
    ) -> Costs:
        """Scenarios `first … first + count`, which are multiples of the block size; the policy alone if not `relax`."""
        costs, nodes = np.zeros((count, 2)), np.zeros((count, 2), dtype=np.int64)
        block = BLOCK if count >= _TASKS * BLOCK else max(1, count // _TASKS)
        workers = min(team.threads, max(1, count // block))
        while self._copied < workers - 1:
            spare = self._copies[self._copied] if self._copied < len(self._copies) else None
            self._copies[self._copied : self._copied + 1] = [self.copy(spare)]
            self._copied += 1
        graphs = [self.graph, *self._copies[: workers - 1]]

        ends = ScenarioLimits(self.depth, self.tolerance, self.max_nodes if relax else 0, float(clip), float(stop))

        def work(begin: int, graph: Graph) -> None:
            own = slice(begin, begin + block)
            run_block(
                self.problem, graph, self.weights, self.roots, ends, address, first + begin, costs[own], nodes[own]
            )

        team.map(work, range(0, count, block), graphs)
        both = costs[: count if relax else 0]
        return Costs(both[:, 0], costs[:, 1], both[:, 1] - both[:, 0], nodes[: len(both), 0], nodes[:, 1])

    def copy(self, copy: Graph | None = None) -> Graph:
        """The frozen graph, apart from this one; written over an earlier copy, where there is one."""
        copy = new_graph(self.problem, self._capacity, len(self.graph.weight)) if copy is None else copy
        for name, part in _frozen_parts(self.graph).items():
            getattr(copy, name)[: len(part)] = part
        return copy

    def __getstate__(self) -> dict[str, Any]:
        """To be sent to a worker, a frozen graph is as large as what it holds."""
        parts = _frozen_parts(self.graph)
        filled = np.flatnonzero(parts["table"])
        parts["table"] = np.stack([filled, parts["table"][filled]])
        return {**self.__dict__, "graph": (len(self.graph.weight), parts), "_copies": [], "_copied": 0}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        entries, parts = state["graph"]
        self.graph = new_graph(self.problem, self._capacity, entries)
        filled, numbers = parts.pop("table")
        self.graph.table[filled] = numbers
        for name, part in parts.items():
            getattr(self.graph, name)[: len(part)] = part


def _frozen_parts(graph: Graph) -> dict[str, Any]:
    """What a frozen graph holds, by the names of its arrays, scratch left out."""
    n, entries = int(graph.size[FROZEN_NODES]), int(graph.size[FROZEN_ENTRIES])
    whole = {"size": len(graph.size), "table": len(graph.table), "model": entries, "weight": entries, "begin": n + 1}
    scratch = ("slots", "links", "sums", "parts", "mass", "told", "corners", "batch")
    return {name: getattr(graph, name)[: whole.get(name, n)] for name in Graph._fields if name not in scratch}


def certifier_of(
    task: FiniteTask,
    *,
    policies: Sequence[TablePolicy] | None = None,
    core_nodes: int = 200_000,
    max_nodes: int = 2000,
    mix: float = 0.6,
    pairs: bool = True,
) -> Certifier:
    """A graph of a task with leaf values of its own: from below those of `policies`, by default of the pool, from above
    by pairs of models, or else by QMDP."""
    own = policies_of(task) if policies is None else list(policies)
    problem = problem_of(task, stages=search_depth(task, len(own)), policies=own, mix=mix)
    problem = with_pairs(problem, task) if pairs else problem
    return Certifier(task, problem, own, core_nodes=core_nodes, max_nodes=max_nodes)


def work_of_asking(vectors: Vectors) -> float:
    """Operations of asking all vectors at a leaf."""
    return float(vectors.known.shape[1] * (_ASK * float(vectors.known_count.mean()) + _TOLD))


def make_consistent(problem: BeliefMDP, graph: Graph) -> None:
    """Make the values of a graph consistent."""
    n = int(graph.size[NODES])
    order = np.arange(n)[::-1].copy() if problem.merged else np.argsort(-graph.stage[:n], kind="stable")
    _back_up(problem, graph, order, _CONVERGED * float(np.abs(graph.upper[:n]).max()))


def _back_up(problem: BeliefMDP, graph: Graph, order: IntArray, tolerance: float) -> None:
    kernel.make_consistent(problem, graph, order, np.zeros(graph.size[NODES], dtype=np.uint8), tolerance)


def freeze_values(problem: BeliefMDP, graph: Graph) -> None:
    """Make the values of a graph consistent, and freeze them."""
    make_consistent(problem, graph)
    kernel.freeze_values(problem, graph)


class Relaxed(NamedTuple):
    """`lower` and `upper` bound the Bayes-optimal value; `regret` bounds how far the adaptive policy is from it. Each
    holds with the error split between them, so all three hold together with the confidence asked for."""

    lower: Bound
    upper: Bound
    regret: Regret


def read_costs(certifier: Certifier, costs: Costs, pilot: Costs, *, alpha: float, clip: float, stop: float) -> Relaxed:
    """The three bounds from scenarios of a frozen certifier; together they fail with probability at most `alpha`."""
    top = certifier.upper
    off = certifier.allowance(top, "upper") + certifier.allowance(top, "lower")
    ceiling = stop + 2.0 * certifier.widest() + 2.0 * certifier.tolerance
    each = alpha / 3.0
    low = mean_at_most(costs.below, low=0.0, high=ceiling, alpha=each, pilot=pilot.below)
    high = mean_at_least(costs.above, low=0.0, high=clip, alpha=each, pilot=pilot.above)
    regret = mean_at_most(costs.between, low=0.0, high=ceiling, alpha=each, pilot=pilot.between)

    def proof(name: str, n: int, estimate: float) -> dict[str, Any]:
        method = f"{name}, {n} scenarios on a graph of {certifier.n_nodes} beliefs; betting interval"
        return {"method": method, "exact": False, "confidence": 1.0 - each, "estimate": estimate, "n_samples": n}

    n, n_above, kind, known = len(costs.below), len(costs.above), Kind.SCENARIOS, top - float(costs.above.mean())
    return Relaxed(
        Bound(top - low - off, "lower", kind=kind, **proof("adaptive policy", n, top - float(costs.below.mean()))),
        Bound(top - high + off, "upper", kind=kind, **proof("information relaxation", n_above, known)),
        Regret(regret, **proof("gap of the adaptive policy", n_above, float(costs.between.mean()))),
    )


def limits(certifier: Certifier, pilot: Costs) -> tuple[float, float]:
    """`(clip, stop)` chosen on pilot scenarios: far enough out to be met almost never."""
    reach = 4.0 * float(pilot.below.max(initial=0.0)) + certifier.tolerance
    clip = max(2.0 * float(pilot.above.max(initial=0.0)), certifier.tolerance)
    return clip, min(reach, certifier.span) or certifier.tolerance


def relaxation(
    belief: FiniteBelief,
    *,
    discount: float,
    horizon: int | None = None,
    initial: FloatArray | int | None = None,
    nodes: int = 1000,
    max_nodes: int = 2000,
    scenarios: int = 4096,
    pairs: bool = True,
    confidence: float = 0.95,
    rng: Rng = None,
    threads: int | None = None,
) -> Relaxed:
    """Information-relaxation upper bound and adaptive-policy lower bound of a finite belief, on common scenarios.

    Args:
      nodes: beliefs in the graph whose values serve as penalty and control variate; 1 is a look-ahead of one step.
      pairs: leaf values of the graph from above by pairs of models (`pair_bound`); else QMDP.
      max_nodes: cap on beliefs expanded in one scenario; a capped scenario is still valid.
      scenarios: number of scenarios, rounded up to a multiple of 64; as many blocks again of 64 as a pilot.
      confidence: with which all three bounds hold together.
      rng: a generator, a seed, or `None` for fresh randomness.
      threads: default: the cores this process may use; changes no bound.

    >>> belief = FiniteBelief([[[[1.0]]], [[[1.0]]]], [[[1.0]], [[2.0]]], reward_signal="unobserved")
    >>> bounds = relaxation(belief, discount=0.5, scenarios=64, rng=0)
    >>> round(bounds.upper.value - bounds.lower.value, 2)
    0.0
    """
    alpha = 1.0 - check_probability(confidence, "confidence")
    source, threads = as_rng(rng), check_threads(threads)
    pairs, max_nodes = as_flag(pairs, "pairs"), check_count(max_nodes, "max_nodes")
    if max_nodes > _MOST_NODES:
        raise ParameterError(f"max_nodes is {max_nodes}; give at most {_MOST_NODES}")
    if check_count(scenarios, "scenarios") > _MOST_SCENARIOS:
        raise ParameterError(f"scenarios is {scenarios}; give at most {_MOST_SCENARIOS}")
    task = FiniteTask.of(belief, discount=discount, horizon=horizon, initial=initial)
    certifier = certifier_of(task, core_nodes=check_count(nodes, "nodes"), max_nodes=max_nodes, pairs=pairs)
    certifier.grow(nodes)
    certifier.freeze_values()
    address = source.integers(0, 2**64, size=4, dtype=np.uint64)
    blocks = -(-check_count(scenarios, "scenarios") // BLOCK)
    with Team(threads) as team:
        pilot = certifier.sample(extended(address, 0), 0, BLOCK, clip=np.inf, stop=np.inf, team=team)
        clip, stop = limits(certifier, pilot)
        costs = certifier.sample(extended(address, 1), 0, blocks * BLOCK, clip=clip, stop=stop, team=team)
    return read_costs(certifier, costs, pilot, alpha=alpha, clip=clip, stop=stop)
