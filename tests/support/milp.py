"""The best memoryless policy as a mixed-integer linear programme, solved by HiGHS: an oracle for `best_memoryless`.

Variables: occupancies `x_m(k,s,a) ≥ 0`, the weight of model `m` times the chance that it is in state `s` at stage `k`
and takes `a`; binaries `π_k(s,a)`. With `c_m(k,s)` an upper bound on what model `m` can bring to `s` at stage `k`,

    maximise   Σ_m Σ_k γ^k Σ_{s,a} r_m(s,a) x_m(k,s,a)
    subject to Σ_a x_m(0,s,a) = w_m p0(s)
               Σ_a x_m(k+1,t,a) = Σ_{s,a} P_m(t|s,a) x_m(k,s,a)
               Σ_a π_k(s,a) = 1
               x_m(k,s,a) ≤ c_m(k,s) π_k(s,a)                     one policy for all models

`c_m(0,s) = w_m p0(s)` and `c_m(k+1,t) = min(w_m, Σ_s c_m(k,s) max_a P_m(t|s,a))`. `M·T·S·A` continuous and `T·S·A`
binary variables. `lower` is the exact value of the policy found (evaluated, not taken from the solver); `upper` is
the solver's proven bound, within its feasibility tolerances.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.optimize import Bounds, LinearConstraint, milp

from beliefbound.base.validation import FloatArray
from beliefbound.beliefs.finite import FiniteBelief
from beliefbound.planning.task import FiniteTask
from beliefbound.policy import MemorylessPolicy


class Solved(NamedTuple):
    """The policy that the solver found, its value, the solver's bound, and whether it says that they meet."""

    policy: MemorylessPolicy
    lower: float
    upper: float
    optimal: bool


def best_memoryless_milp(
    belief: FiniteBelief,
    *,
    discount: float,
    horizon: int,
    initial: FloatArray | int | None = None,
    node_limit: int | None = None,
) -> Solved:
    """As `best_memoryless`, by HiGHS.

    >>> belief = FiniteBelief([[[[1.0], [1.0]]]] * 2, [[[1.0, 0.0]], [[0.0, 3.0]]], reward_signal="deterministic")
    >>> best_memoryless_milp(belief, discount=0.5, horizon=2).lower
    2.25
    """
    task = FiniteTask.of(belief, discount=discount, horizon=horizon, initial=initial)
    models, p0, discount = task.models, task.start, task.discount
    p, r, w = models.dense(), models.rewards, task.weights
    n_models, n_states, n_actions = r.shape
    x_shape, pi_shape = (n_models, horizon, n_states, n_actions), (horizon, n_states, n_actions)
    x = np.arange(np.prod(x_shape)).reshape(x_shape)
    pi = x.size + np.arange(np.prod(pi_shape)).reshape(pi_shape)
    n = x.size + pi.size

    reach = _reach(p, w, p0, models.available, horizon)
    objective = np.zeros(n)
    objective[: x.size] = -(discount ** np.arange(horizon)[None, :, None, None] * r[:, None]).ravel()

    # Flow: the mass in (m,k,s), minus what arrives from stage k−1, equals the start's.
    place = np.arange(n_models * horizon * n_states).reshape(n_models, horizon, n_states)
    row_here = np.broadcast_to(place[..., None], x_shape).ravel()
    m, k, s, a, t = np.indices((n_models, horizon - 1, n_states, n_actions, n_states)).reshape(5, -1)
    inflow = p[m, s, a, t]
    kept = inflow > 0.0
    flow = _matrix(
        np.concatenate([np.ones(x.size), -inflow[kept]]),
        np.concatenate([row_here, place[m, k + 1, t][kept]]),
        np.concatenate([x.ravel(), x[m, k, s, a][kept]]),
        (place.size, n),
    )
    supply = np.zeros(place.shape)
    supply[:, 0] = w[:, None] * p0

    ones = _matrix(
        np.ones(pi.size), np.repeat(np.arange(horizon * n_states), n_actions), pi.ravel(), (horizon * n_states, n)
    )
    rows = np.arange(x.size)
    link = _matrix(
        np.concatenate([np.ones(x.size), -np.broadcast_to(reach[..., None], x_shape).ravel()]),
        np.concatenate([rows, rows]),
        np.concatenate([x.ravel(), np.broadcast_to(pi[None], x_shape).ravel()]),
        (x.size, n),
    )
    upper = np.concatenate([np.broadcast_to(reach[..., None], x_shape).ravel(), np.ones(pi.size)])
    upper[x.size :][~np.broadcast_to(models.available, pi_shape).ravel()] = 0.0
    options: dict[str, Any] = {"mip_rel_gap": 0.0}
    if node_limit is not None:
        options["node_limit"] = node_limit
    answer = milp(
        objective,
        integrality=np.concatenate([np.zeros(x.size), np.ones(pi.size)]),
        bounds=Bounds(0.0, upper),
        constraints=[
            LinearConstraint(flow, supply.ravel(), supply.ravel()),
            LinearConstraint(ones, 1.0, 1.0),
            LinearConstraint(link, -np.inf, 0.0),
        ],
        options=options,
    )
    if answer.x is None:
        chances = np.where(models.available, 1.0, -1.0)[None].repeat(horizon, axis=0)
    else:
        chances = np.where(models.available, answer.x[x.size :].reshape(pi_shape), -1.0)
    policy = MemorylessPolicy(chances.argmax(axis=2))
    lower = task.policy_value(policy)
    proven = -np.inf if answer.mip_dual_bound is None else -float(answer.mip_dual_bound)
    if not np.isfinite(proven):
        proven = task.effective_horizon * models.reward_range[1]
    proven = max(lower, proven)
    return Solved(policy, lower, proven, answer.status == 0)


def _reach(p: FloatArray, w: FloatArray, p0: FloatArray, available: Any, horizon: int) -> FloatArray:
    """`c_m(k,s)`, `[m,k,s]`."""
    most = np.where(available[None, :, :, None], p, 0.0).max(axis=2)
    reach = np.empty((len(w), horizon, len(p0)))
    reach[:, 0] = w[:, None] * p0
    for k in range(horizon - 1):
        reach[:, k + 1] = np.minimum(w[:, None], np.einsum("ms,mst->mt", reach[:, k], most))
    return reach


def _matrix(data: Any, rows: Any, columns: Any, shape: tuple[int, int]) -> Any:
    return sp.csr_array((data, (rows, columns)), shape=shape)
