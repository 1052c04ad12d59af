"""QuantEcon's `DiscreteDP`, in both of its formulations.

* *product*: rewards `R[s,a]`, transitions `Q[s,a,t]`; `R = −∞` marks an action the state does not offer;
* *state-action pairs*: `R[l]`, `Q[l,t]` (dense or sparse) with `s_indices[l]`, `a_indices[l]`; pairs not listed are
  not offered, nor are those with `R = −∞`.

A `DiscreteDP` also carries the discount (`ddp.beta`), which an `MDP` does not.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp

from beliefbound.base.errors import BeliefboundError, ModelError
from beliefbound.base.limits import SPARSE_BYTES
from beliefbound.base.validation import as_floats, check_discount
from beliefbound.models.mdp import MDP


def from_quantecon(ddp: Any) -> MDP:
    """The MDP of a `quantecon.markov.DiscreteDP`, sparse where its pairs are sparse and the dense array would be large.

    >>> from types import SimpleNamespace
    >>> ddp = SimpleNamespace(R=[[1.0, -np.inf], [0.0, 2.0]], Q=[[[0, 1], [0, 0]], [[1, 0], [0, 1]]], s_indices=None)
    >>> from_quantecon(ddp).available.tolist()
    [[True, False], [True, True]]
    """
    for name in ("R", "Q"):
        if not hasattr(ddp, name):
            raise ModelError(f"{type(ddp).__name__} has no {name}; expected a quantecon.markov.DiscreteDP")
    rewards = as_floats(ddp.R, "R", ModelError)
    if getattr(ddp, "s_indices", None) is None:
        offered = rewards != -np.inf
        return MDP(ddp.Q, np.where(offered, rewards, 0.0), available=offered)
    states, actions = np.asarray(ddp.s_indices, dtype=np.int64), np.asarray(ddp.a_indices, dtype=np.int64)
    keep = rewards != -np.inf
    n_states, n_actions = ddp.Q.shape[1], int(actions.max()) + 1
    pairs = states[keep] * n_actions + actions[keep]
    n_rows = n_states * n_actions
    expected, available = np.zeros(n_rows), np.zeros(n_rows, dtype=np.bool_)
    expected[pairs] = rewards[keep]
    available[pairs] = True
    if 8 * n_rows * n_states > SPARSE_BYTES:
        place = sp.csr_array((np.ones(len(pairs)), (pairs, np.flatnonzero(keep))), shape=(n_rows, len(states)))
        transitions: Any = sp.csr_array(place @ sp.csr_array(ddp.Q))
    else:
        transitions = np.zeros((n_rows, n_states))
        transitions[pairs] = (ddp.Q.toarray() if sp.issparse(ddp.Q) else np.asarray(ddp.Q))[keep]
        transitions = transitions.reshape(n_states, n_actions, n_states)
    shape = (n_states, n_actions)
    return MDP(transitions, expected.reshape(shape), available=available.reshape(shape))


def to_quantecon(mdp: MDP, *, discount: float) -> Any:
    """A `quantecon.markov.DiscreteDP`: the product formulation of a dense MDP, the pairs of a sparse one.

    Needs quantecon, which this package does not install.

    Args:
      mdp: any; state-dependent action sets are kept.
      discount: in [0, 1); `DiscreteDP` solves discounted problems only.

    >>> ddp = to_quantecon(MDP([[[0.0, 1.0]], [[1.0, 0.0]]], [[1.0], [0.0]]), discount=0.5)
    >>> ddp.solve(method="policy_iteration").v.round(3).tolist()
    [1.333, 0.667]
    """
    discount = check_discount(discount, None)
    try:
        from quantecon.markov import DiscreteDP
    except ImportError:
        raise BeliefboundError("to_quantecon needs quantecon, which is not installed; pip install quantecon") from None
    if not mdp.is_sparse:
        rewards = np.where(mdp.available, mdp.rewards, -np.inf)
        return DiscreteDP(rewards, mdp.transitions, discount)
    states, actions = np.nonzero(mdp.available)
    rows = sp.csr_matrix(mdp.transitions[states * mdp.n_actions + actions])
    return DiscreteDP(mdp.rewards[states, actions], rows, discount, states, actions)
