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
from beliefbound.kernels.graph.nodes import Problem
from beliefbound.kernels.random import seed_stream
from beliefbound.limits import TABLE_BYTES
from beliefbound.models import ModelSet
from beliefbound.planning.cadp import cadp_plan
from beliefbound.planning.expected import expected_plan
from beliefbound.planning.mmbi import mmbi_plan
from beliefbound.planning.optimal import optimal_values
from beliefbound.planning.task import FiniteTask
from beliefbound.policy import MemorylessPolicy, StationaryPolicy, TablePolicy
from beliefbound.validation import FloatArray, IntArray

FOREVER = 1 << 60
MAX_BYTES = 2 << 30
LEAF = 2e-5  # a scenario ends where what is left to gain is this share of the value at the root
_MAX_STAGE = 1000  # deepest node of a graph: undiscounted problems end here, discounted ones have long faded
_OWN_POLICIES = 16  # models whose own optimal policy is in the pool: each costs a look at every node
_SWEEPS = 2000  # of value iteration from above; what is missing then is added, so that it stays valid
_EPSILON = 1e-9  # of the largest value: when it stops earlier
_CADP_WORK = 10_000_000  # multiply-adds of a sweep up to which CADP joins the pool: beyond, it takes seconds


def problem_of(task: FiniteTask, *, stages: int, policies: Sequence[TablePolicy], mix: float = 0.6) -> Problem:
    """The arrays for nodes up to stage `stages`; `mix`: how much the policy is drawn to upper values."""
    like, arrive, first, _ = outcome_rows(task.belief)
    stages = 0 if task.horizon is None else min(stages + 1, task.horizon)
    models = task.models
    words = np.arange(len(arrive), dtype=np.uint64)
    return Problem(
        like=np.concatenate([like[:, rows[0] : rows[-1]].ravel() for rows in first]),
        arrive=arrive,
        first=first,
        reward=np.array(models.rewards),
        available=np.array(models.available),
        q=optimal_from_above(task, stages),
        partner=np.empty((0, models.n_models), dtype=np.int64),
        cell=np.empty((0, models.n_models), dtype=np.int64),
        pairs=np.empty((0, 0, 1, 1, 1, 1)),
        v=_pool_values(policies, task, stages),
        keys=np.array([seed_stream(words[i : i + 1])[0] for i in range(len(words))], dtype=np.uint64),
        discount=float(task.discount),
        horizon=FOREVER if task.horizon is None else task.horizon,
        mix=float(mix),
    )


def search_depth(task: FiniteTask, n_policies: int = 0) -> int:
    """Stages beyond which next to nothing is left to gain, as far as tables of leaf values fit."""
    low, high = task.models.reward_range
    if low == high:
        return 1
    depth = _MAX_STAGE
    if task.discount < 1.0:
        depth = math.ceil(math.log(0.1 * LEAF) / math.log(max(task.discount, 1e-6)))
    if task.horizon is not None:
        kept = TABLE_BYTES // (8 * task.models.rewards.size * (1 + n_policies // task.models.n_actions))
        depth = min(depth, task.horizon, max(8, kept))
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


def optimal_from_above(task: FiniteTask, stages: int) -> FloatArray:
    """`[stage,m,s,a]`, zero where unavailable: stages `0..stages` of a finite horizon, one stage when infinite."""
    models, discount = task.models, task.discount
    if task.horizon is None:
        q = models.backup(models.from_above(discount, _EPSILON * task.largest_value, _SWEEPS), discount)
        q[:, ~models.available] = 0.0
        return q[None]
    kept = np.zeros((stages + 1, *models.rewards.shape))

    def keep(k: int, q: FloatArray, _: FloatArray) -> None:
        if k <= stages:
            kept[k] = np.where(models.available, q, 0.0)

    models.induct_best(discount, task.horizon, keep)
    return kept


def stage_values(
    policy: TablePolicy, models: ModelSet, discount: float, horizon: int | None, stages: int
) -> FloatArray:
    """`[stage,m,s]`: the exact value on each model of what remains of a policy from each stage on."""
    chances = policy.chances(models.n_actions)
    if horizon is None:
        if isinstance(policy, MemorylessPolicy):
            raise ParameterError("a time-indexed policy has no value without a horizon; pass its first step")
        return models.solve(chances, discount)[None]
    kept = np.zeros((stages + 1, *models.rewards.shape[:2]))

    def keep(k: int, _: FloatArray, values: FloatArray) -> None:
        if k <= stages:
            kept[k] = values

    models.induct_follow(chances, discount, horizon, keep)
    return kept


def _pool_values(policies: Sequence[TablePolicy], task: FiniteTask, stages: int) -> FloatArray:
    if not policies:
        return np.empty((1, task.models.n_models, task.models.n_states, 0))
    values = [stage_values(policy, task.models, task.discount, task.horizon, stages) for policy in policies]
    return np.ascontiguousarray(np.stack(values, axis=-1))


def named_pool(task: FiniteTask, mmbi: TablePolicy | None = None) -> list[tuple[str, TablePolicy]]:
    """Memoryless policies worth having at the leaves, and what each is: MMBI (if it is known, it is taken), the
    expected MDP's, CADP, and the optimal ones of the likeliest models."""
    pool: list[tuple[str, TablePolicy]] = [
        ("MMBI", mmbi_plan(task).policy if mmbi is None else mmbi),
        ("optimal policy of the expected MDP", expected_plan(task).policy),
    ]
    if math.prod(task.models.rewards.shape) * task.models.n_states * (task.horizon or 100) <= _CADP_WORK:
        pool.append(("CADP", cadp_plan(task).policy))
    likely = np.argsort(-task.weights, kind="stable")[:_OWN_POLICIES]
    own = optimal_values(task.models.select(likely), discount=task.discount, horizon=task.horizon).actions
    pool += [
        (f"optimal policy of model {m}, first step" if task.horizon else f"optimal policy of model {m}", policy)
        for m, policy in zip(likely, map(StationaryPolicy, own), strict=True)
    ]
    distinct: dict[TablePolicy, str] = {}
    for name, policy in pool:
        distinct.setdefault(policy, name)
    return [(name, policy) for policy, name in distinct.items()]


def policy_pool(
    belief: FiniteBelief, *, discount: float, horizon: int | None, initial: FloatArray
) -> list[TablePolicy]:
    """The policies of `named_pool`."""
    task = FiniteTask.of(belief, discount=discount, horizon=horizon, initial=initial)
    return [policy for _, policy in named_pool(task)]
