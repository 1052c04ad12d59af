"""UCRL2 (Jaksch, Ortner & Auer, JMLR 2010): optimism for average rewards, in episodes.

At the start `t_k` of episode k, with N visits of a pair before it and `N⁺ = max(1, N)`, the radii are
`d_r = scale · sqrt(7 ln(2SA t_k/δ) / 2N⁺)` for mean scaled rewards and `d_p = scale · sqrt(14 S ln(2A t_k/δ) / N⁺)`
for transitions in L1. Extended value iteration `u'(s) = max_a (r̂ + d_r + max_q q·u)`, from 0 until the span of the
changes is at most `1/sqrt(t_k)`, gives the policy of the episode, which ends before the action that has been taken in
it as often as before it (at least once). With scale 1 the regret after T steps is below `34 D S sqrt(A T ln(T/δ))` with
probability 1 − δ, D the diameter.

`radii=bernstein` is UCRL2B (Fruit, Pirotta & Lazaric 2020), whose regions know that likely and unlikely transitions
vary less: with `L = ln(6SA N⁺/δ)`, every chance is within `scale · (2 sqrt(p̂ (1 − p̂) L / N⁺) + 6 L / N⁺)` of its
frequency, and mean rewards are within the same of r̂, with the variance of a coin of that mean, the largest there is. It
needs no t; its regret is `O(sqrt(D Γ S A T))` up to logarithms, Γ the most next states of a pair. The constants are as
in a public program by others, which has 18 for the 6 in L. They follow from the empirical Bernstein inequality of
Audibert, Munos & Szepesvári (2009): a mean of n numbers in [0, 1] with variance v is off by more than
`sqrt(2vx/n) + 3x/n` with a probability of at most `3e^{−x}`, and `x = 2L` gives these radii. Over all n, next states,
pairs and rewards, that adds up to less than `δ²(S + 1)/(7 S A)`, which is below δ: with scale 1 all hold together with
probability 1 − δ.

The published radii learn late: on RiverSwim at `t = 10⁴` transitions are constrained only after 286 visits. A smaller
`scale` is the usual practice, and gives up the guarantee. `cap=yes` caps `r̂ + d_r` at 1, which is valid and not in the
paper. Pairs never tried may lead anywhere whatever the scale. There is no discount, and no prior.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from beliefbound.base.errors import ParameterError
from beliefbound.base.grammar import Choice, Number
from beliefbound.base.validation import IntArray
from beliefbound.kernels.options import EXACT, EXACT_INLINE
from beliefbound.kernels.planning.empirical import Counts, count, estimate, forget_counts, no_counts, unknown
from beliefbound.kernels.planning.optimism import BALL, BOX, OptimisticModel, side, solve
from beliefbound.lab.agents.common.optimism import model_for
from beliefbound.lab.engine.protocol import Machine, Setting
from beliefbound.lab.engine.registry import agent

STEPS, EPISODES, EVI_SWEEPS = range(3)  # the clock


class State(NamedTuple):
    """Counts, those of the episode's start, the optimistic model, and parameters."""

    counts: Counts
    before: IntArray  # [s,a]: visits before the episode
    model: OptimisticModel
    clock: IntArray  # steps observed, episodes begun, sweeps made
    delta: float
    scale: float
    most: float  # cap of r̂ + d_r
    sweeps: int


@njit(**EXACT)
def reset(state, stream):
    """Nothing seen. No random numbers are used."""
    forget_counts(state.counts)
    unknown(state.model, 0.0)
    state.clock.fill(0)


@njit(**EXACT)
def radii(n_states, n_actions, t, visits, delta):
    """`(d_r, d_p)` of the paper."""
    n = max(1, visits)
    reward = math.sqrt(3.5 * math.log(2.0 * n_states * n_actions * t / delta) / n)
    return reward, math.sqrt(14.0 * n_states * math.log(2.0 * n_actions * t / delta) / n)


@njit(**EXACT)
def begin_episode(state):
    """Radii, extended value iteration, a policy."""
    counts, model = state.counts, state.model
    n_states, n_actions = model.r.shape
    t = state.clock[STEPS] + 1
    for s in range(n_states):
        model.v[s] = 0.0
        for a in range(n_actions):
            visits = counts.visits[s, a]
            state.before[s, a] = visits
            if model.kind == BOX:
                transition = math.log(6.0 * n_states * n_actions * max(1, visits) / state.delta) / max(1, visits)
            else:
                reward, transition = radii(n_states, n_actions, t, visits, state.delta)
            if visits > 0:
                estimate(counts, model, s, a)
            else:
                model.r[s, a] = 0.0
            if model.kind == BOX:
                reward = side(model.r[s, a], transition)
                model.width[s, a] = transition if visits > 0 else 1.0 / (6.0 * state.scale)  # anywhere
            else:
                model.width[s, a] = state.scale * transition if visits > 0 else 2.0
            model.r[s, a] = min(state.most, model.r[s, a] + state.scale * reward)
    state.clock[EVI_SWEEPS] += solve(model, state.sweeps, 1.0 / math.sqrt(t))
    state.clock[EPISODES] += 1


@njit(**EXACT_INLINE)
def act(state, s):
    """Begin an episode if it is due, and follow its policy."""
    if state.clock[EPISODES] == 0:
        begin_episode(state)
    a = state.model.actions[s]
    if state.counts.visits[s, a] - state.before[s, a] >= max(1, state.before[s, a]):
        begin_episode(state)
    return state.model.actions[s]


@njit(**EXACT_INLINE)
def observe(state, s, a, r, t):
    """Count."""
    count(state.counts, s, a, r, t)
    state.clock[STEPS] += 1


@agent(
    "ucrl2",
    summary="average rewards, optimism within confidence regions, doubling episodes (Jaksch et al. 2010); UCRL2B",
    parameters=(
        Number("delta", 0.05, 0.0, 1.0, "probability that the regret bound fails", above=True),
        Number("scale", 1.0, 0.0, 1e6, "factor of the published radii"),
        Choice("radii", "hoeffding", ("hoeffding", "bernstein"), "of UCRL2, or of UCRL2B"),
        Choice("cap", "no", ("yes", "no"), "optimistic rewards at most 1"),
        Number("sweeps", 10_000, 1, 10**9, "most sweeps of extended value iteration an episode", whole=True),
    ),
)
def ucrl2(setting: Setting, *, delta: float, scale: float, radii: str, cap: str, sweeps: int) -> Machine:
    """The machine."""
    bernstein = radii == "bernstein"
    if bernstein and scale == 0.0:
        raise ParameterError("scale is 0, with which nothing is explored; with radii=bernstein give one above 0")
    state = State(
        counts=no_counts(setting.n_states, setting.n_actions, low=setting.low, width=setting.width),
        before=np.zeros((setting.n_states, setting.n_actions), np.int64),
        model=model_for(setting, kind=BOX if bernstein else BALL, discount=1.0, relative=True, factor=scale),
        clock=np.zeros(3, np.int64),
        delta=float(delta),
        scale=float(scale),
        most=1.0 if cap == "yes" else math.inf,
        sweeps=sweeps,
    )
    return Machine(state, reset, act, observe)
