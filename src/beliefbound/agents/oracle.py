"""Oracle: knows the true MDP and follows its optimal discounted policy, found by policy iteration."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from beliefbound.agents.agent import Machine, Setting
from beliefbound.agents.mcbrl import DISCOUNT
from beliefbound.agents.spec import Family
from beliefbound.errors import ParameterError
from beliefbound.kernels.agents import fixed as kernel
from beliefbound.planning.optimal import optimal_values


def build(setting: Setting, values: Mapping[str, Any]) -> Machine:
    """One action per state."""
    if setting.environment is None:
        raise ParameterError(
            "the oracle must know the MDP; give an Environment (environment_from_mdp), not a black box"
        )
    actions = optimal_values(setting.environment.mdp, discount=setting.discount).actions[0]
    state = kernel.State(
        stream=np.zeros(4, np.uint64),
        offered=np.ascontiguousarray(actions[:, None], dtype=np.int64),
        counts=np.ones(setting.n_states, np.int64),
    )
    return Machine(state, kernel)


FAMILY = Family("oracle", "knows the MDP and follows its optimal policy", build, (DISCOUNT,))
