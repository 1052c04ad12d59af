"""pymdptoolbox: transitions `(A, S, S)`; rewards `(S, A)`, `(S,)` or `(A, S, S)`; dense, or a sparse matrix per action.

pymdptoolbox has no notion of an action that a state does not offer. Here a reward of −∞ says so, as in QuantEcon: an
unavailable action is exported as staying in place for −∞, which no solver ever prefers, and read back the same way.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp

from beliefbound.base.errors import ModelError
from beliefbound.base.limits import SPARSE_BYTES
from beliefbound.base.validation import FloatArray, as_floats
from beliefbound.models.convert.assemble import sparse_rows
from beliefbound.models.mdp import MDP


def from_mdptoolbox(transitions: Any, rewards: Any) -> MDP:
    """The MDP of pymdptoolbox arrays.

    Args:
      transitions: `[action, state, next_state]`, or a sequence of one `[state, next_state]` matrix per action, which
        may be sparse.
      rewards: `[state, action]`, `[state]`, or like `transitions`: then the reward of each transition, of which the
        expectation is taken. −∞ in `[state, action]` marks an unavailable action.

    >>> mdp = from_mdptoolbox([[[0.0, 1.0], [1.0, 0.0]]], [[1.0], [0.0]])
    >>> mdp.transitions.tolist()
    [[[0.0, 1.0]], [[1.0, 0.0]]]
    """
    blocks = _blocks(transitions, "transitions")
    n_actions, n_states = len(blocks), blocks[0].shape[0]
    for a, block in enumerate(blocks):
        if block.shape != (n_states, n_states):
            raise ModelError(
                f"transitions[action {a}] have shape {block.shape}; expected [action, state, next state] with "
                f"{n_states} states, as in action 0"
            )
    expected = _rewards(rewards, blocks, n_states)
    available = expected != -np.inf
    expected = np.where(available, expected, 0.0)
    if 8 * n_actions * n_states**2 <= SPARSE_BYTES:
        dense = np.stack([x.toarray() if sp.issparse(x) else x for x in blocks], axis=1)
        return MDP(dense, expected, available=available)
    # Row `action * S + state` of the stack becomes row `state * A + action`.
    order = np.arange(n_actions * n_states).reshape(n_actions, n_states).T.ravel()
    stacked = sp.csr_array(sp.vstack([sp.csr_array(x) for x in blocks]))[order]
    return MDP(stacked, expected, available=available)


def to_mdptoolbox(mdp: MDP) -> tuple[Any, FloatArray]:
    """`(transitions, rewards)` as pymdptoolbox takes them: `(A, S, S)`, or one CSR matrix per action, and `(S, A)`.

    >>> transitions, rewards = to_mdptoolbox(MDP([[[0.0, 1.0]], [[1.0, 0.0]]], [[1.0], [0.0]]))
    >>> transitions.shape, rewards.tolist()
    ((1, 2, 2), [[1.0], [0.0]])
    """
    rewards = np.where(mdp.available, mdp.rewards, -np.inf)
    missing = np.flatnonzero(~mdp.available.ravel())
    stay = sp.csr_array(
        (np.ones(len(missing)), (missing, missing // mdp.n_actions)),
        shape=(mdp.n_states * mdp.n_actions, mdp.n_states),
    )
    rows = sp.csr_array(sparse_rows(mdp) + stay)
    if mdp.is_sparse:
        return [sp.csr_matrix(rows[a :: mdp.n_actions]) for a in range(mdp.n_actions)], rewards
    dense = rows.toarray().reshape(mdp.n_states, mdp.n_actions, mdp.n_states)
    return np.ascontiguousarray(np.moveaxis(dense, 1, 0)), rewards


def _blocks(value: Any, name: str) -> list[Any]:
    """One matrix per action."""
    if sp.issparse(value):
        raise ModelError(f"{name} are one sparse matrix; expected one per action")
    if not isinstance(value, np.ndarray) and not any(sp.issparse(x) for x in value):
        value = as_floats(value, name, ModelError)
    if isinstance(value, np.ndarray) and value.dtype != object and value.ndim != 3:
        raise ModelError(f"{name} have shape {value.shape}; expected [action, state, next state]")
    blocks = [sp.csr_array(x) if sp.issparse(x) else as_floats(x, name, ModelError) for x in value]
    if not blocks or any(x.ndim != 2 for x in blocks):
        raise ModelError(f"{name} must hold one [state, next state] matrix per action")
    return blocks


def _rewards(rewards: Any, blocks: list[Any], n_states: int) -> FloatArray:
    n_actions = len(blocks)
    listed = not sp.issparse(rewards) and not isinstance(rewards, np.ndarray)
    if sp.issparse(rewards):
        rewards = rewards.toarray()
    elif (listed or rewards.dtype == object) and any(sp.issparse(x) for x in rewards):
        return _expected(_blocks(rewards, "rewards"), blocks)
    r = as_floats(rewards, "rewards", ModelError)
    if r.shape == (n_states,):
        return np.repeat(r[:, None], n_actions, axis=1)
    if r.shape == (n_states, n_actions):
        return r
    if r.shape == (n_actions, n_states, n_states):
        return _expected(list(r), blocks)
    raise ModelError(
        f"rewards have shape {r.shape}; expected [state, action] = {(n_states, n_actions)}, [state] = {(n_states,)} "
        f"or [action, state, next state] = {(n_actions, n_states, n_states)}"
    )


def _expected(rewards: list[Any], blocks: list[Any]) -> FloatArray:
    if [x.shape for x in rewards] != [x.shape for x in blocks]:
        raise ModelError("rewards per transition must have the shapes of the transitions, one matrix per action")
    columns = []
    for block, reward in zip(blocks, rewards, strict=True):
        product = block.multiply(reward) if sp.issparse(block) else block * _dense(reward)
        columns.append(np.asarray(product.sum(axis=1)).ravel())
    return np.stack(columns, axis=1)


def _dense(matrix: Any) -> Any:
    return matrix.toarray() if sp.issparse(matrix) else matrix
