"""`TabularEnv`: an `Environment` behind gymnasium's interface, on the compiled step that plays thousands of runs."""

from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium.spaces import Discrete

from beliefbound.base.errors import ObservationError, ParameterError
from beliefbound.base.validation import check_ids
from beliefbound.kernels import outcomes, random
from beliefbound.lab.envs.environment import Environment


class TabularEnv(gymnasium.Env):  # type: ignore[misc]
    """See `gymnasium_env`."""

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}

    def __init__(self, environment: Environment, *, max_steps: int | None) -> None:
        self.environment = environment
        self.max_steps = max_steps
        self.observation_space = Discrete(environment.n_states)
        self.action_space = Discrete(environment.n_actions)
        self.render_mode = None
        self._stream: np.ndarray | None = None
        self._state = -1
        self._steps = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        """Start an episode; `options={"stream": uint64[4]}` draws from (a copy of) that stream from here on."""
        super().reset(seed=seed)
        stream = (options or {}).get("stream")
        self._stream = None if stream is None else _checked(stream)
        self._state = int(outcomes.begin(self.environment.outcomes, self._uniform()))
        self._steps = 0
        return self._state, {}

    def step(self, action: Any) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Play one action: `(next_state, reward, terminated, truncated, {})`."""
        if self._state < 0:
            raise ObservationError("step before reset; call reset() first")
        chosen = int(check_ids(action, self.environment.n_actions, "action", ObservationError))
        if not self.environment.mdp.available[self._state, chosen]:
            raise ObservationError(f"state {self._state} does not offer action {chosen}; see mdp.available")
        reward, state = outcomes.step(self.environment.outcomes, self._state, chosen, self._uniform())
        self._state = int(state)
        self._steps += 1
        truncated = self.max_steps is not None and self._steps >= self.max_steps
        return self._state, float(reward), bool(self.environment.terminal[self._state]), truncated, {}

    def _uniform(self) -> float:
        return float(self.np_random.random() if self._stream is None else random.uniform(self._stream))


def _checked(stream: Any) -> np.ndarray:
    words = np.asarray(stream)
    if words.shape != (4,) or words.dtype != np.uint64 or not words.any():
        raise ParameterError("options['stream'] must be the uint64[4] state of a stream, not all zero; see seed_stream")
    return words.copy()
