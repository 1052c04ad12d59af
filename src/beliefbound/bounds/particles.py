"""Brackets for beliefs that are not finite: `DirichletBelief` with known or Bernoulli rewards.

*From above.* `V*_ξ` is convex in `ξ` and a particle set `ξ̂_n` is unbiased for `ξ`, so `E[V*_{ξ̂_n}] ≥ V*_ξ`: the
information relaxation on a particle set, averaged over independent sets. Few particles are learnt quickly and make it
loose, so sets have thousands (`particle_bias` shows how much more would help). Sets differ mainly by how good their
models happen to be; the mean of `V*_m` over a set, whose expectation comes from many more models, is taken out as a
control variate with coefficient one. The interval is Student's over sets (plus the error of that expectation):
asymptotic.

*From below.* A policy that sees the history only has a value that is linear in the belief, so it can be simulated
under the belief itself (`bounds.replanning`): unbiased however poor its particles. Student's interval over
trajectories: asymptotic.
"""

import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any

import numpy as np
import scipy.stats as stats

from beliefbound.beliefs import Belief, DirichletBelief
from beliefbound.bounds.bound import Bound
from beliefbound.bounds.dirichlet import few_policies, planned, span, tail_correction
from beliefbound.bounds.relaxation import Certifier
from beliefbound.bounds.replanning import Advice, ParticlePolicy
from beliefbound.bounds.simple import lower_bound, start_of, upper_bound
from beliefbound.kernels.lookahead import values_from_above
from beliefbound.planning.mmbi import mmbi
from beliefbound.threads import available_threads
from beliefbound.validation import FloatArray, check_count, check_discount, check_probability

_DROP = 1e-6
_SMALL, _LARGE, _PER_SECOND = 4000, 128_000, 800  # particles of a set; a longer time limit affords more
_CORE = 60
_NODES, _BLOCK = 300, 2  # beliefs a scenario may expand, scenarios that share them
_MEAN_ENTRIES = 10_000
_WORK = 300_000  # particles times scenarios of a set: large sets have fewer scenarios, so that there are more sets


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
    rounds = [(_SMALL, 0.9 * error, 1.0)]
    if log.limit > 15.0:
        large = min(_LARGE, int(_PER_SECOND * log.limit))
        rounds = [(_SMALL, 0.1 * error, 0.1), (large, 0.8 * error, 1.0)]
    for size, alpha, share in rounds:
        until = log.left - min(log.left, share * log.limit)
        sampler.upper(size, 0.55 * (log.left - until), alpha / 2.0, log)
        if log.done:
            return
        sampler.lower(0.9 * (log.left - until), alpha / 2.0, log)
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
    def policy(self) -> ParticlePolicy:
        return ParticlePolicy(self.belief, self.start, self.discount, self.horizon, self.seed)

    @cached_property
    def _graphs(self) -> list[Advice]:
        return [self.policy.graphs() for _ in range(self.threads)]

    def simulate(self, count: int) -> None:
        """`count` more trajectories."""
        graphs = self._graphs
        self.values += self._parallel(
            lambda i, worker: self.policy.simulate(self.rng(1, i), graphs[worker]), len(self.values), count
        )

    def relax(self, n: int, count: int) -> None:
        """`count` more sets of `n` particles."""
        done = self.sets.setdefault(n, [])
        done += self._parallel(lambda i, _: self.particle_set(n, i), len(done), count)

    def lower(self, seconds: float, alpha: float, log: Any) -> None:
        """Trajectories for about `seconds`, then the lower bound they give."""
        until = time.perf_counter() + seconds
        count = 16 * self.threads
        while True:
            began = time.perf_counter()
            self.simulate(count)
            each = (time.perf_counter() - began) / count
            room = (until - time.perf_counter()) / each
            if room < 2 * self.threads:
                break
            count = max(self.threads, int(min(4 * count, 0.7 * room)) // self.threads * self.threads)
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
        while True:
            began = time.perf_counter()
            self.relax(n, self.threads)
            each = time.perf_counter() - began
            if len(self.sets[n]) >= 4 and until - time.perf_counter() < 0.8 * each:
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
            f"information relaxation on {len(adjusted)} sets of {n} particles, {scenarios(n)} scenarios each; "
            f"Student t over sets (asymptotic)",
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
            max_nodes=_NODES,
            block=_BLOCK,
            drop=_DROP,
            entries=_BLOCK * _NODES * min(n, _MEAN_ENTRIES + n // 2) + _CORE * n,
        )
        certifier.tolerance = 1e-3 * span(self.belief, self.discount, horizon) / 10.0
        certifier.grow(certifier.core_nodes)
        certifier.settle()
        address = rng.integers(0, 2**64, size=4, dtype=np.uint64)
        costs = certifier.sample(address, 0, scenarios(n), clip=np.inf, stop=-1.0, threads=1)
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


def scenarios(n: int) -> int:
    """How many scenarios a set of `n` particles gets."""
    return max(3, min(16, _WORK // (_BLOCK * n))) * _BLOCK


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
        sampler.relax(n, sets)
    return tuple(sampler.upper_of(n, 1.0 - check_probability(confidence, "confidence")) for n in sizes)
