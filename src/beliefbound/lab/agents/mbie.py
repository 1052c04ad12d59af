"""MBIE, model-based interval estimation (Strehl & Littman, Journal of Computer and System Sciences 2008).

With n visits of `(s,a)`, empirical mean `r̂` of the scaled rewards and frequencies `p̂`, solves at every step, warm from
the step before,

`Q(s,a) = min(Vmax, r̂ + ε_R + γ max_q q·V)` over `‖q − p̂‖₁ ≤ ε_T`, a pair never visited being worth `Vmax = 1/(1−γ)`,

and acts greedily. By `radii`,

* `simple`, of the published experiments: `ε_R = A/√n`, `ε_T = B/√n`, with `A` = `rewards` in units of the reward range
  and `B` = `transitions`; presets `riverswim` (.3, 0) and `six-arms` (.3, .08, the default);
* `theory`: `ε_R = sqrt(ln(2/δ) / 2n)`, `ε_T = sqrt(2 (ln(2^S − 2) − ln δ) / n)`, each failing with probability at most
  δ = `delta` (the analysis divides a total δ by 2SAm). Then MBIE is PAC-MDP.

Uses no prior. `cap=no` drops the minimum; pairs never visited then are worth `(1 + A)/(1 − γ)`, the largest such value.
"""

import math
from typing import Any, NamedTuple

from numba import njit

from beliefbound.base.grammar import Choice, Number
from beliefbound.kernels.options import EXACT, EXACT_INLINE
from beliefbound.kernels.planning.empirical import Counts, count, estimate, forget_counts, no_counts, unknown
from beliefbound.kernels.planning.optimism import BALL, MEAN, OptimisticModel, solve
from beliefbound.lab.agents.common.optimism import CAPPED, model_for
from beliefbound.lab.engine.protocol import DISCOUNT, Machine, Setting
from beliefbound.lab.engine.registry import agent


class State(NamedTuple):
    """The empirical model and the widths of its intervals after one visit."""

    counts: Counts
    model: OptimisticModel
    unvisited: float
    reward_width: float
    transition_width: float
    sweeps: int
    tolerance: float


@njit(**EXACT)
def reset(state, stream):
    """Nothing seen: everything is worth the most. No random numbers are used."""
    forget_counts(state.counts)
    unknown(state.model, state.unvisited)


@njit(**EXACT_INLINE)
def act(state, s):
    """Solve and choose."""
    solve(state.model, state.sweeps, state.tolerance)
    return state.model.actions[s]


@njit(**EXACT_INLINE)
def observe(state, s, a, r, t):
    """Estimate the pair again, with narrower intervals."""
    root = math.sqrt(count(state.counts, s, a, r, t))
    estimate(state.counts, state.model, s, a)
    state.model.r[s, a] += state.reward_width / root
    state.model.width[s, a] = state.transition_width / root


def theory_widths(n_states: int, delta: float) -> tuple[float, float]:
    """`ε_R √n` and `ε_T √n` of the analysis, for failure probabilities δ.

    >>> round(theory_widths(5, 0.05)[1] / 10**0.5, 6)
    1.131099
    """
    subsets = n_states * math.log(2.0) + (math.log1p(-(2.0 ** (1 - n_states))) if n_states > 1 else -math.inf)
    return math.sqrt(math.log(2.0 / delta) / 2.0), math.sqrt(max(0.0, 2.0 * (subsets - math.log(delta))))


def interval_estimator(setting: Setting, rewards: float, transitions: float, values: dict[str, Any]) -> Machine:
    """The machine of intervals `rewards/√n` and `transitions/√n`; `values` of `CAPPED`."""
    most, capped = 1.0 / (1.0 - setting.discount), values["cap"] == "yes"
    state = State(
        counts=no_counts(setting.n_states, setting.n_actions, low=setting.low, width=setting.width),
        model=model_for(
            setting,
            kind=BALL if transitions > 0.0 else MEAN,
            discount=setting.discount,
            cap=most if capped else math.inf,
        ),
        unvisited=most if capped else (1.0 + rewards) * most,
        reward_width=float(rewards),
        transition_width=float(transitions),
        sweeps=values["sweeps"],
        tolerance=float(values["tolerance"]),
    )
    return Machine(state, reset, act, observe)


@agent(
    "mbie",
    summary="optimism within confidence intervals of rewards and transitions (Strehl & Littman 2008)",
    parameters=(
        Choice("radii", "simple", ("simple", "theory"), "of the intervals"),
        Number("rewards", 0.3, 0.0, 1e6, "A, in units of the reward range", needs=("radii", ("simple",))),
        Number("transitions", 0.08, 0.0, 1e6, "B", needs=("radii", ("simple",))),
        Number("delta", 0.05, 0.0, 1.0, "failure probability of an interval", above=True, needs=("radii", ("theory",))),
        *CAPPED,
        DISCOUNT,
    ),
    presets={"riverswim": {"transitions": 0.0}, "six-arms": {}},
)
def mbie(setting: Setting, *, radii: str, rewards: float, transitions: float, delta: float, **values: Any) -> Machine:
    """The machine."""
    if radii == "theory":
        rewards, transitions = theory_widths(setting.n_states, delta)
    return interval_estimator(setting, rewards, transitions, values)
