"""First actions on a belief graph: bounds of each at the root, growth where a decision hangs, and its stability.

The graph's root has `r + γ Σ_k p_k above_k` and `r + γ Σ_k p_k below_k` for every action: exact bounds of its value.
The search for a value looks into the action of largest upper value only; a decision also needs the upper values of the
others to fall below the best one's lower value. So, where a decision is what is asked for, growth looks into the action
of the largest lower bound and its strongest rival, whichever has the wider bounds.
"""

from collections.abc import Sequence
from functools import partial
from typing import Protocol

import numpy as np

from beliefbound.bounds.decision import Contest, stability_of
from beliefbound.bounds.finite.controller import freeze
from beliefbound.bounds.finite.pairs import pair_values
from beliefbound.bounds.finite.relaxation import Certifier
from beliefbound.bounds.record import Record
from beliefbound.kernels.graph.controller import follow_once, reached
from beliefbound.planning.rounding import Allowance
from beliefbound.validation import FloatArray

_MOST_WORK = 3e8  # operations for the value of the certified policy on every model; beyond, no stability is computed
_SWEEPS = 100  # where the graph has circles; what is missing then is taken off


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


def grow(certifier: Certifier, record: Record, tolerance: float, work: float) -> bool:
    """`Certifier.grow` for what is asked for: the value, or the decision."""
    if not record.decide or record.contest is None:
        return certifier.grow(certifier.core_nodes, tolerance, work=work)
    lower, upper = action_bounds(certifier)
    for action in sorted(record.contest.rivals(), key=lambda a: lower[a] - upper[a]):
        if certifier.grow(certifier.core_nodes, tolerance, work=work, forced=action):
            record.contest.note(*action_bounds(certifier))
            return True
    record.contest.note(*action_bounds(certifier))
    return certifier.grow(certifier.core_nodes, tolerance, work=work)


def note_first(
    contest: Contest, weights: FloatArray, follow: FloatArray, told: FloatArray, allowance: Allowance
) -> None:
    """Bounds before there is a graph: `follow[m,a]` and `told[m,a]` as below."""
    lower = np.array([allowance.lower(x) for x in weights @ follow])
    upper = np.array([allowance.upper(x) for x in weights @ told])
    contest.note(lower, upper)
    contest.stability = partial(first_stability, contest, weights, follow, told)


def first_stability(contest: Contest, weights: FloatArray, follow: FloatArray, told: FloatArray) -> FloatArray | None:
    """Stability before there is a graph: `follow[m,a]` and `told[m,a]` are the values of a first action when a
    memoryless policy is followed afterwards, or the model is told."""
    best, n_models = contest.best, len(weights)
    if best is None:
        return None
    others = contest.actions != best
    known = told[:, contest.actions[others]]
    rest = weights * (1.0 - np.eye(n_models)) / np.maximum(1.0 - weights, 1e-300)[:, None]
    return stability_of(weights, follow[:, best], contest.upper[others], known, rest @ known)


class HasGraph(Protocol):
    """A search, once it has a graph."""

    @property
    def certifier(self) -> Certifier | None: ...


def stability(contest: Contest, searches: Sequence[HasGraph]) -> FloatArray | None:
    """How far weights may move before the decision that is proven is not; `None` where there is no graph, or it would
    take long."""
    best, certifiers = contest.best, [search.certifier for search in searches if search.certifier is not None]
    if best is None or not certifiers:
        return None
    strongest = max(certifiers, key=lambda certifier: float(action_bounds(certifier)[0][best]))
    alpha = model_values(strongest)
    if alpha is None:
        return None
    problem, weights, s = strongest.problem, np.array(strongest.belief.weights), contest.state
    others = contest.actions != best
    known = problem.q[0, :, s][:, contest.actions[others]]
    without = np.zeros_like(known)
    for m, w in enumerate(weights):
        if 0.0 < w < 1.0:
            rest = np.where(np.arange(len(weights)) == m, 0.0, weights) / (1.0 - w)
            without[m] = pair_values(problem, rest)[s, contest.actions[others]]
    return stability_of(weights, alpha, contest.upper[others], known, without)


def model_values(certifier: Certifier) -> FloatArray | None:
    """`[m]`: what the policy of the graph's lower bound earns on each model from its start, or less, but for rounding;
    `None` where that would take long."""
    problem, controller = certifier.problem, freeze(certifier, -1.0)[0]
    n, n_models = len(controller.state), len(problem.reward)
    order = np.empty(n, dtype=np.int64)
    state, action, after = controller.state.astype(np.int64), controller.action, controller.after
    count = reached(problem, state, action, after, controller.roots, order)
    if count * after.shape[1] * n_models * (_SWEEPS if problem.merged else 1) > _MOST_WORK:
        return None
    stage = np.zeros(n, dtype=np.int64)
    known = min(n, len(certifier.graph.stage))
    stage[:known] = 0 if problem.merged else certifier.graph.stage[:known]
    order = order[:count]
    values = np.zeros((n, n_models))
    values[order] = problem.v[0, :, :, 0].T[state[order]]
    if not problem.merged:
        order = order[np.argsort(stage[order], kind="stable")]
        follow_once(problem, state, stage, action, after, order, values, values)
        return np.asarray(values[controller.roots[0]])
    for _ in range(_SWEEPS):
        if follow_once(problem, state, stage, action, after, order, values, values) == 0.0:
            break
    # One more step on the side: its least change, for ever, bounds what is missing (MacQueen).
    new = values.copy()
    follow_once(problem, state, stage, action, after, order, values, new)
    least = np.minimum((new - values)[order].min(axis=0), 0.0)
    return np.asarray(new[controller.roots[0]] + problem.discount / (1.0 - problem.discount) * least)
