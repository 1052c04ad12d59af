"""A policy given by alpha vectors: at belief `b` in state `s`, the first action of the vector of `s` with the largest
`b·α`.

That is how POMDP solvers hand over their policies (`base.io.formats.policyx`). What the vectors promise is not
believed: the policy is certified by what it earns. Where beliefs repeat, it is a finite-state controller
(`as_controller`), whose value is exact; else it is simulated.

The file of such a policy is an archive of the kind `alpha vectors` (`policy.files`): `state [i]`, `action [i]`, `value
[i,m]`; the belief it walks with, `weights [m]`, `like [m,k]`, `arrive [k]`, `first [s,a+1]`, `seen [k]` (as in
`bounds.finite.adaptive_file`) and `available [s,a]`.
"""

from pathlib import Path
from typing import Any, Self

import numpy as np

from beliefbound.base.errors import ObservationError, PolicyError
from beliefbound.base.io.arrays import Array, Shapes
from beliefbound.base.io.formats.policyx import AlphaVectors, read_alpha_vectors
from beliefbound.base.validation import BoolArray, FloatArray, check_seed
from beliefbound.bounds.finite.adaptive_file import read_outcomes
from beliefbound.bounds.finite.controller import Controller, outcome_row
from beliefbound.bounds.finite.outcomes import Outcomes, outcomes_of
from beliefbound.kernels.graph.controller import IMPOSSIBLE
from beliefbound.planning.task import FiniteTask
from beliefbound.policy.files import ArchivedPolicy
from beliefbound.policy.protocol import check_id, check_reward, check_transition

KIND = "alpha vectors"
_QUANTUM = 2.0**-40  # weights that differ by less are the same weight
_MOST_NODES = 20_000  # beliefs that a controller may have


class AlphaPolicy(ArchivedPolicy):
    """Follows the best alpha vector at its posterior.

    Attributes:
      n_states, n_actions: sizes.
      horizon: `None`: it acts for ever.
    """

    _archive = KIND

    horizon = None

    def __init__(self, vectors: AlphaVectors, outcomes: Outcomes, weights: FloatArray, available: BoolArray) -> None:
        self._vectors, self._outcomes, self._weights, self._available = vectors, outcomes, weights, available
        self.n_states, self.n_actions = available.shape
        self._of = [np.flatnonzero(vectors.state == s) for s in range(self.n_states)]
        self._at, self._belief = -1, np.array(weights)
        if not available[vectors.state, vectors.action].all():
            raise PolicyError("a vector begins with an action that its state does not offer")

    def __repr__(self) -> str:
        return f"AlphaPolicy({self.n_states} states, {self.n_actions} actions, {len(self._vectors.state)} vectors)"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AlphaPolicy):
            return NotImplemented
        mine, theirs = self._arrays(), other._arrays()
        return all(np.array_equal(mine[name], theirs[name], equal_nan=mine[name].dtype.kind == "f") for name in mine)

    def __hash__(self) -> int:
        return hash((self._vectors.value.tobytes(), self._vectors.action.tobytes()))

    def action_at(self, s: int, belief: FloatArray) -> int:
        """The action in `s` at weights `[m]`, which need not sum to one; ties to the first vector."""
        own = self._of[s]
        if not len(own):
            raise PolicyError(f"the policy has no vector for state {s}")
        return int(self._vectors.action[own[int(np.argmax(self._vectors.value[own] @ belief))]])

    def reset(self, seed: int = 0) -> None:
        """Begin again at the start; nothing is drawn."""
        check_seed(seed)
        self._at, self._belief = -1, np.array(self._weights)

    def act(self, state: int) -> int:
        """The action in `state` at the posterior."""
        s = check_id(state, self.n_states, "state")
        if self._at not in (-1, s):
            raise ObservationError(f"the last transition ended in state {self._at}, not in state {s}")
        return self.action_at(s, self._belief)

    def observe(self, state: int, action: int, reward: float | None, next_state: int) -> None:
        """Carry the posterior over one transition."""
        s, a, t = check_transition(self, 0, state, action, next_state)
        if self._at not in (-1, s):
            raise ObservationError(f"the last transition ended in state {self._at}, not in state {s}")
        first, arrive, seen = self._outcomes.first, self._outcomes.arrive, self._outcomes.reward
        row = int(first[s, 0]) + outcome_row(first, arrive, seen, s, a, check_reward(reward), t)
        joint = self._belief * self._outcomes.like[:, row]
        if not joint.any():
            raise ObservationError("the transition has probability 0 after what was observed before")
        self._at, self._belief = t, joint / joint.sum()

    def fresh(self) -> Self:
        """The same policy at its start, with a walk of its own."""
        return type(self)(self._vectors, self._outcomes, self._weights, self._available)

    def _arrays(self) -> dict[str, Array]:
        outcomes = {"like": self._outcomes.like, "arrive": self._outcomes.arrive, "first": self._outcomes.first}
        own = {"seen": self._outcomes.reward, "weights": self._weights, "available": self._available}
        return {**self._vectors._asdict(), **outcomes, **own}

    def as_controller(self, task: FiniteTask) -> Controller | None:
        """The same as a finite-state controller, where few enough beliefs can be met: equal ones are one node."""
        like, arrive, first, seen = self._outcomes
        rows = int((first[:, -1] - first[:, 0]).max())
        states, beliefs, actions = list[int](), list[FloatArray](), list[int]()
        after: list[Any] = []
        number: dict[tuple[int, bytes], int] = {}

        def node(s: int, belief: FloatArray) -> int:
            key = (s, np.round(belief / _QUANTUM).astype(np.int64).tobytes())
            if key not in number:
                number[key] = len(states)
                states.append(s)
                beliefs.append(belief)
            return number[key]

        roots = [node(int(s), np.array(task.weights)) for s in np.flatnonzero(task.start)]
        while len(actions) < len(states):
            if len(states) > _MOST_NODES:
                return None
            s, belief = states[len(actions)], beliefs[len(actions)]
            a = self.action_at(s, belief)
            line = np.full(rows, IMPOSSIBLE, dtype=np.int32)
            for k in range(first[s, a], first[s, a + 1]):
                joint = belief * like[:, k]
                if joint.any():
                    line[k - first[s, 0]] = node(int(arrive[k]), joint / joint.sum())
            actions.append(a)
            after.append(line)
        pool = np.array([[int(np.argmax(row)) for row in self._available]])
        return Controller(
            np.array(states),
            np.array(actions, dtype=np.int32),
            np.array(after),
            np.array(roots),
            first,
            arrive,
            seen,
            self._available,
            pool,
            np.array([0, 1]),
            None,
        )


def read_sarsop(path: Path, task: FiniteTask) -> AlphaPolicy:
    """The policy of a SARSOP file, walking with the task's belief."""
    models = task.models
    vectors = read_alpha_vectors(path, models.n_models, models.n_states, models.n_actions)
    return AlphaPolicy(vectors, outcomes_of(task), task.weights, models.available)


def read_alpha(path: Path, arrays: dict[str, Array]) -> AlphaPolicy:
    """The policy of an archive that `save` wrote, checked array by array."""
    file = Shapes(path, arrays)
    available, first, arrive, seen = read_outcomes(file)
    n_states, n_actions = available.shape
    weights = file.take("weights", "f8", "model")
    if not len(weights) or weights.min() < 0.0 or abs(weights.sum() - 1.0) > 1e-6:
        raise file.wrong("weights", "is no distribution")
    like = file.take("like", "f8", "model outcome")
    if like.min() < 0.0 or like.max() > 1.0 + 1e-9:
        raise file.wrong("like", "holds numbers that are no probabilities")
    state = file.ids("state", "i8", "vector", 0, n_states)
    action = file.ids("action", "i8", "vector", 0, n_actions)
    value = file.take("value", "f8", "vector model")
    if not len(state) or not available[state, action].all():
        raise file.wrong("action", "takes actions that are not available")
    file.done()
    return AlphaPolicy(AlphaVectors(state, action, value), Outcomes(like, arrive, first, seen), weights, available)
