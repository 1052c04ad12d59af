"""An `MDP` from a list of outcomes: duplicates merged, rewards averaged, dense or sparse by size.

Each outcome is `(row, next state, probability, reward)` with `row = state · n_actions + action`. Outcomes of one row
that lead to the same state are one transition; the row's reward is `Σ probability · reward`.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from beliefbound.base.errors import ModelError
from beliefbound.base.limits import SPARSE_BYTES
from beliefbound.base.validation import BoolArray, FloatArray, IntArray, check_ids
from beliefbound.models.mdp import MDP


def assemble(
    rows: IntArray,
    next_states: IntArray,
    probabilities: FloatArray,
    rewards: FloatArray,
    *,
    n_states: int,
    n_actions: int,
    available: BoolArray | None = None,
    initial: Any = None,
    states: Sequence[str] | None = None,
    actions: Sequence[str] | None = None,
) -> MDP:
    """The MDP whose row `row[i]` has the outcome `next_states[i]` with `probabilities[i]`, paying `rewards[i]`."""
    n_rows = n_states * n_actions
    columns = check_ids(next_states, n_states, "next states", ModelError)
    matrix: Any = sp.csr_array(sp.coo_array((probabilities, (rows, columns)), shape=(n_rows, n_states)))
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    expected = np.bincount(rows, weights=probabilities * rewards, minlength=n_rows).reshape(n_states, n_actions)
    if 8 * n_rows * n_states <= SPARSE_BYTES:
        matrix = matrix.toarray().reshape(n_states, n_actions, n_states)
    return MDP(matrix, expected, initial=initial, states=states, actions=actions, available=available)


def sparse_rows(mdp: MDP) -> Any:
    """The transitions of `mdp` as a CSR matrix with one row per `(state, action)`."""
    if mdp.is_sparse:
        return mdp.transitions
    return sp.csr_array(mdp.transitions.reshape(mdp.n_states * mdp.n_actions, mdp.n_states))


def absorbing(mdp: MDP) -> BoolArray:
    """`[s]`: states every action of which stays there for nothing. An episode that enters one is over."""
    rows = sparse_rows(mdp)
    own = np.repeat(np.arange(mdp.n_states), mdp.n_actions)
    entry_row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    leaves = np.zeros(rows.shape[0], dtype=np.bool_)
    leaves[entry_row[(rows.indices != own[entry_row]) & (rows.data > 0.0)]] = True
    stays: BoolArray = ~leaves.reshape(mdp.n_states, mdp.n_actions) & (mdp.rewards == 0.0)
    return np.asarray((stays | ~mdp.available).all(axis=1))
