"""What information is worth under a finite belief, between proven ends.

Learning something splits the belief `b` into parts: weights `b_g[m]` that sum to `b`, one for each thing that may be
learnt, `V*(b_g)` homogeneous in them. What it is worth is `Σ_g V*(b_g) − V*(b)`, and each term has an upper and a
lower bound, hence the difference has. A part is bounded

* from below by the best of a pool of policies, `max_π Σ_m b_g[m] V^π_m`;
* from above by QMDP, and by what is known of `b` itself: `V*` is convex, so with `c = min_m b_g[m]/b[m]`
  `V*(b_g) ≤ Σ_m b_g[m] V*_m − c (Σ_m b[m] V*_m − U(b))` (a sawtooth);
* both ways by a search in the graph of beliefs that starts at `b_g`, for the parts whose bounds are furthest apart.

Where a pair is tried so often that the outcomes are too many to list, they are drawn: the pool's rise over the present
plan, and what the upper bound leaves to be known, are samples that are not negative, with betting intervals.
"""

import math
from collections.abc import Sequence
from itertools import combinations_with_replacement

import numpy as np

from beliefbound.base.validation import FloatArray
from beliefbound.beliefs import FiniteBelief
from beliefbound.beliefs.amounts import groups
from beliefbound.bounds.bracket import Bracket
from beliefbound.bounds.finite.outcomes import pair_outcomes
from beliefbound.bounds.finite.pairs import with_pairs
from beliefbound.bounds.finite.pool import policies_of
from beliefbound.bounds.finite.problem import allowance_of, problem_of, search_depth, values_of
from beliefbound.bounds.finite.relaxation import Certifier
from beliefbound.bounds.information.worth import Worth, between
from beliefbound.bounds.record import ROUNDED
from beliefbound.bounds.statistics.betting import mean_at_least
from beliefbound.models.enclosing import rounding_of
from beliefbound.planning.optimal import solved_models, surely
from beliefbound.planning.rounding import Allowance, ChainErrors
from beliefbound.planning.task import FiniteTask
from beliefbound.policy import StationaryPolicy, TablePolicy

_MODELS_OWN = 64  # models whose own optimal policies join the pool
_MOST_OUTCOMES = 1000  # sequences of observations that are listed
_SEARCHED = 64  # parts of one split that are searched
_CLOSE = 1e-7  # of the value: bounds that are not worth a search


def values_below(task: FiniteTask, policy: TablePolicy) -> FloatArray:
    """`[m,s]`: the value of a policy on each model, rounded down."""
    values = values_of(task, policy, 0)[0]
    if task.horizon is None:
        return np.asarray(values)
    return np.asarray(values - ChainErrors(task)(values.T, np.arange(task.models.n_states)).T)


class FiniteValues:
    """Bounds on `V*` of a finite belief and of its parts."""

    def __init__(self, task: FiniteTask, nodes: int, bounds: Bracket | None = None) -> None:
        """`nodes`: of the graph that each search may make. `bounds`: what is known of the belief itself."""
        self.task, self.nodes = task, nodes
        models, discount, horizon = task.models, task.discount, task.horizon
        self.pool, solved = policies_of(task), solved_models(task)
        likely = np.argsort(-task.weights, kind="stable")[:_MODELS_OWN]
        self.pool = list(dict.fromkeys([*self.pool, *map(StationaryPolicy, solved.actions[likely])]))
        self.alpha = np.stack([values_below(task, policy) @ task.start for policy in self.pool])  # [policy,m]
        self.own: FloatArray = solved.above @ task.start  # [m]
        self.surely: FloatArray = surely(models, solved, discount, horizon) @ task.start  # [m]
        self._q = np.where(models.available, solved.q_above, 0.0)[:, task.start > 0.0]
        self._offered = models.available[task.start > 0.0]
        self._problem = None
        if task.belief.signal.finite:
            problem = problem_of(task, stages=search_depth(task, len(self.pool)), policies=self.pool)
            self._problem = with_pairs(problem, task)
        self._found: dict[bytes, tuple[float, float]] = {}
        self._allowance = Allowance(task) if self._problem is None else allowance_of(task, self._problem)
        self.known = self._allowance.upper(float(task.weights @ self.own))
        self.upper = self.known
        below, above = self._apart(task.weights[None])
        self.lower, self.upper = self._searched(task.weights, float(below[0]), float(above[0]), 4 * nodes)
        self.confidence, self.method = 1.0, "search in the graph of beliefs"
        if bounds is not None and (bounds.lower.value > self.lower or bounds.upper.value < self.upper):
            self.lower = max(self.lower, float(bounds.lower.value))
            self.upper = min(self.upper, float(bounds.upper.value))
            self.confidence, self.method = bounds.confidence, "bracket"

    def evpi(self) -> Worth:
        """All that there is to know."""
        surely = self._allowance.lower(float(self.task.weights @ self.surely))
        low, high = surely - self.upper, self.known - self.lower
        return self._between(low, high, "EVPI", f"E max − {self.method}", self.confidence)

    def _between(self, low: float, high: float, of: str, method: str, confidence: float) -> Worth:
        return between(low, high, of, method, confidence=confidence)

    @property
    def rounding(self) -> float:
        """What is worth no more than this may be worth nothing."""
        return ROUNDED * (self._allowance(self.lower, "lower") + self._allowance(self.upper, "upper"))

    def worth(self, parts: FloatArray, of: str) -> Worth:
        """What a split into parts `[g,m]`, which sum to the belief, is worth."""
        parts = parts[parts.sum(axis=1) > 0.0]
        method = f"search in the graph of beliefs after each of {len(parts)} things to learn"
        shapes = parts / parts.sum(axis=1, keepdims=True)
        if np.allclose(shapes, self.task.weights, rtol=1e-12, atol=1e-15):
            return Worth(0.0, 0.0, of, "nothing to learn")
        low, high = self._apart(parts)
        close = _CLOSE * max(abs(self.lower), abs(self.upper))
        for g in np.argsort(-(high - low), kind="stable")[:_SEARCHED]:
            if high[g] - low[g] > close:
                low[g], high[g] = self._searched(parts[g], low[g], high[g], self.nodes)
        top = min(float(high.sum()), self.known) - self.lower
        return self._between(float(low.sum()) - self.upper, top, of, method, self.confidence)

    def drawn(self, parts: FloatArray, alpha: float, of: str) -> Worth:
        """What learning is worth from beliefs `[i,m]` drawn as it may leave them; each end fails with `alpha`."""
        low, high = self._apart(parts)
        present = int((self.alpha @ self.task.weights).argmax())
        rise = np.maximum(0.0, low - parts @ self.alpha[present])
        ceiling = float(np.maximum(self.alpha - self.alpha[present], 0.0).max())
        unknown = np.maximum(0.0, parts @ self.own - high)
        most = float(self.own.max() - self.alpha.min())
        after = float(self.alpha[present] @ self.task.weights)
        after += mean_at_least(np.minimum(rise, ceiling), low=0.0, high=ceiling, alpha=alpha)
        top = self.known - mean_at_least(np.minimum(unknown, most), low=0.0, high=most, alpha=alpha)
        method = f"{len(parts)} simulated measurements, betting intervals"
        return self._between(after - self.upper, top - self.lower, of, method, self.confidence - 2.0 * alpha)

    def _apart(self, parts: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Bounds `[g]` of parts without a search, rounding included."""
        weights, start = self.task.weights, self.task.start[self.task.start > 0.0]
        low = self._summed(parts, self.alpha.T, -1.0).max(axis=1)
        alone = np.count_nonzero(parts, axis=1) == 1  # a model that is known is solved
        low = np.where(alone, self._summed(parts, self.surely, -1.0), low)
        q = np.where(self._offered, self._summed(parts, self._q, 1.0), -np.inf)
        high = q.max(axis=-1) @ start
        held = weights > 0.0
        share = (parts[:, held] / weights[held]).min(axis=1)
        known = self._summed(weights[None], self.own, -1.0)[0]
        tooth = self._summed(parts, self.own, 1.0) - share * max(0.0, known - self.upper)
        return low, np.minimum(high, tooth)

    def _summed(self, parts: FloatArray, values: FloatArray, up: float) -> FloatArray:
        """`Σ_m b_m x_m` of parts `[g,m]` and values `[m,…]`, rounded up, or down where `up` is −1."""
        rounding = up * rounding_of(2 * len(values) + self.task.models.n_states)
        summed: FloatArray = np.tensordot(parts, values, axes=1)
        return summed + rounding * np.tensordot(parts, np.abs(values), axes=1)

    def _searched(self, part: FloatArray, low: float, high: float, nodes: int) -> tuple[float, float]:
        """The same with a search, where what is seen of rewards allows one."""
        mass = float(part.sum())
        weights = part / mass
        if self._problem is None or np.count_nonzero(part) == 1:
            return low, high
        key = weights.tobytes()
        if key not in self._found:
            task = self.task.reweighted(weights)
            certifier = Certifier(task, self._problem, self.pool, core_nodes=nodes, max_nodes=1)
            certifier.grow(nodes, _CLOSE * max(abs(certifier.lower), abs(certifier.upper)))
            self._found[key] = certifier.proven
        lower, upper = self._found[key]
        return max(low, mass * lower), min(high, mass * upper)


def split_by_laws(belief: FiniteBelief, pairs: Sequence[tuple[int, int]]) -> FloatArray:
    """Parts `[g,m]` of a belief whose models agree on all the pairs, up to rounding (`beliefs.amounts`): what is left
    when these are known, as they are seen."""
    if belief.signal.finite:
        group = groups(np.concatenate([pair_outcomes(belief, s, a)[0] for s, a in pairs], axis=1))
    else:
        laws = np.concatenate([belief.models.transitions.entries(s, a)[1] for s, a in pairs], axis=1)
        group = groups(laws, np.stack([belief.rewards[:, s, a] for s, a in pairs], axis=1), belief.rewards)
    parts = np.zeros((group.max() + 1, belief.n_models))
    parts[group, np.arange(belief.n_models)] = belief.weights
    return parts


def split_by_tries(belief: FiniteBelief, s: int, a: int, tries: int) -> FloatArray | None:
    """Parts `[g,m]` of a belief after `tries` of a pair, one for each count of outcomes; nothing if there are many."""
    from scipy.special import gammaln

    chances = pair_outcomes(belief, s, a)[0]
    k = chances.shape[1]
    if math.comb(tries + k - 1, k - 1) > _MOST_OUTCOMES:
        return None
    seen = combinations_with_replacement(range(k), tries)
    counts = np.array([np.bincount(x, minlength=k) for x in seen], dtype=np.float64)
    ways = gammaln(tries + 1.0) - gammaln(counts + 1.0).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(counts[:, None] > 0, counts[:, None] * np.log(chances)[None], 0.0).sum(axis=-1)
    parts: FloatArray = belief.weights * np.exp(logs + ways[:, None])
    return parts


def draw_tries(belief: FiniteBelief, s: int, a: int, u: FloatArray, true: np.ndarray) -> FloatArray:
    """Beliefs `[i,m]` after tries of a pair, by uniforms `u[i,try]` in the models `true[i]`."""
    chances = pair_outcomes(belief, s, a)[0]
    cumulative = np.cumsum(chances / chances.sum(axis=1, keepdims=True), axis=1)
    outcomes = (u[:, :, None] >= cumulative[true][:, None, :-1]).sum(axis=-1)  # [draw, try]
    counts = np.zeros((len(u), chances.shape[1]))
    np.add.at(counts, (np.arange(len(u))[:, None], outcomes), 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(counts[:, None, :] > 0, counts[:, None, :] * np.log(chances)[None], 0.0).sum(axis=-1)
        logs = logs + np.log(belief.weights)
    posterior = np.exp(logs - logs.max(axis=1, keepdims=True))
    found: FloatArray = posterior / posterior.sum(axis=1, keepdims=True)
    return found
