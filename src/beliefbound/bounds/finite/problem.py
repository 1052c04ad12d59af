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

from beliefbound.bounds.finite.outcomes import outcome_rows
from beliefbound.errors import ParameterError
from beliefbound.kernels.graph.cells import no_cells
from beliefbound.kernels.graph.nodes import Problem
from beliefbound.kernels.random import seed_stream
from beliefbound.limits import TABLE_BYTES
from beliefbound.models import ModelSet
from beliefbound.planning.cadp import cadp_plan
from beliefbound.planning.expected import expected_plan
from beliefbound.planning.mmbi import mmbi_plan
from beliefbound.planning.optimal import optimal_values
from beliefbound.planning.task import FiniteTask
from beliefbound.policy import StationaryPolicy, TablePolicy
from beliefbound.validation import FloatArray

FOREVER = 1 << 60
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
        cells=no_cells(),
        v=_pool_values(policies, task, stages),
        keys=np.array([seed_stream(words[i : i + 1])[0] for i in range(len(words))], dtype=np.uint64),
        discount=float(task.discount),
        horizon=FOREVER if task.horizon is None else task.horizon,
        mix=float(mix),
        merged=False,
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
        if policy.horizon is not None:
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
