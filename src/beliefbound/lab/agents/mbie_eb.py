"""MBIE-EB, model-based interval estimation with an exploration bonus (Strehl & Littman 2008).

MBIE with a bonus in place of the ball around the transitions: `Q(s,a) = min(Vmax, r̂ + β/√n + γ p̂·V)`, a pair never
visited being worth `Vmax = 1/(1 − γ)`; solved at every step, warm from the step before. PAC-MDP with
`β = sqrt(ln(2SAm/δ)/2) / (1 − γ)`; the published experiments tune β: .4 on RiverSwim, the default, and .8 on SixArms
(preset `six-arms`), in units of the reward range.

Uses no prior. `cap=no` drops the minimum; pairs never visited then are worth `(1 + β)/(1 − γ)`, the largest such value.
"""

from typing import Any

from beliefbound.base.grammar import Number
from beliefbound.lab.agents.common.optimism import CAPPED
from beliefbound.lab.agents.mbie import interval_estimator
from beliefbound.lab.engine.protocol import DISCOUNT, Machine, Setting
from beliefbound.lab.engine.registry import agent


@agent(
    "mbie-eb",
    summary="greedy on the empirical model with a bonus β / √visits (Strehl & Littman 2008)",
    parameters=(
        Number("beta", 0.4, 0.0, 1e6, "the bonus, in units of the reward range"),
        *CAPPED,
        DISCOUNT,
    ),
    presets={"riverswim": {}, "six-arms": {"beta": 0.8}},
)
def mbie_eb(setting: Setting, *, beta: float, **values: Any) -> Machine:
    """The machine."""
    return interval_estimator(setting, beta, 0.0, values)
