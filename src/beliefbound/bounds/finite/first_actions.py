"""First actions on a belief graph: bounds of each at the root, growth where a decision hangs, and its stability.

The graph's root has `r + γ Σ_k p_k above_k` and `r + γ Σ_k p_k below_k` for every action: exact bounds of its value.
The search for a value looks into the action of largest upper value only; a decision also needs the upper values of the
others to fall below the best one's lower value. So, where a decision is what is asked for, growth looks into the action
of the largest lower bound and its strongest rival, whichever has the wider bounds.
"""

from collections.abc import Sequence
from copy import copy
from functools import partial
from typing import Protocol

import numpy as np

from beliefbound.base.executors.team import Team
from beliefbound.base.validation import FloatArray
from beliefbound.bounds.decision import Contest, stability_of, widest
from beliefbound.bounds.finite.controller import freeze
from beliefbound.bounds.finite.joined import taken_apart
from beliefbound.bounds.finite.pairs import pair_values
from beliefbound.bounds.finite.problem import allowance_of
from beliefbound.bounds.finite.relaxation import Certifier
from beliefbound.bounds.record import Record
from beliefbound.kernels.graph.alpha import Vectors
from beliefbound.kernels.graph.controller import follow_once, reached
from beliefbound.models.enclosing import rounding_of
from beliefbound.planning.rounding import Allowance, ChainErrors
from beliefbound.planning.task import FiniteTask

# Operations for the value of a policy on every model, or a share of the search's own; beyond, it is left out.
_MOST_WORK, _SHARE = 3e8, 0.25  # of the sweeps: operations, or a share of what the search has taken
_SWEEPS, _CONVERGED = 100, 1e-13  # where the graph has circles; what is missing then is taken off


def action_bounds(certifier: Certifier) -> tuple[FloatArray, FloatArray]:
    """`(lower [a], upper [a])` at the root, rounding included; infinite where an action is not available. For one start
    state."""
    problem, graph, root = certifier.problem, certifier.graph, int(certifier.roots[0])
    first = problem.first[graph.state[root]]
    lower, upper = np.full(len(first) - 1, -np.inf), np.full(len(first) - 1, np.inf)
    for a in np.flatnonzero(problem.available[graph.state[root]]):
        rows = slice(first[a] - first[0], first[a + 1] - first[0])
        chances, reward = graph.prob[root, rows], graph.reward[root, a]
        lower[a] = certifier.allowance.lower(reward + problem.discount * float(chances @ graph.below[root, rows]))
        upper[a] = certifier.allowance.upper(reward + problem.discount * float(chances @ graph.above[root, rows]))
    return lower, upper


def grow(certifier: Certifier, record: Record, tolerance: float, work: float, team: Team) -> bool:
    """`Certifier.grow` for what is asked for: the value, or the decision."""
    if not record.decide or record.contest is None:
        return certifier.grow(certifier.core_nodes, tolerance, work=work, team=team)
    contest, (lower, upper) = copy(record.contest), action_bounds(certifier)
    contest.note(lower, upper)  # its own and what is committed: what others find meanwhile it does not see
    for action in sorted(contest.rivals(), key=lambda a: lower[a] - upper[a]):
        if certifier.grow(certifier.core_nodes, tolerance, work=work, forced=action, team=team):
            return True
    return certifier.grow(certifier.core_nodes, tolerance, work=work, team=team)


def note_first(
    contest: Contest, weights: FloatArray, follow: FloatArray, told: FloatArray, allowance: Allowance
) -> None:
    """Bounds before there is a graph: `follow[m,a]` and `told[m,a]` as below."""
    lower = np.array([allowance.lower(x) for x in weights @ follow])
    upper = np.array([allowance.upper(x) for x in weights @ told])
    contest.note(lower, upper)
    contest.stability = partial(first_stability, contest, weights, follow, told, allowance)


def first_stability(
    contest: Contest, weights: FloatArray, follow: FloatArray, told: FloatArray, allowance: Allowance
) -> FloatArray | None:
    """Stability before there is a graph: `follow[m,a]` and `told[m,a]` are the values of a first action when a
    memoryless policy is followed afterwards, or the model is told."""
    best, n_models = contest.best, len(weights)
    if best is None:
        return None
    others = contest.actions != best
    known = told[:, contest.actions[others]]
    rest = weights * (1.0 - np.eye(n_models)) / np.maximum(1.0 - weights, 1e-300)[:, None]
    alpha = rounded_down(allowance.task, follow[:, best], contest.state)
    without = rest @ known + rounding_of(n_models) * (rest @ np.abs(known))
    return stability_of(weights, alpha, contest.upper[others], known, without)


def rounded_down(task: FiniteTask, values: FloatArray, state: int) -> FloatArray:
    """Values `[m]` of a policy that starts in a state, no more than the true ones, their sum over models included."""
    error = ChainErrors(task)(values[None], np.array([state]))[0]
    return np.asarray(values - error - rounding_of(len(values)) * np.abs(values))


class HasGraph(Protocol):
    """A search, once it has a graph."""

    @property
    def certifier(self) -> Certifier | None: ...


def stability(contest: Contest, searches: Sequence[HasGraph], vectors: Sequence[Vectors] = ()) -> FloatArray | None:
    """How far weights may move before the decision that is proven is not, by the policies of graphs whose values on
    every model do not take long, and by alpha vectors; `None` where these prove nothing."""
    best, certifiers = contest.best, [search.certifier for search in searches if search.certifier is not None]
    if best is None or not certifiers:
        return None
    task, problem = certifiers[0].task, certifiers[0].problem
    weights, s = np.array(task.weights), contest.state
    others = contest.actions != best
    known = problem.q[0, :, s][:, contest.actions[others]]
    without = np.zeros_like(known)
    for m, w in enumerate(weights):
        if 0.0 < w < 1.0:
            rest = np.where(np.arange(len(weights)) == m, 0.0, weights) / (1.0 - w)
            upper = allowance_of(task.reweighted(rest), problem).upper
            without[m] = [upper(x) for x in pair_values(problem, rest)[s, contest.actions[others]]]
    policies = [model_values(certifier, best) for certifier in certifiers]
    own = [_best_vector(each, s, best, weights) for each in vectors]
    besides = max(certifier.allowance.besides for certifier in certifiers)
    policies += [alpha - besides for alpha in own if alpha is not None]
    found = [
        stability_of(weights, rounded_down(task, alpha, s), contest.upper[others], known, without)
        for alpha in policies
        if alpha is not None
    ]
    return widest(found)


def _best_vector(vectors: Vectors, s: int, action: int, weights: FloatArray) -> FloatArray | None:
    """`[m]`: the best known vector of a state that begins with an action."""
    numbers = vectors.number[s, : vectors.known_count[s]]
    own = vectors.value[numbers[vectors.action[numbers] == action]]
    return own[int(np.argmax(own @ weights))] if len(own) else None


def model_values(certifier: Certifier, first: int | None = None) -> FloatArray | None:
    """`[m]`: what the policy of the graph's lower bound earns on each model from its start, or less, but for rounding;
    `None` where that would take long, or it does not begin with the action `first`."""
    problem, controller = taken_apart(certifier.task, certifier.problem), freeze(certifier, -1.0)[0]
    if first is not None and controller.action[controller.roots[0]] != first:
        return None
    n, n_models = len(controller.state), len(problem.reward)
    order = np.empty(n, dtype=np.int64)
    state, action, after = controller.state.astype(np.int64), controller.action, controller.after
    count = reached(problem, state, action, after, controller.roots, order)
    order = order[:count]
    rows = problem.first[state[order], action[order] + 1] - problem.first[state[order], action[order]]
    sweeps = int(min(_SWEEPS, max(_MOST_WORK, _SHARE * certifier.work) / (float(rows.sum()) * n_models)))
    if sweeps < (2 if problem.merged else 1):
        return None
    stage = np.zeros(n, dtype=np.int64)
    known = min(n, len(certifier.graph.stage))
    stage[:known] = 0 if problem.merged else certifier.graph.stage[:known]
    values = np.zeros((n, n_models))
    values[order] = problem.v[0, :, :, 0].T[state[order]]
    if not problem.merged:
        order = order[np.argsort(stage[order], kind="stable")]
        follow_once(problem, state, stage, action, after, order, values, values)
        return np.asarray(values[controller.roots[0]])
    for _ in range(sweeps - 1):
        change = follow_once(problem, state, stage, action, after, order, values, values)
        if change <= _CONVERGED * float(np.abs(values).max()):
            break
    # One more step on the side: its least change, for ever, bounds what is missing (MacQueen).
    new = values.copy()
    follow_once(problem, state, stage, action, after, order, values, new)
    least = np.minimum((new - values)[order].min(axis=0), 0.0)
    return np.asarray(new[controller.roots[0]] + problem.discount / (1.0 - problem.discount) * least)
