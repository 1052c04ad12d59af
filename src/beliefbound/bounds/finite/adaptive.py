"""The policy that a belief graph certifies, as something to act with.

It plays what `kernels.graph.information_relaxation.follow` simulates, action by action:

1. *Look ahead.* At a belief it maximises `(1 − mix) · lower + mix · upper` one step ahead: over the graph's values
   where the graph reaches, over the leaf values beyond. It explores: an outcome that tells models apart
   raises both terms.
2. *Settle.* At a leaf of the scenario, or once it has lost more than `stop`, it maximises the lower value alone, as
   long as beliefs lie in the graph: at each of them that earns at least the graph's lower value, for certain.
3. *Commit.* At the first belief outside the graph it picks the best policy of the pool and follows that for ever.

A sampled bound is the value of 1–3. An exact bound is that of 2–3 alone: the policy that commits at the start (`stop`
below 0) earns at least the graph's lower value, for certain.

A walk is a node of the graph, or one belief outside it, or a policy of the pool: it needs no more memory at step
10 000 than at step 1, and as much time.
"""

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from beliefbound.base.errors import ObservationError
from beliefbound.base.validation import check_seed
from beliefbound.bounds.finite.adaptive_file import KIND, arrays_of
from beliefbound.bounds.finite.controller import Controller, FrozenSearch, Outside, freeze
from beliefbound.bounds.finite.relaxation import Certifier
from beliefbound.kernels.graph.controller import COMMIT, IMPOSSIBLE
from beliefbound.kernels.graph.information_relaxation import goes_on
from beliefbound.kernels.graph.nodes import Graph
from beliefbound.planning.task import FiniteTask
from beliefbound.policy.files import ArchivedPolicy
from beliefbound.policy.protocol import check_id, check_left, check_reward, check_transition

SETTLE = -1.0  # a `stop` that is passed at once
_FREEZING = Lock()


@dataclass
class _Walk:
    """Where observations have led: to a node of the graph, to the walk's own belief, or to a policy of the pool."""

    stage: int = 0
    at: int = -1  # the state; −1 before the first observation
    node: int = -1  # −1: the walk's own belief
    cost: float = 0.0
    committed: bool = False
    pool: int = -1


class AdaptivePolicy(ArchivedPolicy):
    """Acts on the posterior of a finite belief. Made by `bracket`; the value that was bounded is that of its advice.

    After an action it did not advise, the posterior is still right and it goes on from there; the certificate is for
    its own advice only. Two policies are equal when all that they would save is.

    Attributes:
      n_states, n_actions: sizes.
      horizon: decisions; `None`: for ever.
    """

    _archive = KIND

    def __init__(self, certifier: Certifier, *, stop: float = SETTLE) -> None:
        self._certifier: Certifier | None = certifier
        self._stop = float(stop)
        self._detached = False
        self._make: Callable[[], Controller] | None = None
        self._frozen: tuple[Controller, FrozenSearch | None] | None = None
        self._begin(certifier.problem.available.shape, certifier.task.horizon)

    @classmethod
    def of(cls, controller: Controller, lookahead: FrozenSearch | None) -> "AdaptivePolicy":
        """A policy from its frozen data."""
        policy = cls.__new__(cls)
        policy._certifier, policy._detached, policy._make = None, True, None
        policy._frozen = (controller, lookahead)
        policy._stop = SETTLE if lookahead is None else lookahead.stop
        policy._begin(controller.available.shape, controller.horizon)
        return policy

    @classmethod
    def later(cls, make: Callable[[], Controller], sizes: tuple[int, ...]) -> "AdaptivePolicy":
        """A policy for ever that commits at the start, whose controller is made when it is first asked for."""
        policy = cls.__new__(cls)
        policy._certifier, policy._detached, policy._frozen, policy._make = None, True, None, make
        policy._stop = SETTLE
        policy._begin(sizes, None)
        return policy

    def _begin(self, sizes: tuple[int, ...], horizon: int | None) -> None:
        self.n_states, self.n_actions = sizes
        self.horizon = horizon
        self._walk = _Walk()
        self._outside: Outside | None = None

    def detach(self) -> None:
        """Before the search goes on: keep the frozen graph as it is now."""
        if self._certifier is not None and not self._detached:
            graph, self._certifier = self._certifier.copy(), copy.copy(self._certifier)
            self._certifier.graph, self._detached = graph, True

    @property
    def data(self) -> tuple[Controller, FrozenSearch | None]:
        """The controller and, for a policy that looks ahead, what that needs: made when first asked for."""
        with _FREEZING:
            if self._frozen is None and self._make is not None:
                self._frozen, self._make = (self._make(), None), None
            elif self._frozen is None:
                assert self._certifier is not None
                self._frozen, self._certifier = freeze(self._certifier, self._stop), None
        return self._frozen

    def __repr__(self) -> str:
        nodes = self._certifier.n_nodes if self._certifier is not None else len(self.data[0].state)
        how = "" if self._stop < 0.0 else ", looks ahead"
        return f"AdaptivePolicy({self.n_states} states, {self.n_actions} actions, graph of {nodes} beliefs{how})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AdaptivePolicy):
            return NotImplemented
        if self is other:
            return True
        mine, theirs = arrays_of(*self.data), arrays_of(*other.data)
        return mine.keys() == theirs.keys() and all(
            np.array_equal(array, theirs[name], equal_nan=array.dtype.kind == "f") for name, array in mine.items()
        )

    def __hash__(self) -> int:
        controller = self.data[0]
        return hash((self._stop, self.horizon, controller.action.tobytes(), controller.after.shape))

    def __reduce__(self) -> tuple[Any, ...]:
        return AdaptivePolicy.of, self.data

    def reset(self, seed: int = 0) -> None:
        """Begin again at the start. The policy draws nothing: it behaves alike under every seed."""
        check_seed(seed)
        self._walk = _Walk()

    def act(self, state: int) -> int:
        """The action in `state`, where the observations have led.

        Raises:
          ObservationError: they have led elsewhere, or the certificate is not for a start in this state.
          PolicyError: the horizon is over.
        """
        s = check_id(state, self.n_states, "state")
        check_left(self._walk.stage, self.horizon)
        controller, lookahead = self.data
        walk = self._standing(s)
        if walk.pool >= 0:
            return controller.follow(walk.pool, walk.stage, s)
        if lookahead is not None and self._looks_ahead(walk, lookahead):
            graph, node = self._place(walk, lookahead)
            return int(graph.action[node])
        return self._secure(walk)[0]

    def observe(self, state: int, action: int, reward: float | None, next_state: int) -> None:
        """Carry the walk over one transition; `reward` may be `None` where the belief does not learn from rewards.

        Raises:
          ObservationError: it does not begin where the walk is, or cannot have happened under the belief.
          PolicyError: the horizon is over.
        """
        s, a, t = check_transition(self, self._walk.stage, state, action, next_state)
        controller = self.data[0]
        walk = self._standing(s)
        row = controller.row(s, a, check_reward(reward), t)
        if walk.pool < 0:
            self._advance(walk, a, row)
        walk.at, walk.stage = t, walk.stage + 1
        self._walk = walk

    def as_controller(self, task: FiniteTask) -> Controller | None:
        """Itself, once it has committed; one that looks ahead builds beliefs beyond the graph, without end."""
        controller, lookahead = self.data
        return controller if lookahead is None else None

    def fresh(self) -> "AdaptivePolicy":
        """The same policy at its start, with a walk of its own on the same frozen graph."""
        return AdaptivePolicy.of(*self.data)

    def _arrays(self) -> Mapping[str, Any]:
        return arrays_of(*self.data)

    def _standing(self, s: int) -> _Walk:
        """The walk, which is in state `s`; at the start, it begins there."""
        walk, controller = self._walk, self.data[0]
        if walk.at < 0:
            starts = controller.state[controller.roots]
            found = np.flatnonzero(starts == s)
            if not len(found):
                known = ", ".join(map(str, starts))
                raise ObservationError(f"the walk starts in state {s}; the certificate is for starts in {known}")
            return _Walk(node=int(controller.roots[found[0]]))
        if walk.at != s:
            raise ObservationError(f"the last transition ended in state {walk.at}, not in state {s}")
        return walk

    def _place(self, walk: _Walk, lookahead: FrozenSearch) -> tuple[Graph, int]:
        """The graph and the node in it where a walk is."""
        if walk.node >= 0:
            return lookahead.graph, walk.node
        assert self._outside is not None
        return self._outside.graph, Outside.HERE

    def _secure(self, walk: _Walk) -> tuple[int, npt.NDArray[np.int32]]:
        """`(action, after[row])` for the lower value alone."""
        controller, lookahead = self.data
        if walk.node >= 0:
            return int(controller.action[walk.node]), controller.after[walk.node]
        assert self._outside is not None
        assert lookahead is not None
        return self._outside.secure(lookahead.problem)

    def _looks_ahead(self, walk: _Walk, lookahead: FrozenSearch) -> bool:
        if not walk.committed:
            powers, tolerance, stop = lookahead.powers, lookahead.tolerance, lookahead.stop
            walk.committed = not goes_on(*self._place(walk, lookahead), walk.cost, powers, tolerance, stop)
        return not walk.committed

    def _advance(self, walk: _Walk, action: int, row: int) -> None:
        """Move on by one outcome; out of the graph, commit to the policy of the pool that is best there."""
        lookahead = self.data[1]
        after = int(self._secure(walk)[1][row])
        if after == IMPOSSIBLE:
            raise ObservationError("the transition has probability 0 after what was observed before")
        if lookahead is not None and self._looks_ahead(walk, lookahead):
            graph, node = self._place(walk, lookahead)
            stage = int(graph.stage[node])
            walk.cost += lookahead.powers[stage] * float(graph.loss[node, action])
            if after < 0 and stage + 1 < len(lookahead.powers) - 1:
                self._outside = self._outside or Outside(lookahead.problem)
                self._outside.move(lookahead.problem, lookahead.graph, graph, node, row)
                after = -1
        if after > COMMIT:
            walk.node = after
        else:
            walk.pool, walk.committed = COMMIT - after, True
