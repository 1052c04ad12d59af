"""VBRB, variance-based reward bonus (Sorg, Singh & Lewis, UAI 2010).

Acts greedily on the mean model of the posterior with rewards
`r̄(s,a) + β_R σ_R(s,a) + β_P sqrt(Σ_t Var P(t|s,a))`, variances under the posterior: for Dirichlet counts
`Var P_t = α_t (α0 − α_t) / (α0² (α0 + 1))`, and `σ_R` is the deviation of the expected reward, 0 where rewards are
known. Solved at every step, warm from the step before.

Both factors are in units of the reward range. The constants of the analysis are far too large to play with; published
results are tuned, and no default is published: ours, 1 and 0.25, is the best of nine on random MDPs outside the leagues
(`benchmarks/defaults.py`). Values have no cap unless `cap=yes`.
"""

from typing import Any

from beliefbound.base.grammar import Number
from beliefbound.lab.agents.common.optimism import UNCAPPED, optimist
from beliefbound.lab.engine.priors import PRIOR
from beliefbound.lab.engine.protocol import DISCOUNT, Machine, Setting
from beliefbound.lab.engine.registry import agent


@agent(
    "vbrb",
    summary="greedy on the mean model with a bonus for posterior deviations (Sorg, Singh & Lewis 2010)",
    parameters=(
        Number("rewards", 1.0, 0.0, 1e6, "factor of the deviation of the expected reward"),
        Number("transitions", 0.25, 0.0, 1e6, "factor of the deviation of the transitions"),
        *UNCAPPED,
        *PRIOR,
        DISCOUNT,
    ),
)
def vbrb(setting: Setting, *, rewards: float, transitions: float, **values: Any) -> Machine:
    """The machine."""
    return optimist(setting, values, reward_bonus=rewards, transition_bonus=transitions)
