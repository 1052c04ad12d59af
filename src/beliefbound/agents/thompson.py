"""Thompson sampling (Strens' Bayesian dynamic programming, 2000): MCBRL with one model, and the same code.

One model is drawn from the posterior and its optimal policy followed until the next draw. Schedules and sweeps as in
`mcbrl`; `thompson` and `mcbrl:n=1` agree bit for bit under the same seed.
"""

from collections.abc import Mapping
from typing import Any

from beliefbound.agents import mcbrl
from beliefbound.agents.agent import Machine, Setting
from beliefbound.agents.spec import Family


def build(setting: Setting, values: Mapping[str, Any]) -> Machine:
    """MCBRL's machine with n = 1."""
    return mcbrl.build(setting, {**values, "n": 1})


FAMILY = Family(
    "thompson",
    "sample one model from the posterior and follow its optimal policy for a while (Strens 2000)",
    build,
    mcbrl.PLANNING,
    mcbrl.PRESETS,
    mcbrl.check,
)
