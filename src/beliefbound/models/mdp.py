"""A finite Markov decision process: frozen data, dense or sparse, with names."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from beliefbound.base.errors import ModelError
from beliefbound.base.validation import (
    BoolArray,
    FloatArray,
    Frozen,
    IntArray,
    as_floats,
    check_ids,
    check_initial,
    check_names,
    check_sequence,
    is_sparse,
)
from beliefbound.models import ModelSet, build


class MDP(Frozen):
    """A finite MDP with known dynamics.

    Args:
      transitions: probabilities `[state, action, next_state]`, or a scipy sparse matrix with one row per
        `(state, action)` (row `state * n_actions + action`) and one column per next state.
      rewards: expected rewards `[state, action]`, or `[state]`, or (dense only) `[state, action, next_state]`, of
        which the expectation is taken.
      initial: start distribution `[state]`, or one start state; optional.
      states, actions: names; optional.
      available: booleans `[state, action]`: the actions each state offers. Default: all. Transition rows of
        unavailable actions are ignored.
      normalize: rescale rows that do not sum to one instead of refusing them.

    The arrays are not copied when they already are float64, never modified, and read-only from here on.

    >>> mdp = MDP([[[0.0, 1.0], [1.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]]], [[0.0, 0.0], [1.0, 0.0]])
    >>> mdp.n_states, mdp.n_actions
    (2, 2)
    >>> mdp
    MDP(2 states, 2 actions, dense)
    """

    __slots__ = ("actions", "initial", "models", "states")
    _called = "an MDP"

    models: ModelSet  # this MDP as a set of one model, the form every algorithm takes
    initial: FloatArray | None
    states: tuple[str, ...] | None
    actions: tuple[str, ...] | None

    def __init__(
        self,
        transitions: Any,
        rewards: Any,
        *,
        initial: Any = None,
        states: Sequence[str] | None = None,
        actions: Sequence[str] | None = None,
        available: Any = None,
        normalize: bool = False,
    ) -> None:
        if not is_sparse(transitions):
            transitions = as_floats(transitions, "transitions", ModelError)
            if transitions.ndim != 3:
                raise ModelError(f"transitions have shape {transitions.shape}; expected [state, action, next state]")
            transitions = transitions[None]
        r = as_floats(rewards, "rewards", ModelError)
        if r.ndim == 1 and not is_sparse(transitions):
            r = np.broadcast_to(r[:, None], (r.shape[0], transitions.shape[2]))
        if r.ndim == 3:
            r = r[None]
        fix = "give one name each, in a list"
        named = None if actions is None else check_sequence(actions, "action names", ModelError, fix=fix)
        models = build(
            transitions,
            r,
            n_models=1,
            n_actions=None if named is None else len(named),
            available=available,
            normalize=normalize,
            axes=("state", "action", "next state"),
        )
        self._set(
            models=models,
            initial=check_initial(initial, models.n_states, ModelError, states),
            states=check_names(states, models.n_states, "state", ModelError),
            actions=check_names(named, models.n_actions, "action", ModelError),
        )

    def __repr__(self) -> str:
        kind = "sparse" if self.is_sparse else "dense"
        return f"MDP({self.n_states} states, {self.n_actions} actions, {kind})"

    @property
    def n_states(self) -> int:
        return self.models.n_states

    @property
    def n_actions(self) -> int:
        return self.models.n_actions

    @property
    def is_sparse(self) -> bool:
        return self.models.is_sparse

    @property
    def transitions(self) -> Any:
        """`[s,a,t]` when dense; a CSR matrix with rows over `(s,a)` when sparse."""
        stored = self.models.transitions.stored
        return stored if self.is_sparse else stored[0]

    @property
    def rewards(self) -> FloatArray:
        """Expected rewards `[s,a]`, zero where the action is unavailable."""
        rewards: FloatArray = self.models.rewards[0]
        return rewards

    @property
    def available(self) -> BoolArray:
        """Which actions each state offers, `[s,a]`."""
        return self.models.available

    def to_dense(self) -> "MDP":
        """The same MDP with a dense transition array."""
        return self._with(self.models.dense()[0])

    def to_sparse(self) -> "MDP":
        """The same MDP in compressed rows."""
        return self._with(self.models.compressed())

    def _with(self, transitions: Any) -> "MDP":
        return MDP(
            transitions,
            self.rewards,
            initial=self.initial,
            states=self.states,
            actions=self.actions,
            available=self.available,
        )

    def relabel(self, order: IntArray) -> "MDP":
        """The same MDP with state `order[i]` renamed `i`; sparse if this one is."""
        order = check_ids(order, self.n_states, "order", ModelError)
        if order.ndim != 1 or not np.array_equal(np.sort(order), np.arange(self.n_states)):
            raise ModelError(f"order must list each of the {self.n_states} states once")
        if self.is_sparse:
            rows = (order[:, None] * self.n_actions + np.arange(self.n_actions)).ravel()
            transitions = self.transitions[rows][:, order]
        else:
            transitions = self.transitions[order][:, :, order]
        return MDP(
            transitions,
            self.rewards[order],
            initial=None if self.initial is None else self.initial[order],
            states=None if self.states is None else [self.states[i] for i in order],
            actions=self.actions,
            available=self.available[order],
        )
