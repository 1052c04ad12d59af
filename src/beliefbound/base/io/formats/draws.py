"""Arrays of parameter draws: models as one NumPy `.npz` archive, for who has sampled them.

    transitions [m,s,a,t]       required: one array of chances per draw
    rewards     [s,a], [m,s,a], or paid on arrival [m,s,a,t]; required
    discount    one number; required
    weights     [m]; default: equal
    initial     [s], or the number of one start state; default: uniform
    states, actions, models     names, as arrays of words (`numpy.array(["low", "high"])`); optional
    reward_signal               one word: known, deterministic, bernoulli, unobserved or continuous; optional
    reward_range                (low, high), for bernoulli; optional

Nothing is unpickled: arrays of objects are refused unread.
"""

from pathlib import Path
from typing import Any

import numpy as np

from beliefbound.base.errors import FileError
from beliefbound.base.io.arrays import read_arrays, write_arrays
from beliefbound.base.io.formats.hidden_model import LOOSE, HiddenModel, Names, to_distributions

_KNOWN = {"transitions", "rewards", "discount", "weights", "initial", "reward_signal", "reward_range"}
_NAMES = ("states", "actions", "models")


def read_draws(path: Path) -> HiddenModel:
    """The hidden-model problem of an archive of draws."""
    arrays, notes = read_arrays(path, words=True), list[str]()
    unknown = sorted(set(arrays) - _KNOWN - set(_NAMES))
    if unknown:
        known = ", ".join(sorted([*_KNOWN, *_NAMES]))
        raise FileError(f"{path} has an unknown array {unknown[0]!r}; known are {known}")
    for name in ("transitions", "rewards", "discount"):
        if name not in arrays:
            raise FileError(f"{path} has no array {name!r}; draws need transitions, rewards and discount")
    transitions = _numbers(path, arrays, "transitions", (4,))
    n_models, n_states, n_actions, arrivals = transitions.shape
    if 0 in transitions.shape or arrivals != n_states:
        raise FileError(
            f"{path}: transitions have shape {transitions.shape}; expected [draw, state, action, next state]"
        )
    transitions = to_distributions(
        transitions, path, lambda i: f"draw {i[0]}, state {i[1]}, action {i[2]}", notes, "transitions"
    )
    rewards = _numbers(path, arrays, "rewards", (2, 3, 4))
    shape = (n_models, n_states, n_actions, n_states)
    if rewards.shape not in (shape[1:3], shape[:3], shape):
        raise FileError(f"{path}: rewards have shape {rewards.shape}; expected {shape[1:3]}, {shape[:3]} or {shape}")
    if rewards.ndim == 2:
        rewards = np.repeat(rewards[None], n_models, axis=0)
    discount = float(_numbers(path, arrays, "discount", (0,)))
    if not 0.0 <= discount <= 1.0:
        raise FileError(f"{path}: discount is {discount:g}; it must lie between 0 and 1")
    weights = np.full(n_models, 1.0 / n_models)
    if "weights" in arrays:
        weights = _numbers(path, arrays, "weights", (1,))
        if weights.shape != (n_models,):
            raise FileError(f"{path}: weights have shape {weights.shape}; expected one for each of {n_models} draws")
        weights = to_distributions(weights, path, lambda _: "weights", notes, "weights")
    range_ = None
    if "reward_range" in arrays:
        ends = _numbers(path, arrays, "reward_range", (1,))
        if ends.shape != (2,) or not ends[0] < ends[1]:
            raise FileError(f"{path}: reward_range is {ends.tolist()}; give low and high, low below high")
        range_ = (float(ends[0]), float(ends[1]))
    sizes = {"states": n_states, "actions": n_actions, "models": n_models}
    states, actions, models = (_words(path, arrays, name, sizes[name]) for name in _NAMES)
    signal = _words(path, arrays, "reward_signal", 1)
    return HiddenModel(
        transitions,
        rewards,
        weights,
        _initial(path, arrays, n_states, notes),
        discount,
        states,
        actions,
        models,
        None if signal is None else signal[0],
        range_,
        tuple(notes),
    )


def write_draws(path: Path, problem: HiddenModel) -> tuple[str, ...]:
    """Write an archive that `read_draws` reads back bit for bit."""
    arrays: dict[str, Any] = {
        "transitions": problem.transitions,
        "rewards": problem.rewards,
        "discount": np.float64(problem.discount),
        "weights": problem.weights,
        "initial": problem.initial,
    }
    for name in _NAMES:
        names = getattr(problem, name)
        if names is not None:
            arrays[name] = np.array(names, dtype=np.str_)
    if problem.reward_signal is not None:
        arrays["reward_signal"] = np.array(problem.reward_signal, dtype=np.str_)
    if problem.reward_range is not None:
        arrays["reward_range"] = np.array(problem.reward_range)
    write_arrays(path, arrays)
    return ()


def _numbers(path: Path, arrays: dict[str, Any], name: str, axes: tuple[int, ...]) -> Any:
    array = arrays[name]
    if array.dtype.kind not in "iuf" or array.ndim not in axes:
        expected = " or ".join(map(str, axes))
        raise FileError(
            f"{path}: the array {name!r} is {array.dtype} of {array.ndim} axes; expected numbers of {expected}"
        )
    values = array.astype(np.float64)
    if not (np.abs(values) <= 1e300).all():
        raise FileError(f"{path}: the array {name!r} holds values that are not numbers up to 1e300")
    return values


def _words(path: Path, arrays: dict[str, Any], name: str, count: int) -> Names:
    if name not in arrays:
        return None
    array = arrays[name]
    if array.dtype.kind != "U" or array.size != count:
        raise FileError(f"{path}: the array {name!r} is {array.dtype} of {array.size} entries; expected {count} words")
    try:
        return tuple(str(word) for word in array.ravel())
    except ValueError:
        raise FileError(f"{path}: the array {name!r} holds signs that are no letters") from None


def _initial(path: Path, arrays: dict[str, Any], n_states: int, notes: list[str]) -> Any:
    if "initial" not in arrays:
        notes.append("no start state is given: any of them, with equal chances")
        return np.full(n_states, 1.0 / n_states)
    given = _numbers(path, arrays, "initial", (0, 1))
    if given.ndim == 0:
        if given != int(given) or not 0 <= given < n_states:
            raise FileError(f"{path}: initial is {given:g}; give a state from 0 to {n_states - 1}")
        return np.eye(n_states)[int(given)]
    if given.shape != (n_states,) or abs(given.sum() - 1.0) > LOOSE:
        raise FileError(
            f"{path}: initial has shape {given.shape} and sum {given.sum():g}; expected ({n_states},) and 1"
        )
    return to_distributions(given, path, lambda _: "initial", notes, "initial")
