"""MCBRL planning with CADP: the models are conditioned on how a state was reached.

When a plan is due (the schedules of `mcbrl`), n models are drawn from the posterior and CADP (Su & Petrik 2023;
`planning.cadp`) finds a time-indexed policy for `depth` decisions from the *present* state, by at most `sweeps` sweeps
of coordinate ascent from MMBI. MMBI weighs models equally wherever it goes; CADP by how likely each is to have led
there, so on the models drawn its policy is worth at least MMBI's. It is followed, stage by stage, until the next plan,
which is due at the latest when the policy ends. `depth` is by default `floor(ln 0.01 / ln γ)`.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from beliefbound.base.errors import ParameterError
from beliefbound.base.grammar import Number
from beliefbound.base.limits import AGENT_BYTES
from beliefbound.base.validation import IntArray
from beliefbound.kernels.options import EXACT, EXACT_INLINE
from beliefbound.kernels.planning.held_bounds import PolicyOccupancies, ascend, new_occupancies
from beliefbound.kernels.planning.held_models import held_models
from beliefbound.kernels.planning.urn import decisions_that_matter
from beliefbound.lab.agents import mcbrl
from beliefbound.lab.agents.mcbrl import DUE, PLANNING, STEP
from beliefbound.lab.engine.protocol import Machine, Setting
from beliefbound.lab.engine.registry import agent


class State(NamedTuple):
    """MCBRL, the policy and when it began."""

    core: mcbrl.State
    ascent: PolicyOccupancies
    began: IntArray  # [1]: the step of the last plan


@njit(**EXACT)
def reset(state, stream):
    """Back to the prior."""
    mcbrl.reset(state.core, stream)


@njit(**EXACT_INLINE)
def act(state, s):
    """Plan from here if it is due, and follow the plan."""
    core, ascent = state.core, state.ascent
    clock = core.clock
    clock[STEP] += 1
    if clock[STEP] >= clock[DUE]:
        mcbrl.plan(core)
        ascend(core.models, ascent, s, core.sweeps)
        state.began[0] = clock[STEP]
        clock[DUE] = min(clock[DUE], clock[STEP] + ascent.actions.shape[0])
    return ascent.actions[clock[STEP] - state.began[0], s]


@njit(**EXACT_INLINE)
def observe(state, s, a, r, t):
    """As MCBRL."""
    mcbrl.observe(state.core, s, a, r, t)


@agent(
    "mcbrl-cadp",
    summary="MCBRL whose plans are CADP's, from the present state, in place of MMBI's",
    parameters=(
        Number("n", 16, 1, 2**20, "models drawn at a plan", whole=True, always=True),
        Number("depth", None, 1, 10**5, "decisions planned for", whole=True, auto="ln 0.01 / ln discount"),
        Number("sweeps", 4, 1, 10**4, "most sweeps of coordinate ascent a plan", whole=True),
        *(parameter for parameter in PLANNING if parameter.name not in ("sweeps", "tolerance", "warm")),
    ),
)
def mcbrl_cadp(setting: Setting, *, n: int, depth: int | None, **values: Any) -> Machine:
    """The machine; memory is that of n models and of their occupancies at every stage."""
    depth = min(decisions_that_matter(setting.discount), 10**5) if depth is None else depth
    if 8 * depth * setting.n_states * (n + 2) > AGENT_BYTES:
        raise ParameterError(
            f"{depth} decisions with {n} models need {8e-9 * depth * setting.n_states * (n + 2):.0f} GB; take fewer"
        )
    core = mcbrl.mcbrl(setting, n=n, tolerance=0.0, warm="yes", **values).state
    core = core._replace(models=held_models(n, setting.available, setting.discount))  # dense, whatever the size
    state = State(core, new_occupancies(depth, setting.n_states, n), np.zeros(1, np.int64))
    return Machine(state, reset, act, observe)
