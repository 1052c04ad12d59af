"""Actions that a best policy may do without: those that are worth the same as another, and waiting for nothing.

*Alike.* Two actions of a state whose rows are independent and have the same parameters, lead to the same states and pay
the same, are *alike* under the prior; where the same has been counted of both, they are alike at that history. Swapping
the two, now and ever after, maps the problem from there on to itself, and each action to the other: both are worth the
same. So some Bayes-optimal policy takes, at every history, the lowest-numbered of those that are alike there.

*Waiting.* An action that certainly stays where it is, and pays `c`, the least that anything ever pays, teaches nothing.
Without a horizon it is worth `c + γV`. If that is the most there is, `V = c/(1−γ)`, which every action is worth. With
`T ≥ 2` decisions left let `a` be the best other action with `T−1` left, worth `V_{T−1}` by induction. Going on at will
for one step more, `Q_T(a) ≥ V_{T−1} + γ^{T−1} c`, and as `V_{T−1} ≥ c (1 + … + γ^{T−2})` that is at least `c + γ
V_{T−1}`, what waiting is worth. With one left all pay at least `c`. So where there is another action, some best policy
never waits.

Both depend on the prior and on what has been counted, never on particles. An upper bound that is one for every policy
that sees the history only, is one of `V*` if it is one for policies that take none of these actions (`needless`).
"""

import numpy as np
from numba import njit

from beliefbound.kernels.options import FAST
from beliefbound.kernels.particles.rows import BAMDP

WAITS = -1  # in place of a class


def classes_of(problem: BAMDP) -> np.ndarray:
    """`[pair]`: the first pair of those alike under the prior, or `WAITS`; empty where that is each pair itself."""
    posterior, (n_values, pairs) = problem.posterior, problem.posterior.reward.shape
    n_actions, own = posterior.n_actions, np.arange(pairs)
    row = posterior.row if posterior.tied else own
    alpha = posterior.alpha[row] if posterior.tied else posterior.alpha
    possible = alpha > 0.0
    if posterior.tied:
        possible &= posterior.arrive >= 0
    arrive = np.where(possible, posterior.arrive if posterior.tied else np.arange(alpha.shape[1]), -1)
    paid = np.broadcast_to(posterior.paid, (n_values, *possible.shape))
    alone = ~problem.available | (np.bincount(row)[row] > 1)  # alike to nothing
    told = [problem.keep, problem.credit, *(posterior.reward if n_values > 1 else ())]
    found = own.copy()
    for a in range(1, n_actions):
        for b in range(a):
            one, other = slice(a, None, n_actions), slice(b, None, n_actions)  # pairs of the two actions
            same = ~alone[one] & ~alone[other] & (found[one] == own[one])
            for each in told:
                same &= each[one] == each[other]
            for rows in (alpha, arrive):
                same &= (rows[one] == rows[other]).all(axis=1)
            same &= ((paid[:, one] == paid[:, other]) | ~possible[one]).all(axis=(0, 2))
            found[one] = np.where(same, found[other], found[one])
    waits = _waits(problem, possible, arrive, paid)
    return np.where(waits, WAITS, found) if waits.any() or (found != own).any() else np.empty(0, dtype=np.int64)


def _waits(problem: BAMDP, possible: np.ndarray, arrive: np.ndarray, paid: np.ndarray) -> np.ndarray:
    """`[pair]`: stays for certain and pays the least, where another action is there; none where outcomes were cut."""
    n_actions, pairs = problem.posterior.n_actions, len(possible)
    if (problem.keep < 1.0).any() or problem.credit.any():
        return np.zeros(pairs, dtype=bool)
    least = np.where(possible & problem.available[:, None], paid, np.inf).min()
    own = np.arange(pairs)[:, None] // n_actions
    stays = problem.available & (~possible | ((arrive == own) & (paid <= least).all(axis=0))).all(axis=1)
    others = (problem.available & ~stays).reshape(-1, n_actions).any(axis=1)
    return np.asarray(stays & np.repeat(others, n_actions))


@njit(**FAST)
def needless(classes, counts, pair, n_actions):
    """Whether a best policy does without a pair's action after `counts[pair,column]`; `classes` are not empty."""
    if classes[pair] < 0:
        return True
    for other in range(pair - pair % n_actions, pair):
        if classes[other] == classes[pair]:
            same = True
            for column in range(counts.shape[1]):
                same = same and counts[other, column] == counts[pair, column]
            if same:
                return True
    return False
