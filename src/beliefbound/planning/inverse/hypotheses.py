"""Finitely many hypotheses about rewards and dynamics, weighed exactly by what was demonstrated.

    w'_m ∝ w_m Π_t P_m(s'_t|s_t,a_t) · softmax_a(η Q*_m(s_t,·))(a_t)

with every transition counted, those of others too, and choices those of the demonstrators. `η` is one number, or one
of several that are equally likely: then the choices' likelihood is their mean.
"""

import numpy as np

from beliefbound.base.errors import BeliefError
from beliefbound.base.validation import FloatArray, IntArray
from beliefbound.beliefs.finite import FiniteBelief
from beliefbound.logs.demonstrations import Demonstrations
from beliefbound.planning.optimal import optimal_values


def log_choices(q: FloatArray, visits: IntArray, eta: FloatArray | float) -> FloatArray:
    """`[…]`: `Σ_{s,a} N(s,a) log softmax_a(η Q(s,a))` of values `q[…,s,a]`, −inf where an action is not offered, and
    `eta[…]`.

    >>> float(np.exp(log_choices(np.array([[0.0, np.log(3.0)]]), np.array([[1, 1]]), 1.0)).round(4))  # 1/4 times 3/4
    0.1875
    """
    logits = np.asarray(eta)[..., None, None] * (q - q.max(axis=-1, keepdims=True))
    logits = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    with np.errstate(invalid="ignore"):
        terms = np.where(visits > 0, visits * logits, 0.0)
    total: FloatArray = terms.sum(axis=(-1, -2))
    return total


def weigh_hypotheses(
    hypotheses: FiniteBelief, demonstrations: Demonstrations, *, discount: float, rationality: FloatArray
) -> FiniteBelief:
    """The same models weighed by the demonstrations; nobody shows the apprentice a reward.

    Args:
      rationality: `η`, one or several that are equally likely, `[i]`.
    """
    log, belief = demonstrations.log, hypotheses
    if (belief.n_states, belief.n_actions) != (log.n_states, log.n_actions):
        raise BeliefError(
            f"{belief!r} has {belief.n_states} states and {belief.n_actions} actions, {log.source} has {log.n_states} "
            f"and {log.n_actions}"
        )
    q = optimal_values(belief, discount=discount).q
    visits = demonstrations.visits.sum(axis=0)
    each = np.stack([log_choices(q, visits, float(eta)) for eta in rationality])  # [i,m]
    top = each.max(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        weights = np.log(belief.weights) + np.where(
            np.isfinite(top), top + np.log(np.exp(each - np.where(np.isfinite(top), top, 0.0)).mean(axis=0)), -np.inf
        )
        cells = log.cells
        for s, a, t, n in zip(cells.state, cells.action, cells.next_state, cells.times, strict=True):
            weights = weights + n * np.log(belief.models.transitions.likelihood(int(s), int(a), int(t)))
            if not np.isfinite(weights.max()):
                raise BeliefError(
                    f"state {log.state_name(int(s))[:40]!r}, action {log.action_name(int(a))[:40]!r}, next state "
                    f"{log.state_name(int(t))[:40]!r} has probability 0 under every hypothesis that still has weight; "
                    f"add one that allows it"
                )
    weights = np.exp(weights - weights.max())
    return FiniteBelief.of(
        belief.models,
        weights / weights.sum(),
        reward_signal="unobserved",
        initial=log.initial if belief.initial is None else belief.initial,
        states=log.states if belief.states is None else belief.states,
        actions=log.actions if belief.actions is None else belief.actions,
        model_names=belief.model_names,
    )
