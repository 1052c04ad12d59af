"""The policy that a belief graph certifies, as something to act with.

At a belief it maximises `(1 − mix) · lower + mix · upper` one step ahead: over the graph's values where the graph
reaches, over the pool of policies and QMDP beyond. With `mix = 0` its value is at least the graph's lower value, for
certain. It depends on the history only through the posterior, and it explores: an outcome that tells models apart
raises both terms.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from beliefbound.bounds.problem import outcome_rows
from beliefbound.bounds.relaxation import Certifier
from beliefbound.errors import ObservationError
from beliefbound.kernels import graph as kernel
from beliefbound.validation import check_ids

Step = tuple[int, int, float | None, int]


class AdaptivePolicy:
    """Acts on the posterior of a finite belief: `action = policy.act(history, state)`.

    `history` is a sequence of `(state, action, reward, next_state)`; rewards may be `None` when they carry no
    information. Made by `bracket`.
    """

    def __init__(self, certifier: Certifier, *, mix: float) -> None:
        self._certifier, self._mix = certifier, mix
        self._graph = certifier.graph
        self._seen = outcome_rows(certifier.belief)[3]
        self._roots = {int(s): int(r) for s, r in zip(certifier.states, certifier.roots, strict=True)}

    def __repr__(self) -> str:
        nodes = int(self._graph.size[2] or self._graph.size[0])
        return f"AdaptivePolicy({self._certifier.belief!r}, graph of {nodes} beliefs)"

    def detach(self) -> None:
        """Keep the graph as it is now, whatever the search does next."""
        if self._graph is self._certifier.graph:
            self._graph = self._certifier.copy()

    def act(self, history: Sequence[Step], state: Any) -> int:
        """The action in `state` after `history`, which ends there.

        Raises:
          ObservationError: the history does not fit together, does not start where the certificate does, or cannot
            have happened under the belief.
        """
        certifier = self._certifier
        problem, graph = certifier.problem._replace(mix=self._mix), self._graph
        if graph.size[2] == 0:
            kernel.settle(problem, graph)
        s = int(check_ids(state, certifier.belief.n_states, "state", ObservationError))
        first = int(history[0][0]) if history else s
        if first not in self._roots:
            starts = ", ".join(map(str, self._roots))
            raise ObservationError(f"the history starts in state {first}; the certificate is for starts in {starts}")
        node, at = self._roots[first], first
        try:
            for i, (before, action, reward, after) in enumerate(history):
                if int(before) != at:
                    raise ObservationError(f"step {i} starts in state {before}, but step {i - 1} ended in state {at}")
                row = self._row(i, at, int(action), reward, int(after))
                if graph.prob[node, row] <= 0.0:
                    raise ObservationError(f"step {i} ({before}, {action}, {reward}, {after}) has probability 0")
                node, at = kernel.make_child(problem, graph, node, row), int(after)
                if node < 0:
                    raise ObservationError(f"the history is too long for the graph, at step {i}")
            if at != s:
                raise ObservationError(f"the history ends in state {at}, not in state {s}")
            kernel.measure(problem, graph, node)
            return int(graph.action[node])
        finally:
            kernel.restore(graph)

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
