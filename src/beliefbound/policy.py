"""Policies that look at the current state only: stationary, or indexed by time. Frozen data."""

from typing import Any, Self

import numpy as np

from beliefbound.errors import PolicyError
from beliefbound.validation import FloatArray, Frozen, IntArray, as_floats, check_distributions, check_ids, frozen


class _Policy(Frozen):
    """Shared by both kinds; `_axes` names the axes before the action."""

    __slots__ = ("_actions", "_probabilities")
    _called = "a policy"
    _axes: tuple[str, ...] = ()

    _actions: IntArray | None
    _probabilities: FloatArray | None

    def __init__(self, actions: Any = None, *, probabilities: Any = None) -> None:
        if (actions is None) == (probabilities is None):
            raise PolicyError("give either actions or probabilities")
        kind = type(self).__name__
        if actions is not None:
            ids = check_ids(actions, np.iinfo(np.int64).max, f"{kind} actions", PolicyError)
            if ids.ndim != len(self._axes) or ids.size == 0:
                raise PolicyError(f"{kind} actions have shape {ids.shape}; expected [{', '.join(self._axes)}]")
            self._set(_actions=frozen(ids), _probabilities=None)
            return
        chances = as_floats(probabilities, "probabilities", PolicyError)
        if chances.ndim != len(self._axes) + 1 or chances.size == 0:
            raise PolicyError(
                f"{kind} probabilities have shape {chances.shape}; expected [{', '.join(self._axes)}, action]"
            )
        check_distributions(chances, "probabilities", (*self._axes, "action"), PolicyError)
        self._set(_actions=None, _probabilities=frozen(chances))

    @property
    def is_deterministic(self) -> bool:
        return self._actions is not None

    @property
    def actions(self) -> IntArray:
        """Chosen actions, `[s]` or `[t,s]`; only a deterministic policy has them."""
        if self._actions is None:
            raise PolicyError("this policy is stochastic: use .probabilities")
        return self._actions

    @property
    def probabilities(self) -> FloatArray:
        """Chances of each action, `[s,a]` or `[t,s,a]`; only a stochastic policy has them."""
        if self._probabilities is None:
            raise PolicyError("this policy is deterministic: use .actions, or .chances(n_actions)")
        return self._probabilities

    @property
    def n_states(self) -> int:
        kept = self._actions if self._actions is not None else self._probabilities
        assert kept is not None
        return int(kept.shape[len(self._axes) - 1])

    def chances(self, n_actions: int) -> FloatArray:
        """Chances `[..., a]` of any policy, deterministic or not, for a model with `n_actions` actions."""
        if self._probabilities is not None:
            if self._probabilities.shape[-1] != n_actions:
                raise PolicyError(f"the policy has {self._probabilities.shape[-1]} actions, the model has {n_actions}")
            return self._probabilities
        actions = check_ids(self.actions, n_actions, "policy action", PolicyError)
        chances = np.zeros((*actions.shape, n_actions))
        np.put_along_axis(chances, actions[..., None], 1.0, axis=-1)
        return chances

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other) or not isinstance(other, _Policy):
            return NotImplemented
        if self.is_deterministic != other.is_deterministic:
            return False
        mine, theirs = (
            (self._actions, other._actions) if self.is_deterministic else (self._probabilities, other._probabilities)
        )
        return bool(np.array_equal(mine, theirs))  # type: ignore[arg-type]

    def __hash__(self) -> int:
        kept = self._actions if self._actions is not None else self._probabilities
        assert kept is not None
        return hash((type(self).__name__, kept.shape, kept.tobytes()))


class StationaryPolicy(_Policy):
    """The same choice whenever a state is met.

    Args:
      actions: one action per state, `[s]`; or
      probabilities: chances of each action, `[s,a]`.

    >>> policy = StationaryPolicy([1, 0])
    >>> policy.actions.tolist()
    [1, 0]
    >>> StationaryPolicy(probabilities=[[0.5, 0.5], [0.0, 1.0]]).is_deterministic
    False
    """

    __slots__ = ()
    _axes = ("state",)

    def __repr__(self) -> str:
        if self.is_deterministic:
            return f"StationaryPolicy({self.actions.tolist()})"
        return f"StationaryPolicy(stochastic, {self.n_states} states)"

    def repeat(self, horizon: int) -> "MemorylessPolicy":
        """The same choices written out for `horizon` stages."""
        if self.is_deterministic:
            return MemorylessPolicy(np.broadcast_to(self.actions, (horizon, self.n_states)))
        shape = (horizon, *self.probabilities.shape)
        return MemorylessPolicy(probabilities=np.broadcast_to(self.probabilities, shape))


class MemorylessPolicy(_Policy):
    """A choice per stage and state: stage 0 is the first decision.

    Args:
      actions: `[t,s]`; or
      probabilities: `[t,s,a]`.

    >>> policy = MemorylessPolicy([[1, 0], [0, 0]])
    >>> policy.horizon
    2
    >>> policy.first_step()
    StationaryPolicy([1, 0])
    """

    __slots__ = ()
    _axes = ("stage", "state")

    def __repr__(self) -> str:
        kind = "deterministic" if self.is_deterministic else "stochastic"
        return f"MemorylessPolicy({kind}, {self.horizon} stages, {self.n_states} states)"

    @property
    def horizon(self) -> int:
        """Number of decisions."""
        kept = self._actions if self._actions is not None else self._probabilities
        assert kept is not None
        return int(kept.shape[0])

    def first_step(self) -> StationaryPolicy:
        """The first stage's choices as a stationary policy: a different policy, with a value of its own."""
        if self.is_deterministic:
            return StationaryPolicy(self.actions[0])
        return StationaryPolicy(probabilities=self.probabilities[0])

    def drop(self, stages: int) -> Self:
        """What remains of the policy after its first `stages` decisions."""
        if not 0 <= stages < self.horizon:
            raise PolicyError(f"cannot drop {stages} of {self.horizon} stages; at least one must remain")
        if self.is_deterministic:
            return type(self)(self.actions[stages:])
        return type(self)(probabilities=self.probabilities[stages:])


TablePolicy = StationaryPolicy | MemorylessPolicy
Policy = TablePolicy
