"""BEB, Bayesian exploration bonus (Kolter & Ng, ICML 2009).

Acts greedily on the mean model of the posterior with rewards `r̄(s,a) + β / (1 + α0(s,a))`, `α0` the sum of the
Dirichlet counts of the pair, the prior's included; solved at every step, warm from the step before.

With `β = 2H²` it is near Bayes-optimal over H steps except for polynomially many of them; in practice β is a small
constant. β is in units of the reward range: the default 2.5, usual for rewards of size 1, is 25 on Chain's rewards up
to 10. As published the values have no cap (`cap=no`). It is not PAC-MDP: the bonus falls like 1/n, so it may settle on
a policy that is not optimal.
"""

from typing import Any

from beliefbound.base.grammar import Number
from beliefbound.lab.agents.common.optimism import UNCAPPED, optimist
from beliefbound.lab.engine.priors import PRIOR
from beliefbound.lab.engine.protocol import DISCOUNT, Machine, Setting
from beliefbound.lab.engine.registry import agent


@agent(
    "beb",
    summary="greedy on the mean model with a bonus β / (1 + counts) (Kolter & Ng 2009)",
    parameters=(
        Number("beta", 2.5, 0.0, 1e6, "the bonus, in units of the reward range"),
        *UNCAPPED,
        *PRIOR,
        DISCOUNT,
    ),
)
def beb(setting: Setting, *, beta: float, **values: Any) -> Machine:
    """The machine."""
    return optimist(setting, values, count_bonus=beta)
