"""Brackets for beliefs that are not finite. Where the belief has counts (`Belief.compiled`), by particles:

*From above.* `V*_ξ` is convex in `ξ` and a particle set is unbiased for `ξ`, so in expectation its Bayes-optimal value
is at least `V*_ξ`; but even thousands of particles are learnt much sooner than the belief. So particles are renewed
from the exact posterior as they are used up, in a way that stays an upper bound (`kernels.particles.renewal` has the
proof). Chains of particle sets are independent; they differ mainly by how good their first models happen to be. The
mean of `V*_m` over those, whose expectation comes from many more models, is taken out as a control variate with
coefficient one. The interval is Student's over chains (plus the error of that expectation): asymptotic.

*From below.* A policy that sees the history only has a value that is linear in the belief, so it can be simulated
under the belief itself (`bounds.dirichlet.replanning`): unbiased however poor its particles. Student's interval over
trajectories: asymptotic.
"""

import math
import time
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import scipy.stats as stats

from beliefbound.bounds.basic import lower_bound, upper_bound
from beliefbound.bounds.bound import Bound
from beliefbound.bounds.dirichlet.arrays import planned, problem_of, tail_correction
from beliefbound.bounds.dirichlet.effort import SCENARIOS, effort
from beliefbound.bounds.dirichlet.particle_policy import ParticlePolicy
from beliefbound.bounds.dirichlet.replanning import Workspace, policy_depth
from beliefbound.bounds.ladder import Rungs
from beliefbound.bounds.log import Log
from beliefbound.executors.threads import available_threads, map_with_scratch
from beliefbound.kernels.particles import renewal
from beliefbound.kernels.particles.renewal import Search, new_search
from beliefbound.kernels.particles.rows import Problem, Rows, clear, n_columns, new_rows, particles_at, width_of
from beliefbound.kernels.particles.solving import optimal
from beliefbound.limits import PARTICLE_BYTES
from beliefbound.planning.mmbi import mmbi
from beliefbound.planning.task import Task
from beliefbound.validation import FloatArray, IntArray

_LEAST = 0.2  # share of them that still count when they are renewed
_STAGES = 8  # with a horizon: stages a set may serve
_TAIL = 0.05  # scenarios end where this share of the value is left


def bracket_sampled(
    task: Task,
    rng: np.random.Generator,
    threads: int | None,
    log: Log,
) -> None:
    """Fill `log` with bounds on the value of a belief that is not finite."""
    belief, discount, horizon, start = task.belief, task.discount, task.horizon, task.start
    error = 1.0 - log.confidence
    cheap = 1.0 - error / 20.0
    design = belief.sample(64, rng)
    plan = mmbi(design, discount=discount, horizon=horizon)
    common: dict[str, Any] = {"discount": discount, "initial": start, "confidence": cheap, "n_models": 4000, "rng": rng}
    log.add(
        lower_bound(plan.policy, belief, **common),  # a time-indexed policy has its own horizon
        upper_bound(belief, horizon=horizon, interval="t", **common),
    )
    if log.done or belief.compiled() is None:
        return
    sampler = Sampler(task, rng, threads, log.limit)
    # Of the error, a tenth went to the cheap bounds, a tenth goes to a first round and the rest to the last.
    rounds = [(0.9 * error, 1.0)] if log.limit <= 15.0 else [(0.1 * error, 0.1), (0.8 * error, 1.0)]
    for alpha, share in rounds:
        until = log.left - min(log.left, share * log.limit)
        sampler.lower(0.5 * (log.left - until), alpha / 2.0, log)
        if log.done:
            return
        sampler.upper(sampler.effort.particles, 0.95 * (log.left - until), alpha / 2.0, log)
        if log.done:
            return


class Sampler:
    """Simulations under a belief with counts, kept as they accumulate."""

    def __init__(self, task: Task, rng: np.random.Generator, threads: int | None = None, seconds: float = 60.0) -> None:
        self.task = task
        self.seed = int(rng.integers(0, 2**63))
        self.threads = threads or available_threads()
        ahead = planned(task.discount, task.horizon)
        self.stages = 1 if ahead is None else 1 + min(_STAGES, ahead)  # of a set
        self.problem = problem_of(task, np.empty(0, dtype=np.uint64), horizon=ahead)
        self.effort = effort(self.problem, seconds, self.stages, policy_depth(task.discount, task.horizon))
        self.values: list[float] = []
        self.sets: dict[int, list[tuple[float, float]]] = {}
        self.expectation: list[tuple[float, float, int]] = []
        self._chains: dict[int, list[Chain]] = {}

    def rng(self, *address: int) -> np.random.Generator:
        return np.random.default_rng((self.seed, *address))

    @cached_property
    def policy(self) -> ParticlePolicy:
        task = self.task
        return ParticlePolicy(task.belief, task.start, task.discount, task.horizon, self.seed, self.effort.levels)

    @cached_property
    def _workspaces(self) -> list[Workspace]:
        return [self.policy.workspace() for _ in range(self.threads)]

    def simulate(self, count: int) -> None:
        """`count` more trajectories."""
        workspaces = self._workspaces
        self.values += self._parallel(
            lambda i, worker: self.policy.simulate(self.rng(1, i), workspaces[worker]), len(self.values), count
        )

    def relax(self, n: int, count: int) -> None:
        """`count` more chains of sets of `n` particles."""
        done = self.sets.setdefault(n, [])
        chains = self._chains.setdefault(n, [Chain(self, n) for _ in range(self.threads)])
        done += self._parallel(lambda i, worker: chains[worker].run(i), len(done), count)

    def lower(self, seconds: float, alpha: float, log: Log) -> None:
        """Trajectories for about `seconds`, then the lower bound they give."""
        until = time.perf_counter() + seconds
        count = max(2, self.threads)
        while True:
            began = time.perf_counter()
            self.simulate(count)
            each = (time.perf_counter() - began) / count
            more = (until - time.perf_counter()) / each
            if more < self.threads or log.stopped:
                break
            count = max(self.threads, int(min(4 * count, 0.7 * more)) // self.threads * self.threads)
        x = np.array(self.values)
        margin = float(stats.t(len(x) - 1).ppf(1.0 - alpha) * x.std(ddof=1) / math.sqrt(len(x)))
        log.add(
            Bound(
                float(x.mean()) - margin,
                "lower",
                f"re-planning look-ahead policy simulated under the belief, {len(x)} trajectories; Student t "
                f"(asymptotic)",
                exact=False,
                confidence=1.0 - alpha,
                estimate=float(x.mean()),
                n_samples=len(x),
                policy=self.policy,
            )
        )

    def upper(self, n: int, seconds: float, alpha: float, log: Log) -> None:
        """Chains of sets of `n` particles for about `seconds`, then the upper bound they give."""
        until = time.perf_counter() + seconds
        self._expect(min(2.0, 0.15 * seconds))
        while True:
            began = time.perf_counter()
            self.relax(n, self.threads)
            each = time.perf_counter() - began
            if len(self.sets[n]) >= 2 and (log.stopped or until - time.perf_counter() < 0.8 * each):
                break
        log.add(self.upper_of(n, alpha))

    def upper_of(self, n: int, alpha: float) -> Bound:
        """The upper bound from all chains of sets of `n` particles so far."""
        values, solved = np.array(self.sets[n]).T
        counts = np.array([c for *_, c in self.expectation], dtype=np.float64)
        means = np.array([m for m, *_ in self.expectation])
        mean = float(counts @ means / counts.sum())
        variance = float(counts @ np.array([v for _, v, _ in self.expectation]) / counts.sum()) / counts.sum()
        adjusted = values - (solved - mean)
        error = math.sqrt(float(adjusted.var(ddof=1)) / len(adjusted) + variance)
        estimate = float(adjusted.mean())
        return Bound(
            estimate + float(stats.t(len(adjusted) - 1).ppf(1.0 - alpha)) * error,
            "upper",
            f"information relaxation on {len(adjusted)} chains of sets of {n} particles, {SCENARIOS} scenarios each; "
            f"Student t over chains (asymptotic)",
            exact=False,
            confidence=1.0 - alpha,
            estimate=estimate,
            n_samples=len(adjusted),
        )

    def _expect(self, seconds: float) -> None:
        """`E V*_μ` at the start, from many models."""
        until = time.perf_counter() + seconds
        n = self.effort.particles
        chains = self._chains.setdefault(n, [Chain(self, n) for _ in range(self.threads)])
        while True:
            self.expectation += self._parallel(
                lambda i, worker: chains[worker].solve_many(i, 20), len(self.expectation), self.threads
            )
            if time.perf_counter() >= until:
                return

    def _parallel(self, task: Callable[[int, int], Any], first: int, count: int) -> list[Any]:
        """`[task(first, worker), task(first + 1, worker), …]`: the result of a task depends on its number only."""
        return map_with_scratch(task, range(first, first + count), range(self.threads))


class Chain:
    """Scratch for one chain of sets of `n` particles, used again for the next."""

    def __init__(self, sampler: Sampler, n: int) -> None:
        self.sampler, self.n = sampler, n
        task, problem = sampler.task, sampler.problem
        self.beyond = tail_correction(task, problem)
        self.depth = 1000 if task.discount == 1.0 else math.ceil(math.log(_TAIL) / math.log(task.discount + 1e-9))
        if problem.horizon >= 0:
            self.depth = min(self.depth, problem.horizon)
        self.depth = max(1, self.depth)
        self.states = np.flatnonzero(task.start)
        self.weights = task.start[self.states]
        self.first = np.argmax(task.belief.available, axis=1)[:, None]  # where policies start

    def problem(self, *address: int) -> Problem:
        """The belief, with particles of their own."""
        return self.sampler.problem._replace(address=np.array([self.sampler.seed, *address], dtype=np.uint64))

    @cached_property
    def rows(self) -> Rows:
        problem = self.sampler.problem
        each = 8 * width_of(problem) * self.n
        return new_rows(problem, max(8 * len(problem.available), PARTICLE_BYTES // each), self.n)

    @cached_property
    def search(self) -> Search:
        problem = self.sampler.problem
        stages, most = self.sampler.stages, self.sampler.effort.nodes
        nodes = max(100, min(SCENARIOS * most, PARTICLE_BYTES // (8 * self.n + 48 * problem.n_states)))
        sets = max(20, min(nodes, PARTICLE_BYTES // (8 * stages * len(problem.available) * self.n)))
        return new_search(problem, nodes, sets, stages, self.n, most)

    @cached_property
    def policy(self) -> IntArray:
        return np.empty((self.sampler.problem.n_states, self.n), dtype=np.int64)

    def draw(
        self, problem: Problem, generation: int, counts: IntArray, left: int, slots: IntArray, q: FloatArray
    ) -> None:
        """Particles after `counts`, and their optimal values. There must be space for a row of every pair."""
        particles_at(problem, self.rows, generation, counts, slots)
        optimal(problem.discount, self.rows.draws, slots, left, self.policy, q)

    def solve_many(self, index: int, batches: int) -> tuple[float, float, int]:
        """Mean and variance of `V*` at the start over many models, and how many."""
        problem = self.problem(2, index)
        counts = np.zeros((len(problem.available), n_columns(problem)), dtype=np.int64)
        slots, q = np.empty(len(counts), dtype=np.int64), np.empty((1, len(counts), self.n))
        found = []
        for generation in range(batches):
            clear(self.rows)
            self.policy[:] = self.first
            self.draw(problem, generation, counts, problem.horizon, slots, q)
            found.append(self.weights @ self.best(q[0])[self.states])
        values = np.concatenate(found)
        return float(values.mean()), float(values.var(ddof=1)), len(values)

    def best(self, q: FloatArray) -> FloatArray:
        """`V*[s,m]` from `q[pair,m]`."""
        best: FloatArray = q.reshape(self.sampler.problem.n_states, -1, self.n).max(axis=1)
        return best

    def run(self, index: int) -> tuple[float, float]:
        """`(information relaxation, mean of V*_m over the first particles)` of one chain."""
        problem, search, rng = self.problem(3, self.n, index), self.search, self.sampler.rng(3, self.n, index)
        clear(self.rows)
        self.policy[:] = self.first
        search.counts[:] = 0
        self.draw(problem, 0, search.counts, problem.horizon, search.slots[0], search.q[0])
        renewal.begin(problem, search, self.rows.draws, self.states)
        top = float(self.weights @ search.node["upper"][: len(self.states)])
        solved = float(self.weights @ self.best(search.q[0, 0])[self.states].mean(axis=1))
        costs = [self._scenario(problem, i, rng) for i in range(SCENARIOS)]
        return top - float(np.mean(costs)) - self.beyond, solved

    def _scenario(self, problem: Problem, stamp: int, rng: np.random.Generator) -> float:
        """The least cost in one scenario, or a lower bound on it; particles are fetched as the search needs them."""
        search, least, max_nodes = self.search, math.log(_LEAST * self.n), self.sampler.effort.nodes
        x = int(rng.choice(len(self.states), p=self.weights))
        u = rng.random(self.depth)
        while True:
            fits = self.rows.size[0] + len(problem.available) <= len(self.rows.draws)
            most = len(search.set) if fits else search.size[renewal.SETS]
            cost, need = renewal.cheapest(problem, search, self.rows.draws, x, u, max_nodes, most, least, stamp)
            if need == renewal.DONE:
                return float(cost)
            x, newest = int(search.size[renewal.WAITING]), int(search.size[renewal.SETS]) - 1
            left, generation = problem.horizon - int(search.node[x]["stage"]), int(search.set[newest]["generation"])
            self.draw(problem, generation, search.counts, left, search.slots[newest], search.q[newest])


def dirichlet_rungs(task: Task, rng: np.random.Generator, threads: int | None, log: Log) -> Rungs:
    """The ladder of a belief that is not finite: a single rung, which watches the clock."""
    bracket_sampled(task, rng, threads, log)
    yield ()
