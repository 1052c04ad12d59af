"""MSBI: multi-sample backwards induction (Algorithm 2 of the paper).

Draw `n` models from the belief, run MMBI on them with equal weights. The value MMBI reports on those very models is
biased upwards, because the policy was picked on them; so the plan's values come from *fresh* models, drawn afterwards.
They are unbiased estimates of the policy's value under the belief; `beliefbound.lower_bound` turns such a sample into a
bound with stated confidence.
"""

from typing import Any

import numpy as np

from beliefbound.base.errors import ParameterError
from beliefbound.base.validation import Rng, as_rng, check_count
from beliefbound.beliefs import Belief, FiniteBelief
from beliefbound.beliefs.device_draws import sample_on
from beliefbound.models.device import Device
from beliefbound.planning.lemmas import lemma2_models
from beliefbound.planning.mmbi import mmbi, truncation_horizon
from beliefbound.planning.plan import Plan, plan_for
from beliefbound.planning.task import FiniteTask, Task

_DEFAULT_MODELS = 64
_MOST_MODELS = 10_000_000


def msbi(
    belief: Belief,
    *,
    discount: float,
    horizon: int | None = None,
    epsilon: float | None = None,
    n_models: int | None = None,
    n_evaluate: int = 1000,
    device: Any = None,
    rng: Rng = None,
) -> Plan:
    """A memoryless policy for any belief that can be sampled.

    Args:
      belief: finite or Dirichlet.
      discount: in [0, 1]; below 1 when there is no horizon.
      horizon: number of decisions. With neither horizon nor epsilon the policy is stationary.
      epsilon: accuracy. Sets the truncation horizon (Lemma 1) when there is no horizon, and the number of models by
        the paper's Lemma 2 as printed, `(3 r_max / (ε (1−γ)))³`, when `n_models` is not given.
      n_models: models to plan with; default 64 when there is no epsilon either.
      n_evaluate: fresh models that value the policy.
      device: where models are drawn, swept and valued, as for `FiniteBelief.on`; draws are others than without one.
      rng: source of randomness: a generator, a seed, or `None` for fresh randomness.

    Returns:
      A `Plan` on the fresh models. `plan.note` gives the optimistic in-sample value for comparison.

    >>> from beliefbound import DirichletBelief
    >>> plan = msbi(DirichletBelief(2, 2), discount=0.9, horizon=20, n_models=8, rng=0)
    >>> plan.model_values.shape
    (1000, 2)
    """
    task = Task.of(belief, discount=discount, horizon=horizon)
    n_evaluate = check_count(n_evaluate, "n_evaluate")
    source = as_rng(rng)
    if n_models is None:
        n_models = _DEFAULT_MODELS if epsilon is None else _lemma2(belief, source, task.discount, epsilon)
    where = None if device is None else Device.named(device)
    sample = _drawn(belief, check_count(n_models, "n_models"), source, where)
    if horizon is None and epsilon is not None:
        horizon = truncation_horizon(sample.models, task.discount, epsilon)
    chosen = mmbi(sample, discount=task.discount, horizon=horizon)
    note = f"value on the {n_models} models it was planned on, biased upwards: {chosen.value():.6g}"
    fresh = FiniteTask.of(_drawn(belief, n_evaluate, source, where), discount=task.discount, horizon=horizon)
    return plan_for(
        chosen.policy,
        fresh,
        converged=chosen.converged,
        residual=chosen.residual,
        note="; ".join(filter(None, (note, chosen.note))),
    )


def _drawn(belief: Belief, n: int, rng: np.random.Generator, device: Device | None) -> FiniteBelief:
    return belief.sample(n, rng) if device is None else sample_on(belief, n, rng, device)


def _lemma2(belief: Belief, rng: np.random.Generator, discount: float, epsilon: float) -> int:
    low, high = belief.sample(1, rng).reward_range
    largest = max(abs(low), abs(high))
    wanted = lemma2_models(epsilon, discount=discount, r_max=largest) if largest > 0.0 else 1
    if wanted > _MOST_MODELS:
        raise ParameterError(
            f"epsilon {epsilon:g} asks for {wanted:.3g} models by Lemma 2; pass n_models=... or a larger epsilon"
        )
    return wanted
