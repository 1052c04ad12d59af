"""Ng & Russell's linear program (2000): rewards under which a policy is optimal, and by a clear margin.

    max_r   Σ_s min_{a ≠ π(s)} (P_π − P_a)(s) (I − γP_π)⁻¹ r − λ‖r‖₁
    with    (P_π − P_a)(s) (I − γP_π)⁻¹ r ≥ 0  for all s, a,   |r| ≤ r_max

`r(s)` is paid in the state that is left. The policy is optimal for the answer, exactly as far as the program is solved;
so it is for `r = 0`, which is why the margin is asked for. By SciPy's HiGHS: `3S` variables, `2SA` rows.
"""

from typing import Any

import numpy as np

from beliefbound.base.errors import ModelError, ParameterError
from beliefbound.base.validation import (
    FloatArray,
    as_floats,
    check_discount,
    check_distributions,
    check_ids,
    check_not_below,
    check_positive,
)


def ng_russell(
    transitions: Any, policy: Any, *, discount: float, penalty: float = 0.0, largest: float = 1.0
) -> FloatArray:
    """State rewards `[s]` under which `policy[s]` is optimal in `transitions[s,a,t]`.

    Args:
      penalty: `λ`, what a unit of reward costs: the larger, the more states are paid nothing.
      largest: `r_max`.

    >>> leads = [[[1.0, 0.0], [0.0, 1.0]]] * 2
    >>> ng_russell(leads, [1, 1], discount=0.9).tolist()
    [-1.0, 1.0]
    """
    from scipy.optimize import linprog

    p = as_floats(transitions, "transitions", ModelError)
    if p.ndim != 3 or p.shape[0] != p.shape[2]:
        raise ModelError(f"transitions have shape {p.shape}; expected (S, A, S)")
    check_distributions(p, "transitions", ("state", "action", "next state"), ModelError)
    discount, penalty = check_discount(discount, None), check_not_below(penalty, "penalty")
    largest = check_positive(largest, "largest")
    S, A, _ = p.shape
    taken = check_ids(policy, A, "policy", ParameterError)
    if taken.shape != (S,):
        raise ParameterError(f"policy has shape {taken.shape}; expected ({S},), one action a state")
    own = p[np.arange(S), taken]
    inverse = np.linalg.inv(np.eye(S) - discount * own)
    gains = (own[:, None] - p) @ inverse  # [s,a,t]: of the policy's action over each
    s, a = np.nonzero(np.arange(A) != taken[:, None])
    rows, none = gains[s, a], np.zeros((len(s), S))
    margin = np.zeros((len(s), S))
    margin[np.arange(len(s)), s] = 1.0
    unit = np.eye(S)
    zero = np.zeros((S, S))
    # variables: r, u ≥ |r|, m(s) ≤ gain over each other action
    above = np.block([[-rows, none, none], [-rows, none, margin], [unit, -unit, zero], [-unit, -unit, zero]])
    cost = np.concatenate([np.zeros(S), np.full(S, penalty), -np.ones(S) * float(A > 1)])
    limits = [(-largest, largest)] * S + [(0.0, largest)] * S + [(None if A > 1 else 0.0, None if A > 1 else 0.0)] * S
    found = linprog(cost, A_ub=above, b_ub=np.zeros(len(above)), bounds=limits, method="highs")
    if not found.success:
        raise ModelError(f"the linear program was not solved: {found.message}")
    rewards: FloatArray = found.x[:S] + 0.0
    return rewards
