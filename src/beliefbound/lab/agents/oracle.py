"""Oracle: knows the true MDP and follows its optimal discounted policy, found by policy iteration."""

from typing import Any

import numpy as np

from beliefbound.base.errors import ParameterError
from beliefbound.lab.agents.random import choose_among
from beliefbound.lab.engine.protocol import DISCOUNT, Machine, Setting
from beliefbound.lab.engine.registry import agent
from beliefbound.planning.optimal import optimal_values


@agent("oracle", summary="knows the MDP and follows its optimal policy", parameters=(DISCOUNT,))
def oracle(setting: Setting, **values: Any) -> Machine:
    """A random choice among one action per state."""
    if setting.environment is None:
        raise ParameterError(
            "the oracle must know the MDP; give an Environment (environment_from_mdp), not a black box"
        )
    actions = optimal_values(setting.environment.mdp, discount=setting.discount).actions[0]
    return choose_among(np.arange(setting.n_actions) == actions[:, None])
