"""The checks behind every constructor. Each failure names the index, the value and the fix."""

import math
import operator
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from beliefbound.base.errors import BeliefboundError, ParameterError

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
Rng = np.random.Generator | int | None  # a source of randomness, a seed, or fresh randomness

TOLERANCE = 1e-9
MOST_THREADS = 1024


def is_sparse(x: Any) -> bool:
    """Whether something is a sparse array or matrix of SciPy, which takes a while to import: who has one, has."""
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and bool(sparse.issparse(x))


def frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A read-only view: the caller's array keeps its own flags and is never copied."""
    view = array.view()
    view.flags.writeable = False
    return view


class Frozen:
    """Data that their constructor fills, by `_set`, and nothing changes after."""

    __slots__: tuple[str, ...] = ()
    _called: str

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{self._called} is frozen; build a new one instead of setting {name!r}")

    def __setstate__(self, state: Any) -> None:
        """What copies and unpickled ones are filled from; their arrays are read-only again."""
        for part in state if isinstance(state, tuple) else (state,):
            for name, value in (part or {}).items():
                object.__setattr__(self, name, frozen(value) if isinstance(value, np.ndarray) else value)

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)


def as_rng(rng: Rng) -> np.random.Generator:
    """A generator from a generator, which is used as it is, or from a seed; `None`: fresh randomness at every call.

    >>> int(as_rng(0).integers(10)) == int(np.random.default_rng(0).integers(10))
    True
    """
    if isinstance(rng, np.random.Generator):
        return rng
    if rng is None:
        return np.random.default_rng()
    try:
        seed = operator.index(rng)
    except TypeError:
        raise ParameterError(f"rng is {rng!r}; pass None, a whole number or numpy.random.default_rng(seed)") from None
    if seed < 0:
        raise ParameterError(f"rng is {seed}; a seed is 0 or more")
    return np.random.default_rng(seed)


def check_kind(
    value: Any, kind: type | tuple[type, ...], name: str, error: type[BeliefboundError], *, fix: str
) -> None:
    """A value is of a kind; else the error says what it is instead, and what to give."""
    if not isinstance(value, kind):
        raise error(f"{name} is {shown(value)}; {fix}")


def shown(value: Any) -> str:
    """A value as an error message shows it: briefly, whatever it is."""
    try:
        text = repr(value)
    except Exception:
        text = ""
    return text if text and len(text) <= 60 and "\n" not in text else f"of type {type(value).__name__}"


def check_sequence(values: Any, name: str, error: type[BeliefboundError], *, fix: str) -> list[Any]:
    """Several things, one after the other, as a list; text counts as one thing."""
    try:
        if isinstance(values, str | bytes):
            raise TypeError
        return list(values)
    except TypeError:
        raise error(f"{name} is {shown(values)}; {fix}") from None


def as_floats(value: Any, name: str, error: type[BeliefboundError]) -> FloatArray:
    """`value` as a C-contiguous float64 array, not copied when it already is one."""
    try:
        return np.ascontiguousarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as cause:
        raise error(f"{name} is not a rectangular array of numbers: {cause}") from None


def as_array(value: Any, name: str, error: type[BeliefboundError]) -> npt.NDArray[Any]:
    """`value` as an array of whatever it holds."""
    try:
        return np.asarray(value)
    except (TypeError, ValueError, OverflowError) as cause:
        raise error(f"{name} is not a rectangular array: {cause}") from None


def as_bools(value: Any, name: str, error: type[BeliefboundError]) -> BoolArray:
    """`value` as an array of booleans; numbers count as true where they are not zero."""
    given = as_array(value, name, error)
    if given.dtype.kind not in "biuf" or (given.dtype.kind == "f" and np.isnan(given).any()):
        raise error(f"{name} has {given.dtype} entries; give booleans")
    return given.astype(np.bool_)


def place(name: str, axes: Sequence[str], index: Sequence[int]) -> str:
    """`transitions[model 3, state 7, action 1]`."""
    inside = ", ".join(f"{axis} {i}" for axis, i in zip(axes, index, strict=True))
    return f"{name}[{inside}]" if inside else name


def check_finite(array: FloatArray, name: str, axes: Sequence[str], error: type[BeliefboundError]) -> None:
    """Every entry is a finite number."""
    bad = ~np.isfinite(array)
    if bad.any():
        index = tuple(int(i) for i in np.argwhere(bad)[0])
        raise error(f"{place(name, axes, index)} is {array[index]}; every entry must be a finite number")


def check_distributions(
    array: FloatArray,
    name: str,
    axes: Sequence[str],
    error: type[BeliefboundError],
    *,
    empty: BoolArray | None = None,
    fix: str = "rescale the row",
) -> FloatArray:
    """Rows along the last axis are probability distributions; rows marked `empty` may be all zero instead.

    Returns the row sums, and needs memory for them only: a large transition array is never copied.
    """
    if array.size and not array.min() >= 0.0:  # also catches NaN
        bad = ~(array >= 0.0)
        index = tuple(int(i) for i in np.argwhere(bad)[0])
        kind = "negative" if array[index] < 0 else "not a number"
        raise error(f"{place(name, axes, index)} is {array[index]}, {kind}; probabilities are between 0 and 1")
    sums = np.asarray(array.sum(axis=-1))
    wrong = ~(np.abs(sums - 1.0) <= TOLERANCE)
    if empty is not None:
        wrong &= ~((sums == 0.0) & empty)
    if wrong.any():
        index = tuple(int(i) for i in np.argwhere(np.atleast_1d(wrong))[0]) if wrong.ndim else ()
        raise error(
            f"{place(name, axes[:-1], index)} sums to {sums[index]:.12g}, expected 1 within {TOLERANCE:g}; {fix}"
        )
    return sums


def _number(value: Any, name: str, where: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(f"{name} is {shown(value)}; give a number {where}") from None


def check_discount(discount: float, horizon: int | None) -> float:
    """A discount in [0, 1], and below 1 when there is no horizon."""
    value = _number(discount, "discount", "between 0 and 1")
    if not 0.0 <= value <= 1.0:
        raise ParameterError(f"discount is {value}; it must lie between 0 and 1")
    if value == 1.0 and horizon is None:
        raise ParameterError(
            "discount is 1 and there is no horizon, so values are infinite; pass horizon=... or a discount below 1"
        )
    return value


def check_count(value: Any, name: str, *, least: int = 1) -> int:
    """A whole number of at least `least`."""
    try:
        number = operator.index(value)
    except TypeError:
        raise ParameterError(f"{name} is {value!r}; give a whole number of at least {least}") from None
    if number < least:
        raise ParameterError(f"{name} is {number}; it must be at least {least}")
    return number


def check_threads(threads: Any) -> int | None:
    """A number of threads that a machine can have; `None`: as many as it has cores."""
    if threads is None:
        return None
    number = check_count(threads, "threads")
    if number > MOST_THREADS:
        raise ParameterError(f"threads is {number}; give at most {MOST_THREADS}")
    return number


def as_flag(value: Any, name: str) -> bool:
    """True or false."""
    if not isinstance(value, bool | np.bool_):
        raise ParameterError(f"{name} is {shown(value)}; give True or False")
    return bool(value)


def check_function(value: Any, name: str) -> None:
    """A function, or nothing."""
    if value is not None and not callable(value):
        raise ParameterError(f"{name} is {shown(value)}; give a function, or leave it out")


def check_seed(seed: Any) -> int:
    """A whole number from 0 to 2⁶³ − 1."""
    value = check_count(seed, "seed", least=0)
    if value >= 2**63:
        raise ParameterError(f"seed is {value}; it must be below 2**63")
    return value


def check_positive(value: Any, name: str) -> float:
    """A finite number above zero."""
    number = _number(value, name, "above 0")
    if not (number > 0.0 and math.isfinite(number)):
        raise ParameterError(f"{name} is {number}; it must be a finite number above 0")
    return number


def check_not_below(value: Any, name: str) -> float:
    """A finite number of at least zero."""
    number = _number(value, name, "of at least 0")
    if not (number >= 0.0 and math.isfinite(number)):
        raise ParameterError(f"{name} is {number}; give a finite number of at least 0")
    return number


def check_gap(value: Any, name: str) -> float:
    """How far apart two ends may be, as a share of the larger one: a number of at least 0."""
    number = _number(value, name, "of at least 0, a share of the value")
    if not number >= 0.0:
        raise ParameterError(f"{name} is {number}; give a share of the value, 0 or more")
    return number


def check_probability(value: Any, name: str) -> float:
    """A number strictly between 0 and 1, such as a confidence level."""
    number = _number(value, name, "between 0 and 1")
    if not 0.0 < number < 1.0:
        raise ParameterError(f"{name} is {number}; it must lie strictly between 0 and 1")
    return number


def check_ids(values: Any, limit: int, name: str, error: type[BeliefboundError]) -> IntArray:
    """Whole numbers in `[0, limit)`, as int64; names the first one that is not."""
    raw = as_array(values, name, error)
    if raw.dtype.kind == "f" and np.isfinite(raw).all() and np.array_equal(raw, np.floor(raw)):
        raw = raw.astype(np.int64)
    if raw.dtype.kind not in "iu":
        raise error(f"{name} must be whole numbers, got {raw.dtype} values")
    bad = (raw < 0) | (raw >= limit)
    if bad.any():
        index = tuple(int(i) for i in np.argwhere(bad)[0]) if raw.ndim else ()
        where = f"{name}[{', '.join(map(str, index))}]" if index else name
        raise error(f"{where} is {raw[index]}; ids run from 0 to {limit - 1}")
    return raw.astype(np.int64)


def check_initial(
    initial: Any, n_states: int, error: type[BeliefboundError], names: Sequence[str] | None = None
) -> FloatArray | None:
    """A start distribution `[s]`, from a distribution, also as `{state: probability}`, or from one start state: its id,
    or its name where there are."""
    if initial is None:
        return None
    if isinstance(initial, Mapping):
        chances = np.zeros(n_states)
        for state, chance in initial.items():
            at = int(check_ids(_state_id(state, names, error), n_states, "initial state", error))
            chances[at] += float(as_floats([chance], f"initial[{shown(state)}]", error)[0])
        initial = chances
    initial = _state_id(initial, names, error)
    if as_array(initial, "initial", error).ndim == 0:
        state = int(check_ids(initial, n_states, "initial state", error))
        start = np.zeros(n_states)
        start[state] = 1.0
        return frozen(start)
    start = as_floats(initial, "initial", error)
    if start.shape != (n_states,):
        raise error(f"initial has shape {start.shape}, expected ({n_states},), one probability per state")
    total = check_distributions(start, "initial", ("state",), error, fix="make the probabilities sum to 1")
    return frozen(start if abs(total - 1.0) <= 1e-14 else start / total)


def _state_id(state: Any, names: Sequence[str] | None, error: type[BeliefboundError]) -> Any:
    """The id of a state that is named; anything else as it is."""
    if not isinstance(state, str):
        return state
    if names is None or state not in names:
        known = "states have no names" if names is None else f"known: {', '.join(map(str, names[:10]))}"
        raise error(f"initial: there is no state {shown(state)}; {known}")
    return list(names).index(state)


def check_names(
    names: Sequence[str] | None, count: int, kind: str, error: type[BeliefboundError]
) -> tuple[str, ...] | None:
    """One distinct name per id."""
    if names is None:
        return None
    listed = check_sequence(names, f"{kind} names", error, fix="give one name each, in a list")
    result = tuple(str(name) for name in listed)
    if len(result) != count:
        raise error(f"{len(result)} {kind} names for {count} {kind}s; give one name each")
    if len(set(result)) != count:
        twice = next(name for i, name in enumerate(result) if name in result[:i])
        raise error(f"{kind} name {twice!r} is used twice; names must be distinct")
    return result
