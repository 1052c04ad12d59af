"""What information is worth under a belief that is not finite, between ends that hold with the confidence asked for.

*Everything.* `EVPI = E max − V*`: `E max` on fresh models, from both sides by betting intervals on the range of values
– of the whole belief: what is rare may be worth knowing – and `V*` by a bracket.

*Rows of parameters, or k tries of a pair.* Let `D` be how far an information relaxation that starts from the belief
*after* the measurement stays below its own `E max` (`bounds.dirichlet.chains`): never negative. Whatever is measured,
`E max` is the same on average, so what is left to be known afterwards is worth at least `E D` and

    E[V* after] ≤ E max − E D,    EVPPI, EVSI ≤ E max − E D − V*.

Each sample of `D` draws the truth of the rows and, for tries, what they show. Known rows are counted so often (`1e12`)
that they are known for all purposes.

*From below.* Whoever measures and then follows a policy that looks ahead (`bounds.dirichlet.replanning`) under the
belief after the measurement earns no more than the best: `E[V* after] ≥ E L`, and `EVPPI, EVSI ≥ E L − V*`. And whoever
picks the best plan of a pool on models of that belief, and keeps it, is missing so much to `E max`
(`bounds.information.measuring`).
"""

from typing import Any, NamedTuple

import numpy as np

from beliefbound.base.executors.threads import available_threads, map_with_scratch
from beliefbound.base.limits import PARTICLE_BYTES
from beliefbound.base.validation import FloatArray
from beliefbound.bounds.bracket import Bracket
from beliefbound.bounds.dirichlet.arrays import posterior_of
from beliefbound.bounds.dirichlet.chains import Chain
from beliefbound.bounds.dirichlet.effort import Effort, effort
from beliefbound.bounds.dirichlet.fresh_models import FreshModels, workers
from beliefbound.bounds.dirichlet.prepared import ahead_of, whole_of
from beliefbound.bounds.dirichlet.replanning import Replanning, Workspace, policy_depth
from beliefbound.bounds.dirichlet.sampler import least_mean
from beliefbound.bounds.information.worth import Worth, between
from beliefbound.bounds.sampled import interval_for
from beliefbound.bounds.statistics.intervals import asymptotic, describe, mean_bound
from beliefbound.kernels.particles.rows import BAMDP, clear
from beliefbound.planning.optimal import optimal_values
from beliefbound.planning.task import Task

_SIZE = Effort((), 64, 500, 60)
_KNOWN = 1e12  # counts of what is known
_STAGES = 8
_STAGE = 1  # of `bounds.dirichlet.effort`: particles of the policy that looks ahead


class Known(NamedTuple):
    """`E max` lies between two ends, each of which fails with probability `alpha`."""

    low: float
    high: float
    alpha: float
    method: str
    asymptotic: bool


def known_value(task: Task, n_models: int, alpha: float, seed: int) -> Known:
    """`E max` of a belief that is not finite, from both sides by fresh models."""
    x, range_ = _solved(task, n_models, seed)
    interval: Any = interval_for(range_)
    knobs: dict[str, Any] = {"confidence": 1.0 - alpha, "range_": range_, "interval": interval}
    low, high = (mean_bound(x, side, **knobs) for side in ("lower", "upper"))
    method = f"E max on {len(x)} fresh models, {describe(interval)} intervals"
    return Known(low, high, alpha, method, asymptotic(interval))


def _solved(task: Task, n_models: int, seed: int) -> tuple[FloatArray, tuple[float, float] | None]:
    """`V*_m` of fresh models for the horizon of the task, and the range of values."""
    if posterior_of(task) is not None and (ahead_of(task).problem.horizon >= 0 or task.horizon is None):
        models = FreshModels(task, ahead_of(task), (seed, 12))
        each = 8.0 * models.scratch().size
        scratch = workers(available_threads(), models.scratch, 3.0 * each, PARTICLE_BYTES)
        models.sample(-(-n_models // models.n), scratch)
        return np.concatenate(models.values), (models.low, models.high)
    sample = task.belief.sample(n_models, np.random.default_rng((seed, 12)))
    values = optimal_values(sample, discount=task.discount, horizon=task.horizon).above @ task.start
    rewards = task.belief.reward_range
    lasts = task.effective_horizon
    return values, None if rewards is None else (rewards[0] * lasts, rewards[1] * lasts)


class SampledValues:
    """`E max` of a belief that is not finite, and what is left of it after a measurement."""

    def __init__(self, task: Task, bounds: Bracket, known: Known, seed: int) -> None:
        """`bounds` are those of `V*`, `known` those of `E max`."""
        self.task, self.seed, self.threads = task, seed, available_threads()
        self.lower, self.upper = bounds.lower.value, bounds.upper.value
        self.low, self.high, self.method = known.low, known.high, known.method
        self.confidence = bounds.confidence - 2.0 * known.alpha
        self.asymptotic = known.asymptotic or bounds.lower.asymptotic or bounds.upper.asymptotic
        self.problem = None if posterior_of(task) is None else ahead_of(task).problem

    def evpi(self) -> Worth:
        """All that there is to know."""
        method = f"{self.method}, minus bracket"
        knobs: dict[str, Any] = {"confidence": self.confidence, "asymptotic": self.asymptotic}
        return between(self.low - self.upper, self.high - self.lower, "EVPI", method, **knobs)

    def most(self, pairs: list[tuple[int, int]], tries: int | None, chains: int, alpha: float) -> float:
        """At most so much is it worth to measure rows of pairs; fails with probability `alpha` where `E max` holds."""
        endless = self.problem is not None and self.problem.horizon < 0
        if self.problem is None or (endless and self.task.horizon is not None):  # a relaxation of another problem
            return self.high - self.lower
        task, problem, address = self.task, self.problem, [13, *np.ravel(pairs).tolist(), tries or 0]
        stages = 1 if problem.horizon < 0 else 1 + min(_STAGES, problem.horizon)

        def make() -> Chain:
            return Chain(task, problem, self.seed, stages, _SIZE)

        def one(i: int, chain: Chain) -> float:
            rng = np.random.default_rng((self.seed, *address, i))
            chain.problem = measured(problem, pairs, tries, rng)
            return chain.run(i).whole

        drops = map_with_scratch(one, range(chains), workers(self.threads, make, PARTICLE_BYTES, 4.0 * PARTICLE_BYTES))
        return self.high - least_mean(np.array(drops), 0.0, alpha) - self.lower

    def least(self, pairs: list[tuple[int, int]], tries: int | None, walks: int, alpha: float) -> float:
        """At least so much is it worth to measure rows of pairs, by `walks` of a policy that looks ahead afterwards;
        fails with probability `alpha` where the bracket holds. No less than 0."""
        if self.problem is None:
            return 0.0
        task, address = self.task, [14, *np.ravel(pairs).tolist(), tries or 0]
        levels = effort(self.problem, _STAGE, 1, policy_depth(task.discount, task.horizon)).levels
        if not levels:
            return 0.0
        whole, base = whole_of(task).at(self.seed), Replanning(task, self.seed, levels)

        def one(i: int, space: Workspace) -> float:
            rng = np.random.default_rng((self.seed, *address, i))
            planner = Replanning(task, self.seed, levels, problem=measured(whole, pairs, tries, rng))
            planner.floor = base.floor  # one for all samples; the least that any policy earns is no less now
            for each in space.spaces:
                clear(each.rows)
            return planner.simulate(rng, space)[0]

        spaces = workers(self.threads, base.workspace, PARTICLE_BYTES, 4.0 * PARTICLE_BYTES)
        earned = np.array(map_with_scratch(one, range(walks), spaces))
        return max(0.0, least_mean(earned, base.floor, alpha) - self.upper)


def measured(problem: BAMDP, pairs: list[tuple[int, int]], tries: int | None, rng: np.random.Generator) -> BAMDP:
    """The belief after rows of pairs were measured: known, or tried so many times each."""
    posterior = problem.posterior
    alpha, reward = posterior.alpha.copy(), posterior.reward.copy()
    drawn: dict[int, FloatArray] = {}
    for s, a in pairs:
        pair = s * posterior.n_actions + a
        row = int(posterior.row[pair]) if posterior.tied else pair
        if row not in drawn:
            drawn[row] = _dirichlet(posterior.alpha[row], rng)
            if tries is None:
                alpha[row] = np.where(posterior.alpha[row] > 0.0, _KNOWN * drawn[row], 0.0)
        if tries is not None:
            alpha[row] += rng.multinomial(tries, drawn[row])
        if len(reward) > 1:
            chances = _dirichlet(posterior.reward[:, pair], rng)
            reward[:, pair] = reward[:, pair] + rng.multinomial(tries, chances) if tries else _KNOWN * chances
    return problem._replace(posterior=posterior._replace(alpha=alpha, reward=reward))


def _dirichlet(alpha: FloatArray, rng: np.random.Generator) -> FloatArray:
    """A draw that does not underflow: the largest of `log U / α + log G(α + 1)` is put to 0."""
    held = alpha > 0.0
    logs = np.log(rng.gamma(alpha[held] + 1.0)) - rng.exponential(size=int(held.sum())) / alpha[held]
    chances = np.zeros(len(alpha))
    chances[held] = np.exp(logs - logs.max())
    found: FloatArray = chances / chances.sum()
    return found
