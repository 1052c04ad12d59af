"""`Policy`: what every policy can do, so that each of them can be played, saved, loaded and compared.

A policy is frozen data and a *walk*: how many transitions it has seen since its start, and what it must remember of
them (a belief, counts, a random stream). `reset` begins the walk again, `act` reads it, `observe` carries it one step
on. So asking `act` twice gives the same answer, unless the policy draws its actions, and a step costs the same however
long the walk has been. The walk is no part of equality.

This makes every policy an agent (`lab.engine.protocol.Agent`): it plays in `play`, in `run_episode` and in experiments.
"""

import operator
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np

from beliefbound.base.errors import BeliefboundError, ObservationError, PolicyError
from beliefbound.base.validation import BoolArray


@runtime_checkable
class Policy(Protocol):
    """States and actions are whole numbers from 0.

    One object walks one history at a time: give each thread its own by `fresh()`.

    >>> from beliefbound.policy import MemorylessPolicy
    >>> policy = MemorylessPolicy([[1, 0], [0, 0]])
    >>> isinstance(policy, Policy)
    True
    >>> policy.reset(1)
    >>> policy.act(0)
    1
    >>> policy.observe(0, 1, None, 0)
    >>> policy.act(0)
    0
    """

    @property
    def n_states(self) -> int: ...
    @property
    def n_actions(self) -> int | None:
        """How many actions there are; `None` where the policy does not know."""

    @property
    def horizon(self) -> int | None:
        """How many decisions the policy has; `None`: no end."""

    def reset(self, seed: int = 0) -> None:
        """Begin again: equal seeds give equal behaviour from here on."""

    def act(self, state: int) -> int:
        """The action in `state` after what was observed since the start.

        Raises:
          PolicyError: there is no decision left.
          ObservationError: the walk did not lead to this state.
        """

    def observe(self, state: int, action: int, reward: float | None, next_state: int) -> None:
        """Carry the walk over one transition. `reward` may be `None` where rewards carry no information.

        The action need not be the one that `act` advised: what is believed afterwards is right all the same, but a
        certificate is for the advised actions only.

        Raises:
          PolicyError: there was no decision left.
          ObservationError: the transition cannot have happened; the walk stays where it was.
        """

    def fresh(self) -> Self:
        """The same policy at its start, with a walk of its own. Cheap: the data are shared."""

    def save(
        self,
        path: Path | str,
        *,
        state_names: Sequence[str] | None = None,
        action_names: Sequence[str] | None = None,
        note: str | None = None,
    ) -> None:
        """Write the policy to a file, for `load_policy`; names and the note are for whoever reads the file."""


def check_id(value: Any, limit: int | None, name: str, error: type[BeliefboundError] = ObservationError) -> int:
    """One whole number from 0, below `limit` if there is one."""
    try:
        number = operator.index(value)
    except TypeError:
        raise error(f"{name} is {value!r}; give one whole number") from None
    if number < 0 or (limit is not None and number >= limit):
        most = "up" if limit is None else f"to {limit - 1}"
        raise error(f"{name} is {number}; ids run from 0 {most}")
    return number


def check_transition(policy: Policy, stage: int, state: Any, action: Any, next_state: Any) -> tuple[int, int, int]:
    """`(state, action, next_state)` as ids that a policy at `stage` can observe."""
    check_left(stage, policy.horizon)
    return (
        check_id(state, policy.n_states, "state"),
        check_id(action, policy.n_actions, "action"),
        check_id(next_state, policy.n_states, "next_state"),
    )


def check_reward(reward: Any) -> float | None:
    """A number, or `None` where no reward was seen."""
    if reward is None:
        return None
    try:
        return float(reward)
    except (TypeError, ValueError, OverflowError):
        raise ObservationError(f"the reward is {reward!r}; give a number, or None where it is not seen") from None


def check_left(stage: int, horizon: int | None) -> None:
    """A decision is left after `stage` of them."""
    if horizon is not None and stage >= horizon:
        raise PolicyError(
            f"the policy has made its {horizon} decisions and its horizon is over; reset(seed) begins again"
        )


def checked_action(state: int, action: Any, available: BoolArray, who: str = "the policy") -> int:
    """An action that `available[s,a]` offers in `state`, as somebody's policy or agent returned it."""
    # True is an int for Python, and no action.
    if isinstance(action, bool | np.bool_) or not isinstance(action, int | np.integer):
        raise ObservationError(f"{who} chose {action!r} in state {state}; an action is a whole number")
    if not 0 <= action < available.shape[1]:
        most = available.shape[1] - 1
        raise ObservationError(f"{who} chose action {action} in state {state}; actions run from 0 to {most}")
    if not available[state, action]:
        raise ObservationError(f"{who} chose action {action} in state {state}, which does not offer it")
    return int(action)
