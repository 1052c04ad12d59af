"""Chains of particle sets: information relaxations of a Dirichlet belief (`kernels.particles.renewal` has the proof).

A chain starts from particles of its own and gives one sample. What it gives is not the relaxation's value itself but
how far that is *below* what its first particles are worth to somebody who knows the model, the mean of `V*_m` over
them. That difference is never negative, for certain, and so are the losses it is the sum of; its mean is what `E max`
may be lowered by.

*Most chains are short.* After `h`, `4h`, `16h`, … histories a search has proven drops `D_0 ≤ D_1 ≤ …`: each adds less,
differs less from chain to chain, and costs more. So a chain is a sample of one `D_l − D_{l−1}`, of half as many of
them from level to level, and counts as much as its kind is rarer: on average over a *round* of `2^L − 1` chains this is
`D_{L−1}` (`bounds.statistics.rounds` has its interval).

*Alike actions in order, first tries charged, first visits learnt.* Where a chain has one set, it is searched with what
the models are worth to somebody who opens alike actions in order, tries some pairs first for a charge
(`kernels.particles.opened`), and learns on the first visits of new ground (`kernels.particles.levels`), if the tables
and places of that are few. Much of a drop is then that these are less than `V*_m`: a mean over models, of which every
chain has many. They are samples of their own, of a part of the particles each, with an interval of their own; charges
may lift them above `V*_m`, by what can be paid back in all at most. What is left of a drop is less, and so is what
certainty costs. Models in many tables take longer than a short search, so that it is made twice, the second time with
mirrored clocks. What first visits are worth varies less than `V*_m`, and is bounded itself, without `E max`; then
chains are of one length, since their sets take most of the time.
"""

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from beliefbound.base.limits import PARTICLE_BYTES
from beliefbound.base.validation import FloatArray, IntArray
from beliefbound.bounds.dirichlet.effort import Effort, chain_lengths, fresh, history, may_last, work
from beliefbound.bounds.dirichlet.prepared import above_of
from beliefbound.bounds.steps import OPERATIONS
from beliefbound.kernels.particles import renewal
from beliefbound.kernels.particles.chains import relax
from beliefbound.kernels.particles.changed import Changed, new_changed
from beliefbound.kernels.particles.memory import Memory, memory_of, solves
from beliefbound.kernels.particles.opened import everything_open, n_tables, order_of, solve_in_order
from beliefbound.kernels.particles.renewal import Search, new_search
from beliefbound.kernels.particles.rows import BAMDP, Rows, clear, n_columns, new_rows, particles_at, width_of
from beliefbound.kernels.particles.solving import models_in, optimal
from beliefbound.kernels.random import inverse_cdf
from beliefbound.planning.lemmas import stages_until
from beliefbound.planning.task import Task, made_once

_LEAST = 0.35  # share of particles that still count when they are renewed
_NEVER = -1e300  # the logarithm of a number that particles never fall below
_TAIL = 0.05  # scenarios end where this share of the value is left
_MOST_STEPS = 2000  # a discount of .9985; beyond, what is left counts as the most that it can be
_TRIES, _SMALL, _HISTORIES = 5, 256, 2  # searches that say whether sets last, their particles, and histories for each
_TRYING = 0.5 * OPERATIONS  # that they may take
_KEPT = 0.25  # of the space of a chain of one set: for weights
_PART = 64  # particles of it whose mean is a sample of its own


class Drop(NamedTuple):
    """One sample: by how much a chain is below what its first particles are worth to somebody who is told which is true
    and opens alike actions in order, first tries charged, and the work it took."""

    value: float
    operations: float
    ordered: tuple[float, ...] = ()  # by how much that is below their mean of `V*_m`: parts of the particles, each
    tops: tuple[float, ...] = ()  # what it is, of these parts

    @property
    def whole(self) -> float:
        """By how much the chain is below its first particles' mean of `V*_m`."""
        return self.value + (sum(self.ordered) / len(self.ordered) if self.ordered else 0.0)


def lengths_of(effort: Effort) -> tuple[int, ...]:
    """Histories of chains of each level."""
    return chain_lengths(effort.nodes, effort.shortest)


def kinds_in_round(levels: int) -> list[int]:
    """The levels of the chains of a round: of each half as many as of the one before.

    >>> kinds_in_round(3)
    [0, 1, 0, 2, 0, 1, 0]
    """
    return [(i & -i).bit_length() - 1 for i in range(1, 2**levels)]


class Chain:
    """Scratch for one chain of sets of particles, used again for the next."""

    def __init__(
        self, task: Task, problem: BAMDP, seed: int, stages: int, effort: Effort, memory: Memory | None = None
    ) -> None:
        """`memory`: of the relaxation of one set; by default which alike actions were opened."""
        self.task, self.problem, self.seed, self.stages, self.effort = task, problem, seed, stages, effort
        memory = memory or memory_of(problem, order_of(problem))
        self.memory = memory if effort.sets == 1 else memory_of(problem, everything_open(len(problem.available)))
        self.tables = n_tables(self.memory.order)
        self.remembers = len(self.memory.state) > problem.n_states
        self.scenarios = 2 if self.tables > 1 else 1  # one, and its mirror image
        self.n, self.history = effort.particles, history(problem, large=effort.sets == 1)
        most = _MOST_STEPS if problem.horizon < 0 else min(problem.horizon, _MOST_STEPS)
        self.depth = stages_until(_TAIL, task.discount, most=most)
        self.states = np.flatnonzero(task.start)
        self.weights = task.start[self.states]
        self.first = np.argmax(task.belief.available, axis=1)[:, None]  # where policies start

    @cached_property
    def rows(self) -> Rows:
        pairs = len(self.problem.available)
        wanted = pairs * (1 + self.effort.sets)
        fit = PARTICLE_BYTES // (8 * width_of(self.problem) * self.n)
        return new_rows(self.problem, max(pairs, min(wanted, fit)), self.n)

    @cached_property
    def search(self) -> Search:
        most, pairs = self.effort.nodes, len(self.problem.available)
        nodes = max(50, min(most, PARTICLE_BYTES // (8 * self.n + 48 * self.problem.n_states)))
        if self.effort.sets == 1:
            kept, each = max(50, int(_KEPT * PARTICLE_BYTES) // (8 * self.n)), 24 * self.problem.posterior.n_actions
            nodes = max(50, min(most, PARTICLE_BYTES // (each * n_columns(self.problem) + 256)))
            memory = self.memory if self.remembers else None
            return new_search(self.problem, nodes, 1, self.stages, self.n, most, min(nodes, kept), memory)
        sets = max(1, min(nodes, self.effort.sets, PARTICLE_BYTES // (8 * self.stages * pairs * self.n)))
        return new_search(self.problem, nodes, sets, self.stages, self.n, most)

    @cached_property
    def policy(self) -> IntArray:
        return np.empty((self.problem.n_states, self.n), dtype=np.int64)

    @cached_property
    def changed(self) -> Changed:
        return new_changed(self.problem.n_states, len(self.problem.available), self.n)

    def draw(self, problem: BAMDP, left: int, i: int) -> None:
        """Set `i`: particles after the search's counts, and their optimal values. There must be space for a row of
        every pair."""
        search = self.search
        particles_at(problem, self.rows, search.counts, search.slots[i])
        if self.remembers:
            within = self.tables * len(problem.available)
            tables = search.q[i, 0, :within].reshape(self.tables, -1, self.n)
            models = models_in(self.rows.draws, search.slots[i], self.policy, tables)
            solve_in_order(problem.discount, self.memory, models, search.q[i, 0, within:], False)
        else:
            optimal(problem.discount, self.rows.draws, search.slots[i], left, self.policy, search.q[i])

    def run(self, index: int, quantile: float | None = None, lengths: Sequence[int] = ()) -> Drop:
        """One chain: its first particles' mean of `V*_m`, minus its information relaxation. `quantile` of the start
        distribution, where it starts as others do. `lengths`: histories of each level, where chains are of several;
        then what the chain's level adds, times the chains of a round for each of its kind."""
        lengths = lengths or (self.effort.nodes,)
        kinds = kinds_in_round(len(lengths))
        level = kinds[index % len(kinds)]
        rng = np.random.default_rng((self.seed, 3, self.n, index))
        x = int(inverse_cdf(self.weights, rng.random() if quantile is None else quantile))
        scenario = rng.integers(0, 2**64, dtype=np.uint64)
        problem = self.problem._replace(address=np.array([self.seed, 3, self.n, index], dtype=np.uint64))
        search = self.search
        clear(self.rows)
        self.policy[:] = self.first
        search.counts[:] = 0
        self.draw(problem, problem.horizon, 0)
        drop, expanded, solved = 0.0, 0, 0
        for mirrored in range(self.scenarios):
            renewal.begin(problem, search, self.rows.draws, self.states)
            search.size[renewal.MIRRORED] = mirrored
            costs = list(self._costs(problem, x, scenario, lengths[: level + 1]))
            if level == 0:
                drop += max(0.0, costs[0]) / self.scenarios
            elif len(costs) > level:
                drop += max(0.0, costs[level] - costs[level - 1]) / self.scenarios
            solved, expanded = solved + int(search.size[renewal.SETS]) - 1, expanded + int(search.size[renewal.NODES])
        if level == 0:
            top = float(self.weights @ search.node["upper"][: len(self.states)])
            drop += max(0.0, float(self.weights @ self._known(self.memory.begins[self.states]).mean(axis=1)) - top)
        ordered, tops = np.empty(0), np.empty(0)
        if self.remembers:
            everything = (self.tables - 1) * problem.n_states + self.states
            known: FloatArray = self.weights @ self._known(self.memory.begins[self.states])
            lost = self.weights @ self._known(everything) - known
            lost = lost if self.memory.charge.size else np.maximum(0.0, lost)  # but for rounding
            parts = self.n // _PART if self.n % _PART == 0 else 1
            ordered, tops = (problem.unit * x.reshape(parts, -1).mean(axis=1) for x in (lost, known))
        first = fresh(problem, large=self.effort.sets == 1, tables=solves(self.memory))
        operations = self.n * (first + solved * work(problem))
        operations += (self.history[0] + self.n * self.history[1]) * expanded
        value = problem.unit * len(kinds) / kinds.count(level) * drop
        return Drop(value, operations, tuple(ordered.tolist()), tuple(tops.tolist()))

    def _known(self, places: IntArray) -> FloatArray:
        """What the first particles are worth at each place to somebody who is told which is true: `[place,m]`."""
        n_actions = self.problem.posterior.n_actions
        rows = places[:, None] * n_actions + np.arange(n_actions)
        return np.asarray(self.search.q[0, 0, rows].max(axis=1))

    def _costs(self, problem: BAMDP, x: int, scenario: np.uint64, lengths: Sequence[int]) -> Iterator[float]:
        """After so many histories each, the least cost in a scenario that starts in `x`, or a lower bound on it. Ends
        where the cost is found."""
        least = _NEVER if self.effort.sets == 1 else math.log(_LEAST * self.n)
        for nodes in lengths:
            if problem.horizon < 0:
                search, changed = self.search, self.changed
                found = relax(problem, search, self.rows, changed, x, scenario, self.depth, nodes, least)
            else:
                found = self._relaxed(problem, x, scenario, nodes, least)
            yield float(found[0])
            if found[1] == renewal.DONE:
                return
            x = int(renewal.ONWARDS)

    def _relaxed(self, problem: BAMDP, x: int, scenario: np.uint64, nodes: int, least: float) -> tuple[float, int]:
        """`relax`, with a horizon: every set of particles is solved backwards from there."""
        search, draws = self.search, self.rows.draws
        while True:
            fits = self.rows.size[0] + len(problem.available) <= len(draws)
            most = len(search.start) if fits else search.size[renewal.SETS]
            cost, found = renewal.cheapest(problem, search, draws, x, scenario, self.depth, nodes, most, least, 0)
            if found != renewal.RENEW:
                return cost, found
            x, newest = int(search.size[renewal.WAITING]), int(search.size[renewal.SETS]) - 1
            self.draw(problem, problem.horizon - int(search.node[x]["stage"]), newest)


@made_once
def lasting(task: Task) -> bool:
    """Whether a set outlives the search on it: most of a few small searches still find more when they have met twice as
    many histories as there are particles. A function of the task, and of no sample of a bracket."""
    problem = above_of(task).problem
    if problem.horizon >= 0 or not may_last(problem) or _TRIES * _SMALL * fresh(problem) > _TRYING:
        return False
    most = _HISTORIES * _SMALL
    free = memory_of(problem, everything_open(len(problem.available)))
    chain, longer = Chain(task, problem, 0, 1, Effort((), _SMALL, most, 1), free), 0
    for i in range(_TRIES):
        chain.run(i)
        longer += int(chain.search.size[renewal.EXPANDED]) >= most
    return 2 * longer > _TRIES
