"""Finite-state controllers of a few nodes, improved step by step; every step is accepted by its exact value.

A controller of `N` nodes: node `x` stands in state `s_x`, plays `a_x`, and after outcome row `k` goes on as node
`y_{x,k}`, which stands where `k` arrives. Its values on model `m` solve `V_m = r_m + γ T_m V_m`, its discounted visits
`η_m = w_m p_0 + γ T_mᵀ η_m`: two systems of `N` equations a model.

*Improve.* With `η` and `V` fixed, the best action and successors of a node maximise `Σ_m η_m(x) [r_m(s,a) + γ Σ_k
like[m,k] V_m(y_k)]`. The true change differs, because a node may be met again, so it is valued exactly and taken back
unless the value rises. *Split.* A spare node becomes the copy of a node for one of the ways that lead there, and is
improved by itself: it stands for fewer beliefs than the node did. *Merge.* Of two nodes of a state one does what both
did, where that costs least. *Shake.* A few nodes are changed at random, and improved again.

In the spirit of bounded policy iteration (Poupart & Boutilier 2003), but the choices are ours: deterministic nodes, and
exact acceptance. It finds good graphs, not the best ones; what it says of them is exact.
"""

from typing import NamedTuple

import numpy as np

from beliefbound.base.validation import FloatArray, IntArray
from beliefbound.bounds.finite.outcomes import Outcomes
from beliefbound.planning.task import FiniteTask

_RISE = 1e-9  # of the largest value: what a change must win
_SWEEPS = 10  # over all nodes, at most: one that wins nothing is the last
_TIMES = 4  # splits, as a multiple of the nodes: a split may let another node go
_SHAKES, _LEAST_SHAKES = 1500, 5  # nodes times models changed at random, and times at least
_SPLITS, _MERGES = 64, 8  # ways to split, and pairs to merge, that are valued before one is taken


class Nodes(NamedTuple):
    """`state [n]`, `action [n]`, `after [n,row]`: a node for each outcome row of the action, −1 for other rows."""

    state: IntArray
    action: IntArray
    after: IntArray


class Valued(NamedTuple):
    """Nodes with their exact values `[n,m]` and visits `[n,m]`, the node of each start state, and the value in all."""

    nodes: Nodes
    values: FloatArray
    visits: FloatArray
    roots: IntArray
    value: float


class Search:
    """Controllers for one task without a horizon."""

    def __init__(self, task: FiniteTask, outcomes: Outcomes) -> None:
        self.task, self.outcomes = task, outcomes
        self.rise = _RISE * task.largest_value
        self.starts = np.flatnonzero(task.start)

    def value(self, nodes: Nodes) -> Valued:
        """Exact values, and visits from the best node of each start state."""
        task, n = self.task, len(nodes.state)
        n_models = task.models.n_models
        moves = np.zeros((n_models, n, n))
        x, row = np.nonzero(nodes.after >= 0)
        k = self.outcomes.first[nodes.state[x], 0] + row
        for m in range(n_models):
            np.add.at(moves[m], (x, nodes.after[x, row]), task.discount * self.outcomes.like[m, k])
        rewards = task.models.rewards[:, nodes.state, nodes.action]
        system = np.eye(n) - moves
        values = np.linalg.solve(system, rewards[..., None])[..., 0].T  # [n,m]
        mean = values @ task.weights
        roots = np.array(
            [int(np.argmax(np.where(nodes.state == s, mean, -np.inf))) for s in self.starts], dtype=np.int64
        )
        begin = np.zeros(n)
        np.add.at(begin, roots, task.start[self.starts])
        visits = np.linalg.solve(np.swapaxes(system, 1, 2), (task.weights[:, None] * begin)[..., None])[..., 0].T
        value = float(task.start[self.starts] @ mean[roots])
        return Valued(nodes, np.asarray(values, np.float64), np.asarray(visits, np.float64), roots, value)

    def choice(self, found: Valued, x: int, visits: FloatArray) -> tuple[int, IntArray]:
        """The best action and successors of node `x` under visits `[m]`, everything else fixed; ties to the lowest."""
        task, (like, arrive, first, _) = self.task, self.outcomes
        nodes, s = found.nodes, int(found.nodes.state[x])
        best, chosen = -np.inf, (int(nodes.action[x]), nodes.after[x])
        weighted = visits[:, None] * like[:, first[s, 0] : first[s, -1]]  # [m,row]
        scores = weighted.T @ found.values.T  # [row,n]
        for a in np.flatnonzero(task.models.available[s]):
            total, after = float(visits @ task.models.rewards[:, s, a]), np.full(nodes.after.shape[1], -1)
            for row in range(int(first[s, a] - first[s, 0]), int(first[s, a + 1] - first[s, 0])):
                own = np.where(nodes.state == arrive[first[s, 0] + row], scores[row], -np.inf)
                after[row] = int(np.argmax(own))
                total += task.discount * float(own[after[row]])
            if total > best + self.rise:
                best, chosen = total, (int(a), after)
        return chosen

    def improve(self, found: Valued, sweeps: int = _SWEEPS) -> Valued:
        """Change single nodes while that raises the value."""
        for _ in range(sweeps):
            before = found.value
            for x in np.argsort(-found.visits.sum(axis=1), kind="stable"):
                if found.visits[x].sum() <= 0.0:
                    continue
                action, after = self.choice(found, int(x), found.visits[x])
                if action != found.nodes.action[x] or (after != found.nodes.after[x]).any():
                    found = max(found, self.value(_changed(found.nodes, int(x), action, after)), key=lambda v: v.value)
            if found.value <= before + self.rise:
                break
        return found

    def grow(self, found: Valued, most: int) -> Valued:
        """Split nodes until there are `most`, or no split helps."""
        for _ in range(_TIMES * most):
            found = self.met(self.improve(found))
            better = self._split(found) if len(found.nodes.state) < most else None
            if better is None:
                break
            found = better
        return self.met(found)

    def shake(self, found: Valued, most: int, rng: np.random.Generator) -> Valued:
        """Change a few nodes at random, improve again, and keep what is better; for as long as is worth its cost."""
        first, arrive = self.outcomes.first, self.outcomes.arrive
        for _ in range(max(_LEAST_SHAKES, _SHAKES // (len(found.nodes.state) * self.task.models.n_models))):
            nodes = found.nodes
            for x in rng.choice(len(nodes.state), size=min(len(nodes.state), int(rng.integers(1, 4))), replace=False):
                s = int(nodes.state[x])
                a = int(rng.choice(np.flatnonzero(self.task.models.available[s])))
                after = np.full(nodes.after.shape[1], -1)
                for k in range(first[s, a], first[s, a + 1]):
                    there = np.flatnonzero(nodes.state == arrive[k])
                    if not len(there):
                        break  # no node stands there: leave this one as it is
                    after[k - first[s, 0]] = rng.choice(there)
                else:
                    nodes = _changed(nodes, int(x), a, after)
            tried = self.grow(self.value(nodes), most)
            if tried.value > found.value + self.rise:
                found = tried
        return found

    def met(self, found: Valued) -> Valued:
        """Without the nodes that no walk meets."""
        kept = reachable(found)
        return found if len(kept.nodes.state) == len(found.nodes.state) else self.value(kept.nodes)

    def shrink(self, found: Valued, most: int) -> Valued:
        """Let one node do what another did, where that costs least, until there are `most`; improve on the way."""
        found = self.met(found)
        while len(found.nodes.state) > most:
            nodes, n = found.nodes, len(found.nodes.state)
            loss = (found.visits * found.values).sum(axis=1)[:, None] - found.visits @ found.values.T  # x done by y
            loss[(nodes.state[:, None] != nodes.state) | np.eye(n, dtype=np.bool_)] = np.inf
            order = np.argsort(loss, axis=None, kind="stable")[:_MERGES]
            tried = [self.value(_merged(nodes, int(e) // n, int(e) % n)) for e in order if loss.flat[e] < np.inf]
            if not tried:
                break
            found = self.met(self.improve(self.met(max(tried, key=lambda each: each.value)), sweeps=1))
        return found

    def _split(self, found: Valued) -> Valued | None:
        """The split that helps most, of the ways most used; `None` where none of them does."""
        nodes, (like, _, first, _) = found.nodes, self.outcomes
        x, row = np.nonzero(nodes.after >= 0)
        k = first[nodes.state[x], 0] + row
        carried = self.task.discount * found.visits[x] * like[:, k].T  # [e,m]
        best: Valued | None = None
        for e in np.argsort(-carried.sum(axis=1), kind="stable")[:_SPLITS]:
            target = int(nodes.after[x[e], row[e]])
            rest = found.visits[target] - carried[e]
            if carried[e].sum() <= 0.0 or rest.sum() <= self.rise:
                continue
            action, after = self.choice(found, target, carried[e])
            if action == nodes.action[target] and (after == nodes.after[target]).all():
                continue
            tried = self.value(_with_copy(nodes, int(x[e]), int(row[e]), action, after))
            if tried.value > (found if best is None else best).value + self.rise:
                best = tried
        return best


def _changed(nodes: Nodes, x: int, action: int, after: IntArray) -> Nodes:
    actions, afters = nodes.action.copy(), nodes.after.copy()
    actions[x], afters[x] = action, after
    return nodes._replace(action=actions, after=afters)


def _with_copy(nodes: Nodes, x: int, row: int, action: int, after: IntArray) -> Nodes:
    """A new node in place of the one that outcome `row` of node `x` leads to."""
    n, state = len(nodes.state), nodes.state[nodes.after[x, row]]
    afters = np.concatenate([nodes.after, after[None]])
    afters[x, row] = n
    return Nodes(np.append(nodes.state, state), np.append(nodes.action, action), afters)


def _merged(nodes: Nodes, x: int, y: int) -> Nodes:
    """Without node `x`: every way there leads to node `y` instead."""
    kept = np.delete(np.arange(len(nodes.state)), x)
    place = np.full(len(nodes.state) + 1, -1)  # its last entry is that of −1
    place[kept] = np.arange(len(kept))
    place[x] = place[y]
    return Nodes(nodes.state[kept], nodes.action[kept], place[nodes.after[kept]])


def reachable(found: Valued) -> Valued:
    """Only the nodes that are met, in the order in which they are: those of the start first."""
    order = list(dict.fromkeys(int(r) for r in found.roots))
    for x in order:
        for y in found.nodes.after[x].tolist():
            if y >= 0 and y not in order:
                order.append(y)
    place = np.full(len(found.nodes.state) + 1, -1)
    place[order] = np.arange(len(order))
    nodes = Nodes(found.nodes.state[order], found.nodes.action[order], place[found.nodes.after[order]])
    return Valued(nodes, found.values[order], found.visits[order], place[found.roots], found.value)
