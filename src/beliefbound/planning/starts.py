"""Policies that local searches start from: of some models, their own optimal ones.

Rule for the number of models whose own policy is tried: those of positive weight, highest weights first (ties: lowest
index), at most `MODEL_STARTS`, and no more than fit in `START_WORK` multiply-adds of sweeping (one sweep each), but
at least one. So small problems try every model and a large one tries few.
"""

import numpy as np

from beliefbound.base.validation import IntArray
from beliefbound.beliefs.finite import FiniteBelief

MODEL_STARTS = 32
START_WORK = 1e9  # about a second


def chosen_models(belief: FiniteBelief, horizon: int) -> IntArray:
    """Indices of the models whose own policy is worth a start; see the module's rule."""
    count = min(MODEL_STARTS, max(1, int(START_WORK / (belief.models.n_entries * horizon))))
    order = np.argsort(-belief.weights, kind="stable")[:count]
    return order[belief.weights[order] > 0.0]
