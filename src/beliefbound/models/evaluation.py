"""The exact value of a policy on each of a set of models.

Finite horizon: `V_k(s) = Σ_a π_k(a|s) [r(s,a) + γ Σ_t P(t|s,a) V_{k+1}(t)]` from `V_T = 0`; exact up to rounding.

Infinite horizon: `(I − γ P_π) V = r_π`, by LU when the model is dense, when it is sparse by a Krylov method; refined
until residuals are rounding of the values that meet in each state: within 1e-12 of them, or 1e-9 where the model is
sparse. A residual proves how far a value can be off (`models.enclosing`).
"""

import numpy as np

from beliefbound.base.errors import ModelError, ParameterError, PolicyError
from beliefbound.base.limits import check_horizon
from beliefbound.base.validation import FloatArray, check_count, check_discount
from beliefbound.models import HasModels, ModelSet
from beliefbound.models.mdp import MDP
from beliefbound.policy import MemorylessPolicy, StationaryPolicy, TablePolicy


def evaluate(policy: TablePolicy, models: HasModels, *, discount: float, horizon: int | None = None) -> FloatArray:
    """Value of `policy` from every state: `[s]` on an `MDP`, `[m,s]` on a belief over several models.

    Args:
      policy: stationary or time-indexed, deterministic or stochastic.
      models: an `MDP` or a `FiniteBelief`.
      discount: in [0, 1]; below 1 when the horizon is infinite.
      horizon: number of decisions. `None` means infinite for a stationary policy and the policy's own horizon for
        a time-indexed one.

    >>> mdp = MDP([[[0.0, 1.0]], [[1.0, 0.0]]], [[1.0], [0.0]])
    >>> evaluate(StationaryPolicy([0, 0]), mdp, discount=0.5).round(3).tolist()
    [1.333, 0.667]
    >>> evaluate(StationaryPolicy([0, 0]), mdp, discount=0.5, horizon=3).tolist()
    [1.25, 0.5]
    """
    set_ = models_of(models)
    chances = check_fits(policy, set_)
    if isinstance(policy, MemorylessPolicy):
        if horizon is not None and check_count(horizon, "horizon") != policy.horizon:
            raise ParameterError(
                f"horizon is {horizon} but the policy has {policy.horizon} stages; leave the horizon out"
            )
        horizon = policy.horizon
    discount = check_discount(discount, horizon)
    if horizon is None:
        values, _ = set_.enclose(chances, discount)
    else:
        values = set_.induct_follow(chances, discount, check_horizon(horizon, set_.n_entries))
    return values[0] if isinstance(models, MDP) else values


def models_of(thing: HasModels) -> ModelSet:
    """The models of an `MDP` or a `FiniteBelief`; anything else is refused with what to do instead.

    >>> models_of(MDP([[[1.0]]], [[1.0]])).n_models
    1
    """
    models = getattr(thing, "models", None)
    if isinstance(models, ModelSet):
        return models
    way = "; sample it first: belief.sample(n, rng)" if hasattr(thing, "sample") else ""
    raise ModelError(f"expected an MDP or a FiniteBelief, got {type(thing).__name__}{way}")


def check_fits(policy: TablePolicy, models: ModelSet) -> FloatArray:
    """The policy's chances `[s,a]` or `[t,s,a]`, after checking that it fits the models' states and action sets."""
    if not isinstance(policy, StationaryPolicy | MemorylessPolicy):
        raise PolicyError(f"expected a StationaryPolicy or MemorylessPolicy, got {type(policy).__name__}")
    if policy.n_states != models.n_states:
        raise PolicyError(f"the policy has {policy.n_states} states, the model has {models.n_states}")
    chances = policy.chances(models.n_actions)
    if not models.available.all():
        wrong = (chances > 0.0) & ~models.available
        if wrong.any():
            *_, state, action = (int(i) for i in np.argwhere(wrong)[0])
            raise PolicyError(f"the policy takes action {action} in state {state}, which does not offer it")
    return chances
