"""The policy that a belief graph certifies, as something to act with.

It plays what `kernels.graph.information_relaxation.follow` simulates, action by action:

1. *Look ahead.* At a belief it maximises `(1 − mix) · lower + mix · upper` one step ahead: over the graph's values
   where the graph reaches, over the leaf values beyond. It explores: an outcome that tells models apart
   raises both terms.
2. *Settle.* At a leaf of the scenario, or once it has lost more than `stop`, it maximises the lower value alone, as
   long as beliefs lie in the graph: at each of them that earns at least the graph's lower value, for certain.
3. *Commit.* At the first belief outside the graph it picks the best policy of the pool and follows that for ever.

A sampled bound is the value of 1–3. An exact bound is that of 2–3 alone: the policy that settles at the start (`stop`
below 0) earns at least the graph's lower value, for certain.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from beliefbound.bounds.finite.outcomes import outcome_rows
from beliefbound.bounds.finite.relaxation import Certifier, settle
from beliefbound.errors import ObservationError
from beliefbound.kernels.graph import search as kernel
from beliefbound.kernels.graph.information_relaxation import goes_on
from beliefbound.policy import MemorylessPolicy
from beliefbound.validation import check_ids

Step = tuple[int, int, float | None, int]
SETTLE = -1.0  # a `stop` that is passed at once


@dataclass
class _Place:
    """Where a history has led: a node while the policy looks at beliefs, then a policy of the pool."""

    node: int
    cost: float = 0.0
    settled: bool = False
    pool: int = -1


class AdaptivePolicy:
    """Acts on the posterior of a finite belief: `action = policy.act(history, state)`.

    `history` is a sequence of `(state, action, reward, next_state)`; rewards may be `None` when they carry no
    information. Made by `bracket`; a function of the history, whose value is the one that was bounded.
    """

    def __init__(self, certifier: Certifier, *, stop: float = SETTLE) -> None:
        self._certifier, self._stop = certifier, stop
        self._graph = certifier.graph
        self._seen = outcome_rows(certifier.belief).reward
        self._roots = {int(s): int(r) for s, r in zip(certifier.states, certifier.roots, strict=True)}
        self._powers = np.power(certifier.problem.discount, np.arange(certifier.depth + 1))

    def __repr__(self) -> str:
        nodes = int(self._graph.size[2] or self._graph.size[0])
        return f"AdaptivePolicy({self._certifier.belief!r}, graph of {nodes} beliefs)"

    def detach(self) -> None:
        """Keep the settled graph as it is now, whatever the search does next."""
        if self._graph is self._certifier.graph:
            self._graph = self._certifier.copy()

    def act(self, history: Sequence[Step], state: Any) -> int:
        """The action in `state` after `history`, which ends there.

        Raises:
          ObservationError: the history does not fit together, does not start where the certificate does, fills the
            horizon, or cannot have happened under the belief.
        """
        certifier, graph = self._certifier, self._graph
        if graph.size[2] == 0:
            settle(certifier.problem, graph)
        s = int(check_ids(state, certifier.belief.n_states, "state", ObservationError))
        if certifier.horizon is not None and len(history) >= certifier.horizon:
            raise ObservationError(f"the history has {len(history)} steps; the horizon of {certifier.horizon} is over")
        first = int(history[0][0]) if history else s
        if first not in self._roots:
            starts = ", ".join(map(str, self._roots))
            raise ObservationError(f"the history starts in state {first}; the certificate is for starts in {starts}")
        place, at = _Place(self._roots[first]), first
        try:
            for i, (before, action, reward, after) in enumerate(history):
                if int(before) != at:
                    raise ObservationError(f"step {i} starts in state {before}, but step {i - 1} ended in state {at}")
                row = self._row(i, at, int(action), reward, int(after))
                if place.pool < 0:
                    if graph.prob[place.node, row] <= 0.0:
                        raise ObservationError(f"step {i} ({before}, {action}, {reward}, {after}) has probability 0")
                    self._advance(place, int(action), row)
                at = int(after)
            if at != s:
                raise ObservationError(f"the history ends in state {at}, not in state {s}")
            return self._choose(place, s, len(history))
        finally:
            kernel.restore(graph)

    def _looks_ahead(self, place: _Place) -> bool:
        tolerance = self._certifier.tolerance
        place.settled = place.settled or not goes_on(
            self._graph, place.node, place.cost, self._powers, tolerance, self._stop
        )
        return not place.settled

    def _choose(self, place: _Place, s: int, stage: int) -> int:
        problem, graph = self._certifier.problem, self._graph
        if place.pool >= 0:
            policy = self._certifier.policies[place.pool]
            return int(policy.actions[stage, s] if isinstance(policy, MemorylessPolicy) else policy.actions[s])
        if self._looks_ahead(place):
            return int(graph.action[place.node])
        values = [
            kernel.total_of(problem, graph, place.node, a, graph.below) if available else -np.inf
            for a, available in enumerate(problem.available[s])
        ]
        return int(np.argmax(values))

    def _advance(self, place: _Place, action: int, row: int) -> None:
        """Move on by one outcome; out of the graph, commit to the policy of the pool that is best there."""
        problem, graph, node = self._certifier.problem, self._graph, place.node
        if self._looks_ahead(place):
            stage = int(graph.stage[node])
            place.cost += self._powers[stage] * float(graph.loss[node, action])
            child = -1 if stage + 1 >= self._certifier.depth else kernel.make_child(problem, graph, node, row)
        else:
            child = int(graph.child[node, row])
            child = child if child < graph.size[2] else -1
        if child < 0:
            place.pool, place.settled = self._best_of_pool(node, row), True
        place.node = child

    def _best_of_pool(self, node: int, row: int) -> int:
        """The policy of the pool of largest value after outcome `row` of a node."""
        problem, graph = self._certifier.problem, self._graph
        s, stage = int(graph.state[node]), int(graph.stage[node]) + 1
        entries = slice(int(graph.begin[node]), int(graph.begin[node + 1]))
        models, base = graph.model[entries], int(problem.first[s, 0])
        n_rows = int(problem.first[s, -1]) - base
        like = problem.like[base * problem.reward.shape[0] + models * n_rows + row]
        values = problem.v[min(stage, problem.v.shape[0] - 1)][models, problem.arrive[base + row]]
        return int(np.argmax((graph.weight[entries] * like) @ values))

    def _row(self, i: int, s: int, a: int, reward: float | None, t: int) -> int:
        problem = self._certifier.problem
        first, last = int(problem.first[s, a]), int(problem.first[s, a + 1])
        rows = [k for k in range(first, last) if problem.arrive[k] == t]
        if rows and not np.isnan(self._seen[rows[0]]):
            if reward is None:
                raise ObservationError(f"step {i} has no reward, but the belief learns from rewards")
            rows = [k for k in rows if np.isclose(self._seen[k], reward, rtol=1e-9, atol=1e-12)]
        if not rows:
            raise ObservationError(
                f"step {i}: state {s}, action {a}, reward {reward}, next state {t} is impossible in every model"
            )
        return rows[0] - int(problem.first[s, 0])
