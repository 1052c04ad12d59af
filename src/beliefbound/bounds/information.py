"""The value of information: what knowing more would be worth, and what to measure next.

*Everything.* `E max − lower` bounds the expected value of perfect information: no knowledge, however complete, can
add more to a plan worth `lower`.

*One pair.* For a pool `Γ` of policies (MMBI, CADP, the expected MDP's, the models' own) let `V(b) = max_{π∈Γ} Σ_m b_m
V^π_m`, the value of the best plan at belief `b`, and `π0` its plan now. Observing something about `(s,a)` turns `b`
into `b'`, with `E b' = b`, so the expected rise is

    E[V(b')] − V(b) = E[ max_{π∈Γ} Σ_m b'_m (V^π_m − V^{π0}_m) ] ≥ 0,

the right side being the estimator: the part of `V(b')` that `π0` earns anyway has known mean and is taken out. If the
pair becomes *known* the expectation is a finite sum over groups of models that agree on it: exact. If it is *tried k
times* it is a mean over draws of a model and of `k` outcomes, the same models and uniforms for every pair, with a
betting interval on the known range.

The rise is that of a plan made once, after measuring; what an agent would learn anyway while acting is not counted.
For a belief that is not finite, a sample of `n_models` stands for it: the figures are those of the sample.
"""

from typing import NamedTuple

import numpy as np

from beliefbound.beliefs import Belief
from beliefbound.beliefs.finite import FiniteBelief
from beliefbound.bounds.betting import mean_at_least, mean_at_most
from beliefbound.bounds.bound import Bound
from beliefbound.bounds.problem import outcome_rows, policy_pool, stage_values
from beliefbound.bounds.simple import e_max, require, start_of
from beliefbound.planning.optimal import optimal_values
from beliefbound.policy import StationaryPolicy
from beliefbound.validation import FloatArray, check_count, check_discount, check_probability

_MODELS_OWN = 64


class Information(NamedTuple):
    """What measuring is worth, in units of value.

    Attributes:
      evpi: upper bound on the value of perfect information.
      gain: `[s,a]`, expected rise of the best plan's value after measuring the pair.
      low, high: `[s,a]`, interval for `gain`; equal to it where it is exact.
      confidence: with which all intervals hold together; 1 when exact.
      value: of the best plan now.
    """

    evpi: Bound
    gain: FloatArray
    low: FloatArray
    high: FloatArray
    confidence: float
    value: float

    def best(self) -> tuple[int, int]:
        """The pair whose measurement is worth most (ties: lowest)."""
        s, a = np.unravel_index(int(self.gain.argmax()), self.gain.shape)
        return int(s), int(a)


def value_of_information(
    belief: Belief,
    *,
    tries: int | None = None,
    discount: float,
    horizon: int | None = None,
    initial: FloatArray | int | None = None,
    lower: Bound | None = None,
    draws: int = 2000,
    n_models: int = 500,
    confidence: float = 0.95,
    rng: np.random.Generator | None = None,
) -> Information:
    """How much each (state, action) is worth measuring before planning.

    Args:
      tries: how many more times the pair is tried; `None`: until it is known.
      lower: a lower bound to set `E max` against, such as `bracket(...).lower`; default: the best plan's value.
      draws: simulated measurements per pair when `tries` is given.
      n_models: size of the sample that stands for a belief that is not finite.
      rng: needed when `tries` is given or the belief is not finite.

    Two models that differ in what action 1 of state 0 does, which only matters there:

    >>> safe, risky = [1.0, 0.0], [0.0, 1.0]
    >>> good, bad = [[safe, risky], [risky, risky]], [[safe, safe], [risky, risky]]
    >>> belief = FiniteBelief([good, bad], [[0.0, -1.0], [1.0, 1.0]], initial=0)
    >>> found = value_of_information(belief, discount=1.0, horizon=3)
    >>> found.best(), round(float(found.gain[0, 1]), 3)
    ((0, 1), 0.5)
    """
    discount = check_discount(discount, horizon)
    start = start_of(belief, initial)
    finite = belief if isinstance(belief, FiniteBelief) else belief.sample(n_models, require(rng))
    pool = policy_pool(finite, discount=discount, horizon=horizon, initial=start)
    own = finite.models.select(np.argsort(-finite.weights, kind="stable")[:_MODELS_OWN])
    pool += [StationaryPolicy(x) for x in optimal_values(own, discount=discount, horizon=horizon).actions]
    pool = list(dict.fromkeys(pool))
    values = np.stack([stage_values(p, finite.models, discount, horizon, 0)[0] @ start for p in pool])
    now = int((values @ finite.weights).argmax())
    value = float(values[now] @ finite.weights)
    advantage = values - values[now]  # [policy, m]
    top = float(start @ e_max(finite, discount=discount, horizon=horizon))
    method = "E max − " + ("best plan of the pool" if lower is None else lower.method)
    exact = isinstance(belief, FiniteBelief) and (lower is None or lower.exact)
    if not isinstance(belief, FiniteBelief):
        method += f", on {n_models} sampled models"
    evpi = Bound(
        top - (value if lower is None else lower.value),
        "upper",
        method,
        exact=exact,
        confidence=1.0 if exact else (lower.confidence if lower is not None and not lower.exact else confidence),
        n_samples=0 if exact else n_models,
    )
    if tries is None:
        gain = _known(finite, advantage)
        return Information(evpi, gain, gain, gain, 1.0, value)
    tries = check_count(tries, "tries")
    check_probability(confidence, "confidence")
    return _tried(finite, advantage, tries, check_count(draws, "draws"), confidence, require(rng), evpi, value)


def _known(belief: FiniteBelief, advantage: FloatArray) -> FloatArray:
    """Exact: models that agree on the pair stay together."""
    models = belief.models
    p, r = models.dense(), models.rewards
    gain = np.zeros(models.available.shape)
    for s, a in np.argwhere(models.available):
        seen = p[:, s, a] if belief.reward_signal == "unobserved" else np.column_stack([p[:, s, a], r[:, s, a]])
        _, group = np.unique(seen, axis=0, return_inverse=True)
        masses = np.zeros((group.max() + 1, belief.n_models))
        masses[group.ravel(), np.arange(belief.n_models)] = belief.weights
        gain[s, a] = (masses @ advantage.T).max(axis=1).sum()
    return np.maximum(gain, 0.0)


def _tried(
    belief: FiniteBelief,
    advantage: FloatArray,
    tries: int,
    draws: int,
    confidence: float,
    rng: np.random.Generator,
    evpi: Bound,
    value: float,
) -> Information:
    like, _, first, _ = outcome_rows(belief)
    models = belief.models
    shape = models.available.shape
    true = rng.choice(belief.n_models, size=draws, p=belief.weights)
    u = rng.random((draws, tries))
    gain, low, high = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    pairs = np.argwhere(models.available)
    alpha = (1.0 - confidence) / (2 * len(pairs))
    ceiling = float(np.maximum(advantage, 0.0).max())
    for s, a in pairs:
        chances = like[:, first[s, a] : first[s, a + 1]]
        cumulative = np.cumsum(chances / chances.sum(axis=1, keepdims=True), axis=1)
        outcomes = (u[:, :, None] >= cumulative[true][:, None, :-1]).sum(axis=-1)  # [draw, try]
        counts = np.zeros((draws, chances.shape[1]))
        np.add.at(counts, (np.arange(draws)[:, None], outcomes), 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.where(counts[:, None, :] > 0, counts[:, None, :] * np.log(chances)[None], 0.0).sum(axis=-1)
            logs = logs + np.log(belief.weights)
        posterior = np.exp(logs - logs.max(axis=1, keepdims=True))
        posterior /= posterior.sum(axis=1, keepdims=True)
        x = np.clip((posterior @ advantage.T).max(axis=1), 0.0, ceiling)
        gain[s, a] = x.mean()
        low[s, a] = mean_at_least(x, low=0.0, high=ceiling, alpha=alpha)
        high[s, a] = mean_at_most(x, low=0.0, high=ceiling, alpha=alpha)
    return Information(evpi, gain, low, high, confidence, value)
