"""Thompson sampling (Strens' Bayesian dynamic programming, 2000): MCBRL with one model, and the same code.

One model is drawn from the posterior and its optimal policy followed until the next draw. Schedules and sweeps as in
`mcbrl`; `thompson` and `mcbrl:n=1` agree bit for bit under the same seed.
"""

from functools import partial
from typing import Any

from beliefbound.lab.agents.mcbrl import PLANNING, PRESETS, mcbrl
from beliefbound.lab.engine.drawn import DrawnMcbrl
from beliefbound.lab.engine.protocol import Machine, Setting
from beliefbound.lab.engine.registry import agent


@agent(
    "thompson",
    summary="sample one model from the posterior and follow its optimal policy for a while (Strens 2000)",
    parameters=PLANNING,
    presets=PRESETS,
    drawn=partial(DrawnMcbrl, n=1, name="thompson"),
)
def thompson(setting: Setting, **values: Any) -> Machine:
    """MCBRL's machine with n = 1."""
    return mcbrl(setting, n=1, **values)
