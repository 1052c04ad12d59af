"""A finite belief as the arrays of `kernels.graph.search`: outcome rows, leaf values from above, a pool of policies
from below.

*Outcome rows.* What a step reveals: `bounds.finite.outcomes`.

*From above.* `Q_m ≥ Q*_m` with `Q_m ≥ r_m + γ P_m max Q_m`, so that QMDP falls under its own backups. With a horizon:
backwards induction, one table a stage. Without: policy iteration, rounded up (`planning.optimal`); where models are too
large for that, sweeps `V' = TV` from any `V`, then `V' + γ/(1−γ) max(V' − V)` (MacQueen), which has both properties
whenever the sweeps stop.

*From below.* The exact value on each model of MMBI, CADP, the expected MDP's policy and the optimal policies of the
likeliest models.
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from beliefbound.bounds.bound import Kind
from beliefbound.bounds.finite.outcomes import outcome_steps
from beliefbound.bounds.steps import OPERATIONS, Meter, Stepwise, finish
from beliefbound.errors import ParameterError
from beliefbound.kernels.graph.cells import no_cells
from beliefbound.kernels.graph.nodes import Problem
from beliefbound.kernels.random import seed_stream
from beliefbound.limits import TABLE_BYTES
from beliefbound.models import ModelSet
from beliefbound.naming import names_of
from beliefbound.planning.cadp import cadp_plan
from beliefbound.planning.expected import expected_plan
from beliefbound.planning.mmbi import mmbi_plan
from beliefbound.planning.optimal import OptimalValues, inducted, optimal_values
from beliefbound.planning.rounding import Allowance
from beliefbound.planning.task import FiniteTask
from beliefbound.policy import StationaryPolicy, TablePolicy
from beliefbound.validation import FloatArray, IntArray

FOREVER = 1 << 60
LEAF = 2e-5  # a scenario ends where what is left to gain is this share of the value at the root
_MAX_STAGE = 1000  # deepest node of a graph: undiscounted problems end here, discounted ones have long faded
_OWN_POLICIES = 16  # models whose own optimal policy is in the pool: each costs a look at every node
MOST_POLICIES = _OWN_POLICIES + 3
_MIXED = 1e3  # times the value at the start: values beyond are of another scale
_POOL_WORK = 0.5 * OPERATIONS  # for the values of the pool
_KEY = 2000  # operations, in time, that the key of an outcome row takes
_COPY = 15.0  # operations, in time, of an entry that is put into place
_CADP_WORK = 10_000_000  # multiply-adds of a sweep up to which CADP joins the pool: beyond, it takes seconds


def problem_of(task: FiniteTask, *, stages: int, policies: Sequence[TablePolicy], mix: float = 0.6) -> Problem:
    """The arrays for nodes up to stage `stages`; `mix`: how much the policy is drawn to upper values."""
    return finish(problem_steps(task, Meter(), stages=stages, policies=policies, mix=mix))


def problem_steps(
    task: FiniteTask,
    meter: Meter,
    *,
    stages: int,
    policies: Sequence[TablePolicy],
    mix: float = 0.6,
    apart: FloatArray | None = None,
    values: Sequence[FloatArray] | None = None,
) -> Stepwise[Problem]:
    """The same, step by step. `apart`, `values`: what `models_apart` and `stage_values` gave for so many stages, where
    that is known."""
    like, arrive, first, _ = yield from outcome_steps(task.belief, meter)
    stages = 0 if task.horizon is None else min(stages + 1, task.horizon)
    models = task.models
    if values is None:
        values = [stage_values(policy, models, task.discount, task.horizon, stages) for policy in policies]
    words = np.arange(len(arrive), dtype=np.uint64)
    keys = np.empty(len(arrive), dtype=np.uint64)
    flat, begin = np.empty(like.size), 0
    for rows in first:
        own = like[:, rows[0] : rows[-1]]
        flat[begin : begin + own.size] = own.ravel()
        begin += own.size
        meter.add(_COPY * own.size)
        if meter.full():
            yield
    del like
    for i in range(len(words)):
        keys[i] = seed_stream(words[i : i + 1])[0]
        meter.add(_KEY)
        if meter.full():
            yield
    return Problem(
        like=flat,
        arrive=arrive,
        first=first,
        reward=np.array(models.rewards),
        available=np.array(models.available),
        q=models_apart(task, stages)[1] if apart is None else apart,
        partner=np.empty((0, models.n_models), dtype=np.int64),
        cell=np.empty((0, models.n_models), dtype=np.int64),
        pairs=np.empty((0, 0, 1, 1, 1, 1)),
        cells=no_cells(),
        v=_stacked(values, models),
        number=pool_numbers(models.n_states, len(policies)),
        keys=keys,
        discount=float(task.discount),
        horizon=FOREVER if task.horizon is None else task.horizon,
        mix=float(mix),
        merged=False,
    )


def pool_numbers(n_states: int, n_policies: int) -> npt.NDArray[np.int32]:
    """`[s,policy]`: a policy is called by its place in the pool."""
    return np.tile(np.arange(n_policies, dtype=np.int32), (n_states, 1))


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


def allowance_of(task: FiniteTask, problem: Problem) -> Allowance:
    """What rounding can take from values on the graph of a problem."""
    return Allowance(task, int(np.diff(problem.first, axis=1).max()))


def scale_of(problem: Problem, weights: FloatArray, start: FloatArray, largest: float | None = None) -> float:
    """What is small is small beside this: the `largest` value there is, by default the largest that is told; or some
    times what is told at the start, where that is much less, and the largest are those of actions and states to be
    avoided."""
    best = np.where(problem.available, problem.q[0], -np.inf).max(axis=-1)
    largest = float(np.abs(problem.q).max()) if largest is None else largest
    return min(largest, _MIXED * float(weights @ np.abs(best) @ start))


def models_apart(task: FiniteTask, stages: int) -> tuple[OptimalValues, FloatArray]:
    """Each model by itself: its optimal values at the first stage, exact; and from above `[stage,m,s,a]`, zero where
    unavailable: stages `0..stages` of a finite horizon, one stage when infinite."""
    models, discount = task.models, task.discount
    if task.horizon is None:
        solved = optimal_values(models, discount=discount)
        return solved, np.where(models.available, solved.q_above, 0.0)[None]
    kept = np.zeros((stages + 1, *models.rewards.shape))

    def keep(k: int, q: FloatArray, _: FloatArray) -> None:
        if k <= stages:
            kept[k] = np.where(models.available, q, 0.0)

    values, q = models.induct_best(discount, task.horizon, keep)
    return inducted(models, values, q, discount, task.horizon), kept


def stage_values(
    policy: TablePolicy, models: ModelSet, discount: float, horizon: int | None, stages: int
) -> FloatArray:
    """`[stage,m,s]`: the value on each model of what remains of a policy from each stage on, exact up to rounding;
    without a horizon, rounded down."""
    chances = policy.chances(models.n_actions)
    if horizon is None:
        if policy.horizon is not None:
            raise ParameterError("a time-indexed policy has no value without a horizon; pass its first step")
        return models.below(chances, discount)[None]
    kept = np.zeros((stages + 1, *models.rewards.shape[:2]))

    def keep(k: int, _: FloatArray, values: FloatArray) -> None:
        if k <= stages:
            kept[k] = values

    models.induct_follow(chances, discount, horizon, keep)
    return kept


def _stacked(values: Sequence[FloatArray], models: ModelSet) -> FloatArray:
    """Values `[stage,m,s,policy]` of a pool."""
    if not values:
        return np.empty((1, models.n_models, models.n_states, 0))
    return np.ascontiguousarray(np.stack(values, axis=-1))


def named_pool(task: FiniteTask) -> list[tuple[str, TablePolicy]]:
    """Memoryless policies worth having at the leaves, and what each is: MMBI, the expected MDP's, CADP, and the optimal
    ones of the likeliest models."""
    mmbi, likely = mmbi_plan(task).policy, likeliest(task)
    own = optimal_values(task.models.select(likely), discount=task.discount, horizon=task.horizon).actions
    return [(name, policy) for _, name, policy in pool_of(task, mmbi, likely, own)]


def likeliest(task: FiniteTask) -> IntArray:
    """The models whose own optimal policies join the pool: fewer where valuing one takes long."""
    most = int(np.clip(_POOL_WORK / valuing_work(task), 2, _OWN_POLICIES))
    return np.argsort(-task.weights, kind="stable")[:most]


def valuing_work(task: FiniteTask) -> float:
    """Operations, in time, that the exact value of one memoryless policy takes."""
    models = task.models
    if task.horizon is not None:
        return float(task.horizon * models.n_entries)
    if models.is_sparse:
        return 200.0 * models.n_entries
    return models.n_entries + 0.15 * models.n_models * float(models.n_states) ** 3


def pool_of(
    task: FiniteTask, mmbi: TablePolicy, likely: IntArray, own: IntArray
) -> Iterator[tuple[Kind, str, TablePolicy]]:
    """The pool, one distinct policy after the other: `own[i,s]` are the optimal actions of model `likely[i]`."""
    met: set[TablePolicy] = set()

    def candidates() -> Iterator[tuple[Kind, str, TablePolicy]]:
        yield Kind.MMBI, "MMBI", mmbi
        yield Kind.EXPECTED_MDP, "optimal policy of the expected MDP", expected_plan(task).policy
        if math.prod(task.models.rewards.shape) * task.models.n_states * (task.horizon or 100) <= _CADP_WORK:
            yield Kind.CADP, "CADP", cadp_plan(task, mmbi=mmbi).policy
        for m, actions in zip(likely, own, strict=True):
            what = f"optimal policy of {names_of(task.belief).the_model(m)}"
            yield Kind.MODEL_OPTIMUM, f"{what}, first step" if task.horizon else what, StationaryPolicy(actions)

    for kind, name, policy in candidates():
        if policy not in met:
            met.add(policy)
            yield kind, name, policy
