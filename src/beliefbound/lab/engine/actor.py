"""A saved policy as a function from observations to actions, for gymnasium environments and for control loops."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from beliefbound.base.errors import ObservationError
from beliefbound.base.grammar import nearest
from beliefbound.base.io.paths import as_path
from beliefbound.bounds.policy_files import load_policy
from beliefbound.policy import Policy
from beliefbound.policy.files import read_names


class Actor:
    """Call it with an observation, get an action.

    Args:
      policy: any policy; the actor begins a walk of its own.
      states, actions: names, where observations and actions are names and not numbers from 0.

    `reset(seed)` begins an episode. After each step tell it by `observe`: policies that learn, or that count stages,
    need to know; a stationary table does not.
    """

    def __init__(
        self, policy: Policy, *, states: Sequence[str] | None = None, actions: Sequence[str] | None = None
    ) -> None:
        self.policy = policy.fresh()
        self._states = None if states is None else {name: i for i, name in enumerate(states)}
        self._actions = None if actions is None else list(actions)
        self._ids = None if actions is None else {name: i for i, name in enumerate(actions)}
        self.reset()

    def __repr__(self) -> str:
        return f"Actor({self.policy!r})"

    def reset(self, seed: int = 0) -> None:
        """Begin an episode; equal seeds give equal behaviour."""
        self.policy.reset(seed)

    def __call__(self, observation: Any) -> Any:
        """The action: a whole number, or a name where actions have names."""
        action = self.policy.act(self._state(observation))
        return action if self._actions is None else self._actions[action]

    def observe(self, observation: Any, action: Any, reward: float | None, next_observation: Any) -> None:
        """What happened: one transition."""
        before, after = self._state(observation), self._state(next_observation)
        self.policy.observe(before, self._action(action), reward, after)

    def _state(self, observation: Any) -> int:
        if self._states is not None and isinstance(observation, str):
            if observation not in self._states:
                hint = nearest(observation[:60], self._states).rstrip("; ")
                said = f"the observation is {observation[:60]!r}, which is no state of the policy"
                raise ObservationError(f"{said}; {hint}" if hint else said)
            return self._states[observation]
        return _whole(observation, "observation")

    def _action(self, action: Any) -> int:
        if self._ids is not None and isinstance(action, str):
            if action not in self._ids:
                raise ObservationError(f"the action is {action[:60]!r}, which is no action of the policy")
            return self._ids[action]
        return _whole(action, "action")


def load_actor(path: Path | str) -> Actor:
    """The policy of a file, such as `policy.json` of `beliefbound plan`, ready to act.

    Where the file names states and actions, observations may be names or numbers and actions are names; else both are
    numbers.

    >>> import tempfile
    >>> from beliefbound.policy import StationaryPolicy
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     names = {"state_names": ["dry", "wet"], "action_names": ["go", "stay"]}
    ...     StationaryPolicy([1, 0]).save(f"{folder}/policy.json", **names)
    ...     act = load_actor(f"{folder}/policy.json")
    >>> act("dry"), act(1)
    ('stay', 'go')
    """
    file = as_path(path)
    policy = load_policy(file)
    states, actions = read_names(file, policy.n_states, policy.n_actions)
    return Actor(policy, states=states, actions=actions)


def _whole(value: Any, what: str) -> int:
    """A number from whatever gymnasium calls one: an int, a NumPy integer, an array of one."""
    array = np.asarray(value)
    if array.size != 1 or array.dtype.kind not in "iu":
        raise ObservationError(f"the {what} is {value!r}; give one whole number, or a name the policy knows")
    return int(array.reshape(()))
