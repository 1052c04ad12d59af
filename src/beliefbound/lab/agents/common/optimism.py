"""What optimistic agents share: the parameters of their solver, arrays for their model, the optimist of a posterior.

`optimist` is the machine of BEB, VBRB and BOLT. It holds the mean model `p̄, r̄` of its posterior and solves, at every
step and warm from the step before,

`V(s) = max_a min(Vmax, r̄(s,a) + b(s,a) + γ ((1 − w) p̄·V + w max V(t)))`, `Vmax = 1 / (1 − γ)` where capped,

with `α_j` the Dirichlet counts of the pair, the prior's included, `α0` their sum, `σ_R` the posterior deviation of its
expected reward, and

`b = count_bonus / (1 + α0) + reward_bonus · σ_R + transition_bonus · sqrt(Σ_j Var θ_j)`, `w = shift / (α0 + shift)`.

The maximum is over the next states that the belief holds possible. Rewards are scaled to [0, 1], so bonuses are in
units of the reward range. Tied rows count what any of their pairs has seen.
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from numba import njit

from beliefbound.base.errors import ParameterError
from beliefbound.base.grammar import Choice, Number
from beliefbound.kernels.options import EXACT, EXACT_INLINE
from beliefbound.kernels.planning.optimism import MEAN, SHIFT, OptimisticModel, optimistic_model, solve
from beliefbound.kernels.posterior import Posterior, expected, forget, learn, paid_on, row_of
from beliefbound.lab.engine.priors import posterior_for
from beliefbound.lab.engine.protocol import Machine, Setting

MAX_BYTES = 1 << 32

SOLVER = (
    Number("sweeps", 1000, 1, 10**6, "most value-iteration sweeps a step", whole=True),
    Number("tolerance", 1e-4, 0.0, 1e6, "change of the values that ends a step's sweeps"),
)
CAPPED, UNCAPPED = (
    (*SOLVER, Choice("cap", cap, ("yes", "no"), "values at most 1 / (1 − discount), the most that rewards can bring"))
    for cap in ("yes", "no")
)


def model_for(
    setting: Setting,
    *,
    kind: int,
    discount: float,
    cap: float = math.inf,
    relative: bool = False,
    factor: float = 1.0,
) -> OptimisticModel:
    """Empty arrays for a model of the setting's size, if there is any."""
    S, A = setting.n_states, setting.n_actions
    if 16 * S * A * S > MAX_BYTES:
        raise ParameterError(
            f"{S} states and {A} actions: a model of every transition needs {16e-9 * S * A * S:.0f} GB; "
            "take a smaller environment or an agent without a model"
        )
    return optimistic_model(setting.available, kind=kind, discount=discount, cap=cap, relative=relative, factor=factor)


class State(NamedTuple):
    """The belief, its mean model, and how to be optimistic about it."""

    posterior: Posterior
    model: OptimisticModel
    count_bonus: float
    reward_bonus: float
    transition_bonus: float
    shift: float
    sweeps: int
    tolerance: float


@njit(**EXACT)
def reset(state, stream):
    """Back to the prior, with values from above. No random numbers are used."""
    forget(state.posterior)
    for pair in range(state.model.r.size):
        look_again(state, pair)
    state.model.v.fill(1.0 / (1.0 - state.model.discount))


@njit(**EXACT)
def look_again(state, pair):
    """The mean model of one pair, its bonus and the weight of its shift."""
    posterior, model = state.posterior, state.model
    s, a = pair // posterior.n_actions, pair % posterior.n_actions
    mean = expected(posterior, pair, model.p[s, a])
    alpha = posterior.alpha[row_of(posterior, pair)]
    total, squares = 0.0, 0.0
    for j in range(alpha.size):
        total += alpha[j]
        squares += alpha[j] * alpha[j]
    variance = (1.0 - squares / (total * total)) / (total + 1.0)
    bonus = state.count_bonus / (1.0 + total) + state.transition_bonus * math.sqrt(max(variance, 0.0))
    if state.reward_bonus > 0.0:
        bonus += state.reward_bonus * reward_deviation(posterior, pair, model.p[s, a], mean)
    model.r[s, a] = mean + bonus
    model.width[s, a] = state.shift / (total + state.shift)


@njit(**EXACT)
def reward_deviation(posterior, pair, p, mean):
    """Posterior standard deviation of a pair's expected reward, next states having the chances `p[t]`.

    With `ρ ~ Dirichlet(c)` and values `x_k`, `Var Σ ρ_k x_k = (Σ c_k x_k² / C − mean²) / (C + 1)`, C the sum of c.
    """
    n_values = posterior.reward.shape[0]
    if n_values == 1:
        return 0.0
    total, squares = 0.0, 0.0
    for k in range(n_values):
        paid = paid_on(posterior, k, pair, p)
        total += posterior.reward[k, pair]
        squares += posterior.reward[k, pair] * paid * paid
    return math.sqrt(max(squares / total - mean * mean, 0.0) / (total + 1.0))


@njit(**EXACT_INLINE)
def act(state, s):
    """Solve and choose."""
    solve(state.model, state.sweeps, state.tolerance)
    return state.model.actions[s]


@njit(**EXACT)
def observe(state, s, a, r, t):
    """Condition the belief on one transition; look again at the pair, and at those that share its parameters."""
    learn(state.posterior, s, a, r, t)
    pair = s * state.posterior.n_actions + a
    look_again(state, pair)
    if state.posterior.tied:
        for other in range(state.model.r.size):
            if state.posterior.row[other] == state.posterior.row[pair]:
                look_again(state, other)


def optimist(
    setting: Setting,
    values: Mapping[str, Any],
    *,
    count_bonus: float = 0.0,
    reward_bonus: float = 0.0,
    transition_bonus: float = 0.0,
    shift: float = 0.0,
) -> Machine:
    """The machine; `values` of the parameters `PRIOR` and `CAPPED` or `UNCAPPED`."""
    cap = 1.0 / (1.0 - setting.discount) if values["cap"] == "yes" else math.inf
    kind = SHIFT if shift > 0.0 else MEAN
    state = State(
        posterior=posterior_for(setting, values),
        model=model_for(setting, kind=kind, discount=setting.discount, cap=cap),
        count_bonus=float(count_bonus),
        reward_bonus=float(reward_bonus),
        transition_bonus=float(transition_bonus),
        shift=float(shift),
        sweeps=values["sweeps"],
        tolerance=float(values["tolerance"]),
    )
    return Machine(state, reset, act, observe)
