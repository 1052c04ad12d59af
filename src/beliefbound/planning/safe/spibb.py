"""Safe policy improvement with baseline bootstrapping (Laroche, Trichelair & Tachet des Combes, ICML 2019).

The best policy of the MDP of frequencies that does what behaviour does wherever data are few: in pairs tried fewer than
`least` times,

    Π_b:   π(a|s) = b(a|s)
    Π≤b:   π(a|s) ≤ b(a|s).
"""

from typing import Literal

import numpy as np

from beliefbound.base.validation import FloatArray
from beliefbound.planning.safe.bounded import bounded_optimum
from beliefbound.planning.safe.frequencies import Frequencies


def spibb(
    data: Frequencies,
    *,
    least: float,
    bound: Literal["equal", "at most"] = "at most",
    discount: float,
    horizon: int | None = None,
) -> FloatArray:
    """Chances `[s,a]`, or `[t,s,a]` with a horizon, of Π_b-SPIBB (`equal`) or Π≤b-SPIBB (`at most`)."""
    rare = (data.visits < least) & ~data.terminal[:, None]
    low = np.where(rare, data.behaviour, 0.0) if bound == "equal" else np.zeros_like(data.behaviour)
    high = np.where(rare | ~data.available, data.behaviour, 1.0)
    return within(data, data.model(), low, high, discount, horizon)


def within(
    data: Frequencies,
    model: tuple[FloatArray, FloatArray],
    low: FloatArray,
    high: FloatArray,
    discount: float,
    horizon: int | None,
) -> FloatArray:
    """The best policy between bounds `[s,a]` of a model that has the worst for its last state."""
    first, even = np.eye(1, data.n_actions), np.full((1, data.n_actions), 1.0)
    ends = np.vstack([low, 0.0 * first]), np.vstack([high, even])
    found = bounded_optimum(*model, *ends, discount=discount, horizon=horizon)
    return found[..., :-1, :]
