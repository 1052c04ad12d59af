"""Policies that local searches start from: the expected MDP's, and each model's own optimal one.

Rule for the number of models whose own policy is tried: those of positive weight, highest weights first (ties: lowest
index), at most `MODEL_STARTS`, and no more than fit in `START_WORK` multiply-adds of sweeping (one sweep each), but
at least one. So small problems try every model and a large one tries few.
"""

import numpy as np

from beliefbound.beliefs.finite import FiniteBelief
from beliefbound.kernels.planning import occupancy
from beliefbound.models import Csr, ModelSet
from beliefbound.planning.mmbi import induct
from beliefbound.validation import FloatArray, IntArray

MODEL_STARTS = 32
START_WORK = 1e9


def chosen_models(belief: FiniteBelief, horizon: int) -> IntArray:
    """Indices of the models whose own policy is worth a start; see the module's rule."""
    kept = belief.models.transitions
    entries = kept.matrix.nnz if isinstance(kept, Csr) else kept.array.size
    count = min(MODEL_STARTS, max(1, int(START_WORK / (entries * horizon))))
    order = np.argsort(-belief.weights, kind="stable")[:count]
    return order[belief.weights[order] > 0.0]


def expected_policy(belief: FiniteBelief, discount: float, horizon: int) -> IntArray:
    """Backward induction on the expected MDP: actions `[t,s]` ("MVP" in the multi-model literature)."""
    return induct(belief.mean().models, np.ones(1), discount, horizon)[0]


def own_policies(models: ModelSet, discount: float, horizon: int) -> tuple[IntArray, FloatArray]:
    """Backward induction on each model by itself: actions `[t,m,s]` and optimal values `[m,s]`."""
    actions = np.empty((horizon, models.n_models, models.n_states), dtype=np.int64)
    values = np.zeros((models.n_models, models.n_states))
    q = np.empty_like(models.rewards)
    for k in range(horizon - 1, -1, -1):
        models.backup(values, discount, q)
        occupancy.own_actions(q, models.available, actions[k], values)
    return actions, values
