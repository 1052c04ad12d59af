"""RLSVI, randomised least-squares value iteration, tabular (Osband, Van Roy & Wen, ICML 2016; Russo, NeurIPS 2019).

Episodes of H steps, by default as many as the discount of the setting counts, `1/(1 − γ)`. At the start of each,
backwards from `V_H = 0`, with N visits of a pair,

    Q_h(s,a) = Σ r / (N + 1) + Σ_t N(t) / (N + 1) V_{h+1}(t) + w_h(s,a),  w_h(s,a) ~ Normal(0, σ² / (N + 1)),
    V_h = max_a Q_h,

all draws independent, rewards scaled to [0, 1]; the agent acts greedily on `Q_h` at step h, ties to the lowest action.
It is ridge regression on noisy data: noise in place of a posterior over models, which makes exploration deep, because
what is drawn for a pair is carried back to the steps before it.

For `σ² = ½ S H³ ln(2HSAk)` in episode k Russo proves a regret of `O(H³ S^{3/2} sqrt(AK))` up to logarithms
(`noise=proven`). That explores for very long; the default is a constant deviation, as in Osband's experiments. The
paper counts by step of the episode, for worlds that change with it; ours does not, so counts are pooled over steps. It
begins anew with each episode; ours goes on where it is.
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
from beliefbound.kernels.random import load, normal, save
from beliefbound.lab.agents.common.sampling import no_stream
from beliefbound.lab.engine.protocol import EPISODE, Machine, Setting
from beliefbound.lab.engine.registry import agent

EPISODES, STAGE = range(2)  # the clock


class State(NamedTuple):
    """Counts, the plan of the episode, and parameters."""

    counts: Counts
    actions: IntArray  # [h,s]
    v: FloatArray  # [s]
    next_v: FloatArray  # [s] scratch
    available: BoolArray  # [s,a]
    stream: np.ndarray  # uint64 [4]
    clock: IntArray  # episodes begun, steps made in the present one
    sigma: float
    proven: bool


@njit(**EXACT)
def reset(state, stream):
    """Nothing seen."""
    save(state.stream, load(stream))
    forget_counts(state.counts)
    state.clock[EPISODES], state.clock[STAGE] = 0, state.actions.shape[0]


@njit(**EXACT)
def deviation(state):
    """σ of the episode that begins."""
    if not state.proven:
        return state.sigma
    (n_states, n_actions), length = state.available.shape, state.actions.shape[0]
    log = math.log(2.0 * length * n_states * n_actions * (state.clock[EPISODES] + 1))
    return math.sqrt(0.5 * n_states * float(length) ** 3 * log)


@njit(**EXACT)
def begin_episode(state):
    """Backwards induction with noise. Pairs that are not offered draw as well."""
    counts, v, next_v = state.counts, state.v, state.next_v
    n_states, n_actions = state.available.shape
    sigma = deviation(state)
    next_v.fill(0.0)
    for h in range(state.actions.shape[0] - 1, -1, -1):
        for s in range(n_states):
            chosen, best = -1, -np.inf
            for a in range(n_actions):
                n = counts.visits[s, a] + 1
                total = counts.rewards[s, a]
                for t in range(n_states):
                    total += counts.arrivals[s, a, t] * next_v[t]
                value = total / n + sigma / math.sqrt(n) * normal(state.stream)
                if state.available[s, a] and value > best:
                    chosen, best = a, value
            state.actions[h, s], v[s] = chosen, best
        for s in range(n_states):
            next_v[s] = v[s]
    state.clock[EPISODES] += 1
    state.clock[STAGE] = 0


@njit(**EXACT_INLINE)
def act(state, s):
    """Begin an episode if the last is over, and follow its plan."""
    if state.clock[STAGE] == state.actions.shape[0]:
        begin_episode(state)
    return state.actions[state.clock[STAGE], s]


@njit(**EXACT_INLINE)
def observe(state, s, a, r, t):
    """Count."""
    count(state.counts, s, a, r, t)
    state.clock[STAGE] = min(state.clock[STAGE] + 1, state.actions.shape[0])


@agent(
    "rlsvi",
    summary="noise on the rewards of value iteration, in episodes of fixed length (Osband et al. 2016, Russo 2019)",
    parameters=(
        EPISODE,
        Choice("noise", "constant", ("constant", "proven"), "sigma, or what the regret bound asks for"),
        Number("sigma", 1.0, 0.0, 1e9, "deviation of the noise of an untried pair", needs=("noise", ("constant",))),
    ),
)
def rlsvi(setting: Setting, *, tau: int | None, noise: str, sigma: float) -> Machine:
    """The machine."""
    S, A, tau = setting.n_states, setting.n_actions, tau or setting.steps_ahead
    needed = 8.0 * (tau * S + S * A * S)
    if needed > AGENT_BYTES:
        raise ParameterError(f"tau is {tau}: plans and counts of {S} states need {needed / 1e9:.0f} GB; take less")
    state = State(
        counts=no_counts(S, A, low=setting.low, width=setting.width),
        actions=np.zeros((tau, S), np.int64),
        v=np.zeros(S),
        next_v=np.zeros(S),
        available=np.array(setting.available),
        stream=no_stream(),
        clock=np.zeros(2, np.int64),
        sigma=float(sigma),
        proven=noise == "proven",
    )
    return Machine(state, reset, act, observe)
