"""The value of information: what knowing more would be worth, and what to measure next.

*Everything.* `E max − lower` bounds the expected value of perfect information: no knowledge, however complete, can
add more to a plan worth `lower`.

*One pair.* For a pool `Γ` of policies (MMBI, CADP, the expected MDP's, the models' own) let `V(b) = max_{π∈Γ} Σ_m b_m
V^π_m`, the value of the best plan *of the pool* at belief `b`, and `π0` its plan now. Observing something about `(s,a)`
turns `b` into `b'`, with `E b' = b`, so the expected rise is

    E[V(b')] − V(b) = E[ max_{π∈Γ} Σ_m b'_m (V^π_m − V^{π0}_m) ] ≥ 0,

the right side being the estimator: the part of `V(b')` that `π0` earns anyway has known mean and is taken out. If the
pair becomes *known* the expectation is a finite sum over groups of models that agree on it, with no sampling error. If
it is *tried k times* it is a mean over draws of a model and of `k` outcomes, the same models and uniforms for every
pair, with a betting interval on the known range.

What is proven: whoever measures the pair and then takes the best plan of the pool earns `V(b)` and the rise on average,
a lower bound on what planning after the measurement is worth. What is not: that no plan outside the pool would rise by
more. A pair of rise 0 may be worth measuring for somebody with a plan that the pool does not have; only `evpi` bounds
that. Intervals are for the rise within the pool.

The rise is that of a plan made once, after measuring; what an agent would learn anyway while acting is not counted.
For a belief that is not finite, perfect information is valued on fresh models, with an interval for the belief itself,
and single pairs as `bounds.information.measuring` says.
"""

import numpy as np

from beliefbound.beliefs import Belief, FiniteBelief
from beliefbound.bounds.basic import e_max_of, upper_bound
from beliefbound.bounds.bound import Bound, Regret, missing
from beliefbound.bounds.finite.outcomes import pair_outcomes
from beliefbound.bounds.finite.problem import named_pool, stage_values
from beliefbound.bounds.information.measuring import dirichlet_gains
from beliefbound.bounds.information.result import Information
from beliefbound.bounds.statistics.betting import mean_at_least, mean_at_most
from beliefbound.bounds.statistics.intervals import margin
from beliefbound.errors import ParameterError
from beliefbound.evaluation import evaluate
from beliefbound.limits import check_size
from beliefbound.planning.optimal import optimal_values
from beliefbound.planning.task import FiniteTask, Task
from beliefbound.policy import StationaryPolicy, TablePolicy
from beliefbound.validation import FloatArray, Rng, as_rng, check_count, check_kind, check_probability

MOST_TRIES = 10_000
_MODELS_OWN, _FEW_OWN = 64, 8  # models whose own optimal policies join the pool: finite beliefs, others


def value_of_information(
    belief: Belief,
    *,
    tries: int | None = None,
    discount: float,
    horizon: int | None = None,
    initial: FloatArray | int | None = None,
    lower: Bound | None = None,
    draws: int | None = None,
    n_models: int = 500,
    confidence: float = 0.95,
    rng: Rng = None,
) -> Information:
    """How much each (state, action) is worth measuring before choosing one of a pool of plans.

    Args:
      tries: how many more times the pair is tried; `None`: until it is known.
      lower: a lower bound to set `E max` against, such as `bracket(...).lower`; default: the value of the best
        plan of the pool.
      confidence: of all intervals for pairs together, and of `evpi` for a belief that is not finite; there a `lower`
        with an error of its own adds that error to half of this one.
      draws: simulated measurements per pair; default: 2000 for `tries` on a finite belief, 200 for a Dirichlet belief.
      n_models: models that a belief which is not finite is planned on; `evpi` uses four times as many.
      rng: a generator, a seed, or `None` for fresh randomness; used when `tries` is given or the belief is not finite.

    Two models that differ in what action 1 of state 0 does, which only matters there:

    >>> safe, risky = [1.0, 0.0], [0.0, 1.0]
    >>> good, bad = [[safe, risky], [risky, risky]], [[safe, safe], [risky, risky]]
    >>> belief = FiniteBelief([good, bad], [[0.0, -1.0], [1.0, 1.0]], initial=0)
    >>> found = value_of_information(belief, discount=1.0, horizon=3)
    >>> found.best(), round(float(found.gain[0, 1]), 3)
    ((0, 1), 0.5)
    """
    task = Task.of(belief, discount=discount, horizon=horizon, initial=initial)
    check_probability(confidence, "confidence")
    source, given = as_rng(rng), belief.finite
    if lower is not None:
        check_kind(lower, Bound, "lower", ParameterError, fix="give a Bound, such as bracket(...).lower")
    n_models = check_count(n_models, "n_models", least=2)
    finite = belief.sample(n_models, source) if given is None else given
    pool = [policy for _, policy in named_pool(FiniteTask(finite, task.start, task.discount, task.horizon))]
    likely = np.argsort(-finite.weights, kind="stable")[: _FEW_OWN if given is None else _MODELS_OWN]
    solved = optimal_values(finite.models.select(likely), discount=task.discount, horizon=task.horizon)
    pool += [StationaryPolicy(x) for x in solved.actions]
    pool = list(dict.fromkeys(pool))
    values = np.stack([stage_values(p, finite.models, task.discount, task.horizon, 0)[0] @ task.start for p in pool])
    now = int((values @ finite.weights).argmax())
    value = float(values[now] @ finite.weights)
    advantage = values - values[now]  # [policy, m]
    if tries is not None:
        tries = check_count(tries, "tries")
        if tries > MOST_TRIES:
            raise ParameterError(f"tries is {tries}; give at most {MOST_TRIES}, or None for a pair that becomes known")
    if given is not None:
        evpi = _exact_e_max(task, given, value, lower)
        if tries is None:
            gain = _known(given, advantage)
            return Information(evpi, gain, gain, gain, 1.0, value, len(pool))
        draws = _check_draws(2000 if draws is None else draws, tries)
        return _tried(given, advantage, tries, draws, confidence, source, evpi, value)
    evpi = _fresh_e_max(task, pool[now], lower, confidence, 4 * n_models, source)
    draws = _check_draws(200 if draws is None else draws, n_models, least=2)
    gains = dirichlet_gains(task, pool, now, tries=tries, draws=draws, confidence=confidence, rng=source)
    return Information(evpi, *gains, confidence, value, len(pool))


def _check_draws(draws: int, each: int, *, least: int = 1) -> int:
    """A number of simulated measurements, of `each` outcomes or models, that fits into memory."""
    draws = check_count(draws, "draws", least=least)
    check_size((draws, each), "a table of simulated measurements", ParameterError, fix="give fewer draws")
    return draws


def _exact_e_max(task: Task, belief: FiniteBelief, value: float, lower: Bound | None) -> Regret:
    """`E max − lower` of a finite belief: as sure as `lower` is."""
    finite = FiniteTask(belief, task.start, task.discount, task.horizon)
    top, scale = e_max_of(finite).value, finite.largest_value
    if lower is None:
        return Regret(missing(top, value, scale), "E max − best plan of the pool")
    return Regret(
        missing(top, lower.value, scale, exact=lower.exact),
        f"E max − {lower.method}",
        exact=lower.exact,
        confidence=lower.confidence,
        estimate=top - lower.centre,
        n_samples=lower.n_samples,
    )


def _fresh_e_max(
    task: Task, plan: TablePolicy, lower: Bound | None, confidence: float, n: int, rng: np.random.Generator
) -> Regret:
    """`E max − lower` of any belief, on models drawn after `plan` was chosen.

    Against the plan the samples are differences on the same models, `V*_m − V^π_m ≥ 0`. Against a given bound, `E max`
    has half of the error asked for, and the bound's own error is added to it.
    """
    if lower is None:
        sample = task.belief.sample(n, rng)
        best = optimal_values(sample, discount=task.discount, horizon=task.horizon).values
        own = evaluate(plan, sample, discount=task.discount, horizon=task.stages_of(plan))
        samples = np.maximum(0.0, (best - own) @ task.start)
        range_ = task.belief.reward_range
        if range_ is None:
            top = float(samples.mean()) + margin(samples, confidence=confidence, interval="t")
        else:
            width = (range_[1] - range_[0]) * task.effective_horizon
            top = mean_at_most(samples, low=0.0, high=width, alpha=1.0 - confidence)
        kind = "Student t (asymptotic)" if range_ is None else "betting"
        return Regret(
            top,
            f"E max − best plan of the pool on {n} fresh models, {kind} interval",
            exact=False,
            confidence=confidence,
            estimate=float(samples.mean()),
            n_samples=n,
        )
    high = upper_bound(
        task.belief,
        discount=task.discount,
        horizon=task.horizon,
        initial=task.start,
        method="emax",
        confidence=0.5 + 0.5 * confidence,
        n_models=n,
        rng=rng,
    )
    return Regret(
        missing(high.value, lower.value, exact=False),
        f"{high.method} − {lower.method}",
        exact=False,
        confidence=max(0.0, high.confidence + lower.confidence - 1.0),
        estimate=high.centre - lower.centre,
        n_samples=n,
    )


def _known(belief: FiniteBelief, advantage: FloatArray) -> FloatArray:
    """A sum over groups: models that agree on the pair stay together."""
    gain = np.zeros(belief.available.shape)
    for s, a in np.argwhere(belief.available):
        seen = _law(belief, s, a)
        _, group = np.unique(seen, axis=0, return_inverse=True)
        masses = np.zeros((group.max() + 1, belief.n_models))
        masses[group.ravel(), np.arange(belief.n_models)] = belief.weights
        gain[s, a] = (masses @ advantage.T).max(axis=1).sum()
    return np.maximum(gain, 0.0)


def _law(belief: FiniteBelief, s: int, a: int) -> FloatArray:
    """`[m,…]`: what there is to know of a pair in each model, transitions and rewards as they are seen."""
    if belief.signal.finite:
        return pair_outcomes(belief, s, a)[0]
    return np.column_stack([belief.models.transitions.entries(s, a)[1], belief.rewards[:, s, a]])


def _tried(
    belief: FiniteBelief,
    advantage: FloatArray,
    tries: int,
    draws: int,
    confidence: float,
    rng: np.random.Generator,
    evpi: Regret,
    value: float,
) -> Information:
    shape = belief.available.shape
    true = rng.choice(belief.n_models, size=draws, p=belief.weights)
    u = rng.random((draws, tries))
    gain, low, high = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    pairs = np.argwhere(belief.available)
    alpha = (1.0 - confidence) / (2 * len(pairs))
    ceiling = float(np.maximum(advantage, 0.0).max())
    for s, a in pairs:
        chances = pair_outcomes(belief, s, a)[0]
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
    return Information(evpi, gain, low, high, confidence, value, len(advantage))
