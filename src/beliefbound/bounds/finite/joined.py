"""States that differ by nothing but what is paid on leaving them, as one.

Where in every model the rows of two states `s` and `t` are the same, action by action, and `r_m(t,a) = r_m(s,a) + c`
for all models and actions, whatever is done in `t` earns `c` more than in `s` and shows the same:

    V*(b,t) = V*(b,s) + c,      and so of every policy that does the same in both.

So an outcome that arrives in `t` may as well arrive in `s` and be paid `γc`:

    r_m(x,a) + γ Σ_k like[m,k] V(b^k, arrive_k)  =  r'_m(x,a) + γ Σ_k like[m,k] V(b^k, arrive'_k),
    r'_m(x,a) = r_m(x,a) + γ Σ_k like[m,k] c(arrive_k).

Values of every belief and state stay what they are, from above and from below, and those of policies that do the same
in both states too; outcomes show what they showed. But equal beliefs in `s` and in `t` are one. A bandit whose states
say whether the last pull paid is the example: half of its beliefs are left, and vectors and cells are of one state.

*Policies.* One that was found so takes the node of `s` for one of `t`: `told_states` gives it a node for each state in
which it may truly be. Memoryless ones that do not do the same in both, such as staying after a win alone, are left out
of the pool: a policy that learns does better than these.

*Rounding.* `c` is right to a unit of itself, and is met once a step: with `κ` as in `planning.rounding`, a backup is
off by `2κ|c|` more (what is paid, and what is read in a state that is worth `c` less), all of them by `2κ|c|/(1 − γ)`.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from beliefbound.base.validation import FloatArray, IntArray
from beliefbound.bounds.finite.outcomes import rows_of
from beliefbound.bounds.finite.problem import pool_numbers
from beliefbound.kernels.graph.nodes import BeliefMDP
from beliefbound.planning.task import FiniteTask
from beliefbound.policy import TablePolicy

_READ = 1.0  # operations, in time, of a likelihood or a reward that is compared


class Joined(NamedTuple):
    """A problem in which no outcome arrives in a state that another one stands for."""

    problem: BeliefMDP
    policies: list[TablePolicy]  # those whose values it has
    paid: float  # the largest |c|
    work: float  # operations that it took


def join_states(problem: BeliefMDP, policies: Sequence[TablePolicy]) -> Joined:
    """The problem with such states joined, and those of `policies` that do the same in states that are one; all as it
    was where no states are alike, or no policy treats them so."""
    stands, more = standing_for(problem)
    alike = [i for i, policy in enumerate(policies) if _same_in(policy, stands)]
    if (stands == np.arange(len(stands))).all() or (policies and not alike):
        return Joined(problem, list(policies), 0.0, 0.0)  # looking takes less than what is allocated for vectors
    reward, paid = problem.reward.copy(), more[problem.arrive]
    for s, rows in enumerate(problem.first):
        here = paid[rows[0] : rows[-1]]
        if here.any():
            like = _likelihoods(problem, s)
            for a in np.flatnonzero(problem.available[s]):
                own = slice(rows[a] - rows[0], rows[a + 1] - rows[0])
                reward[:, s, a] += problem.discount * (like[:, own] @ here[own])
    v, number = np.ascontiguousarray(problem.v[..., alike]), pool_numbers(len(stands), len(alike))
    joined = problem._replace(arrive=stands[problem.arrive], reward=reward, v=v, number=number)
    kept = [policies[i] for i in alike]
    return Joined(joined, kept, float(np.abs(more).max()), 2.0 * _READ * problem.like.size)


def _same_in(policy: TablePolicy, stands: IntArray) -> bool:
    """Whether it does in every state what it does in the one that stands for it."""
    actions = np.atleast_2d(policy.actions)
    return bool((actions == actions[:, stands]).all())


def standing_for(problem: BeliefMDP) -> tuple[IntArray, FloatArray]:
    """`([s], [s])`: the state that stands for each, of those alike the one of smallest rewards; and how much more than
    there is paid here."""
    n_states = len(problem.available)
    stands, more = np.arange(n_states), np.zeros(n_states)
    if problem.discount >= 1.0:
        return stands, more
    groups = dict[bytes, list[int]]()
    for s, rows in enumerate(problem.first):
        arrive = problem.arrive[rows[0] : rows[-1]]
        alike = [rows - rows[0], arrive, problem.available[s].astype(np.int64)]
        groups.setdefault(np.concatenate(alike).astype(np.int64).tobytes(), []).append(s)
    for group in groups.values():
        known = list[int]()
        for t in sorted(group, key=lambda s: float(np.abs(problem.reward[:, s]).max())) if len(group) > 1 else ():
            for s in known:
                held = problem.available[s]
                apart = problem.reward[:, t, held] - problem.reward[:, s, held]
                if (apart == apart[0, 0]).all() and np.array_equal(_likelihoods(problem, s), _likelihoods(problem, t)):
                    stands[t], more[t] = s, apart[0, 0]
                    break
            else:
                known.append(t)
    return stands, more


def _likelihoods(problem: BeliefMDP, s: int) -> FloatArray:
    """`[m,row]` of a state."""
    n_models, begin, end = len(problem.reward), int(problem.first[s, 0]), int(problem.first[s, -1])
    return problem.like[n_models * begin : n_models * end].reshape(n_models, end - begin)


def taken_apart(task: FiniteTask, problem: BeliefMDP) -> BeliefMDP:
    """The problem with every outcome arriving where it does."""
    arrive = rows_of(task).arrive
    if np.array_equal(arrive, problem.arrive):
        return problem
    return problem._replace(arrive=arrive, reward=np.array(task.models.rewards))


def told_states(
    task: FiniteTask,
    problem: BeliefMDP,
    state: IntArray,
    action: npt.NDArray[np.int32],
    after: npt.NDArray[np.int32],
    roots: IntArray,
) -> tuple[IntArray, npt.NDArray[np.int32], npt.NDArray[np.int32], IntArray]:
    """`(state, action, after, roots)` of a controller's nodes, one for each state in which it truly may be; nodes as
    they are where no states were joined."""
    arrive, n_states = rows_of(task).arrive, len(problem.available)
    if np.array_equal(arrive, problem.arrive):
        return state, action, after, roots
    x, row = np.nonzero(after >= 0)
    code = after[x, row].astype(np.int64) * n_states + arrive[problem.first[state[x], 0] + row]
    codes = np.unique(np.concatenate([code, roots * n_states + state[roots]]))
    linked = after.copy()
    linked[x, row] = np.searchsorted(codes, code)
    node, own = np.divmod(codes, n_states)
    return own, action[node], linked[node], np.searchsorted(codes, roots * n_states + state[roots])
