"""Brackets for beliefs that are not finite: `DirichletBelief` with known or Bernoulli rewards.

*From above.* `V*_ξ` is convex in `ξ` and a particle set `ξ̂_n` is unbiased for `ξ`, so `E[V*_{ξ̂_n}] ≥ V*_ξ`: the
information relaxation on a particle set, averaged over independent sets. Few particles are learnt quickly and make it
loose, so sets have thousands (`particle_bias` shows how much more would help). Sets differ mainly by how good their
models happen to be; the mean of `V*_m` over a set, whose expectation comes from many more models, is taken out as a
control variate with coefficient one. The interval is Student's over sets (plus the error of that expectation):
asymptotic.

*From below.* A policy that sees the history only has a value that is linear in the belief, so it can be simulated
under the belief itself, where predictive probabilities are in closed form (`kernels.hyperstate`). It acts by one-step
look-ahead on a particle graph conditioned on the history, with new particles from the exact posterior whenever too
few still count; the graph is also the control variate. At the end, fresh models of the posterior value a stationary
policy. Unbiased however poor the particles; Student's interval over trajectories: asymptotic.

A horizon so long that what follows is worth under 0.1% of the range of values is planned for as if it were infinite;
rewards are still counted to the horizon only. From above this is valid because with rewards at least `r_min`, `V_T ≤
V_∞ − r_min γ^T/(1−γ)`.
"""

import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import scipy.stats as stats

from beliefbound.beliefs import Belief, BetaRewards, DirichletBelief, KnownRewards
from beliefbound.beliefs.finite import FiniteBelief
from beliefbound.bounds.bound import Bound
from beliefbound.bounds.problem import outcome_rows, problem_of
from beliefbound.bounds.relaxation import Certifier, available_threads
from beliefbound.bounds.simple import effective_horizon, lower_bound, start_of, upper_bound
from beliefbound.errors import ObservationError
from beliefbound.kernels import graph as kernel
from beliefbound.kernels.graph import Graph, Problem
from beliefbound.kernels.hyperstate import LEAF, STALE, effective, policy_value, walk
from beliefbound.kernels.lookahead import values_from_above
from beliefbound.planning.mmbi import mmbi
from beliefbound.planning.optimal import backward_induction, optimal_values, policy_iteration
from beliefbound.policy import Policy, StationaryPolicy
from beliefbound.validation import FloatArray, IntArray, check_count, check_discount, check_probability

_TAIL = 1e-3
_ADVICE_TAIL = 0.1  # advice may be about another problem: it only has to be good
_DROP = 1e-6
_SCENARIOS = 32
_SMALL, _LARGE = 4000, 32000
_CORE = 600
_BASE, _BASE_NODES = 8000, 2000
_FRESH, _LEAST = 256, 50
_LEAF_MODELS = 16
_ENTRIES = 40_000_000


def bracket_sampled(
    belief: Belief,
    start: FloatArray,
    discount: float,
    horizon: int | None,
    rng: np.random.Generator,
    threads: int | None,
    log: Any,
) -> None:
    """Fill `log` (see `bounds.bracket.Log`) with bounds on the value of a belief that is not finite."""
    error = 1.0 - log.confidence
    cheap = 1.0 - error / 20.0
    design = belief.sample(64, rng)
    plan = mmbi(design, discount=discount, horizon=horizon)
    common: dict[str, Any] = {"discount": discount, "initial": start, "confidence": cheap, "n_models": 4000, "rng": rng}
    log.add(
        lower_bound(plan.policy, belief, **common),  # a time-indexed policy has its own horizon
        upper_bound(belief, horizon=horizon, interval="t", **common),
    )
    if log.done or not isinstance(belief, DirichletBelief) or belief.rewards.signal == "continuous":
        return
    sampler = Sampler(belief, start, discount, horizon, rng, threads)
    # Of the error, a tenth went to the cheap bounds, a tenth goes to a first round and the rest to the last.
    rounds = (
        [(_SMALL, 0.1 * error, 0.15), (_LARGE, 0.8 * error, 1.0)] if log.limit > 15.0 else [(_SMALL, 0.9 * error, 1.0)]
    )
    for size, alpha, share in rounds:
        budget = min(log.left, share * log.limit)
        sampler.lower(0.4 * budget, alpha / 2.0, log)
        if log.done:
            return
        sampler.upper(size, min(0.55 * budget, log.left), alpha / 2.0, log)
        if log.done:
            return


class Sampler:
    """Simulations under a Dirichlet belief, kept as they accumulate."""

    def __init__(
        self,
        belief: DirichletBelief,
        start: FloatArray,
        discount: float,
        horizon: int | None,
        rng: np.random.Generator,
        threads: int | None,
    ) -> None:
        self.belief, self.start, self.discount, self.horizon = belief, start, discount, horizon
        self.seed = int(rng.integers(0, 2**63))
        self.threads = threads or available_threads()
        self.values: list[float] = []
        self.sets: dict[int, list[tuple[float, float]]] = {}
        self.expectation: list[tuple[float, float, int]] = []

    def rng(self, *address: int) -> np.random.Generator:
        return np.random.default_rng((self.seed, *address))

    @cached_property
    def policy(self) -> "ParticlePolicy":
        return ParticlePolicy(self.belief, self.start, self.discount, self.horizon, self.seed)

    def lower(self, seconds: float, alpha: float, log: Any) -> None:
        """Trajectories for about `seconds`, then the lower bound they give."""
        until = time.perf_counter() + seconds
        copies = [self.policy.graphs() for _ in range(self.threads)]
        begun = 16 * self.threads
        while True:
            began = time.perf_counter()
            self.values += self._parallel(
                lambda i, worker: self.policy.simulate(self.rng(1, i), copies[worker]), len(self.values), begun
            )
            each = (time.perf_counter() - began) / begun
            room = (until - time.perf_counter()) / each
            if room < 2 * self.threads:
                break
            begun = max(self.threads, int(min(4 * begun, 0.7 * room)) // self.threads * self.threads)
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

    def upper(self, n: int, seconds: float, alpha: float, log: Any) -> None:
        """Particle sets of `n` models for about `seconds`, then the upper bound they give."""
        until = time.perf_counter() + seconds
        self._expect(min(2.0, 0.15 * seconds))
        done = self.sets.setdefault(n, [])
        while True:
            began = time.perf_counter()
            done += self._parallel(lambda i, _: self.particle_set(n, i), len(done), self.threads)
            each = time.perf_counter() - began
            if len(done) >= 4 and until - time.perf_counter() < 0.8 * each:
                break
        log.add(self.upper_of(n, alpha))

    def upper_of(self, n: int, alpha: float) -> Bound:
        """The upper bound from all sets of `n` particles so far."""
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
            f"information relaxation on {len(adjusted)} sets of {n} particles, {_SCENARIOS} scenarios each; Student t "
            f"over sets (asymptotic)",
            exact=False,
            confidence=1.0 - alpha,
            estimate=estimate,
            n_samples=len(adjusted),
        )

    def _expect(self, seconds: float) -> None:
        """`E V*_μ` at the start, from many models."""
        until = time.perf_counter() + seconds
        size = 10_000

        def batch(i: int, _: int) -> tuple[float, float, int]:
            models = self.belief.sample(size, self.rng(2, i)).models
            v = np.empty((size, self.belief.n_states))
            self._solve(models.dense(), models.rewards, v)
            x = v @ self.start
            return float(x.mean()), float(x.var(ddof=1)), size

        while True:
            self.expectation += self._parallel(batch, len(self.expectation), self.threads)
            if time.perf_counter() >= until:
                return

    def _solve(self, p: FloatArray, r: FloatArray, out: FloatArray) -> None:
        horizon = planned(self.belief, self.discount, self.horizon)
        available = np.ones(r.shape[1:], dtype=np.bool_)
        if horizon is None:
            values_from_above(p, r, available, self.discount, 1e-7 * span(self.belief, self.discount, None), 2000, out)
            return
        out[:] = 0.0
        for _ in range(horizon):
            out[:] = (r + self.discount * np.einsum("msat,mt->msa", p, out)).max(axis=-1)

    def particle_set(self, n: int, index: int) -> tuple[float, float]:
        """`(information relaxation, mean of V*_m)` of one particle set."""
        rng = self.rng(3, n, index)
        sample = self.belief.sample(n, rng)
        horizon = planned(self.belief, self.discount, self.horizon)
        policies = few_policies(self.belief, sample, self.discount, horizon, 2)
        certifier = Certifier(
            sample,
            discount=self.discount,
            horizon=horizon,
            initial=self.start,
            policies=policies,
            core_nodes=_CORE,
            max_nodes=300,
            block=4,
            drop=_DROP,
            entries=max(_ENTRIES, 600 * n),
        )
        certifier.tolerance = 1e-3 * span(self.belief, self.discount, horizon) / 10.0
        certifier.grow(certifier.core_nodes)
        certifier.settle()
        address = rng.integers(0, 2**64, size=4, dtype=np.uint64)
        costs = certifier.sample(address, 0, _SCENARIOS, clip=np.inf, stop=-1.0, threads=1)
        best = np.where(certifier.problem.available, certifier.problem.q[0], -np.inf).max(axis=-1)
        beyond = tail_correction(self.belief, self.discount, self.horizon, horizon)
        return certifier.upper - float(costs.above.mean()) - beyond, float((best @ self.start).mean())

    def _parallel(self, task: Callable[[int, int], Any], first: int, count: int) -> list[Any]:
        """`[task(first, worker), task(first + 1, worker), …]`: the result of a task depends on its number only."""
        if self.threads == 1:
            return [task(first + i, 0) for i in range(count)]

        def work(worker: int) -> list[Any]:
            return [task(first + i, worker) for i in range(worker, count, self.threads)]

        results: list[Any] = [None] * count
        with ThreadPoolExecutor(self.threads) as pool:
            for worker, part in enumerate(pool.map(work, range(self.threads))):
                results[worker :: self.threads] = part
        return results


def particle_bias(
    belief: DirichletBelief,
    *,
    sizes: Sequence[int] = (1000, 2000, 4000),
    sets: int = 8,
    initial: FloatArray | int | None = None,
    discount: float,
    horizon: int | None = None,
    confidence: float = 0.95,
    rng: np.random.Generator,
    threads: int | None = None,
) -> tuple[Bound, ...]:
    """The upper bound for several sizes of particle sets: each is valid, and their fall shows how loose the small
    ones are.

    `E[V*_{ξ̂_n}]` falls as `n` grows, towards `V*_ξ`. Each bound has the confidence asked for, by itself.
    """
    discount = check_discount(discount, horizon)
    sampler = Sampler(belief, start_of(belief, initial), discount, horizon, rng, threads)
    sampler._expect(0.5)
    sets = check_count(sets, "sets", least=2)
    for n in sizes:
        sampler.sets[n] = sampler._parallel(partial(_one_set, sampler, n), 0, sets)
    return tuple(sampler.upper_of(n, 1.0 - check_probability(confidence, "confidence")) for n in sizes)


def _one_set(sampler: Sampler, n: int, index: int, _: int) -> tuple[float, float]:
    return sampler.particle_set(n, index)


class Advice(NamedTuple):
    """A particle graph, settled, and its roots by start state."""

    problem: Problem
    graph: Graph
    roots: dict[int, int]
    policies: list[Policy]


class ParticlePolicy:
    """Acts under a Dirichlet belief: `action = policy.act(history, state)`. Made by `bracket`.

    One-step look-ahead on particles conditioned on the history; new ones are drawn from the exact posterior when
    fewer than 50 still count. Depends on the history and on its own fixed seed only.
    """

    def __init__(
        self, belief: DirichletBelief, start: FloatArray, discount: float, horizon: int | None, seed: int
    ) -> None:
        self.belief, self.start, self.discount, self.horizon, self.seed = belief, start, discount, horizon, seed
        rewards = belief.rewards
        shape = belief.concentration.shape[:2]
        self._known = np.array(rewards.mean())
        self._success, self._failure, self._range = np.ones(shape), np.ones(shape), (0.0, 1.0)
        if isinstance(rewards, BetaRewards):
            self._success, self._failure = np.array(rewards.alpha), np.array(rewards.beta)
            self._range = (rewards.low, rewards.high)
        tail = 5e-3
        depth = 1000 if discount == 1.0 else math.ceil(math.log(tail) / math.log(max(discount, 1e-6)))
        self.depth = depth if horizon is None else min(depth, horizon)
        self._base = self._advice(belief, np.random.default_rng((seed, 0)), _BASE, _BASE_NODES, 0, 20_000)
        self.sign = self._sign(self._base.problem)

    def __repr__(self) -> str:
        return f"ParticlePolicy({self.belief!r}, {_BASE} particles)"

    def _sign(self, problem: Problem) -> IntArray:
        sample = self.belief.sample(1, np.random.default_rng(0))
        seen = outcome_rows(sample, self.belief.concentration > 0.0)[3]
        return np.where(np.isnan(seen), -1, np.where(seen >= self._range[1], 1, 0)).astype(np.int64)

    def _advice(
        self,
        belief: DirichletBelief,
        rng: np.random.Generator,
        n: int,
        nodes: int,
        stage: int,
        extra: int,
        state: int | None = None,
    ) -> Advice:
        left = None if self.horizon is None else self.horizon - stage
        horizon = left if left is None or self.discount**left > _ADVICE_TAIL else None
        sample = belief.sample(n, rng)
        policies = few_policies(belief, sample, self.discount, horizon, 4)
        problem = problem_of(
            sample,
            discount=self.discount,
            horizon=horizon,
            stages=min(self.depth, horizon or 1),
            policies=policies,
            drop=_DROP,
            possible=belief.concentration > 0.0,
        )
        graph = kernel.new_graph(problem, nodes + extra + len(self.start), (nodes + extra) * max(n // 4, 64) + n * 8)
        states = np.flatnonzero(self.start) if state is None else np.array([state])
        roots = np.array([kernel.add_root(problem, graph, sample.weights, s) for s in states])
        weights = self.start[states] if state is None else np.ones(1)
        if nodes > 1:
            kernel.grow(problem, graph, weights, roots, 0.0, self.depth - stage, nodes)
        kernel.settle(problem, graph)
        return Advice(problem, graph, {int(s): int(r) for s, r in zip(states, roots, strict=True)}, policies)

    def graphs(self) -> Advice:
        """A copy of the first graph, for one thread."""
        return self._base._replace(graph=Graph(*(array.copy() for array in self._base.graph)))

    def _posterior(self, alpha: FloatArray, success: FloatArray, failure: FloatArray) -> DirichletBelief:
        rewards: Any = self.belief.rewards
        if isinstance(rewards, BetaRewards):
            rewards = BetaRewards(success.copy(), failure.copy(), low=self._range[0], high=self._range[1])
        n_states, n_actions, _ = alpha.shape
        return DirichletBelief(n_states, n_actions, concentration=alpha.copy(), rewards=rewards)

    def simulate(self, rng: np.random.Generator, base: Advice) -> float:
        """One trajectory under the belief: an unbiased estimate of this policy's value from the start."""
        u = rng.random(self.depth + 1)
        alpha = np.array(self.belief.concentration)
        success, failure = self._success.copy(), self._failure.copy()
        state = int(np.searchsorted(np.cumsum(self.start), rng.random(), side="right"))
        state = min(state, int(np.flatnonzero(self.start)[-1]))
        advice, node, stage, total = base, base.roots[state], 0, 0.0
        tolerance = 3e-4 * span(self.belief, self.discount, self.horizon)
        while True:
            factor = self.discount**stage
            status, node, stage, state, value = walk(
                advice.problem, advice.graph, node, self.sign, alpha, success, failure, self._known, *self._range,
                u, stage, self.depth, tolerance / factor if factor > 0.0 else np.inf, float(_LEAST),
            )  # fmt: skip
            total += float(factor * value)
            if status == LEAF:
                break
            assert status == STALE
            advice = self._advice(
                self._posterior(alpha, success, failure), rng, _FRESH, 1, stage, self.depth - stage, state
            )
            node = advice.roots[state]
        kernel.restore(base.graph)
        left = None if self.horizon is None else self.horizon - stage
        if left == 0:
            return total
        posterior = self._posterior(alpha, success, failure)
        policy = stationary_optimum(posterior, self.discount, left)
        models = posterior.sample(_LEAF_MODELS, rng)
        out = np.empty((_LEAF_MODELS, self.belief.n_states))
        policy_value(
            models.models.dense(), models.rewards, policy.actions, self.discount, -1 if left is None else left, out
        )
        return total + float(self.discount**stage * out[:, state].mean())

    def act(self, history: Sequence[tuple[int, int, float | None, int]], state: int) -> int:
        """The action in `state` after `history`, a sequence of `(state, action, reward, next_state)`."""
        posterior, advice = self.belief, self._base
        first = int(history[0][0]) if history else int(state)
        if first not in advice.roots:
            raise ObservationError(
                f"the history starts in state {first}, which is not a start state of the certificate"
            )
        node, rng = advice.roots[first], np.random.default_rng((self.seed, 9))
        try:
            for stage, (s, a, reward, t) in enumerate(history):
                before = posterior
                posterior = posterior.update(s, a, reward, t)
                if effective(advice.graph, node) < _LEAST:
                    advice = self._advice(before, rng, _FRESH, 1, stage, self.depth, int(s))
                    node = advice.roots[int(s)]
                row = self._row(advice.problem, int(s), int(a), reward, int(t))
                node = kernel.make_child(advice.problem, advice.graph, node, row)
                if node < 0 or not np.isfinite(advice.graph.weight[advice.graph.begin[node]]):
                    advice = self._advice(posterior, rng, _FRESH, 1, stage + 1, self.depth, int(t))
                    node = advice.roots[int(t)]
            return int(advice.graph.action[node])
        finally:
            kernel.restore(self._base.graph)

    def _row(self, problem: Problem, s: int, a: int, reward: float | None, t: int) -> int:
        for k in range(int(problem.first[s, a]), int(problem.first[s, a + 1])):
            success = reward is not None and reward > 0.5 * sum(self._range)
            if problem.arrive[k] == t and self.sign[k] in (-1, int(success)):
                return k - int(problem.first[s, 0])
        raise ObservationError(f"state {s}, action {a}, next state {t} is outside the belief's support")


def few_policies(
    belief: DirichletBelief, sample: FiniteBelief, discount: float, horizon: int | None, count: int
) -> list[Policy]:
    """The expected MDP's policy and the optimal ones of the first few models, as stationary policies."""
    pool: list[Policy] = [stationary_optimum(belief, discount, horizon)]
    chosen = FiniteBelief.of(
        sample.models.select(np.arange(min(count - 1, sample.n_models))), reward_signal="unobserved"
    )
    pool += [StationaryPolicy(x) for x in optimal_values(chosen, discount=discount, horizon=horizon).actions]
    return list(dict.fromkeys(pool))


def stationary_optimum(belief: DirichletBelief, discount: float, horizon: int | None) -> StationaryPolicy:
    """The expected MDP's optimal policy; with a horizon, its first step."""
    if horizon is None:
        policy = policy_iteration(belief.mean(), discount=discount).policy
        assert isinstance(policy, StationaryPolicy)
        return policy
    return backward_induction(belief.mean(), discount=discount, horizon=horizon).policy.first_step()  # type: ignore[union-attr]


def span(belief: DirichletBelief, discount: float, horizon: int | None) -> float:
    """Width of the range of values."""
    low, high = reward_range(belief)
    return float((high - low) * effective_horizon(discount, horizon))


def reward_range(belief: DirichletBelief) -> tuple[float, float]:
    """Least and largest possible mean reward."""
    assert isinstance(belief.rewards, KnownRewards | BetaRewards)
    return belief.rewards.range


def planned(belief: DirichletBelief, discount: float, horizon: int | None) -> int | None:
    """The horizon to plan for: none where what comes after is worth less than 0.1% of the range of values."""
    if horizon is None or (discount < 1.0 and discount**horizon <= _TAIL):
        return None
    return horizon


def tail_correction(belief: DirichletBelief, discount: float, horizon: int | None, planned_: int | None) -> float:
    """What an infinite-horizon upper bound may be lowered by for a horizon: `r_min γ^T/(1−γ)`."""
    if horizon is None or planned_ is not None:
        return 0.0
    return float(reward_range(belief)[0] * discount**horizon / (1.0 - discount))
