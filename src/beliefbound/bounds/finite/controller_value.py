"""The exact value of a finite-state controller on every model.

A node `x` of state `s` plays `a`; after outcome row `k` it goes on as node `y_k`, or as a policy of the pool:

    V_m(x) = r_m(s,a) + γ Σ_k like[m,k] V_m(y_k),

one linear system per model. Where no walk meets a node twice, it is solved from the ends backwards for all models at
once; where there are circles, by sparse LU. With a horizon nodes are valued stage by stage.

A controller may be asked about a belief it was not made for: outcomes are found by what they show, and one that a model
of positive weight allows but the controller does not know is an error, or, if it is completed, the pool's first policy.
"""

from typing import NamedTuple

import numpy as np

from beliefbound.base.errors import ObservationError, PolicyError
from beliefbound.base.validation import FloatArray, IntArray
from beliefbound.bounds.finite.controller import Controller
from beliefbound.bounds.finite.outcomes import Outcomes, outcomes_of
from beliefbound.bounds.finite.problem import enclosed_of, values_of
from beliefbound.kernels.graph.controller import COMMIT, IMPOSSIBLE
from beliefbound.models.enclosing import enclosed, excess, rounding_of
from beliefbound.planning.rounding import ChainErrors
from beliefbound.planning.task import FiniteTask
from beliefbound.policy import MemorylessPolicy, StationaryPolicy, TablePolicy


class _Links(NamedTuple):
    """Outcomes of the nodes that a walk can reach, one entry each."""

    nodes: IntArray  # [n]: numbers in the controller
    source: IntArray  # [e]: position in `nodes`
    row: IntArray  # [e]: outcome row of the belief
    target: IntArray  # [e]: position in `nodes`, or −2 − i for policy i of the pool


def completed(controller: Controller) -> Controller:
    """The same, which after an outcome that it held impossible follows the pool's first policy."""
    rows = (controller.first[:, -1] - controller.first[:, 0])[controller.state]
    inside = np.arange(controller.after.shape[1]) < rows[:, None]
    return controller._replace(after=np.where(inside & (controller.after == IMPOSSIBLE), COMMIT, controller.after))


def widened(controller: Controller, task: FiniteTask) -> Controller:
    """The same with the outcome rows of a task's models; after those that it does not know it follows the pool's first
    policy."""
    outcomes = outcomes_of(task)
    columns = _columns(controller, outcomes)
    first = outcomes.first
    after = np.full((len(controller.state), int((first[:, -1] - first[:, 0]).max())), IMPOSSIBLE, dtype=np.int32)
    for s, rows in enumerate(first):
        nodes, own = np.flatnonzero(controller.state == s), columns[rows[0] : rows[-1]]
        known = np.where(own >= 0, controller.after[np.ix_(nodes, np.maximum(own, 0))], COMMIT)
        after[nodes, : len(own)] = known
    wide = controller._replace(after=after, first=first, arrive=outcomes.arrive, seen=outcomes.reward)
    return completed(wide._replace(available=task.models.available))


def enclosed_values(controller: Controller, task: FiniteTask) -> tuple[FloatArray, FloatArray]:
    """`[root, m]` twice: the value on each model of starting at each root, and how far it can be from the true one."""
    if controller.horizon is not None and controller.horizon != task.horizon:
        raise PolicyError(f"the policy makes {controller.horizon} decisions, the problem has horizon {task.horizon}")
    if controller.available.shape != task.models.available.shape:
        raise PolicyError(
            f"the policy is for {controller.available.shape[0]} states and {controller.available.shape[1]} actions, "
            f"the belief has {task.models.n_states} and {task.models.n_actions}"
        )
    outcomes = outcomes_of(task)
    links = _reachable(controller, outcomes, task.weights)
    roots = np.searchsorted(links.nodes, controller.roots)
    if task.horizon is None:
        values, error = (x[roots] for x in _for_ever(controller, outcomes, links, task))
    else:
        values = _by_stages(controller, outcomes, links, task, task.horizon)[roots]
        error = np.zeros_like(values)
    return values, error + ChainErrors(task)(values, controller.state[controller.roots])


def start_value(values: FloatArray, controller: Controller, task: FiniteTask) -> FloatArray:
    """`[m]`: values `[root, m]` averaged over the task's start states; each must be one of the controller's."""
    states = controller.state[controller.roots]
    missing = set(np.flatnonzero(task.start)) - set(states.tolist())
    if missing:
        known = ", ".join(map(str, states))
        raise PolicyError(f"the policy starts in {known}; the problem may start in state {min(missing)} as well")
    mean: FloatArray = task.start[states] @ values
    return mean


def _reachable(controller: Controller, outcomes: Outcomes, weights: FloatArray) -> _Links:
    """Every node that a model of positive weight can lead to from the roots, under the controller's own actions."""
    columns, possible = _columns(controller, outcomes), outcomes.like.T > 0.0
    seen = np.zeros((len(controller.state), len(weights)), dtype=np.bool_)  # by which models
    front = np.unique(controller.roots)
    seen[front] = weights > 0.0
    while len(front):
        source, row, target = _steps(controller, outcomes, columns, front)
        by = seen[source] & possible[row]
        lost = (target == IMPOSSIBLE) & by.any(axis=1)
        if lost.any():
            _refuse(controller, outcomes, int(source[lost][0]), int(row[lost][0]))
        inner = target >= 0
        front = np.unique(target[inner])
        before = seen[front]
        np.logical_or.at(seen, target[inner], by[inner])
        front = front[(seen[front] != before).any(axis=1)]
    nodes = np.flatnonzero(seen.any(axis=1))
    source, row, target = _steps(controller, outcomes, columns, nodes)
    kept = (target != IMPOSSIBLE) & (seen[source] & possible[row]).any(axis=1)
    source, row, target = np.searchsorted(nodes, source[kept]), row[kept], target[kept]
    target[target >= 0] = np.searchsorted(nodes, target[target >= 0])
    return _Links(nodes, source, row, target)


def _steps(
    controller: Controller, outcomes: Outcomes, columns: IntArray, nodes: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """`(node, outcome row, what comes after)` of the actions of some nodes, one entry per outcome."""
    state, action = controller.state[nodes], controller.action[nodes]
    begin = outcomes.first[state, action]
    counts = outcomes.first[state, action + 1] - begin
    source = np.repeat(nodes, counts)
    row = np.arange(counts.sum()) + np.repeat(begin - np.cumsum(counts) + counts, counts)
    target = np.where(columns[row] >= 0, controller.after[source, columns[row]], IMPOSSIBLE).astype(np.int64)
    return source, row, target


def _columns(controller: Controller, outcomes: Outcomes) -> IntArray:
    """`[row]`: the controller's column of each outcome row of the belief; −1 where it does not know it."""
    columns = np.empty(len(outcomes.arrive), dtype=np.int64)
    alike = np.array_equal(controller.first, outcomes.first) and np.array_equal(controller.arrive, outcomes.arrive)
    if alike and np.array_equal(controller.seen, outcomes.reward, equal_nan=True):
        for first in outcomes.first:
            columns[first[0] : first[-1]] = np.arange(first[-1] - first[0])
        return columns
    for s, first in enumerate(outcomes.first):
        for a in range(len(first) - 1):
            for k in range(first[a], first[a + 1]):
                shown = None if np.isnan(outcomes.reward[k]) else float(outcomes.reward[k])
                try:
                    columns[k] = controller.row(s, a, shown, int(outcomes.arrive[k]))
                except ObservationError:
                    columns[k] = -1
    return columns


def _refuse(controller: Controller, outcomes: Outcomes, node: int, row: int) -> None:
    s, a, t = int(controller.state[node]), int(controller.action[node]), int(outcomes.arrive[row])
    raise PolicyError(
        f"the policy does not know what to do after state {s}, action {a}, next state {t}, which the belief allows: it "
        f"was made for another belief"
    )


def _pool(controller: Controller) -> list[TablePolicy]:
    parts = [
        controller.pool[first:last]
        for first, last in zip(controller.pool_first[:-1], controller.pool_first[1:], strict=True)
    ]
    return [StationaryPolicy(lines[0]) if len(lines) == 1 else MemorylessPolicy(lines) for lines in parts]


def _used(controller: Controller, links: _Links) -> list[TablePolicy | None]:
    """Policies of the pool that some node commits to."""
    asked = set((COMMIT - links.target[links.target <= COMMIT]).tolist())
    return [policy if i in asked else None for i, policy in enumerate(_pool(controller))]


def _tail(policies: list[TablePolicy | None], task: FiniteTask, horizon: int) -> FloatArray:
    """`[stage, policy, m, s]`: values of what remains of the pool's policies."""
    none = np.zeros((horizon + 1, *task.models.rewards.shape[:2]))
    return np.stack([none if policy is None else values_of(task, policy, horizon) for policy in policies], axis=1)


def _enclosed_tail(policies: list[TablePolicy | None], task: FiniteTask) -> tuple[FloatArray, FloatArray]:
    """`[policy, m, s]` twice: values of the pool's policies for ever, and how far they can be from the true ones."""
    none = np.zeros((2, *task.models.rewards.shape[:2]))
    values, error = np.stack([none if policy is None else enclosed_of(task, policy) for policy in policies], axis=1)
    return values, error


def _for_ever(
    controller: Controller, outcomes: Outcomes, links: _Links, task: FiniteTask
) -> tuple[FloatArray, FloatArray]:
    """`[n, m]` twice: values, and how far they can be from the true ones, apart from rounding of backups."""
    import scipy.sparse as sp
    from scipy.sparse.linalg import splu

    models, n = task.models, len(links.nodes)
    gained = np.array(models.rewards[:, controller.state[links.nodes], controller.action[links.nodes]].T)
    sizes, off = np.abs(gained), np.zeros_like(gained)
    outer = links.target < 0
    if outer.any():
        tail, error = _enclosed_tail(_used(controller, links), task)
        policy, row = COMMIT - links.target[outer], links.row[outer]
        place, like = (policy, slice(None), outcomes.arrive[row]), task.discount * outcomes.like[:, row].T
        for total, values in ((gained, tail), (sizes, np.abs(tail)), (off, error)):
            np.add.at(total, links.source[outer], like * values[place])
    source, target, row = links.source[~outer], links.target[~outer], links.row[~outer]
    levels = _levels(source, target, n)
    if levels is None:
        values, error = np.empty_like(gained), np.empty_like(gained)
        counts = np.bincount(source, minlength=n).max(initial=0)
        for m in range(models.n_models):
            chances = sp.csc_array((task.discount * outcomes.like[m, row], (source, target)), shape=(n, n))
            factors, rounding = splu(sp.eye_array(n, format="csc") - chances), rounding_of(int(counts))
            solve, ahead = (lambda x, f=factors: f.solve(x[0])[None]), (lambda x, p=chances: (p @ x[0])[None])
            own = np.ascontiguousarray(gained.T[m : m + 1]), np.ascontiguousarray(sizes.T[m : m + 1])
            found = enclosed(solve, ahead, *own, 1e-12, task.discount, rounding)
            later = np.ascontiguousarray(off.T[m : m + 1])
            more = excess(solve, ahead, later, np.zeros(1), task.discount, rounding)
            values[:, m], error[:, m] = found[0][0], (found[1] + more)[0]
        return values, error
    order = np.argsort(source, kind="stable")
    begin = np.searchsorted(source[order], np.arange(n + 1))
    for level in levels[1:]:
        counts = begin[level + 1] - begin[level]
        edge = order[np.arange(counts.sum()) + np.repeat(begin[level] - np.cumsum(counts) + counts, counts)]
        like = task.discount * outcomes.like[:, row[edge]].T
        for total in (gained, off) if off.any() else (gained,):
            np.add.at(total, source[edge], like * total[target[edge]])
    return gained, off


def _levels(source: IntArray, target: IntArray, n: int) -> list[IntArray] | None:
    """Nodes in an order in which all that come after a node come before it, level by level; `None` where there are
    circles."""
    left = np.bincount(source, minlength=n)
    order = np.argsort(target, kind="stable")
    begin = np.searchsorted(target[order], np.arange(n + 1))
    levels, level, count = [], np.flatnonzero(left == 0), 0
    while len(level):
        levels.append(level)
        count += len(level)
        edges = np.concatenate([order[begin[y] : begin[y + 1]] for y in level])
        np.subtract.at(left, source[edges], 1)
        level = np.unique(source[edges])
        level = level[left[level] == 0]
    return levels if count == n else None


def _by_stages(controller: Controller, outcomes: Outcomes, links: _Links, task: FiniteTask, horizon: int) -> FloatArray:
    """`[n, m]` at stage 0. Backwards over all stages: a node is valued wherever it may stand."""
    models, n = task.models, len(links.nodes)
    rewards = np.array(models.rewards[:, controller.state[links.nodes], controller.action[links.nodes]].T)
    outer = links.target < 0
    like = task.discount * outcomes.like[:, links.row].T
    tail = _tail(_used(controller, links), task, horizon) if outer.any() else None
    values = np.zeros((n, models.n_models))
    for stage in range(horizon - 1, -1, -1):
        later = np.empty_like(like)
        later[~outer] = values[links.target[~outer]]
        if tail is not None:
            later[outer] = tail[stage + 1, COMMIT - links.target[outer], :, outcomes.arrive[links.row[outer]]]
        values = rewards.copy()
        np.add.at(values, links.source, like * later)
    return values
