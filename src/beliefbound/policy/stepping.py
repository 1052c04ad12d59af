"""The loop that steps an agent in Python: act, see what follows, observe.

Whoever follows a policy – experiments, gymnasium episodes, simulations under a belief, checks – brings what follows an
action, and is handed the transitions one by one. Compiled agents have the same loop in `kernels.play`.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol


class Acting(Protocol):
    """What is stepped: a policy, an agent, or any object with these two methods."""

    @property
    def act(self) -> Callable[[int], Any]: ...
    @property
    def observe(self) -> Callable[[int, int, Any, int], object]: ...


class Transition(NamedTuple):
    """One step; `reward` is what the agent was shown of it."""

    state: int
    action: int
    reward: float | None
    next_state: int


def transitions(
    agent: Acting,
    state: int,
    follow: Callable[[int, int], tuple[float | None, int] | None],
    *,
    check: Callable[[int, Any], int] = lambda state, action: int(action),
) -> Iterator[Transition]:
    """The steps of an agent from `state` on, each made when it is asked for; the agent's `reset` is the caller's.

    Args:
      agent: acts, and observes every transition before it is handed on.
      state: where it begins.
      follow: `(reward shown, next state)` of an action in a state, or `None`: the step is not made, and is the last.
      check: the action of a state, as a number, from what `act` returned.

    >>> from beliefbound.policy import StationaryPolicy
    >>> steps = transitions(StationaryPolicy([1, 0]), 0, lambda state, action: (1.0, 1 - state))
    >>> [next(steps).action for _ in range(3)]
    [1, 0, 1]
    """
    while True:
        action = check(state, agent.act(state))
        followed = follow(state, action)
        if followed is None:
            return
        reward, after = followed
        agent.observe(state, action, reward, after)
        yield Transition(state, action, reward, after)
        state = after
