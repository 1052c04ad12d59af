"""R-max (Brafman & Tennenholtz, JMLR 2003), in the discounted form of Strehl, Li & Littman (JMLR 2009).

A pair is *known* once it has been tried m times: its empirical model is made then and not changed any more. A pair
that is not known is worth `Vmax = 1/(1 − γ)`, the most that rewards scaled to [0, 1] can bring. The model is solved
when a pair becomes known, at most SA times, from the values before, which are above the new ones; the agent acts
greedily. PAC-MDP with `m = O((S + ln(SA/δ)) / (ε² (1 − γ)⁴))`; the published experiments take 16 on RiverSwim, the
default, and 6 on SixArms (preset `six-arms`). Uses no prior.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from beliefbound.base.grammar import Number
from beliefbound.base.validation import IntArray
from beliefbound.kernels.options import EXACT, EXACT_INLINE
from beliefbound.kernels.planning.empirical import Counts, count, estimate, forget_counts, no_counts, unknown
from beliefbound.kernels.planning.optimism import MEAN, OptimisticModel, solve
from beliefbound.lab.agents.common.optimism import SOLVER, model_for
from beliefbound.lab.engine.protocol import DISCOUNT, Machine, Setting
from beliefbound.lab.engine.registry import agent


class State(NamedTuple):
    """Counts, the model of what is known, and how many visits that takes."""

    counts: Counts
    model: OptimisticModel
    stale: IntArray  # [1]: 1 where the model must be solved again
    needed: int
    sweeps: int
    tolerance: float


@njit(**EXACT)
def reset(state, stream):
    """Nothing known. No random numbers are used."""
    forget_counts(state.counts)
    unknown(state.model, state.model.cap)
    state.stale[0] = 1


@njit(**EXACT_INLINE)
def act(state, s):
    """Solve if something became known, and choose."""
    if state.stale[0] == 1:
        solve(state.model, state.sweeps, state.tolerance)
        state.stale[0] = 0
    return state.model.actions[s]


@njit(**EXACT_INLINE)
def observe(state, s, a, r, t):
    """Count until the pair is known."""
    if state.counts.visits[s, a] < state.needed and count(state.counts, s, a, r, t) == state.needed:
        estimate(state.counts, state.model, s, a)
        state.stale[0] = 1


@agent(
    "rmax",
    summary="what was tried fewer than m times is worth the most possible (Brafman & Tennenholtz 2003)",
    parameters=(
        Number("m", 16, 1, 2**40, "visits that make a pair known", whole=True, always=True),
        *SOLVER,
        DISCOUNT,
    ),
    presets={"riverswim": {}, "six-arms": {"m": 6}},
)
def rmax(setting: Setting, *, m: int, **values: Any) -> Machine:
    """The machine."""
    state = State(
        counts=no_counts(setting.n_states, setting.n_actions, low=setting.low, width=setting.width),
        model=model_for(setting, kind=MEAN, discount=setting.discount, cap=1.0 / (1.0 - setting.discount)),
        stale=np.zeros(1, np.int64),
        needed=m,
        sweeps=values["sweeps"],
        tolerance=float(values["tolerance"]),
    )
    return Machine(state, reset, act, observe)
