"""Which first tries are charged, and how much (`kernels.particles.opened` has the proof: any choice is valid), and
whether first visits are learnt from (`kernels.particles.levels`).

Somebody who is told the model knows which of the ways that nobody has tried are good, and the search of a chain is not
deep enough to make up for it where these lie far ahead. *Which*: besides alike actions, which are opened in order, the
pairs for which a charge, of each alone, lowers by most what it is worth to be told the model. *How much*: what the
first try of a pair is worth to somebody who knows the model, regressed on the row over some models, times `_SHARE`; all
of it would make bad rows worth trying for what is paid back.

*First visits* are learnt from where that lowers by as much again what it is worth to be told the model. Their charges
are what follows an outcome is worth on average: all of it.

All is found on models of its own, once for a task, and is a function of it.
"""

from typing import NamedTuple

import numpy as np

from beliefbound.base.validation import BoolArray, FloatArray
from beliefbound.bounds.dirichlet.effort import work
from beliefbound.bounds.dirichlet.prepared import above_of
from beliefbound.bounds.steps import OPERATIONS
from beliefbound.kernels.particles.memory import Memory, memory_of, solves, with_first_visits
from beliefbound.kernels.particles.opened import (
    MOST_TABLES,
    Order,
    arrange,
    everything_open,
    n_tables,
    order_of,
    solve_in_order,
)
from beliefbound.kernels.particles.rows import BAMDP, expected_rows, new_rows, new_scratch, particles_at
from beliefbound.kernels.particles.solving import Models, Scratch, scratch_for, solve_for_ever
from beliefbound.planning.task import Task, made_once

_SHARE = 0.7  # a half or .8 lower E max by .43 and .56 on the benchmarks' grids, .4 and .7 alike on their chains
_MODELS = 128
_ALONE = 4  # pairs that are alike to none, at most: 64 tables took 2.4 times as long on grids, for .06 more than .19
_TAKEN = 0.1  # of the models: in so many an action is best, at least, if it is to be charged
_WORTH = 0.05  # of the spread of what models are worth: charges lower it by so much, at least; one by its share
_VISITS = ((6, 2), (6, 1), (4, 1), (6, 0), (4, 0), (3, 0))  # how much of first visits: the first that fits
_MOST = OPERATIONS  # that the choice may take
_PAID = 1e-9  # by which what is paid back in all may still rise


@made_once
def chosen_memory(task: Task) -> Memory:
    """What relaxations on one set of `above_of(task)` remember."""
    problem, order = above_of(task).problem, charged_order(task)
    tables, each = memory_of(problem, order), _MODELS * work(problem)
    if problem.horizon >= 0 or each * n_tables(order) > _MOST:
        return tables
    pilot = _Pilot.of(problem)
    worth, likely = pilot.worth(task, order), pilot.taken() >= _TAKEN
    for followed, crossings in _VISITS:
        memory = with_first_visits(problem, task.start > 0.0, likely, followed, crossings)
        if memory is not None and each * solves(memory) <= _MOST:
            lowered = worth - pilot.worth_of_first_visits(task, memory)
            return memory if lowered.mean() > _WORTH * worth.std() else tables
    return tables


@made_once
def charged_order(task: Task) -> Order:
    """The order in which somebody who is told the model of `above_of(task)` opens pairs, with charges; that of
    `order_of`, without, where they are not worth the time, and with a horizon."""
    problem = above_of(task).problem
    order = order_of(problem)
    each = _MODELS * work(problem)
    if problem.horizon >= 0 or each * n_tables(order) > _MOST:
        return order
    pilot = _Pilot.of(problem)
    told, alone = pilot.worth(task, everything_open(len(problem.available))), {}
    candidates = np.flatnonzero(pilot.learnt & (order.most == 0) & (pilot.taken() >= _TAKEN))
    if each * (2 * len(candidates) + 2**_ALONE * n_tables(order)) <= _MOST:
        for pair in candidates.tolist():
            single = pilot.charged(with_pair(everything_open(len(problem.available)), pair))
            alone[pair] = float(np.mean(told - pilot.worth(task, single)))
    best = [pair for pair in sorted(alone, key=lambda x: -alone[x]) if alone[pair] > _WORTH / _ALONE * told.std()]
    for pair in best[:_ALONE]:
        if 2 * n_tables(order) <= MOST_TABLES:
            order = with_pair(order, pair)
    if n_tables(order) == 1:
        return order
    charged = pilot.charged(order)
    lowered = pilot.worth(task, order) - pilot.worth(task, charged)
    return charged if lowered.mean() > _WORTH * told.std() else order_of(problem)


def with_pair(order: Order, pair: int) -> Order:
    """One pair more that is opened, a class of its own."""
    most, stride, adds = order.most.copy(), order.stride.copy(), order.adds.copy()
    most[pair], stride[pair], adds[pair] = 1, n_tables(order), n_tables(order)
    return order._replace(most=most, stride=stride, adds=adds)


def most_paid_back(problem: BAMDP, memory: Memory) -> float:
    """The most that charges bring in all, on any model, where rows are charged less than their mean: the best way
    through all places, with a step for each try."""
    if not memory.charge.size:
        return 0.0
    n_states, n_actions = problem.n_states, problem.posterior.n_actions
    possible = (_mean_rows(problem)[:, :n_states] > 0.0).reshape(n_states, n_actions, n_states)[memory.state]
    possible &= memory.follows >= 0
    keep = problem.keep.reshape(n_states, n_actions)[memory.state]
    least = np.where(possible, memory.charge, np.inf).min(axis=2)
    back = np.where(np.isfinite(least), memory.mean - keep * np.where(np.isfinite(least), least, 0.0), -np.inf)
    most, more = np.zeros(len(back)), np.inf
    while more > _PAID:
        after = np.where(possible, most[memory.follows], 0.0).max(axis=2)
        new = np.maximum(0.0, (back + problem.discount * after).max(axis=1))
        most, more = new, float((new - most).max())
    return float(most[memory.begins].max() + more / (1.0 - problem.discount))


def _mean_rows(problem: BAMDP) -> FloatArray:
    """`[pair,t + 1]`: the mean model of the prior."""
    counts = np.zeros((len(problem.available), problem.posterior.alpha.shape[1] * len(problem.posterior.reward)), int)
    mean = np.empty((len(problem.available), problem.n_states + 1, 1))
    expected_rows(problem, counts, new_scratch(problem, 1), mean)
    return mean[:, :, 0]


class _Pilot(NamedTuple):
    """Models on which charges are chosen, and scratch to solve them."""

    problem: BAMDP
    p: FloatArray  # [pair,t + 1,m]
    mean: FloatArray  # [pair,t]
    learnt: BoolArray  # [pair]: there is something to learn of its row, which is its own
    scratch: Scratch

    @classmethod
    def of(cls, problem: BAMDP) -> "_Pilot":
        pairs, n_states, n = len(problem.available), problem.n_states, _MODELS
        problem = problem._replace(address=np.array([0, 7, n], dtype=np.uint64))
        rows, slots = new_rows(problem, pairs, n), np.empty(pairs, dtype=np.int64)
        columns = problem.posterior.alpha.shape[1] * len(problem.posterior.reward)
        particles_at(problem, rows, np.zeros((pairs, columns), dtype=np.int64), slots)
        own = problem.posterior.row if problem.posterior.tied else np.arange(pairs)
        mean = _mean_rows(problem)[:, :n_states]
        learnt = problem.available & ((mean > 0.0).sum(axis=1) > 1) & (np.bincount(own)[own] == 1)
        scratch = scratch_for(pairs, n_states, n)
        return cls(problem, np.ascontiguousarray(rows.draws[slots, : n_states + 1]), mean, learnt, scratch)

    def taken(self) -> FloatArray:
        """`[pair]`: in what share of the models its action is best in its state."""
        q = self._solved(everything_open(len(self.p)))[0].reshape(self.problem.n_states, -1, _MODELS)
        best = q.argmax(axis=1)[:, None] == np.arange(q.shape[1])[:, None]
        return np.asarray(best.mean(axis=2).reshape(-1))

    def worth(self, task: Task, order: Order) -> FloatArray:
        """`[m]`: what the models are worth to somebody who is told which it is and opens pairs in this order."""
        q = self._solved(order)[0].reshape(self.problem.n_states, -1, _MODELS)
        return np.asarray(task.start @ q.max(axis=1))

    def worth_of_first_visits(self, task: Task, memory: Memory) -> FloatArray:
        """The same where first visits are learnt from; charges for them are made, in the memory."""
        pairs, n_actions, n_states = len(self.p), self.problem.posterior.n_actions, self.problem.n_states
        q = np.empty((len(memory.state) * n_actions, _MODELS))
        within, policy = n_tables(memory.order) * pairs, np.empty((n_states, _MODELS), dtype=np.int64)
        policy[:] = np.argmax(self.problem.available.reshape(n_states, -1), axis=1)[:, None]
        tables = q[:within].reshape(-1, pairs, _MODELS)
        models = Models(self.p, np.arange(pairs), policy, tables, self.scratch)
        solve_in_order(self.problem.discount, memory, models, q[within:], True)
        best = q.reshape(-1, n_actions, _MODELS).max(axis=1)
        return np.asarray(task.start @ best[memory.begins])

    def charged(self, order: Order) -> Order:
        """An order with charges for all that is opened."""
        charge = np.zeros((n_tables(order), len(self.p), self.problem.n_states))
        order = order._replace(charge=charge, mean=np.zeros(charge.shape[:2]))
        self._solved(order, fit=True)
        return order

    def _solved(self, order: Order, *, fit: bool = False) -> FloatArray:
        """`q[table,pair,m]`, from the last table to the first; charges are made on the way, or those that there are."""
        discount, tables, pairs = self.problem.discount, n_tables(order), np.arange(len(self.p))
        rows, later = np.empty_like(self.p), np.empty((tables, *self.scratch.q.shape))
        self.scratch.policy[:] = np.argmax(self.problem.available.reshape(self.problem.n_states, -1), axis=1)[:, None]
        for table in range(tables - 1, -1, -1):
            arrange(discount, order, table, self.p, later, rows)
            if fit:
                opened = table // order.stride % (order.most + 1)
                for pair in pairs[self.learnt & (order.place == opened) & (opened < order.most)].tolist():
                    charge = _SHARE * self._slopes(pair, rows[pair, -1])
                    order.charge[table, pair], order.mean[table, pair] = charge, charge @ self.mean[pair]
                arrange(discount, order, table, self.p, later, rows)
            solve_for_ever(discount, rows, self.scratch)
            later[table] = self.scratch.q
        return later

    def _slopes(self, pair: int, worth: FloatArray) -> FloatArray:
        """`[t]`: how what a pair is worth on the models depends on its row; 0 for what is least."""
        slopes, possible = np.zeros(self.problem.n_states), np.flatnonzero(self.mean[pair] > 0.0)
        others = possible[:-1]
        x = (self.p[pair, others] - self.mean[pair, others, None]).T
        slopes[others] = np.linalg.lstsq(x, worth - worth.mean(), rcond=None)[0]
        slopes[possible] -= slopes[possible].min()
        return slopes
