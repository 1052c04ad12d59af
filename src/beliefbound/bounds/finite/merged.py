"""Exact bounds of a finite belief without a horizon: alpha vectors from below, cells of models from above, and a search
in the graph of beliefs in which equal beliefs are one node (`kernels.graph.search`).

Nothing here is sampled. States that differ only by what is paid on leaving them are one (`bounds.finite.joined`). Three
strands go on side by side (`bounds.strands`), each with a share of the work:

1. *Vectors.* Rounds of point-based backups (`kernels.graph.alpha`), each with twice as many beliefs, met on
   trajectories that act on what is known so far. The best vector at the start is a policy and its exact value.
2. *Cells* (`bounds.finite.cells`): the agent is told which few models hold the true one. Several sizes are tried as
   work grows, and the one kept that is lowest at the beliefs which the search has built last.
3. *Search*, with the vectors that are used most and the best cells as leaf values of the nodes that it adds from then
   on; and with all vectors where the policy of its lower bound leaves the graph (`kernels.graph.secure`). A node keeps
   the vector whose value it has, so the policy of the lower bound is a finite-state controller: it ends in vectors,
   which are controllers themselves.

Vectors and cells need nothing of the graph; what they give it they give when a round ends.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from beliefbound.base.executors.team import Team
from beliefbound.base.validation import FloatArray, IntArray
from beliefbound.bounds.bound import Bound, Kind
from beliefbound.bounds.finite.adaptive import AdaptivePolicy
from beliefbound.bounds.finite.backups import PointBackups, new_points
from beliefbound.bounds.finite.cells import Size, cell_steps, sizes
from beliefbound.bounds.finite.controller import Controller, controller_of, vector_nodes
from beliefbound.bounds.finite.first_actions import action_bounds, grow
from beliefbound.bounds.finite.joined import join_states
from beliefbound.bounds.finite.pairs import gain_steps
from beliefbound.bounds.finite.problem import allowance_of, pool_numbers, scale_of
from beliefbound.bounds.finite.relaxation import Address, Certifier
from beliefbound.bounds.record import Record
from beliefbound.bounds.steps import CALL, Steps
from beliefbound.bounds.strands import Parts, Strand, done_of
from beliefbound.kernels.graph.alpha import Points, Vectors, copied
from beliefbound.kernels.graph.cells import Cells
from beliefbound.kernels.graph.nodes import BeliefMDP
from beliefbound.kernels.random import seed_stream
from beliefbound.planning.task import FiniteTask
from beliefbound.policy import TablePolicy

_FIRST_POINTS, _MOST_POINTS = 128, 4096  # beliefs backed up in the first round and in the last
_CAPACITY = 20_000  # vectors
_NODES = 2_000_000  # beliefs in the graph
_GAIN = 1e-5  # of the scale of values: what a new vector must add
_LEAVES = 48  # vectors of a state at the leaves of the graph: each costs a look at every node
_VECTORS = 0.2  # share of the work
_VECTORS_NOW = (0.1, 0.6)  # of a round: where they lag behind it, or are ahead of it
_CELLS = 0.4  # what all cells together may take, as a share of the work so far
_CELLS_NOW = 0.5  # of a round, while some are solved
_CONSISTENT_EVERY = 2.0  # times the work, and values are made consistent again
_SECURE_EVERY = 1.25  # times the work, and all vectors are asked where the policy of the lower bound leaves the graph
_LAGGED = 0.999  # of the gap: less, and it has fallen
_SAME_UP_TO = 1e9  # beliefs are one where their weights times this are, to the next whole number
_ALLOCATE = 10.0  # operations, in time, of a number in a new array


class MergedSearch:
    """The search among distinct beliefs. `problem` has pairs solved and the values of `policies`; `losses` are those
    of pairs, where they are known."""

    def __init__(
        self,
        task: FiniteTask,
        problem: BeliefMDP,
        policies: Sequence[TablePolicy],
        address: Address,
        record: Record,
        team: Team,
        *,
        losses: FloatArray | None = None,
    ) -> None:
        joined = join_states(problem, policies)
        self.task, self.policies, self.record, self.team = task, joined.policies, record, team
        self.problem, self._first, self._losses = joined.problem._replace(merged=True), joined.problem.v, losses
        self.allowance, self._paid = allowance_of(task, problem, joined.paid), joined.paid
        gain = _GAIN * scale_of(problem, task.weights, task.start, task.largest_value)
        self.backups = PointBackups(
            task, self.problem, self.policies, seed_stream(address), capacity=_CAPACITY, gain=gain
        )
        self.vectors = self.backups.vectors
        self.certifier: Certifier | None = None
        self.closed = False
        self._points, self._more_vectors = _FIRST_POINTS, True
        self._sizes: list[Size] | None = None
        self._secured, self._asked = 0.0, list[Vectors]()
        self._searching, self._telling, self._backing_up = Strand(), Strand(), Strand(self._back_up())
        self._backing_up.add(joined.work + _ALLOCATE * (self.vectors.then.size + problem.v.size))

    @property
    def width(self) -> float:
        """Between what it has proven itself."""
        return np.inf if self.certifier is None else self.certifier.upper - self.certifier.lower

    @property
    def done(self) -> float:
        """Operations so far."""
        return done_of([self._searching, self._telling, self._backing_up])

    @property
    def ended(self) -> bool:
        """Whether the bracket is closed, or nothing more is to be had."""
        return self.closed or not (self._searching.live or self._backing_up.live)

    def parts(self, work: float) -> Parts:
        """What its strands do of the next `work` operations."""
        done, search = self.done, self._searching
        if not search.live:
            return [(self._backing_up, work)]
        if not self._telling.live and (size := self._larger()) is not None:
            likely = 1.0 if self.certifier is None else self.certifier.together()
            self._telling.begin(self._tell_cells(size, likely))
        if search.done > _SECURE_EVERY * self._secured:
            self._secured, self._asked = search.done, [copied(self.vectors)]
        told = _CELLS_NOW * work if self._telling.live else 0.0
        backed = 0.0
        if self._backing_up.live:
            behind = _VECTORS * (done + work) - self._backing_up.done
            backed = float(np.clip(behind, _VECTORS_NOW[0] * work, _VECTORS_NOW[1] * (work - told)))
        parts = [(self._backing_up, backed), (search, work - told - backed), (self._telling, told)]
        return [(strand, operations) for strand, operations in parts if operations > 0.0]

    def end(self) -> None:
        """Nothing more is done."""
        for strand in (self._searching, self._telling, self._backing_up):
            strand.end()

    def _larger(self) -> Size | None:
        """The cells of most work that there is time for by now; those of less are not solved any more."""
        n_models = self.task.models.n_models
        if self._sizes is None:
            self._sizes = sizes(self.problem, n_models, self.task.start) if n_models > 1 else []
        most = _CELLS * self.done - self._telling.done
        affordable = [size for size in self._sizes if size.work <= most]
        self._sizes = self._sizes[len(affordable) :]
        return affordable[-1] if affordable else None

    def _search(self) -> Steps:
        """Search until the bracket is closed, or nothing is left to gain."""
        strand = self._searching
        knobs: dict[str, Any] = {"core_nodes": _NODES, "max_nodes": 1, "vectors": self.vectors, "begun": False}
        knobs["paid"] = self._paid
        certifier = Certifier(self.task, self.problem, self.policies, **knobs)
        yield from certifier.beginning(strand)
        certifier.use(self.problem)
        self.certifier = certifier
        growing, consistent = True, 0.0
        while growing and not self.closed:
            # What one thread does alone comes first, while others have vectors and cells to do. Growth, at which they
            # can help, has its part of the round for itself.
            work, before, width = strand.left, certifier.work, self.width
            while self._asked:
                strand.add(certifier.secure(self._asked.pop(), self.team))
            if certifier.work > _CONSISTENT_EVERY * consistent:
                consistent = certifier.work
                self.make_consistent()
            growing = grow(certifier, self.record, certifier.rounding, work, self.team)
            strand.add(CALL + certifier.work - before)
            if not growing:
                self.make_consistent()
                # A graph with circles may have had nothing left to build only because values lagged behind.
                growing = certifier.n_nodes < certifier.core_nodes and self.width < _LAGGED * width
            self.closed = self.width <= certifier.rounding
            if strand.full() or not growing or self.closed:
                strand.find(self.note)
                yield

    def make_consistent(self) -> None:
        """Make all values of the graph consistent."""
        assert self.certifier is not None
        self.certifier.make_consistent()
        rows = self.certifier.graph.child.shape[1]
        self._searching.add(20.0 * self.certifier.n_nodes * rows)

    def note(self) -> None:
        """Record the bounds that the search has proven so far, where they are better than what there was."""
        assert self.certifier is not None
        note_ends(self.certifier, Kind.DISTINCT_BELIEFS, self.record)

    def _replace(self, **changed: Any) -> None:
        """From now on, other leaf values."""
        self.problem = self.problem._replace(**changed)
        self.backups.use(self.problem)
        if self.certifier is not None:
            self.certifier.use(self.problem)

    def _tell_cells(self, size: Size, likely: FloatArray | float) -> Steps:
        """Solve cells of one size, which are used from now on if they are lower where the search is. Larger ones tell
        less, and finer grids are read more closely; which counts more is different from problem to problem. `likely`:
        how likely two models are together where the search is."""
        strand, task = self._telling, self.task
        if self._losses is None:
            self._losses = yield from gain_steps(self.problem, task, strand)
        weights, start = np.array(task.weights), np.array(task.start)
        losses = self._losses * likely
        cells, value = yield from cell_steps(self.problem, losses, weights, start, size, strand, self.team)
        strand.find(partial(self._use_cells, cells, value))

    def _use_cells(self, cells: Cells, value: float) -> None:
        told = f"told which {cells.models.shape[1]} models hold the true one"
        self.record.add(Bound(self.allowance.upper(value), "upper", told, kind=Kind.CELLS))
        before, search = self.problem.cells, self.certifier
        if len(before.models) == 0 or search is None or search.told(cells) < search.told(before):
            self._replace(cells=cells, edition=self.problem.edition + 1)

    def _back_up(self) -> Steps:
        """Rounds of backups; after each the vectors used most are asked at the leaves."""
        task, backups, strand, first = self.task, self.backups, self._backing_up, True
        numbers = pool_numbers(task.models.n_states, len(self.policies))
        while self._more_vectors:
            n = self._points
            met = new_points(n, task.models.n_models)
            yield from backups.trajectories(task.weights, met, 0, strand)
            points = _distinct(met, backups.states, task.weights)
            gains = yield from backups.back_up(points, strand, sweeps=1)
            backups.keep_used(points)
            leaves = _most_used(backups.vectors)
            strand.add(backups.asking_work(points))
            own = np.moveaxis(backups.vectors.value[leaves], -1, 0)  # [m,s,i]
            v = np.ascontiguousarray(np.concatenate([self._first[0], own], axis=-1))[None]
            called = (len(self.policies) + leaves).astype(np.int32)
            strand.find(partial(self._use_vectors, v, np.ascontiguousarray(np.concatenate([numbers, called], axis=1))))
            self._more_vectors = backups.fits(2 * n) and (gains[-1] > 0.0 or n < _MOST_POINTS)
            self._points = min(2 * n, _MOST_POINTS)
            if first or strand.full():
                yield
            first = False

    def _use_vectors(self, v: FloatArray, number: IntArray) -> None:
        self._replace(v=v, number=number)
        self._note_best_vectors()
        if not self._searching.live and self.certifier is None:
            self._searching.begin(self._search())

    def _note_best_vectors(self) -> None:
        """Record the best vector at each start state, as a bound and the policy that attains it, if it is better."""
        task, vectors, states = self.task, self.vectors, self.backups.states
        asked, values = self.backups.best(task.weights)
        value, lower = self.allowance.lower(float(task.start[states] @ values)), self.record.lower
        if (lower is not None and value <= lower.value) or (vectors.action[asked] < 0).any():
            return  # a memoryless policy is in the record
        problem, policies = self.problem, self.policies

        def controller() -> Controller:
            nodes = vector_nodes(problem, vectors, asked, 0)  # vectors are only ever added: these stay as they are
            roots = nodes.begin.astype(np.int64)
            return controller_of(task, problem, policies, nodes.state, nodes.action, nodes.after, roots)

        method = f"finite-state controller, best of {int(vectors.size[0])} alpha vectors by point-based backups"
        policy = AdaptivePolicy.later(controller, task.models.available.shape)
        self.record.add(Bound(value, "lower", method, policy=policy, kind=Kind.ALPHA_VECTORS))


def note_ends(certifier: Certifier, kind: Kind, record: Record) -> None:
    """Record what a search of a kind has proven, on the sides where that is better than what there was."""
    found = []
    what = "distinct beliefs" if kind is Kind.DISTINCT_BELIEFS else "beliefs"
    method = f"search in a graph of {certifier.n_nodes} {what}"
    if record.contest is not None:
        record.contest.note(*action_bounds(certifier))
    lower, upper = certifier.proven
    if record.lower is None or lower > record.lower.value:
        found.append(Bound(lower, "lower", method, policy=AdaptivePolicy(certifier), kind=kind))
    if record.upper is None or upper < record.upper.value:
        found.append(Bound(upper, "upper", method, kind=kind))
    record.add(*found)


def _distinct(points: Points, states: IntArray, weights: FloatArray) -> Points:
    """Each belief once, and those of the start."""
    state = np.concatenate([states.astype(np.int32), points.state])
    weight = np.concatenate([np.repeat(weights[None], len(states), axis=0), points.weight])
    depth = np.concatenate([np.zeros(len(states), dtype=np.int32), points.depth])
    whole = np.column_stack([state, np.rint(_SAME_UP_TO * weight)]).astype(np.int64).astype(np.uint64)
    words = np.random.default_rng(0).integers(0, 2**64, size=whole.shape[1], dtype=np.uint64)
    keys = (whole * words).sum(axis=1)  # equal by chance for one pair in 2⁵⁰: then one belief is left out
    first = np.sort(np.unique(keys, return_index=True)[1])
    return Points(state[first].copy(), weight[first].copy(), depth[first].copy())


def _most_used(vectors: Vectors) -> IntArray:
    """`[s,i]`: the vectors that were best at most points, as many for every state (repeated where there are fewer)."""
    leaves = np.empty((len(vectors.known_count), _LEAVES), dtype=np.int64)
    for s, count in enumerate(vectors.known_count):
        order = np.argsort(-vectors.used[s, :count], kind="stable")[:_LEAVES]
        leaves[s] = vectors.number[s, order[np.arange(_LEAVES) % len(order)]]
    return leaves
