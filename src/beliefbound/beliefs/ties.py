"""Which pairs (state, action) share parameters.

A pair's next state is an *outcome* `j` of its row of parameters: success or slip, say. Pairs of the same row have the
same chances of the same outcomes, and outcome `j` leads each of them to a state of its own, `arrive[s,a,j]`. Seeing the
next state must tell the outcome, so that counts stay Dirichlet: no two outcomes of a pair may lead to the same state.
"""

from typing import Any, NamedTuple

import numpy as np

from beliefbound.base.errors import BeliefError
from beliefbound.base.validation import BoolArray, FloatArray, IntArray, as_floats, check_finite, check_ids, frozen


class Ties(NamedTuple):
    """Rows and arrivals of pairs."""

    row: IntArray  # [s,a]
    arrive: IntArray  # [s,a,j]; −1 where the row has no such outcome
    outcome: IntArray  # [s,a,t]: the outcome that leads to t; −1 if none does

    def spread(self, values: FloatArray) -> FloatArray:
        """Numbers `[…,row,j]` as `[…,s,a,t]`, zero where a pair cannot get."""
        n_states, n_actions, _ = self.arrive.shape
        out = np.zeros((*values.shape[:-2], n_states, n_actions, n_states))
        s, a, j = np.nonzero(self.arrive >= 0)
        out[..., s, a, self.arrive[s, a, j]] = values[..., self.row[s, a], j]
        return out


def tie(row: Any, arrive: Any, concentration: Any, fixed: BoolArray | None) -> tuple[Ties, FloatArray]:
    """Checked ties and concentrations `[row,j]`; pairs marked `fixed[s,a]` stay where they are, in a row of their
    own."""
    alpha = as_floats(concentration, "concentration", BeliefError)
    if alpha.ndim != 2 or 0 in alpha.shape:
        raise BeliefError(f"concentration has shape {alpha.shape}; expected [row, outcome]")
    check_finite(alpha, "concentration", ("row", "outcome"), BeliefError)
    check_positive(alpha, ("row", "outcome"))
    rows = check_ids(row, len(alpha), "row", BeliefError)
    leads = np.array(as_floats(arrive, "arrive", BeliefError))
    if rows.ndim != 2 or leads.shape != (*rows.shape, alpha.shape[1]):
        raise BeliefError(
            f"row has shape {rows.shape} and arrive {leads.shape}; expected [state, action] and "
            f"[state, action, outcome] with {alpha.shape[1]} outcomes"
        )
    n_states = len(rows)
    none = leads == -1
    leads = np.where(none, -1, check_ids(np.where(none, 0, leads), n_states, "arrive", BeliefError))
    if fixed is not None and fixed.any():
        certain = np.zeros((1, alpha.shape[1]))
        certain[0, 0] = 1.0
        alpha, rows = np.concatenate([alpha, certain]), np.where(fixed, len(alpha), rows)
        stay = np.full_like(leads, -1)
        stay[:, :, 0] = np.arange(n_states)[:, None]
        leads = np.where(fixed[:, :, None], stay, leads)
    possible = alpha[rows] > 0.0
    nowhere = possible & (leads < 0)
    if nowhere.any():
        s, a, j = (int(i) for i in np.argwhere(nowhere)[0])
        raise BeliefError(
            f"arrive[state {s}, action {a}, outcome {j}] is -1 but the outcome has concentration "
            f"{alpha[rows[s, a], j]} in row {rows[s, a]}; say where it leads, or give the pair a row without it"
        )
    leads = np.where(possible, leads, -1)
    outcome = np.full((n_states, rows.shape[1], n_states), -1)
    for s, a, j in np.argwhere(leads >= 0):
        t = leads[s, a, j]
        if outcome[s, a, t] >= 0:
            raise BeliefError(
                f"outcomes {outcome[s, a, t]} and {j} of state {s}, action {a} both lead to state {t}, so seeing it "
                f"would not tell which one happened; give the pair a row of its own where they are one outcome, or "
                f"make two states of it"
            )
        outcome[s, a, t] = j
    return Ties(*(frozen(x.astype(np.int64)) for x in (rows, leads, outcome))), frozen(alpha)


def check_positive(alpha: FloatArray, axes: tuple[str, ...]) -> None:
    """No concentration below zero, and no row without any."""
    if (alpha < 0).any():
        index = tuple(int(i) for i in np.argwhere(alpha < 0)[0])
        where = ", ".join(f"{axis} {i}" for axis, i in zip(axes, index, strict=True))
        raise BeliefError(f"concentration[{where}] is {alpha[index]}; it must be 0 or more")
    none = ~(alpha > 0).any(axis=-1)
    if none.any():
        index = tuple(int(i) for i in np.argwhere(none)[0])
        where = ", ".join(f"{axis} {i}" for axis, i in zip(axes, index, strict=False))
        raise BeliefError(f"{where} has no possible {axes[-1]}; give one a positive concentration")
