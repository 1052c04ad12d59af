"""Which flat POMDPs are hidden-model problems, and their models.

*Observed state.* Every state always shows one observation, the same after every action; states that show the same are
one observed state. *Model.* No transition leads from one model to another. Where
every observation is shown by equally many states, the k-th of them, in the order of the file, is that of model k; where
that fails, the states that transitions connect are one model, if none of them shows the same twice. What no model
reaches is absorbing there, with reward 0.

The format has no observation before the first action. Here the start state is seen: where a file leaves it open,
`notes` say so.
"""

from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from beliefbound.base.errors import FileError
from beliefbound.base.io.formats.cassandra import FlatPomdp
from beliefbound.base.io.formats.hidden_model import HiddenModel, Names, check_cells, to_distributions
from beliefbound.base.validation import FloatArray, IntArray

_APART = 1e-9  # a start that is a product up to this is one


def hidden_model_of(flat: FlatPomdp) -> HiddenModel:
    """The models of a flat POMDP; a `FileError` says why it has none."""
    notes: list[str] = []
    n_actions, n, _ = flat.moves.shape
    states = _named(flat.states, n, "state")
    actions = _named(flat.actions, n_actions, "action")
    moves = to_distributions(
        flat.moves, flat.path, lambda i: f"T: {actions[i[0]]} : {states[i[1]]}", notes, "transitions"
    )
    shows = to_distributions(flat.shows, flat.path, lambda i: f"O: {actions[i[0]]} : {states[i[1]]}", notes, "seen")
    start = to_distributions(flat.start, flat.path, lambda _: "start", notes, "start")
    shown = _observed(flat, shows, actions, states)
    model = _models(flat, moves, shown, actions, states)
    used, observed = np.unique(shown, return_inverse=True)
    n_models, n_states = int(model.max()) + 1, len(used)
    check_cells((n_models, n_states, n_actions, n_states), flat.path, "transitions")
    transitions, paid = np.zeros((n_models, n_states, n_actions, n_states)), _rewards(flat, shown)
    rewards: FloatArray = np.zeros((n_models, n_states, n_actions, n_states))
    where = np.full((n_models, n_states), -1)
    where[model, observed] = np.arange(n)
    for x in range(n):
        m, s = model[x], observed[x]
        own = np.flatnonzero(where[m] >= 0)
        transitions[m, s][:, own] = moves[:, x, where[m, own]]
        rewards[m, s][:, own] = paid[:, x, where[m, own]]
    absent = where < 0
    if absent.any():
        transitions[absent] = np.eye(n_states)[np.nonzero(absent)[1]][:, None]
        notes.append(f"{int(absent.sum())} states that their model does not have are absorbing there, with reward 0")
    weights, initial = _start(flat, start, model, observed, (n_models, n_states), notes)
    return HiddenModel(
        transitions,
        _on_departure(transitions, rewards),
        weights,
        initial,
        flat.discount,
        states=None if flat.observations is None else tuple(flat.observations[z] for z in used),
        actions=flat.actions,
        models=_model_names(flat, shown, model),
        notes=tuple(notes),
    )


def _named(names: Names, count: int, kind: str) -> tuple[str, ...]:
    return names or tuple(f"{kind} {i}" for i in range(count))


def _observed(flat: FlatPomdp, shows: FloatArray, actions: tuple[str, ...], states: tuple[str, ...]) -> IntArray:
    """`[x]`: the one observation of each state."""
    shown: IntArray = shows[0].argmax(axis=-1)
    for a in range(len(shows)):
        sure = shows[a, np.arange(shows.shape[1]), shown]
        if (sure < 1.0).any():
            x = int(np.argmax(sure < 1.0))
            raise FileError(
                f"{flat.path}: O: {actions[a]} : {states[x]} does not always show the same ({sure[x]:g} is the chance "
                f"of its first); only problems are read in which a part of the state is always seen and the rest never"
            )
    return shown


def _models(
    flat: FlatPomdp, moves: FloatArray, shown: IntArray, actions: tuple[str, ...], states: tuple[str, ...]
) -> IntArray:
    """`[x]`: the model of each state."""
    order = np.zeros(len(shown), dtype=np.int64)
    for z in np.unique(shown):
        order[shown == z] = np.arange(int((shown == z).sum()))
    counts = np.unique(shown, return_counts=True)[1]
    edges = np.argwhere(moves > 0.0)
    crossing = edges[order[edges[:, 1]] != order[edges[:, 2]]]
    if len(set(counts)) == 1 and not len(crossing):
        return order
    linked = csr_array(moves.max(axis=0) > 0.0)
    parts: Any
    _, parts = connected_components(linked, directed=False)
    if len(np.unique(np.column_stack([parts, shown]), axis=0)) == len(shown):
        return np.asarray(parts, dtype=np.int64)
    if len(crossing):
        a, x, y = (int(i) for i in crossing[0])
        where = f": T: {actions[a]} : {states[x]} : {states[y]} leads to another of the states that show the same"
    else:
        where = ": observations are shown by different numbers of states, which transitions connect"
    raise FileError(
        f"{flat.path}: the hidden part of the state changes; only problems in which it never does are read{where}"
    )


def _rewards(flat: FlatPomdp, shown: IntArray) -> FloatArray:
    """`[a,x,y]`: a state shows one observation, so of all statements those count that name it."""
    n_actions, n, _ = flat.moves.shape
    paid = np.zeros((n_actions, n, n))
    every = np.arange(n)
    for action, state, arrival, seen, values in flat.rewards:
        a, x = (slice(None) if i < 0 else slice(i, i + 1) for i in (action, state))
        here = every if arrival < 0 else every[arrival : arrival + 1]
        if values.ndim == 2:
            paid[a, x] = values[every, shown]
            continue
        if seen >= 0:
            here = here[shown[here] == seen]
        paid[a, x, here] = values[shown[here]] if len(values) == flat.shows.shape[2] > 1 else values[0]
    return paid


def _on_departure(transitions: FloatArray, rewards: FloatArray) -> FloatArray:
    """Rewards `[m,s,a]` where they do not depend on the arrival, else as they are."""
    possible = transitions > 0.0
    low = np.where(possible, rewards, np.inf).min(axis=-1)
    high = np.where(possible, rewards, -np.inf).max(axis=-1)
    return low if (low == high).all() else rewards


def _start(
    flat: FlatPomdp, start: FloatArray, model: IntArray, observed: IntArray, shape: tuple[int, int], notes: list[str]
) -> tuple[FloatArray, FloatArray]:
    joint = np.zeros(shape)
    joint[model, observed] = start
    weights, initial = joint.sum(axis=1), joint.sum(axis=0)
    if np.abs(joint - np.outer(weights, initial)).max() > _APART:
        raise FileError(
            f"{flat.path}: start: the observed part of the start state tells about the hidden one; here a belief has "
            f"one prior for all start states, so give them independent of each other"
        )
    if (initial > 0.0).sum() > 1:
        notes.append("the start state is open: it is taken to be seen before the first action")
    return weights, initial


def _model_names(flat: FlatPomdp, shown: IntArray, model: IntArray) -> Names:
    """What the names of a model's states have besides those of the observations: `dry_m1`, `wet_m1` are of `m1`."""
    if flat.states is None or flat.observations is None:
        return None
    found: dict[int, str] = {}
    for name, z, m in zip(flat.states, shown, model, strict=True):
        begin = flat.observations[z] + "_"
        rest = name[len(begin) :] if name.startswith(begin) else ""
        if not rest or found.setdefault(int(m), rest) != rest:
            return None
    names = tuple(found[m] for m in range(len(found)))
    return names if len(set(names)) == len(names) else None
