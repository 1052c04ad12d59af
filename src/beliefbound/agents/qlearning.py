"""ε-greedy Q-learning (Watkins 1989) on rewards scaled to [0, 1]: the model-free yardstick.

After a transition `(s, a, x, t)`, with N the visits of `(s,a)` including this one,
`Q(s,a) += step / N^power · (x + γ max_b Q(t,b) − Q(s,a))`; `power=0` is a constant step size, and for `0.5 < power ≤ 1`
Q converges to the optimum if every pair is visited for ever. At step k = 0, 1, … a random available action is played
with probability `epsilon / (1 + decay·k)`, else the greedy one, ties to the lowest. Q starts at `optimism / (1 − γ)`,
a fraction of the largest value possible.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from beliefbound.agents.agent import Machine, Setting
from beliefbound.agents.mcbrl import DISCOUNT
from beliefbound.agents.random import offered_actions
from beliefbound.agents.spec import Family, Number
from beliefbound.kernels.agents import qlearning as kernel


def build(setting: Setting, values: Mapping[str, Any]) -> Machine:
    """The machine."""
    shape = (setting.n_states, setting.n_actions)
    offered, counts = offered_actions(setting.available)
    state = kernel.State(
        stream=np.zeros(4, np.uint64),
        q=np.zeros(shape),
        visits=np.zeros(shape, np.int64),
        steps=np.zeros(1, np.int64),
        offered=offered,
        counts=counts,
        epsilon=values["epsilon"],
        decay=values["decay"],
        step=values["step"],
        power=values["power"],
        initial=values["optimism"] / (1.0 - setting.discount),
        low=setting.low,
        width=setting.width,
        discount=setting.discount,
    )
    return Machine(state, kernel)


FAMILY = Family(
    "qlearning",
    "ε-greedy Q-learning (Watkins 1989)",
    build,
    (
        Number("epsilon", 0.1, 0.0, 1.0, "probability of a random action at the first step"),
        Number("decay", 0.0, 0.0, 1e6, "of epsilon: divided by 1 + decay × steps so far"),
        Number("step", 1.0, 0.0, 1.0, "step size of the first visit", above=True),
        Number("power", 0.6, 0.0, 1.0, "of the visits that divides the step size"),
        Number("optimism", 0.0, 0.0, 1.0, "initial value as a fraction of the largest"),
        DISCOUNT,
    ),
)
