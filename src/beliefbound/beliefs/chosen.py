"""Weights and starts that somebody chooses for models, in place of those of their files.

Weights are relative: they are divided by their sum. Start probabilities sum to one. Both are `(ids, values)`, as the
tables of a model folder give them (`base.io.model_folder`).
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from beliefbound.base.errors import ParameterError
from beliefbound.base.grammar import nearest
from beliefbound.base.io.model_folder import FolderRows, read_pairs
from beliefbound.base.io.names import Names
from beliefbound.base.validation import FloatArray, IntArray, as_floats, check_ids, shown
from beliefbound.policy.naming import printable

Pairs = tuple[IntArray, FloatArray]


class _Kind(NamedTuple):
    option: str
    what: str
    key: str
    value: str


_WEIGHTS = _Kind("weights", "model", "idoutcome", "weight")
_INITIAL = _Kind("initial", "state", "idstate", "probability")


def chosen_weights(given: Any, names: tuple[str, ...] | None, n_models: int) -> Pairs:
    """Weights of `n_models` models that are called so: one number each, a mapping from names to numbers, the same as
    text (`0.5,0.3,0.2` or `wet=2,dry=1`), or the path of a table like `weights.csv`.

    >>> chosen_weights("wet=3,dry=1", ("dry", "wet"), 2)[1].tolist()
    [0.75, 0.25]
    """
    ids, values = _pairs(given, names, _WEIGHTS)
    if len(ids) != n_models:
        lacks = [str(m) if names is None else names[m] for m in range(n_models) if m not in ids]
        missing = f", none for {printable(lacks[0])}" if lacks else ""
        fix = "give each model one, 0 where it does not count"
        raise ParameterError(f"weights has {len(ids)} numbers for {n_models} models{missing}; {fix}")
    total = float(values.sum())
    if not ((values >= 0.0).all() and 0.0 < total < np.inf):
        raise ParameterError(f"weights is {shown(values.tolist())}; give numbers of at least 0 that are not all 0")
    return ids, values / total


def chosen_initial(given: Any, names: tuple[str, ...] | None, n_states: int) -> Pairs:
    """Where it starts: the name or number of a state, one probability per state, a mapping from names to
    probabilities, the same as text (`low=0.5,high=0.5`), or the path of a table like `initial.csv`.

    >>> chosen_initial("high", ("low", "high"), 2)
    (array([1]), array([1.]))
    """
    if isinstance(given, str) and names is not None and given in names:
        given = names.index(given)
    if isinstance(given, str) and given.isdecimal():
        given = int(given)
    if np.ndim(given) == 0 and not isinstance(given, str | Path | Mapping):
        state = int(check_ids(given, n_states, "initial state", ParameterError))
        return np.array([state]), np.ones(1)
    ids, values = _pairs(given, names, _INITIAL)
    if not (values >= 0.0).all():
        raise ParameterError(f"initial is {shown(values.tolist())}; probabilities are not negative")
    if (ids >= n_states).any():
        raise ParameterError(f"initial: there is no state {ids.max()}; there are {n_states}, numbered from 0")
    return ids, values


def as_chosen(raw: FolderRows, weights: Any, initial: Any) -> FolderRows:
    """The rows with weights and a start that somebody chose, where they did."""
    if weights is not None:
        n_models = 1 + int(raw.training.model.max())
        raw = replace(raw, weights=chosen_weights(weights, raw.models, n_models))
    if initial is not None:
        reached = max(int(x.max()) for x in (raw.training.source, raw.training.target, raw.initial[0]))
        n_states = max(1 + reached, len(raw.states or ()))
        raw = replace(raw, initial=chosen_initial(initial, raw.states, n_states))
    return raw


def _pairs(given: Any, names: tuple[str, ...] | None, kind: _Kind) -> Pairs:
    if isinstance(given, Path) or (isinstance(given, str) and _is_file(given)):
        return read_pairs(Path(given), kind.key, kind.value, Names(names, kind.what))
    if isinstance(given, str):
        parts = [part.strip() for part in given.split(",")]
        named = "=" in given
        given = dict(_split(part, kind) for part in parts) if named else [_number(part, kind, names) for part in parts]
    if isinstance(given, Mapping) and given:
        ids = [_id(key, names, kind) for key in given]
        if len(set(ids)) < len(ids):
            raise ParameterError(f"{kind.option} names a {kind.what} twice; give each one number")
        return np.array(ids, dtype=np.int64), as_floats(list(given.values()), kind.option, ParameterError)
    values = as_floats(given, kind.option, ParameterError)
    if values.ndim != 1 or not values.size:
        raise ParameterError(f"{kind.option} has shape {values.shape}; give one number per {kind.what}")
    return np.arange(len(values)), values


def _is_file(text: str) -> bool:
    return text.lower().endswith(".csv") or (len(text) < 1000 and "\0" not in text and Path(text).is_file())


def _split(part: str, kind: _Kind) -> tuple[str, float]:
    name, equals, number = part.rpartition("=")
    if not equals:
        raise ParameterError(f"{kind.option} has {shown(part)} without a number; give NAME=NUMBER, by commas")
    return name.strip(), _number(number, kind, None)


def _number(text: str, kind: _Kind, names: tuple[str, ...] | None) -> float:
    try:
        return float(text)
    except ValueError:
        hint = nearest(text, names or ())
        raise ParameterError(
            f"{kind.option} is {shown(text)}, no number, no file and no {kind.what} that is known; {hint}give numbers "
            f"by commas, NAME=NUMBER by commas, or a CSV file with {kind.key},{kind.value}"
        ) from None


def _id(key: Any, names: tuple[str, ...] | None, kind: _Kind) -> int:
    if names is not None and key in names:
        return names.index(key)
    if str(key).isdecimal() and int(key) < (2**31 if names is None else len(names)):
        return int(key)
    hint = nearest(str(key), names or ())
    raise ParameterError(f"{kind.option}: there is no {kind.what} {shown(key)}; {hint}".rstrip("; "))
