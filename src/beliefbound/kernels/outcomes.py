"""Simulation of a finite environment from tables of outcomes: one uniform a step, whatever the action.

An *outcome* is what nature does: with probability `p[s,a,o]` outcome `o` follows action `a` in state `s`, pays
`reward[s,a,o]` and leads to `next_state[s,a,o]`. The realised reward thus belongs to the outcome, not to its
expectation. `o` is found by inverting the distribution function at one uniform `u` in [0, 1), so two agents that
meet the same `u` in the same place meet the same outcome where their actions have the same one (common random numbers).

`cumulative[s,a,o] = p[s,a,0] + … + p[s,a,o]` is exactly 1 from the last outcome of positive probability on: padding is
never reached, and neither is an outcome of probability zero.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from beliefbound.kernels.options import EXACT
from beliefbound.kernels.reference import by_reference


@by_reference
class Outcomes(NamedTuple):
    """An environment as compiled code sees it: read-only, C-contiguous arrays.

    Attributes:
      cumulative: `float64 [s,a,o]`, distribution function of the outcomes.
      next_state: `int64 [s,a,o]`.
      reward: `float64 [s,a,o]`.
      start: `float64 [s]`, distribution function of the start state.
    """

    cumulative: npt.NDArray[np.float64]
    next_state: npt.NDArray[np.int64]
    reward: npt.NDArray[np.float64]
    start: npt.NDArray[np.float64]


@njit(inline="always", **EXACT)
def step(outcomes, s, a, u):
    """`(reward, next_state)` of action `a` in state `s` at the uniform `u` in [0, 1)."""
    o = 0
    while u >= outcomes.cumulative[s, a, o]:
        o += 1
    return outcomes.reward[s, a, o], outcomes.next_state[s, a, o]


@njit(inline="always", **EXACT)
def begin(outcomes, u):
    """The start state at the uniform `u` in [0, 1)."""
    s = 0
    while u >= outcomes.start[s]:
        s += 1
    return s
