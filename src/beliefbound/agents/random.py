"""Random: each available action with equal probability."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from beliefbound.agents.agent import Machine, Setting
from beliefbound.agents.spec import Family
from beliefbound.kernels.agents import fixed as kernel
from beliefbound.validation import BoolArray, IntArray


def offered_actions(available: BoolArray) -> tuple[IntArray, IntArray]:
    """`offered[s]`, the actions available in s in order, padded with −1; `counts[s]`, how many they are."""
    offered = np.full(available.shape, -1, dtype=np.int64)
    for s, row in enumerate(available):
        actions = np.flatnonzero(row)
        offered[s, : len(actions)] = actions
    return offered, available.sum(axis=1, dtype=np.int64)


def build(setting: Setting, values: Mapping[str, Any]) -> Machine:
    """Every available action of every state."""
    return Machine(kernel.State(np.zeros(4, np.uint64), *offered_actions(setting.available)), kernel)


FAMILY = Family("random", "every available action with equal probability", build)
