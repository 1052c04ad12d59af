"""A finite belief as the arrays of `kernels.graph.search`: outcome rows, leaf values from above, a pool of policies
from below.

*Outcome rows.* What a step reveals is the next state and, by the belief's reward signal, something of the reward:
nothing when rewards are known or unobserved, the group of models that pay the same when they are deterministic,
success or failure when they are Bernoulli. Outcomes that no model allows are left out.

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
from beliefbound.policy import MemorylessPolicy, StationaryPolicy, TablePolicy
from beliefbound.validation import FloatArray, IntArray

FOREVER = 1 << 60
MAX_BYTES = 2 << 30
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
    policies: Sequence[TablePolicy],
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


def outcome_rows(belief: FiniteBelief) -> tuple[FloatArray, IntArray, IntArray, FloatArray]:
    """`like[m,k]`, `arrive[k]`, `first[s,a+1]`, and the reward that row `k` shows (NaN where none is seen).

    Rows are the outcomes that some model allows.
    """
    if belief.reward_signal == "continuous":
        raise ParameterError(
            "rewards are continuous, so a step has no finite set of outcomes; use E max or QMDP (`upper_bound`)"
        )
    models = belief.models
    dense_bytes = 8 * models.rewards.size * models.n_states
    if dense_bytes > MAX_BYTES:
        raise ParameterError(
            f"{models.n_models} models of {models.n_states} states and {models.n_actions} actions need "
            f"{dense_bytes >> 30} GiB as outcome rows; use fewer models, or E max and QMDP (`upper_bound`)"
        )
    p = models.dense()
    n_models, n_states, n_actions, _ = p.shape
    first = np.zeros((n_states, n_actions + 1), dtype=np.int64)
    columns, arrive, seen = [], [], []
    rows, nbytes = 0, 0
    for s in range(n_states):
        first[s, 0] = rows
        for a in range(n_actions):
            if models.available[s, a]:
                for reward, chance in _reward_outcomes(belief, s, a):
                    joint = p[:, s, a, :] * chance
                    kept = np.flatnonzero((joint > 0.0).any(axis=0))
                    columns.append(joint[:, kept])
                    arrive.append(kept)
                    seen.append(np.full(len(kept), reward))
                    rows += len(kept)
                    nbytes += 8 * n_models * len(kept)
                    if nbytes > MAX_BYTES:
                        raise ParameterError(
                            f"{n_models} models have more than {rows} distinct outcomes, over {MAX_BYTES >> 30} GiB; "
                            f"use fewer models, or E max and QMDP (`upper_bound`)"
                        )
            first[s, a + 1] = rows
    like = np.ascontiguousarray(np.concatenate(columns, axis=1))
    return like, np.concatenate(arrive).astype(np.int64), first, np.concatenate(seen)


def _reward_outcomes(belief: FiniteBelief, s: int, a: int) -> list[tuple[float, FloatArray]]:
    """What may be seen of a reward, and its probability under each model, `[m,1]`, or `[m,t]` where arrival matters."""
    means = belief.rewards[:, s, a, None]
    if belief.reward_signal == "deterministic":
        if belief.arrival_rewards is not None:
            means = belief.arrival_rewards[:, s, a]
        return [(float(x), (means == x).astype(np.float64)) for x in np.unique(means)]
    if belief.reward_signal == "bernoulli":
        low, high = belief.reward_range
        chance = (means - low) / (high - low)
        return [(high, chance), (low, 1.0 - chance)]
    return [(np.nan, np.ones_like(means))]


def optimal_from_above(models: ModelSet, discount: float, horizon: int | None, stages: int) -> FloatArray:
    """`[stage,m,s,a]`, zero where unavailable: stages `0..stages` of a finite horizon, one stage when infinite."""
    shape = models.rewards.shape
    q = np.empty_like(models.rewards)
    if horizon is None:
        values = np.empty(shape[:2])
        scale = max(abs(x) for x in models.reward_range) / (1.0 - discount)
        epsilon = 1e-9 * max(scale, 1e-300)
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


def stage_values(
    policy: TablePolicy, models: ModelSet, discount: float, horizon: int | None, stages: int
) -> FloatArray:
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
    policies: Sequence[TablePolicy], models: ModelSet, discount: float, horizon: int | None, stages: int
) -> FloatArray:
    if not policies:
        return np.empty((1, models.n_models, models.n_states, 0))
    values = [stage_values(policy, models, discount, horizon, stages) for policy in policies]
    return np.ascontiguousarray(np.stack(values, axis=-1))


def policy_pool(
    belief: FiniteBelief, *, discount: float, horizon: int | None, initial: FloatArray
) -> list[TablePolicy]:
    """Memoryless policies worth having at the leaves: MMBI, CADP, the expected MDP's, the likeliest models'."""
    pool: list[TablePolicy] = [
        mmbi(belief, discount=discount, horizon=horizon).policy,
        expected_mdp_policy(belief, discount=discount, horizon=horizon).policy,
    ]
    if belief.n_models * belief.n_states**2 * belief.n_actions * (horizon or 100) <= _CADP_WORK:
        pool.append(cadp(belief, discount=discount, horizon=horizon, initial=initial).policy)
    likely = np.argsort(-belief.weights, kind="stable")[:_OWN_POLICIES]
    chosen = FiniteBelief.of(
        belief.models.select(likely), reward_signal=belief.reward_signal, reward_range=belief.reward_range
    )
    own = optimal_values(chosen, discount=discount, horizon=horizon).actions
    pool += [StationaryPolicy(actions) for actions in own]
    distinct: list[TablePolicy] = []
    for policy in pool:
        if policy not in distinct:
            distinct.append(policy)
    return distinct
