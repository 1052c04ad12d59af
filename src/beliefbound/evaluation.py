"""The exact value of a policy on each of a set of models.

Finite horizon: `V_k(s) = Σ_a π_k(a|s) [r(s,a) + γ Σ_t P(t|s,a) V_{k+1}(t)]` from `V_T = 0`; exact up to rounding.

Infinite horizon: `(I − γ P_π) V = r_π`, by LU when the model is dense, by a Krylov method (BiCGSTAB, then GMRES,
then sparse LU) when it is sparse. A Krylov answer is accepted only when its residual proves it within
`1e-10 · max(1, ‖r‖∞/(1−γ))` of the true value: `‖V − V_π‖∞ ≤ ‖r_π − (I − γ P_π) V‖∞ / (1 − γ)`.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spla

from beliefbound.errors import ParameterError, PolicyError
from beliefbound.kernels.planning import sweep
from beliefbound.mdp import MDP
from beliefbound.models import Dense, HasModels, ModelSet
from beliefbound.policy import MemorylessPolicy, StationaryPolicy, TablePolicy
from beliefbound.validation import FloatArray, check_count, check_discount

_KRYLOV_TOLERANCE = 1e-10
_SOLVE_BYTES = 32 << 20  # dense systems are solved in batches of this size: memory stays O(M·S·A) beside the models


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
    chances = check_fits(policy, models.models)
    if isinstance(policy, MemorylessPolicy):
        if horizon is not None and check_count(horizon, "horizon") != policy.horizon:
            raise ParameterError(
                f"horizon is {horizon} but the policy has {policy.horizon} stages; leave the horizon out"
            )
        horizon = policy.horizon
    discount = check_discount(discount, horizon)
    if horizon is None:
        values = _solve(chances, models.models, discount)
    else:
        values = _induct(chances, models.models, discount, check_count(horizon, "horizon"))
    return values[0] if isinstance(models, MDP) else values


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


def _induct(chances: FloatArray, models: ModelSet, discount: float, horizon: int) -> FloatArray:
    values = np.zeros((models.n_models, models.n_states))
    q = np.empty_like(models.rewards)
    for k in range(horizon - 1, -1, -1):
        models.backup(values, discount, q)
        sweep.follow(q, chances if chances.ndim == 2 else chances[k], values)
    return values


def _solve(chances: FloatArray, models: ModelSet, discount: float) -> FloatArray:
    return solve_each(np.broadcast_to(chances, (models.n_models, *chances.shape)), models, discount)


def solve_each(chances: FloatArray, models: ModelSet, discount: float) -> FloatArray:
    """Infinite-horizon values `[m,s]` of a policy per model, `chances[m,s,a]`."""
    rewards: FloatArray = np.einsum("msa,msa->ms", chances, models.rewards)
    if not isinstance(models.transitions, Dense):
        return np.stack(
            [_krylov(models.transitions.under(m, chances[m]), rewards[m], discount) for m in range(models.n_models)]
        )
    values = np.empty_like(rewards)
    batch = max(1, _SOLVE_BYTES // (8 * models.n_states**2))
    for i in range(0, models.n_models, batch):
        part = slice(i, i + batch)
        chain = np.einsum("msa,msat->mst", chances[part], models.transitions.array[part])
        system = np.eye(models.n_states) - discount * chain
        values[part] = np.linalg.solve(system, rewards[part][..., None])[..., 0]
    return values


def _krylov(chain: Any, rewards: FloatArray, discount: float) -> FloatArray:
    system = sp.csr_array(sp.eye_array(len(rewards)) - discount * chain)
    scale = max(1.0, float(np.abs(rewards).max(initial=0.0)) / (1.0 - discount))
    allowed = _KRYLOV_TOLERANCE * scale * (1.0 - discount)
    guess = None
    for method in (spla.bicgstab, spla.gmres):
        guess, _ = method(system, rewards, x0=guess, rtol=0.0, atol=allowed / 2, maxiter=2000)
        if np.isfinite(guess).all() and np.abs(rewards - system @ guess).max() <= allowed:
            return np.asarray(guess, dtype=np.float64)
        guess = None
    return np.asarray(spla.spsolve(sp.csc_array(system), rewards), dtype=np.float64)
