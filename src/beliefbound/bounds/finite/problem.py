"""A finite belief as the arrays of `kernels.graph.search`: outcome rows, leaf values from above, a pool of policies
from below.

*Outcome rows.* What a step reveals: `bounds.finite.outcomes`.

*From above.* `Q_m ≥ Q*_m` with `Q_m ≥ r_m + γ P_m max Q_m`, so that QMDP falls under its own backups. With a horizon:
backwards induction, one table a stage. Without: sweeps `V' = TV` from any `V`, then `V' + γ/(1−γ) max(V' − V)`
(MacQueen), which has both properties whenever the sweeps stop.

*From below.* The exact value on each model of MMBI, CADP, the expected MDP's policy and the optimal policies of the
likeliest models.
"""

import math
from collections.abc import Sequence

import numpy as np

from beliefbound.beliefs.finite import FiniteBelief
from beliefbound.bounds.finite.outcomes import MAX_BYTES, outcome_rows
from beliefbound.errors import ParameterError
from beliefbound.evaluation import solve_each
from beliefbound.kernels.graph.lookahead import values_from_above
from beliefbound.kernels.graph.nodes import Problem
from beliefbound.kernels.planning import sweep
from beliefbound.kernels.random import seed_stream
from beliefbound.models import ModelSet
from beliefbound.planning.cadp import cadp
from beliefbound.planning.expected import expected_mdp_policy
from beliefbound.planning.mmbi import mmbi
from beliefbound.planning.optimal import optimal_values
from beliefbound.policy import MemorylessPolicy, Policy, StationaryPolicy
from beliefbound.validation import FloatArray

FOREVER = 1 << 60
LEAF = 2e-5  # a scenario ends where what is left to gain is this share of the value at the root
_TABLE_BYTES = 1 << 28
_MAX_STAGE = 1000
_OWN_POLICIES = 16
_SWEEPS = 2000
_CADP_WORK = 10_000_000


def problem_of(
    belief: FiniteBelief,
    *,
    discount: float,
    horizon: int | None,
    stages: int,
    policies: Sequence[Policy],
    mix: float = 0.6,
) -> Problem:
    """The arrays for nodes up to stage `stages`."""
    like, arrive, first, _ = outcome_rows(belief)
    stages = 0 if horizon is None else min(stages + 1, horizon)
    models = belief.models
    words = np.arange(len(arrive), dtype=np.uint64)
    return Problem(
        like=np.concatenate([like[:, rows[0] : rows[-1]].ravel() for rows in first]),
        arrive=arrive,
        first=first,
        reward=np.array(models.rewards),
        available=np.array(models.available),
        q=optimal_from_above(models, discount, horizon, stages),
        partner=np.empty((0, models.n_models), dtype=np.int64),
        cell=np.empty((0, models.n_models), dtype=np.int64),
        pairs=np.empty((0, 0, 1, 1, 1, 1)),
        v=_pool_values(policies, models, discount, horizon, stages),
        keys=np.array([seed_stream(words[i : i + 1])[0] for i in range(len(words))], dtype=np.uint64),
        discount=float(discount),
        horizon=FOREVER if horizon is None else horizon,
        mix=float(mix),
    )


def search_depth(belief: FiniteBelief, discount: float, horizon: int | None, n_policies: int = 0) -> int:
    """Stages beyond which next to nothing is left to gain, as far as tables of leaf values fit."""
    low, high = belief.models.reward_range
    if low == high:
        return 1
    depth = _MAX_STAGE
    if discount < 1.0:
        depth = math.ceil(math.log(0.1 * LEAF) / math.log(max(discount, 1e-6)))
    if horizon is not None:
        kept = _TABLE_BYTES // (8 * belief.models.rewards.size * (1 + n_policies // belief.n_actions))
        depth = min(depth, horizon, max(8, kept))
    return max(1, min(depth, _MAX_STAGE))


def optimal_from_above(models: ModelSet, discount: float, horizon: int | None, stages: int) -> FloatArray:
    """`[stage,m,s,a]`, zero where unavailable: stages `0..stages` of a finite horizon, one stage when infinite."""
    shape = models.rewards.shape
    q = np.empty_like(models.rewards)
    if horizon is None:
        values = np.empty(shape[:2])
        scale = max(abs(x) for x in models.reward_range) / (1.0 - discount)
        epsilon = 1e-9 * max(scale, 1e-300)
        dense_bytes = 8 * models.rewards.size * models.n_states
        if dense_bytes > MAX_BYTES:
            raise ParameterError(
                f"{models.n_models} models of {models.n_states} states and {models.n_actions} actions need "
                f"{dense_bytes >> 30} GiB; use fewer models, or E max and QMDP (`upper_bound`)"
            )
        values_from_above(models.dense(), models.rewards, models.available, discount, epsilon, _SWEEPS, values)
        models.backup(values, discount, q)
        q[:, ~models.available] = 0.0
        return q[None].copy()
    values = np.zeros(shape[:2])
    kept = np.zeros((stages + 1, *shape))
    for k in range(horizon - 1, -1, -1):
        models.backup(values, discount, q)
        sweep.best_values(q, models.available, values)
        if k <= stages:
            kept[k] = np.where(models.available, q, 0.0)
    return kept


def stage_values(policy: Policy, models: ModelSet, discount: float, horizon: int | None, stages: int) -> FloatArray:
    """`[stage,m,s]`: the exact value on each model of what remains of a policy from each stage on."""
    chances = policy.chances(models.n_actions)
    if horizon is None:
        if isinstance(policy, MemorylessPolicy):
            raise ParameterError("a time-indexed policy has no value without a horizon; pass its first step")
        return solve_each(np.broadcast_to(chances, models.rewards.shape), models, discount)[None]
    values = np.zeros(models.rewards.shape[:2])
    kept = np.zeros((stages + 1, *values.shape))
    q = np.empty_like(models.rewards)
    for k in range(horizon - 1, -1, -1):
        models.backup(values, discount, q)
        sweep.follow(q, chances if chances.ndim == 2 else chances[k], values)
        if k <= stages:
            kept[k] = values
    return kept


def _pool_values(
    policies: Sequence[Policy], models: ModelSet, discount: float, horizon: int | None, stages: int
) -> FloatArray:
    if not policies:
        return np.empty((1, models.n_models, models.n_states, 0))
    values = [stage_values(policy, models, discount, horizon, stages) for policy in policies]
    return np.ascontiguousarray(np.stack(values, axis=-1))


def policy_pool(belief: FiniteBelief, *, discount: float, horizon: int | None, initial: FloatArray) -> list[Policy]:
    """Memoryless policies worth having at the leaves: MMBI, CADP, the expected MDP's, the likeliest models'."""
    pool: list[Policy] = [
        mmbi(belief, discount=discount, horizon=horizon).policy,
        expected_mdp_policy(belief, discount=discount, horizon=horizon).policy,
    ]
    if belief.n_models * belief.n_states**2 * belief.n_actions * (horizon or 100) <= _CADP_WORK:
        pool.append(cadp(belief, discount=discount, horizon=horizon, initial=initial).policy)
    likely = np.argsort(-belief.weights, kind="stable")[:_OWN_POLICIES]
    own = optimal_values(belief.models.select(likely), discount=discount, horizon=horizon).actions
    pool += [StationaryPolicy(actions) for actions in own]
    distinct: list[Policy] = []
    for policy in pool:
        if policy not in distinct:
            distinct.append(policy)
    return distinct
