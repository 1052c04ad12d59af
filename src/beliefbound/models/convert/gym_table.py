"""Gymnasium's `P` tables: `P[state][action] = [(probability, next_state, reward, terminated), …]`.

**Termination.** A terminated outcome pays its reward and nothing follows, whatever the table says about the state it
names: CliffWalking's goal, for instance, has ordinary rows in the table although no episode ever continues from it. Let
`C` be the states named by terminated outcomes, and let the *live* states be those an episode can act in: the support
of the start distribution (of a bare table: every state outside `C`, or all if `C` is all) and whatever non-terminated
outcomes of live states lead to.

* If no state of `C` is live, each is made absorbing with reward 0. State ids stay as they are. This covers
  FrozenLake, CliffWalking and Taxi. (Rows of states that are not live and outside `C` are kept as the table has
  them; such a state may enter `C` without the flag, and then also ends there.)
* Otherwise termination depends on the transition, not on the state reached. One absorbing state is appended as the
  last one, and all terminated outcomes lead there instead. The MDP then has one state more than the table.

Either way the value of a state is the expected discounted reward until termination.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from beliefbound.base.errors import ModelError
from beliefbound.base.validation import BoolArray, FloatArray, IntArray, as_floats, check_ids, check_sequence
from beliefbound.models.convert.assemble import absorbing, assemble, sparse_rows
from beliefbound.models.mdp import MDP

MAX_PAIRS = 50_000_000  # of a state and an action


def from_gymnasium(source: Any) -> MDP:
    """The MDP of a gymnasium environment with a `P` table, or of the table itself.

    Outcomes that lead to the same state are merged and rewards are expectations. An action without outcomes, or absent
    from its state's table, is unavailable there. `initial` is the environment's `initial_state_distrib` where it has
    one. Terminated outcomes have no continuation; see the top of this module for what that does to the states.

    >>> stay, win, lose = (0.5, 0, 0.0, False), (0.25, 1, 4.0, True), (0.25, 1, 0.0, True)
    >>> mdp = from_gymnasium({0: {0: [stay, win, lose]}, 1: {0: [(1.0, 0, 9.0, False)]}})
    >>> mdp.transitions.tolist(), mdp.rewards.tolist()
    ([[[0.5, 0.5]], [[0.0, 1.0]]], [[1.0], [0.0]])
    """
    table, initial, n_states, n_actions = _unpack(source)
    state, action, chance, target, reward, ended = _flatten(table)
    n_states = _count(n_states, state, target)
    n_actions = max(n_actions, int(action.max()) + 1)
    if n_states * n_actions > MAX_PAIRS:
        raise ModelError(
            f"P names action {int(action.max())} of {n_states} states: {n_states * n_actions:,} pairs are too many; "
            "number the actions 0, 1, 2, …"
        )
    if initial is not None and initial.shape != (n_states,):
        raise ModelError(f"initial_state_distrib has shape {initial.shape}, expected ({n_states},) as in the table")
    possible = chance > 0.0
    named = np.zeros(n_states, dtype=np.bool_)
    named[target[ended & possible]] = True
    start = initial > 0.0 if initial is not None else ~named | named.all()
    live = _live(start, state, target, possible & ~ended)
    available = np.zeros((n_states, n_actions), dtype=np.bool_)
    available[state, action] = True
    if (live & named).any():
        target = np.where(ended, n_states, target)
        last = np.ones((1, n_actions), dtype=np.bool_)
        available = np.concatenate([available, last])
        initial = None if initial is None else np.append(initial, 0.0)
        final = np.array([n_states])
        n_states += 1
    else:
        keep = ~named[state]
        state, action, target = state[keep], action[keep], target[keep]
        chance, reward = chance[keep], reward[keep]
        final = np.flatnonzero(named)
    available[final] |= ~available[final].any(axis=1, keepdims=True)
    empty = ~available.any(axis=1)
    if empty.any():
        raise ModelError(
            f"P[{int(np.argmax(empty))}] has no action with outcomes, and no terminated outcome leads there"
        )
    stay, choice = np.nonzero(available[final])
    return assemble(
        np.concatenate([state * n_actions + action, final[stay] * n_actions + choice]),
        np.concatenate([target, final[stay]]),
        np.concatenate([chance, np.ones(len(stay))]),
        np.concatenate([reward, np.zeros(len(stay))]),
        n_states=n_states,
        n_actions=n_actions,
        available=available,
        initial=initial,
    )


def gymnasium_table(mdp: MDP) -> dict[int, dict[int, list[tuple[float, int, float, bool]]]]:
    """The `P` table of an MDP: every outcome of `(state, action)` pays the expected reward of that pair.

    An outcome is terminated when it leads to a state that every action keeps for no reward. Unavailable actions are
    absent. `from_gymnasium` turns the table back into the same MDP, apart from `initial` and the names.

    >>> gymnasium_table(MDP([[[0.5, 0.5]], [[0.0, 1.0]]], [[1.0], [0.0]]))
    {0: {0: [(0.5, 0, 1.0, False), (0.5, 1, 1.0, True)]}, 1: {0: [(1.0, 1, 0.0, True)]}}
    """
    rows, ended = sparse_rows(mdp), absorbing(mdp)
    table: dict[int, dict[int, list[tuple[float, int, float, bool]]]] = {s: {} for s in range(mdp.n_states)}
    for s, a in np.argwhere(mdp.available).tolist():
        row = slice(rows.indptr[s * mdp.n_actions + a], rows.indptr[s * mdp.n_actions + a + 1])
        reward = float(mdp.rewards[s, a])
        table[s][a] = [
            (p, t, reward, bool(ended[t]))
            for p, t in zip(rows.data[row].tolist(), rows.indices[row].tolist(), strict=True)
            if p > 0.0
        ]
    return table


def _unpack(source: Any) -> tuple[Any, FloatArray | None, int, int]:
    """`(table, start distribution, states, actions)`; the counts are 0 where only the table can tell."""
    if isinstance(source, Mapping | list | tuple):
        return source, None, 0, 0
    inner = getattr(source, "unwrapped", source)
    table = getattr(inner, "P", None)
    if table is None:
        raise ModelError(
            f"{type(inner).__name__} has no transition table P, so its MDP is not known; "
            "pass an environment of gymnasium's toy-text kind, or a table"
        )
    initial = getattr(inner, "initial_state_distrib", None)
    counts = [int(getattr(getattr(inner, f"{k}_space", None), "n", 0)) for k in ("observation", "action")]
    return table, None if initial is None else as_floats(initial, "initial_state_distrib", ModelError), *counts


def _flatten(table: Any) -> tuple[IntArray, IntArray, FloatArray, IntArray, FloatArray, BoolArray]:
    """Every outcome of the table: state, action, probability, next state, reward, terminated; one array each."""
    outcomes: list[tuple[int, int, float, int, float, bool]] = []
    for s, by_action in _items(table):
        for a, row in _items(by_action):
            listed = check_sequence(row, f"P[{s}][{a}]", ModelError, fix="give a list of outcomes")
            for k, outcome in enumerate(listed):
                try:
                    chance, target, reward, ended = outcome
                    outcomes.append((s, a, float(chance), int(target), float(reward), bool(ended)))
                except (TypeError, ValueError, OverflowError):
                    raise ModelError(
                        f"P[{s}][{a}][{k}] is {outcome!r}; expected (probability, next_state, reward, terminated)"
                    ) from None
                if not outcomes[-1][2] >= 0.0:
                    raise ModelError(f"P[{s}][{a}][{k}] has probability {chance}; probabilities are between 0 and 1")
    if not outcomes:
        raise ModelError("the table P has no outcomes; expected P[state][action] = [(probability, next_state, …), …]")
    state, action, chance, target, reward, ended = zip(*outcomes, strict=True)
    limit = np.iinfo(np.int64).max
    ids = [
        check_ids(np.array(x), limit, what, ModelError)
        for x, what in ((state, "states of P"), (action, "actions of P"), (target, "next states of P"))
    ]
    return ids[0], ids[1], np.array(chance), ids[2], np.array(reward), np.array(ended, dtype=np.bool_)


def _count(declared: int, state: IntArray, target: IntArray) -> int:
    """States of the table: 0 … n−1, each with rows of its own or at least named by an outcome."""
    seen = np.unique(np.concatenate([state, target]))
    if declared:
        check_ids(seen, declared, "states of P", ModelError)
        return declared
    gaps = np.flatnonzero(seen != np.arange(len(seen)))
    if gaps.size:
        raise ModelError(f"P names state {seen[gaps[0]]} but not state {gaps[0]}; states must be numbered 0, 1, 2, …")
    return len(seen)


def _items(level: Any) -> Any:
    return level.items() if isinstance(level, Mapping) else enumerate(level)


def _live(start: BoolArray, state: IntArray, target: IntArray, continues: BoolArray) -> BoolArray:
    """States reached from `start` along the outcomes marked in `continues`."""
    live, source, goal = start.copy(), state[continues], target[continues]
    while True:
        reached = goal[live[source] & ~live[goal]]
        if not reached.size:
            return live
        live[reached] = True
