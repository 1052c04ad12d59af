"""Which states end an episode, and which actions states offer, as booleans."""

from typing import Any

import numpy as np

from beliefbound.base.errors import BeliefError
from beliefbound.base.validation import BoolArray, as_array, as_bools, check_ids


def terminal_states(terminal: Any, n_states: int) -> BoolArray:
    """Booleans `[s]` from ids or booleans."""
    ends = np.zeros(n_states, dtype=np.bool_)
    if terminal is None:
        return ends
    given = as_array(terminal, "terminal", BeliefError)
    if given.dtype == np.bool_ and given.shape != (n_states,):
        raise BeliefError(f"terminal has shape {given.shape}; expected ({n_states},), or ids of states")
    if given.size:
        ends[given if given.dtype == np.bool_ else check_ids(given, n_states, "terminal", BeliefError)] = True
    return ends


def available_actions(available: Any, n_states: int, n_actions: int) -> BoolArray:
    """Booleans `[s,a]`, an action in every state."""
    if available is None:
        return np.ones((n_states, n_actions), dtype=np.bool_)
    offered = as_bools(available, "available", BeliefError)
    if offered.shape != (n_states, n_actions):
        raise BeliefError(f"available has shape {offered.shape}; expected {(n_states, n_actions)}")
    if not offered.any(axis=1).all():
        state = int(np.argmin(offered.any(axis=1)))
        raise BeliefError(f"available[state {state}] has no action; every state needs at least one")
    return offered
