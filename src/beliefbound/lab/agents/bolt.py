"""BOLT, Bayesian optimistic local transitions (Araya-López, Thomas & Buffet, ICML 2012).

Plans as if η more transitions of every pair had been seen, all to whichever next state σ is best:
`p(t|s,a,σ) = (α_t + η 1{t = σ}) / (α0 + η)`. The best σ is the possible next state of largest value, so a sweep costs
no more than value iteration on the mean model. Solved at every step on the current posterior, warm from the step
before; with `η = H` it is optimistic for any H-step problem and near Bayes-optimal except for polynomially many steps.

Our choices: states that the prior rules out are not hoped for; the reward of a pair is the expected one of the mean
model, also where it is paid on arrival; the default η = 2 is the best of six on random MDPs outside the leagues
(`benchmarks/defaults.py`). The horizon `1 / (1 − γ)` of the analysis explores for long.
"""

from typing import Any

from beliefbound.base.grammar import Number
from beliefbound.lab.agents.common.optimism import CAPPED, optimist
from beliefbound.lab.engine.priors import PRIOR
from beliefbound.lab.engine.protocol import DISCOUNT, Machine, Setting
from beliefbound.lab.engine.registry import agent


@agent(
    "bolt",
    summary="the mean model after η more transitions to the best next state (Araya-López et al. 2012)",
    parameters=(
        Number("eta", 2.0, 0.0, 1e9, "imagined transitions of every pair"),
        *CAPPED,
        *PRIOR,
        DISCOUNT,
    ),
)
def bolt(setting: Setting, *, eta: float, **values: Any) -> Machine:
    """The machine."""
    return optimist(setting, values, shift=eta)
