"""Policies that look at the current state only: stationary, or indexed by time. Frozen data, and a place in time.

A time-indexed policy is at the stage of the number of transitions it has observed since its start. A stochastic one
draws each action from the stream that is run 0 of the seed in `play`, so stepping it by hand repeats that run.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from beliefbound.base.errors import FileError, PolicyError
from beliefbound.base.io.paths import as_path
from beliefbound.base.limits import check_size
from beliefbound.base.validation import (
    FloatArray,
    Frozen,
    IntArray,
    as_floats,
    check_count,
    check_distributions,
    check_ids,
    check_seed,
    frozen,
)
from beliefbound.kernels.play import agent_stream
from beliefbound.kernels.random import categorical
from beliefbound.policy.files import check_sizes, check_table, read_json, write_table
from beliefbound.policy.protocol import check_id, check_left, check_transition


class _Walk:
    """Transitions seen since the start, and the stream that actions are drawn from."""

    __slots__ = ("stage", "stream")

    def __init__(self) -> None:
        self.stage = 0
        self.stream: npt.NDArray[np.uint64] | None = None


class _Policy(Frozen):
    """Shared by both kinds; `_axes` names the axes before the action."""

    __slots__ = ("_actions", "_probabilities", "_walk")
    _called = "a policy"
    _kind = ""
    _axes: tuple[str, ...] = ()

    _actions: IntArray | None
    _probabilities: FloatArray | None
    _walk: _Walk

    def __init__(self, actions: Any = None, *, probabilities: Any = None) -> None:
        if (actions is None) == (probabilities is None):
            raise PolicyError("give either actions or probabilities")
        self._set(_walk=_Walk())
        kind = type(self).__name__
        if actions is not None:
            try:
                rectangular = np.asarray(actions)
            except ValueError as cause:
                raise PolicyError(f"{kind} actions are not a rectangular array: {cause}") from None
            ids = check_ids(rectangular, np.iinfo(np.int64).max, f"{kind} actions", PolicyError)
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
    def _kept(self) -> npt.NDArray[Any]:
        kept = self._actions if self._actions is not None else self._probabilities
        assert kept is not None
        return kept

    @property
    def n_states(self) -> int:
        return int(self._kept.shape[len(self._axes) - 1])

    @property
    def n_actions(self) -> int | None:
        """Known of a stochastic policy only: a deterministic one may not use every action there is."""
        return None if self._probabilities is None else int(self._probabilities.shape[-1])

    @property
    def horizon(self) -> int | None:
        """Number of decisions; `None`: no end."""
        return None

    def reset(self, seed: int = 0) -> None:
        """Begin again; equal seeds give equal actions."""
        number = check_seed(seed)
        self._walk.stage = 0
        self._walk.stream = None if self.is_deterministic else agent_stream(number, 0, 0)

    def act(self, state: int) -> int:
        """The action in `state` at the present stage; a stochastic policy draws it and must have been reset."""
        s = check_id(state, self.n_states, "state")
        check_left(self._walk.stage, self.horizon)
        at = (s,) if self.horizon is None else (self._walk.stage, s)
        if self._actions is not None:
            return int(self._actions[at])
        if self._walk.stream is None:
            raise PolicyError("this policy draws its actions; call reset(seed) first")
        return int(categorical(self._walk.stream, self.probabilities[at]))

    def observe(self, state: int, action: int, reward: float | None, next_state: int) -> None:
        """One transition: time goes on. What was seen changes nothing, its ids are checked."""
        check_transition(self, self._walk.stage, state, action, next_state)
        self._walk.stage += 1

    def as_table(self) -> Self:
        """Itself: it looks at the state and the stage only."""
        return self

    def fresh(self) -> Self:
        """The same policy at its start, with a walk of its own."""
        other = type(self).__new__(type(self))
        other._set(_actions=self._actions, _probabilities=self._probabilities, _walk=_Walk())
        return other

    def save(
        self,
        path: Path | str,
        *,
        state_names: Sequence[str] | None = None,
        action_names: Sequence[str] | None = None,
        note: str | None = None,
    ) -> None:
        """Write the policy as JSON, in the form that `policy.files` documents; names and the note are for whoever reads
        the file."""
        write_table(
            as_path(path),
            self._kind,
            self._actions,
            self._probabilities,
            horizon=self.horizon,
            state_names=state_names,
            action_names=action_names,
            note=note,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return _made, (type(self), self._actions, self._probabilities)

    def chances(self, n_actions: int) -> FloatArray:
        """Chances `[..., a]` of any policy, deterministic or not, for a model with `n_actions` actions."""
        n_actions = check_count(n_actions, "n_actions")
        if self._probabilities is not None:
            if self._probabilities.shape[-1] != n_actions:
                raise PolicyError(f"the policy has {self._probabilities.shape[-1]} actions, the model has {n_actions}")
            return self._probabilities
        actions = check_ids(self.actions, n_actions, "policy action", PolicyError)
        check_size((*actions.shape, n_actions), "a table of chances", PolicyError, fix="give fewer actions")
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
        return hash((type(self).__name__, self._kept.shape, self._kept.tobytes()))


def _made(kind: type[_Policy], actions: IntArray | None, probabilities: FloatArray | None) -> _Policy:
    """A policy at its start, from its data."""
    return kind(actions, probabilities=probabilities)


class StationaryPolicy(_Policy):
    """The same choice whenever a state is met.

    Args:
      actions: one action per state, `[s]`; or
      probabilities: chances of each action, `[s,a]`.

    >>> policy = StationaryPolicy([1, 0])
    >>> policy.actions.tolist()
    [1, 0]
    >>> policy.act(0)
    1
    >>> StationaryPolicy(probabilities=[[0.5, 0.5], [0.0, 1.0]]).is_deterministic
    False
    """

    __slots__ = ()
    _kind = "stationary"
    _axes = ("state",)

    def __repr__(self) -> str:
        if self.is_deterministic:
            return f"StationaryPolicy({self.actions.tolist()})"
        return f"StationaryPolicy(stochastic, {self.n_states} states)"

    def repeat(self, horizon: int) -> "MemorylessPolicy":
        """The same choices written out for `horizon` stages."""
        horizon = check_count(horizon, "horizon")
        check_size((horizon, *self._kept.shape), "a policy with stages", PolicyError, fix="give fewer stages")
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
    _kind = "memoryless"
    _axes = ("stage", "state")

    def __repr__(self) -> str:
        kind = "deterministic" if self.is_deterministic else "stochastic"
        return f"MemorylessPolicy({kind}, {self.horizon} stages, {self.n_states} states)"

    @property
    def horizon(self) -> int:
        """Number of decisions."""
        return int(self._kept.shape[0])

    def first_step(self) -> StationaryPolicy:
        """The first stage's choices as a stationary policy: a different policy, with a value of its own."""
        if self.is_deterministic:
            return StationaryPolicy(self.actions[0])
        return StationaryPolicy(probabilities=self.probabilities[0])

    def drop(self, stages: int) -> Self:
        """What remains of the policy after its first `stages` decisions."""
        stages = check_count(stages, "stages", least=0)
        if not stages < self.horizon:
            raise PolicyError(f"cannot drop {stages} of {self.horizon} stages; at least one must remain")
        if self.is_deterministic:
            return type(self)(self.actions[stages:])
        return type(self)(probabilities=self.probabilities[stages:])


TablePolicy = StationaryPolicy | MemorylessPolicy
_KINDS: dict[str, type[StationaryPolicy] | type[MemorylessPolicy]] = {
    kind._kind: kind for kind in (StationaryPolicy, MemorylessPolicy)
}


def read_table(path: Path) -> TablePolicy:
    """The table policy of a JSON file; a `FileError` names the file and its fault."""
    content = read_json(path)
    try:
        given = check_table(content, tuple(_KINDS))
        policy = _KINDS[content["kind"]](**given)
        used = policy.n_actions or int(policy.actions.max()) + 1
        check_sizes(content, policy.n_states, policy.n_actions, policy.horizon, used)
    except (ValueError, OverflowError) as fault:
        raise FileError(f"{path}: {fault}") from None
    return policy
