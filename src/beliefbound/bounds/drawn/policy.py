"""A policy made on models drawn from a belief, for any model of it.

It is a finite-state controller of a finite belief (`bounds.finite.controller`), which knows what its own models can
show. Whatever else happens, it goes on with the first policy of its pool, which is memoryless, for ever. So it has an
exact value on every model.

The file is an archive of the kind `completed` (`policy.files`) with the arrays of a committed policy
(`bounds.finite.adaptive_file`).
"""

from pathlib import Path
from typing import Self

import numpy as np

from beliefbound.base.errors import ObservationError
from beliefbound.base.io.arrays import Array, Shapes
from beliefbound.bounds.finite.adaptive import AdaptivePolicy
from beliefbound.bounds.finite.adaptive_file import arrays_of, read_controller
from beliefbound.bounds.finite.controller import Controller
from beliefbound.bounds.finite.controller_value import completed, widened
from beliefbound.planning.task import FiniteTask
from beliefbound.policy.files import ArchivedPolicy
from beliefbound.policy.protocol import check_id, check_left, check_transition

KIND = "completed"


class CompletedPolicy(ArchivedPolicy):
    """Follows a controller as long as it knows what it sees, then the first policy of the pool.

    Attributes:
      n_states, n_actions: sizes.
      horizon: decisions; `None`: for ever.
    """

    _archive = KIND

    def __init__(self, controller: Controller) -> None:
        self._controller = completed(controller)
        self.n_states, self.n_actions = controller.available.shape
        self.horizon = controller.horizon
        self.reset()

    def __repr__(self) -> str:
        nodes = len(self._controller.state)
        return f"CompletedPolicy({self.n_states} states, {self.n_actions} actions, graph of {nodes} beliefs)"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CompletedPolicy):
            return NotImplemented
        mine, theirs = self._arrays(), other._arrays()
        return all(np.array_equal(mine[name], theirs[name], equal_nan=mine[name].dtype.kind == "f") for name in mine)

    def __hash__(self) -> int:
        return hash((self._controller.action.tobytes(), self.n_states, self.horizon))

    def reset(self, seed: int = 0) -> None:
        """Begin again; nothing is drawn."""
        self._stage = 0
        self._walk: AdaptivePolicy | None = AdaptivePolicy.of(self._controller, None)  # `None`: it has lost its way

    def act(self, state: int) -> int:
        """The controller's action, or that of the pool's first policy."""
        if self._walk is not None:
            return self._walk.act(state)
        check_left(self._stage, self.horizon)
        return self._controller.follow(0, self._stage, check_id(state, self.n_states, "state"))

    def observe(self, state: int, action: int, reward: float | None, next_state: int) -> None:
        """Carry the walk over one transition; after one that no model of the controller allows, it has lost its way."""
        check_transition(self, self._stage, state, action, next_state)
        if self._walk is not None:
            try:
                self._walk.observe(state, action, reward, next_state)
            except ObservationError:
                self._walk = None
        self._stage += 1

    def as_controller(self, task: FiniteTask) -> Controller:
        """Itself, with whatever the models of the task can show."""
        return widened(self._controller, task)

    def fresh(self) -> Self:
        """The same policy at its start, with a walk of its own."""
        return type(self)(self._controller)

    def _arrays(self) -> dict[str, Array]:
        return arrays_of(self._controller, None)


def read_completed(path: Path, arrays: dict[str, Array]) -> CompletedPolicy:
    """The policy of an archive."""
    file = Shapes(path, arrays)
    controller = read_controller(file)
    file.done()
    return CompletedPolicy(controller)
