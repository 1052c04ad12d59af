"""A Dirichlet belief as the arrays of `kernels.posterior`: the one place where they are made."""

import numpy as np

from beliefbound.beliefs.dirichlet import DirichletBelief
from beliefbound.errors import BeliefError
from beliefbound.kernels.posterior import Posterior


def posterior_of(belief: DirichletBelief, *, low: float = 0.0, width: float = 1.0) -> Posterior:
    """The belief as arrays of its own, rewards on the scale `(r − low) / width`. Refuses continuous rewards.

    >>> posterior_of(DirichletBelief(2, 1)).alpha.tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    """
    columns = belief.rewards.columns()
    if columns is None:
        raise BeliefError(f"{belief!r} has continuous rewards, which have no counts; use Beta, known or finite rewards")
    pairs = belief.n_states * belief.n_actions
    alpha = np.array(belief.concentration).reshape(pairs, belief.n_states)
    reward = np.array(columns.counts).reshape(len(columns.counts), pairs)
    none = np.empty((0, 0), dtype=np.int64)
    return Posterior(
        alpha=alpha,
        reward=reward,
        prior_alpha=alpha.copy(),
        prior_reward=reward.copy(),
        row=np.empty(0, dtype=np.int64),
        arrive=none,
        outcome=none,
        paid=(np.ascontiguousarray(columns.paid).reshape(len(reward), pairs, -1) - low) / width,
        tied=False,
        fractional=columns.fractional,
        n_actions=belief.n_actions,
        low=float(low),
        width=float(width),
    )
