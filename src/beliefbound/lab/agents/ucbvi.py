"""UCBVI, upper confidence bounds for value iteration (Azar, Osband & Munos, ICML 2017): a bonus on values, by episodes.

Episodes of H steps, by default as many as the discount of the setting counts, `1/(1 − γ)`. At the start of each,
backwards from `V_H = 0`, with N visits of a pair, frequencies p̂ and mean scaled rewards r̂,

    Q_h(s,a) = min(Q_h(s,a) of the episode before, H, r̂ + p̂·V_{h+1} + scale · b_h(s,a)),  V_h = max_a Q_h,

and H for a pair never tried; the agent acts greedily on `Q_h` at step h, ties to the lowest action. The bonus is

* `bonus=bernstein` (their Algorithm 4): `sqrt(8L Var_p̂(V_{h+1}) / N) + 14HL / 3N + sqrt(8 Σ_t p̂_t c_t / N)` with
  `c_t = min(10⁴ H³ S² A L² / N_{h+1}(t), H²)`, `N_{h+1}(t)` the visits of t at step h + 1 of an episode;
* `bonus=hoeffding` (their Algorithm 3): `7HL sqrt(1 / N)`.

`L = ln(5SAT/δ)` with T the steps made so far, which is ours: the paper knows the last one. With scale 1 the regret is
`O(sqrt(HSAT))` up to logarithms and lower orders, if the world begins anew with each episode; here it goes on where it
is. The paper's rewards are known. Ours are estimated, and `sqrt(L / 2N)` is added for that.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from beliefbound.base.errors import ParameterError
from beliefbound.base.grammar import Choice, Number
from beliefbound.base.limits import AGENT_BYTES
from beliefbound.base.validation import BoolArray, FloatArray, IntArray
from beliefbound.kernels.options import EXACT, EXACT_INLINE
from beliefbound.kernels.planning.empirical import Counts, count, forget_counts, no_counts
from beliefbound.lab.engine.protocol import EPISODE, Machine, Setting
from beliefbound.lab.engine.registry import agent

STEPS, STAGE = range(2)  # the clock


class State(NamedTuple):
    """Counts, values by step of the episode, and parameters."""

    counts: Counts
    q: FloatArray  # [h,s,a]
    v: FloatArray  # [h + 1,s], the last row 0
    arrivals: IntArray  # [h + 1,s]: visits of a state at that step of an episode
    available: BoolArray  # [s,a]
    clock: IntArray  # steps observed, steps made in the episode
    delta: float
    scale: float
    bernstein: bool


@njit(**EXACT)
def reset(state, stream):
    """Nothing seen. No random numbers are used."""
    forget_counts(state.counts)
    state.q.fill(float(state.q.shape[0]))
    state.v.fill(0.0)
    state.arrivals.fill(0)
    state.clock[STEPS], state.clock[STAGE] = 0, state.q.shape[0]


@njit(**EXACT)
def bonus_of(state, h, s, a, mean, log):
    """The published bonus of a pair at step `h`, whose later values have the mean `mean`; `log` is L."""
    counts, length = state.counts, float(state.q.shape[0])
    n_states, n_actions = counts.visits.shape
    n = counts.visits[s, a]
    if not state.bernstein:
        return 7.0 * length * log / math.sqrt(n)
    variance, spread = 0.0, 0.0
    for t in range(n_states):
        if counts.arrivals[s, a, t] > 0:
            p = counts.arrivals[s, a, t] / n
            variance += p * (state.v[h + 1, t] - mean) ** 2
            most = 1e4 * length**3 * n_states**2 * n_actions * log**2 / max(1, state.arrivals[h + 1, t])
            spread += p * min(most, length**2)
    return math.sqrt(8.0 * log * variance / n) + 14.0 * length * log / (3.0 * n) + math.sqrt(8.0 * spread / n)


@njit(**EXACT)
def begin_episode(state):
    """Backwards induction with bonuses."""
    counts, q, v = state.counts, state.q, state.v
    length, n_states, n_actions = q.shape
    log = math.log(5.0 * n_states * n_actions * max(1, state.clock[STEPS]) / state.delta)
    for h in range(length - 1, -1, -1):
        for s in range(n_states):
            best = -np.inf
            for a in range(n_actions):
                n = counts.visits[s, a]
                if n > 0:
                    mean = 0.0
                    for t in range(n_states):
                        mean += counts.arrivals[s, a, t] * v[h + 1, t]
                    mean /= n
                    bonus = bonus_of(state, h, s, a, mean, log) + math.sqrt(log / (2.0 * n))
                    q[h, s, a] = min(q[h, s, a], counts.rewards[s, a] / n + mean + state.scale * bonus)
                if state.available[s, a]:
                    best = max(best, q[h, s, a])
            v[h, s] = best
    state.clock[STAGE] = 0


@njit(**EXACT_INLINE)
def act(state, s):
    """Begin an episode if the last is over, and act greedily."""
    if state.clock[STAGE] == state.q.shape[0]:
        begin_episode(state)
    h = state.clock[STAGE]
    state.arrivals[h, s] += 1
    chosen, best = -1, -np.inf
    for a in range(state.available.shape[1]):
        if state.available[s, a] and state.q[h, s, a] > best:
            chosen, best = a, state.q[h, s, a]
    return chosen


@njit(**EXACT_INLINE)
def observe(state, s, a, r, t):
    """Count."""
    count(state.counts, s, a, r, t)
    state.clock[STEPS] += 1
    state.clock[STAGE] = min(state.clock[STAGE] + 1, state.q.shape[0])
    if state.clock[STAGE] == state.q.shape[0]:
        state.arrivals[state.q.shape[0], t] += 1


@agent(
    "ucbvi",
    summary="value iteration with Bernstein or Hoeffding bonuses, in episodes of fixed length (Azar et al. 2017)",
    parameters=(
        EPISODE,
        Choice("bonus", "bernstein", ("bernstein", "hoeffding"), "Algorithm 4 or 3 of the paper"),
        Number("delta", 0.05, 0.0, 1.0, "probability that the regret bound fails", above=True),
        Number("scale", 1.0, 0.0, 1e6, "factor of the published bonus"),
    ),
)
def ucbvi(setting: Setting, *, tau: int | None, bonus: str, delta: float, scale: float) -> Machine:
    """The machine."""
    S, A, tau = setting.n_states, setting.n_actions, tau or setting.steps_ahead
    needed = 8.0 * (tau * S * (A + 2) + S * A * S)
    if needed > AGENT_BYTES:
        raise ParameterError(f"tau is {tau}: values and counts of {S} states need {needed / 1e9:.0f} GB; take less")
    state = State(
        counts=no_counts(S, A, low=setting.low, width=setting.width),
        q=np.zeros((tau, S, A)),
        v=np.zeros((tau + 1, S)),
        arrivals=np.zeros((tau + 1, S), np.int64),
        available=np.array(setting.available),
        clock=np.zeros(2, np.int64),
        delta=float(delta),
        scale=float(scale),
        bernstein=bonus == "bernstein",
    )
    return Machine(state, reset, act, observe)
