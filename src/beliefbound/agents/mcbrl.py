"""MCBRL, Monte Carlo Bayesian reinforcement learning (Algorithm 3 of the paper).

The belief is a product of Dirichlets on transitions and Betas on rewards scaled to [0, 1]. When a plan is due, n models
are drawn from it; at every step MMBI sweeps over the models held, at most `sweeps` times, stopping after a sweep with
`Σ_s |ΔV_ξ(s)| < tolerance`, and the agent plays the action that the last sweep chose in the present state. Values start
at 0 and are kept from step to step; they outlive a new draw of models unless `warm=no`.

Plans are due at step 1 and then, by `schedule`,

* `constant`: every `interval` steps;
* `linear`: after intervals of `interval`, `interval + increment`, `interval + 2·increment`, …;
* `doubling`: after `interval`, `2·interval`, `4·interval`, …;
* `posterior`: at the step after an observation of some `(s,a)` whose expected row has moved by
  `‖E P(·|s,a) − E_plan P(·|s,a)‖₁ + |E x(s,a) − E_plan x(s,a)| ≥ threshold` since the last plan, x the scaled reward.

The defaults are the preset `paper`, the protocol behind the paper's Table 1: linear, 11, 1, so plans at steps
1, 12, 24, 37, 51, …; 10 sweeps, tolerance 1e-3. The preset `solve` sweeps until the values settle (at most
1000 times: MMBI's values may cycle). With n = 1 the agent is Thompson sampling. Nothing is guaranteed about its regret.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from beliefbound.agents.agent import Machine, Setting
from beliefbound.agents.spec import Choice, Family, Number, Value
from beliefbound.errors import ParameterError
from beliefbound.kernels.agents import mcbrl as kernel
from beliefbound.kernels.planning.simd import zeros

INFINITE = float("inf")
MAX_BYTES = 1 << 32
SCHEDULES = {
    "constant": kernel.CONSTANT,
    "linear": kernel.LINEAR,
    "doubling": kernel.DOUBLING,
    "posterior": kernel.POSTERIOR,
}
_USES = {"interval": ("constant", "linear", "doubling"), "increment": ("linear",), "threshold": ("posterior",)}

PRIOR = (
    Number("concentration", None, 0.0, 1e6, "of the Dirichlet prior", above=True, auto="1/states"),
    Number("successes", 1.0, 0.0, 1e6, "first parameter of the Beta prior on scaled rewards", above=True),
    Number("failures", 1.0, 0.0, 1e6, "second parameter of the Beta prior", above=True),
)
DISCOUNT = Number("discount", None, 0.0, 1 - 1e-9, "of planning", auto="environment")
PLANNING = (
    Choice("schedule", "linear", tuple(SCHEDULES), "when to draw new models"),
    Number("interval", 11, 1, 2**40, "steps from the first plan to the second", whole=True),
    Number("increment", 1, 0, 2**40, "growth of the interval at each plan", whole=True),
    Number("threshold", 0.25, 0.0, 3.0, "movement of an expected row that makes a plan due", above=True),
    Number("sweeps", 10, 1, 10**6, "most MMBI sweeps a step", whole=True),
    Number("tolerance", 1e-3, 0.0, 1e6, "change of the values that ends a step's sweeps"),
    Choice("warm", "yes", ("yes", "no"), "keep values when new models are drawn"),
    *PRIOR,
    DISCOUNT,
)
PRESETS: Mapping[str, Mapping[str, Value]] = {"paper": {}, "solve": {"sweeps": 1000, "tolerance": 1e-6}}


def build(setting: Setting, values: Mapping[str, Any]) -> Machine:
    """The machine; memory is that of n models."""
    S, A, n = setting.n_states, setting.n_actions, values["n"]
    if 8 * S * A * S * (n + 1) > MAX_BYTES:
        gigabytes = 8e-9 * S * A * S * (n + 1)
        raise ParameterError(f"n is {n}: {n} models of {S} states and {A} actions need {gigabytes:.0f} GB; take fewer")
    concentration = values["concentration"]
    watches = values["schedule"] == "posterior"
    state = kernel.State(
        stream=np.zeros(4, np.uint64),
        alpha=np.zeros((S, A, S)),
        successes=np.zeros((S, A)),
        failures=np.zeros((S, A)),
        p=zeros(S, A, S, n),
        r=zeros(S, A, n),
        w=np.full(n, 1.0 / n),
        even=zeros(S, n),
        odd=zeros(S, n),
        q=zeros(S, A, n),
        mixed=zeros(S, A),
        vbar=np.zeros(S),
        actions=np.zeros(S, np.int64),
        planned_p=np.zeros((S, A, S) if watches else (0, 0, 0)),
        planned_r=np.zeros((S, A) if watches else (0, 0)),
        clock=np.zeros(6, np.int64),
        available=setting.available,
        concentration=1.0 / S if concentration is None else concentration,
        prior_successes=values["successes"],
        prior_failures=values["failures"],
        low=setting.low,
        width=setting.width,
        discount=setting.discount,
        schedule=SCHEDULES[values["schedule"]],
        interval=values["interval"],
        increment=values["increment"],
        threshold=values["threshold"],
        sweeps=values["sweeps"],
        tolerance=values["tolerance"],
        warm=values["warm"] == "yes",
    )
    return Machine(state, kernel)


def check(values: Mapping[str, Value], given: Mapping[str, Value]) -> None:
    """Refuse parameters of another schedule: they would have no effect."""
    for name, schedules in _USES.items():
        if name in given and values["schedule"] not in schedules:
            raise ParameterError(
                f"{name} has no effect with schedule={values['schedule']}; drop it or take schedule={schedules[0]}"
            )


FAMILY = Family(
    "mcbrl",
    "sample n models from the posterior, sweep MMBI over them, act greedily (the paper's Algorithm 3)",
    build,
    (Number("n", 16, 1, 2**20, "models drawn at a plan", whole=True, always=True), *PLANNING),
    PRESETS,
    check,
)
