"""A finite-state controller as something to read: nodes, what each does, and where each observation leads.

The readable file is JSON: `nodes`, a list of `node` (a number from 1), `state`, `action`, `share` (of all discounted
steps, how many are spent there) and `next`, a list of `seen` and `node`; `start`, the node of each start state; `value`
and `model_values`. States, actions and models are names where they have some, else numbers. It is for people; the
policy itself is in an archive (`policy`), for `load_policy`.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from beliefbound.base.io.atomic import write_text
from beliefbound.base.io.paths import as_path
from beliefbound.base.validation import FloatArray, frozen
from beliefbound.bounds.finite.adaptive import AdaptivePolicy
from beliefbound.bounds.finite.controller import Controller
from beliefbound.planning.task import FiniteTask
from beliefbound.policy.naming import names_of


@dataclass(frozen=True, eq=False)
class Node:
    """One node: in `state`, do `action`; `next` says which node follows which observations."""

    number: int
    state: str
    action: str
    share: float
    next: tuple[tuple[str, int], ...]


@dataclass(frozen=True, eq=False)
class DecisionGraph:
    """A controller of a few nodes.

    Attributes:
      nodes: those that are met, from 1; the start comes first.
      start: `(state, node)` for each start state.
      value: its exact value under the belief.
      model_values: `[m]`, its exact value on each model, whose names are `models`.
      policy: it acts, is saved and loaded, like any `Policy`.
    """

    nodes: tuple[Node, ...]
    start: tuple[tuple[str, int], ...]
    value: float
    model_values: FloatArray
    models: tuple[str, ...]
    policy: AdaptivePolicy
    state_names: tuple[str, ...] | None = None
    action_names: tuple[str, ...] | None = None

    @classmethod
    def of(cls, task: FiniteTask, controller: Controller, values: FloatArray, visits: FloatArray) -> "DecisionGraph":
        """From a controller that has no node too many, its values `[n,m]` and discounted visits `[n,m]`."""
        belief = task.belief
        names = names_of(belief)
        states = tuple(map(names.state, range(belief.n_states)))
        actions = tuple(map(names.action, range(belief.n_actions)))
        spent = visits.sum(axis=1)
        nodes = []
        for x, (s, a) in enumerate(zip(controller.state, controller.action, strict=True)):
            base = int(controller.first[s, 0])
            seen = range(int(controller.first[s, a]), int(controller.first[s, a + 1]))
            after = tuple((_observed(controller, k, states), int(controller.after[x, k - base]) + 1) for k in seen)
            nodes.append(Node(x + 1, states[s], actions[a], float(spent[x] / spent.sum()), after))
        own = controller.state[controller.roots]
        model_values: FloatArray = task.start[own] @ values[controller.roots]
        return cls(
            tuple(nodes),
            tuple((states[s], int(x) + 1) for s, x in zip(own, controller.roots, strict=True)),
            float(task.weights @ model_values),
            frozen(model_values),
            tuple(map(names.model, range(belief.n_models))),
            AdaptivePolicy.of(controller, None),
            belief.states,
            belief.actions,
        )

    def __repr__(self) -> str:
        return f"DecisionGraph({len(self.nodes)} nodes, value {self.value:.6g})"

    def words(self, upper: float) -> str:
        """What it earns, against an upper bound on what any policy can."""
        count = "One node earns" if len(self.nodes) == 1 else f"{len(self.nodes)} nodes earn"
        if self.value > 0.0 and upper > 0.0:
            return f"{count} {self.value:.6g}: {_percent(self.value / upper)} of the upper bound {upper:.6g}."
        return f"{count} {self.value:.6g}, at most {max(0.0, upper - self.value):.6g} below Bayes-optimal."

    def rows(self) -> list[list[str]]:
        """`node, state, action, then, share` of each node: a table to read."""
        return [
            [str(node.number), node.state, node.action, "; ".join(_grouped(node)), _percent(node.share)]
            for node in self.nodes
        ]

    def to_dict(self) -> dict[str, Any]:
        """What the readable file holds."""
        return {
            "nodes": [
                {
                    "node": node.number,
                    "state": node.state,
                    "action": node.action,
                    "share": node.share,
                    "next": [{"seen": seen, "node": after} for seen, after in node.next],
                }
                for node in self.nodes
            ],
            "start": [{"state": state, "node": node} for state, node in self.start],
            "value": self.value,
            "model_values": dict(zip(self.models, self.model_values.tolist(), strict=True)),
        }

    def save(self, path: Path | str) -> None:
        """Write the readable file, and the policy beside it as an archive for `load_policy`."""
        file = as_path(path)
        note = f"A decision graph of {len(self.nodes)} nodes, worth exactly {self.value!r} under its belief."
        names = {"state_names": self.state_names, "action_names": self.action_names}
        self.policy.save(file.with_suffix(".npz"), note=note, **names)
        content = {**self.to_dict(), "policy": file.with_suffix(".npz").name}
        write_text(file, msgspec.json.format(msgspec.json.encode(content), indent=2).decode() + "\n")


def _observed(controller: Controller, k: int, states: tuple[str, ...]) -> str:
    """What outcome row `k` shows."""
    reward = controller.seen[k]
    return str(states[controller.arrive[k]]) + ("" if np.isnan(reward) else f", reward {reward:g}")


def _grouped(node: Node) -> list[str]:
    """`dry or wet → 2`, observations that lead to the same node in one."""
    targets: dict[int, list[str]] = {}
    for seen, after in node.next:
        targets.setdefault(after, []).append(seen)
    if len(targets) == 1 and len(node.next) > 1:
        return [f"whatever is seen → {next(iter(targets))}"]
    return [f"{' or '.join(seen)} → {after}" for after, seen in targets.items()]


def _percent(share: float) -> str:
    return f"{100 * share:.4g}%"
