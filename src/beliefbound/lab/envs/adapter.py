"""Gymnasium both ways: our environments as `gymnasium.Env`, and theirs as something our agents can play.

Gymnasium is imported when one of these functions is called, not before.
"""

import math
from typing import Any, NamedTuple

from beliefbound.base.errors import ModelError, ObservationError
from beliefbound.base.validation import check_count, check_ids
from beliefbound.lab.envs.environment import Environment, check_reward_range


def gymnasium_env(environment: Environment, *, max_steps: int | None = None) -> Any:
    """`environment` as a `gymnasium.Env` with `Discrete` observation and action spaces.

    Args:
      environment: any; entering a state that every action keeps for no reward terminates the episode.
      max_steps: truncate after so many steps; default never.

    Returns:
      A `TabularEnv`. `reset(seed=…)` seeds gymnasium's own generator; `reset(options={"stream": words})`, with the
      `uint64[4]` state of a stream of `kernels.random`, plays exactly the run that batch simulation plays on that
      stream. Either way one uniform is drawn at reset and one at each step.

    >>> from beliefbound.lab.envs.registry import make_env
    >>> env = gymnasium_env(make_env("double-loop"))
    >>> env.reset(seed=1)[0], env.step(1)
    (0, (5, 0.0, False, False, {}))
    """
    from beliefbound.lab.envs.tabular_env import TabularEnv

    return TabularEnv(environment, max_steps=None if max_steps is None else check_count(max_steps, "max_steps"))


class Step(NamedTuple):
    """What one action brought."""

    reward: float
    next_state: int
    terminated: bool
    truncated: bool


class DiscreteEnv:
    """A gymnasium environment with discrete spaces, with states and actions numbered from 0, as our agents play it.

    Args:
      env: a `gymnasium.Env` with `Discrete` spaces. One with a `P` table can instead become an `MDP`
        (`from_gymnasium`) and then an `Environment` that compiled code plays (`environment_from_mdp`).
      reward_range: bounds on its rewards, needed by agents that scale them.

    Attributes:
      env: the gymnasium environment.
      n_states, n_actions: sizes of its spaces; an offset (`Discrete(n, start=k)`) is taken off and put back.
      reward_range: `(low, high)` as declared, or `None`. A reward outside a declared range is an error: a Beta belief
        scaled by it would be wrong.

    >>> import gymnasium
    >>> env = DiscreteEnv(gymnasium.make("FrozenLake-v1", is_slippery=False), reward_range=(0.0, 1.0))
    >>> env.n_states, env.n_actions, env.reset(seed=0), env.step(1)
    (16, 4, 0, Step(reward=0.0, next_state=4, terminated=False, truncated=False))
    """

    def __init__(self, env: Any, *, reward_range: tuple[float, float] | None = None) -> None:
        self.env = env
        self.n_states, self._first_state = _discrete(env, "observation")
        self.n_actions, self._first_action = _discrete(env, "action")
        self.reward_range = None if reward_range is None else check_reward_range(reward_range, math.inf, -math.inf)

    def __repr__(self) -> str:
        return f"DiscreteEnv({self.env}, {self.n_states} states, {self.n_actions} actions)"

    def reset(self, seed: int | None = None) -> int:
        """Start an episode; its first state."""
        observation, _ = self.env.reset(seed=seed)
        return self._state(observation)

    def step(self, action: int) -> Step:
        """Play one action."""
        chosen = int(check_ids(action, self.n_actions, "action", ObservationError))
        observation, reward, terminated, truncated, _ = self.env.step(chosen + self._first_action)
        value = float(reward)
        if self.reward_range is not None and not self.reward_range[0] <= value <= self.reward_range[1]:
            low, high = self.reward_range
            raise ObservationError(f"the reward {value} is outside the declared range [{low}, {high}]; widen the range")
        return Step(value, self._state(observation), bool(terminated), bool(truncated))

    def close(self) -> None:
        """Release what the gymnasium environment holds."""
        self.env.close()

    def _state(self, observation: Any) -> int:
        state = int(observation) - self._first_state
        if not 0 <= state < self.n_states:
            raise ObservationError(f"the environment returned observation {observation}, outside its own space")
        return state


def _discrete(env: Any, kind: str) -> tuple[int, int]:
    """`(n, start)` of a `Discrete` space."""
    from gymnasium.spaces import Discrete

    space = getattr(env, f"{kind}_space", None)
    if not isinstance(space, Discrete):
        found = "missing" if space is None else repr(space)
        raise ModelError(
            f"the {kind} space of {env} is {found}; agents here need Discrete spaces, so wrap the environment to "
            f"number its {kind}s (gymnasium.wrappers.Transform{kind.capitalize()})"
        )
    return int(space.n), int(space.start)
