"""A belief as the arrays of `kernels.posterior`: the one place where they are made."""

from typing import TYPE_CHECKING

import numpy as np

from beliefbound.base.errors import BeliefError
from beliefbound.base.validation import BoolArray, FloatArray, IntArray
from beliefbound.beliefs.amounts import alike
from beliefbound.kernels.posterior import Posterior, SparsePosterior

if TYPE_CHECKING:
    from beliefbound.beliefs.dirichlet import DirichletBelief


def posterior_of(
    belief: "DirichletBelief", *, low: float = 0.0, width: float = 1.0, unavailable: bool = False
) -> Posterior:
    """The belief as arrays of its own, rewards on the scale `(r − low) / width`.

    Refuses rewards without counts, and, unless `unavailable` says that they are dealt with elsewhere, actions that are
    not available: the arrays do not tell.

    >>> from beliefbound.beliefs import DirichletBelief
    >>> posterior_of(DirichletBelief(2, 1)).alpha.tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    """
    columns = belief.rewards.columns()
    if columns is None:
        raise BeliefError(f"{belief!r} has continuous rewards, which have no counts; use Beta, known or finite rewards")
    if not (unavailable or belief.available.all()):
        s, a = (int(i) for i in np.argwhere(~belief.available)[0])
        raise BeliefError(f"action {a} is not available in state {s}; every action must be, for this use of a belief")
    pairs, n_outcomes = belief.n_states * belief.n_actions, belief.concentration.shape[-1]
    alpha = np.array(belief.concentration).reshape(-1, n_outcomes)
    reward = np.array(columns.counts, order="C").reshape(len(columns.counts), pairs)  # kernels know one order
    values = np.array(columns.paid).reshape(len(reward), belief.n_states, belief.n_actions, -1)
    _check_distinct(values, belief.concentration > 0.0 if belief.ties is None else belief.ties.outcome >= 0)
    values[:, belief.terminal] = 0.0
    paid = values.reshape(len(reward), pairs, -1)
    row, arrive, outcome = _ties(belief, pairs)
    if len(arrive) and paid.shape[2] > 1:
        paid = np.take_along_axis(paid, np.broadcast_to(np.maximum(arrive, 0), (len(reward), *arrive.shape)), axis=2)
    return Posterior(
        alpha=alpha,
        reward=reward,
        prior_alpha=alpha.copy(),
        prior_reward=reward.copy(),
        row=row,
        arrive=arrive,
        outcome=outcome,
        paid=(np.ascontiguousarray(paid) - low) / width,
        scratch=np.zeros(max(n_outcomes, 2 * len(reward))),
        tied=belief.ties is not None,
        fractional=columns.fractional,
        n_actions=belief.n_actions,
        low=float(low),
        width=float(width),
    )


def sparse_posterior_of(dense: Posterior, seen: FloatArray, sizes: FloatArray, c: float) -> Posterior:
    """Rows of unknown support in place of those of `dense`: counts `seen[s,a,t]`, chances `sizes[s,a,k − 1]` that there
    are k successors, and concentration `c` of each. A row whose sizes have no chance is known: its successor is the one
    that `dense` has."""
    n_rows, n_outcomes = dense.alpha.shape
    seen, sizes = np.array(seen).reshape(n_rows, n_outcomes), np.array(sizes).reshape(n_rows, -1)
    may, known = dense.alpha > 0.0, ~(sizes > 0.0).any(axis=1)
    seen[known], sizes[known] = may[known], np.eye(1, n_outcomes)
    possible, k0, tries = may.sum(axis=1), (seen > 0.0).sum(axis=1), seen.sum(axis=1)
    k = np.arange(1, n_outcomes + 1)
    sizes = np.where((k >= np.maximum(k0, 1)[:, None]) & (k <= possible[:, None]) & (sizes > 0.0), sizes, 0.0)
    each = sizes / (k * c + tries[:, None])
    more = c * (each * np.maximum(k - k0[:, None], 0)).sum(axis=1) / each.sum(axis=1)
    unseen = np.minimum(more / np.maximum(possible - k0, 1), c)
    alpha = np.where(seen > 0.0, c + seen, np.where(may, unseen[:, None], 0.0))
    counts = np.stack([k0, tries], axis=1).astype(float)
    sparse = dense._replace(
        alpha=alpha, prior_alpha=alpha.copy(), scratch=np.zeros(2 * max(n_outcomes, len(dense.reward)))
    )
    pairs = [each for x in (sizes, counts, unseen) for each in (x, x.copy())]
    made: Posterior = SparsePosterior(*sparse, *pairs, possible.astype(float), float(c))
    return made


def _ties(belief: "DirichletBelief", pairs: int) -> tuple[IntArray, IntArray, IntArray]:
    if belief.ties is None:
        none = np.empty((0, 0), dtype=np.int64)
        return np.empty(0, dtype=np.int64), none, none
    row, arrive, outcome = (np.array(x) for x in belief.ties)
    return row.ravel(), arrive.reshape(pairs, -1), outcome.reshape(pairs, -1)


def _check_distinct(paid: FloatArray, possible: BoolArray) -> None:
    """Values `[k,s,a,t]` that pay the same where one can get could not be told apart, and counted."""
    ranked = np.sort(paid, axis=0)
    same = alike(ranked[1:], ranked[:-1], paid)
    if paid.shape[-1] > 1:
        same &= possible
    if same.any():
        k, s, a, t = (int(i) for i in np.argwhere(same)[0])
        raise BeliefError(
            f"two reward values of state {s}, action {a} are {ranked[k, s, a, t]}, so what is seen would not tell "
            f"which to count; make them one value and add their counts"
        )
