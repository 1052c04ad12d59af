"""Abbeel & Ng's projection (2004): a mixture of policies whose expected features are those of the demonstrator.

`μ(π) = E Σ_t γ^t φ(s_t, a_t)`. Begin with any policy, `μ̄ = μ(π⁰)`. In each round `w = μ_E − μ̄`, `π` the best policy for
`r = Φw`, and `μ̄` moves to the point nearest to `μ_E` on the line through `μ̄` and `μ(π)`; stop at `‖w‖ ≤ ε`. The margin
`‖w‖` never grows. Whatever reward `Φw*` with `‖w*‖ ≤ 1` the demonstrator has, the mixture, drawn once at the start,
earns within `ε` of what the demonstrator earns.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from beliefbound.base.errors import ParameterError
from beliefbound.base.validation import FloatArray, IntArray, as_floats, check_count, check_not_below
from beliefbound.models.mdp import MDP
from beliefbound.planning.optimal import policy_iteration
from beliefbound.policy import StationaryPolicy


@dataclass(frozen=True, eq=False)
class Projection:
    """Policies, their shares `[i]`, the mixture's expected features `[f]` and the margins of all rounds `[round]`."""

    policies: tuple[StationaryPolicy, ...]
    shares: FloatArray
    features: FloatArray
    margins: FloatArray


def expected_features(mdp: MDP, policy: StationaryPolicy, features: Any, *, discount: float) -> FloatArray:
    """`μ(π)[f]` of features `[s,f]` or `[s,a,f]`, from the MDP's start, else from every state alike.

    >>> mdp = MDP([[[0.0, 1.0]], [[0.0, 1.0]]], [[0.0], [0.0]], initial=0)
    >>> expected_features(mdp, StationaryPolicy([0, 0]), np.eye(2), discount=0.5).tolist()
    [1.0, 1.0]
    """
    phi = _features(mdp, features)
    chances = policy.chances(mdp.n_actions)
    chain = np.einsum("sa,sat->st", chances, mdp.models.dense()[0])
    start = np.full(mdp.n_states, 1.0 / mdp.n_states) if mdp.initial is None else mdp.initial
    met = np.linalg.solve((np.eye(mdp.n_states) - discount * chain).T, start)
    mean: FloatArray = np.einsum("s,sa,saf->f", met, chances, phi)
    return mean


def projection(
    mdp: MDP, features: Any, demonstrated: Any, *, discount: float, epsilon: float = 1e-3, rounds: int = 1000
) -> Projection:
    """A mixture of policies with the demonstrator's expected features.

    Args:
      mdp: dynamics and start; its rewards do not matter.
      features: `[s,f]` or `[s,a,f]`.
      demonstrated: `μ_E`, `[f]`: the demonstrator's expected features, such as `expected_features` of their policy.
      epsilon: the margin to stop at; where it is not reached in `rounds`, the last of `margins` says so.

    >>> leads = [[[1.0, 0.0], [0.0, 1.0]]] * 2
    >>> found = projection(MDP(leads, np.zeros((2, 2)), initial=0), np.eye(2), [1.0, 9.0], discount=0.9)
    >>> bool(found.margins[-1] <= 1e-3)
    True
    """
    phi, epsilon = _features(mdp, features), check_not_below(epsilon, "epsilon")
    aim = as_floats(demonstrated, "demonstrated", ParameterError)
    if aim.shape != phi.shape[-1:]:
        raise ParameterError(f"demonstrated has shape {aim.shape}; expected {phi.shape[-1:]}, one entry per feature")
    actions: list[IntArray] = [np.zeros(mdp.n_states, dtype=np.int64)]
    means = [expected_features(mdp, StationaryPolicy(actions[0]), phi, discount=discount)]
    shares, mean = np.ones(1), means[0]
    margins = [float(np.linalg.norm(aim - mean))]
    for _ in range(check_count(rounds, "rounds")):
        if margins[-1] <= epsilon:
            break
        wanted = MDP(mdp.transitions, phi @ (aim - mean), initial=mdp.initial, available=mdp.available)
        policy = policy_iteration(wanted, discount=discount).policy
        assert isinstance(policy, StationaryPolicy)
        new = expected_features(mdp, policy, phi, discount=discount)
        step = new - mean
        length = float(step @ step)
        part = min(1.0, max(0.0, float(step @ (aim - mean)) / length)) if length > 0.0 else 0.0
        if part == 0.0:
            break  # no policy is nearer: the demonstrator's features are out of reach
        actions.append(policy.actions)
        mean, shares = mean + part * step, np.append(shares * (1.0 - part), part)
        margins.append(float(np.linalg.norm(aim - mean)))
    policies = tuple(StationaryPolicy(each) for each in actions)
    return Projection(policies, shares, mean, np.array(margins))


def _features(mdp: MDP, features: Any) -> FloatArray:
    """`[s,a,f]`."""
    phi = as_floats(features, "features", ParameterError)
    S, A = mdp.n_states, mdp.n_actions
    if phi.ndim == 2 and phi.shape[0] == S:
        phi = np.repeat(phi[:, None], A, axis=1)
    if phi.ndim != 3 or phi.shape[:2] != (S, A):
        raise ParameterError(f"features have shape {phi.shape}; expected ({S}, f) or ({S}, {A}, f)")
    return phi
