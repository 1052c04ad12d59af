"""The paper's theorems as functions, and the repair of the lemma that needs it: `beliefbound.theory`.

With `c = r_max / (1 − γ)`:

* Lemma 1: truncating at `T ≥ log_γ(ε/c)` decisions costs at most `ε`.
* Lemma 2 (as printed): `n = (3c/ε)³` sampled models bound the expected loss of MSBI by `ε`. Its proof uses Hoeffding's
  inequality for a policy picked on the same sample.
* Uniform repair: there are `|A|^{|S|T}` deterministic time-indexed policies, so with probability `1 − δ` the sample
  average of *every* one of them is within `c sqrt((|S| T ln|A| + ln(2/δ)) / (2n))` of its expectation; the best on
  the sample is then within twice that of the best.
* Theorem 1: if every future belief is within `ε` of the current one in L1, MMBI is within `r_max (1−γ)^{-2} ε` of
  optimal.
* Theorem 2: operations for MSBI to be `ε`-close to the best MMBI policy.

The proofs use `0 ≤ r ≤ r_max`; for other ranges pass the width `r_max − r_min`.
"""

import math

import numpy as np

from beliefbound.base.errors import ParameterError
from beliefbound.base.validation import check_count, check_discount, check_positive, check_probability
from beliefbound.planning.lemmas import lemma2_models, truncation_stages, value_scale

__all__ = [
    "cost_estimate",
    "lemma2_models",
    "theorem1_regret",
    "truncation_stages",
    "uniform_deviation",
    "uniform_models",
]


def uniform_deviation(
    n_models: int, *, n_states: int, n_actions: int, horizon: int, discount: float, r_max: float, delta: float = 0.05
) -> float:
    """The repair: with probability `1 − delta`, how far any policy's sample average is from its expected value.

    >>> round(uniform_deviation(10_000, n_states=5, n_actions=2, horizon=20, discount=0.9, r_max=1.0), 3)
    0.604
    """
    n = check_count(n_models, "n_models")
    return value_scale(discount, r_max) * math.sqrt(_complexity(n_states, n_actions, horizon, delta) / (2 * n))


def uniform_models(
    epsilon: float, *, n_states: int, n_actions: int, horizon: int, discount: float, r_max: float, delta: float = 0.05
) -> int:
    """The repair, solved for the models that make `uniform_deviation` at most `epsilon`.

    >>> uniform_models(0.604, n_states=5, n_actions=2, horizon=20, discount=0.9, r_max=1.0)
    10006
    """
    epsilon = check_positive(epsilon, "epsilon")
    ratio = value_scale(discount, r_max) / epsilon
    models = min(ratio, 1e150) ** 2 * _complexity(n_states, n_actions, horizon, delta) / 2
    if not models < 1e100:
        raise ParameterError(f"epsilon is {epsilon:g}, which asks for {models:.1g} models; give a larger one")
    return max(1, math.ceil(models))


def theorem1_regret(distance: float, *, discount: float, r_max: float) -> float:
    """Theorem 1: how far MMBI can be from Bayes-optimal when no future belief moves further than `distance` in L1.

    `belief_distance` measures that between two beliefs.

    >>> round(theorem1_regret(0.01, discount=0.9, r_max=1.0), 9)
    1.0
    """
    if not isinstance(distance, int | float | np.number) or not 0.0 <= distance <= 2.0:
        raise ParameterError(f"distance is {distance}; the L1 distance between beliefs lies between 0 and 2")
    return value_scale(discount, r_max) / (1.0 - check_discount(discount, None)) * float(distance)


def cost_estimate(
    epsilon: float, *, n_states: int, n_actions: int, discount: float, r_max: float, n_models: int | None = None
) -> float:
    """Operations the paper's formulas ask for.

    With `n_models`: MMBI to within `epsilon`, `[M S² (A+1) + (1+M) S A] log_γ(ε/c)` (Lemma 1). Without: MSBI,
    `(6c/ε)³ S² A log_γ(ε/(2c))` (Theorem 2).

    >>> f"{cost_estimate(0.1, n_states=5, n_actions=2, discount=0.95, r_max=1.0, n_models=16):.3g}"
    '1.42e+05'
    """
    scale, epsilon = value_scale(discount, r_max), check_positive(epsilon, "epsilon")
    states, actions = check_count(n_states, "n_states"), check_count(n_actions, "n_actions")
    if n_models is not None:
        models = check_count(n_models, "n_models")
        stages = truncation_stages(epsilon, discount=discount, r_max=r_max)
        return float((models * states**2 * (actions + 1) + (1 + models) * states * actions) * stages)
    stages = truncation_stages(epsilon / 2, discount=discount, r_max=r_max)
    ratio = 6.0 * scale / epsilon
    if ratio > 1e100:
        raise ParameterError(f"epsilon is {epsilon:g}, which asks for {ratio:.1g}³ models; give a larger one")
    return float(ratio**3 * states**2 * actions * stages)


def _complexity(n_states: int, n_actions: int, horizon: int, delta: float) -> float:
    policies: float = check_count(n_states, "n_states") * check_count(horizon, "horizon")
    policies *= math.log(check_count(n_actions, "n_actions"))
    return policies + math.log(2.0) - math.log(check_probability(delta, "delta"))
