"""Beliefs in files: archives of arrays (`.npz`), plain numbers, nothing that is unpickled.

A `DirichletBelief` has the form of `beliefs.dirichlet_file`. A belief of any other class is saved where the class is
registered and says what it is made of:

    @belief_kind("mixture", summary="one of several beliefs, and it is not known which")
    class MixtureBelief:
        def to_entries(self) -> dict[str, array]: ...
        @classmethod
        def from_entries(cls, entries) -> "MixtureBelief": ...

The file has these arrays and a `header`, UTF-8 bytes of a JSON object: `format`, `version`, `kind`, and optional
`states`, `actions` (names). To be read again the class must be known: it is one of `beliefs.kinds`, its module is
imported, loaded by `--plugin`, or declared by an installed package as an entry point of the group
`beliefbound.beliefs`. A file alone loads nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np

from beliefbound.base.errors import BeliefboundError, BeliefError, FileError, ParameterError
from beliefbound.base.io.arrays import Array, read_arrays, write_arrays
from beliefbound.base.io.paths import as_path
from beliefbound.base.plugins import Registry, blamed
from beliefbound.base.validation import check_kind, check_names, shown
from beliefbound.beliefs.belief import Belief
from beliefbound.beliefs.capabilities import NEEDED, check_is_belief
from beliefbound.beliefs.dirichlet import DirichletBelief
from beliefbound.beliefs.dirichlet_file import FORMAT, belief_arrays, read_belief, read_header

KINDS = Registry("belief", group="beliefbound.beliefs", example="mixture", package="beliefbound.beliefs.kinds")
_VERSION = 1
_HEADER = "header"
_MEMORY = Path("these arrays")

Class = TypeVar("Class", bound=type)


def belief_kind(name: str, *, summary: str) -> Callable[[Class], Class]:
    """Register a class of beliefs for files: it has `to_entries()`, arrays by name, and `from_entries(entries)`.

    >>> from beliefbound import DirichletBelief
    >>> @belief_kind("doubtful", summary="a belief that is drawn from as if half of it had not been counted")
    ... class Doubtful:
    ...     def __init__(self, own):
    ...         self.own, self.n_states, self.n_actions = own, own.n_states, own.n_actions
    ...         self.available, self.initial, self.reward_range = own.available, own.initial, own.reward_range
    ...     def sample(self, n, rng=None):
    ...         S, A = self.n_states, self.n_actions
    ...         half = DirichletBelief(S, A, concentration=self.own.concentration / 2, rewards=self.own.rewards)
    ...         return half.sample(n, rng)
    ...     def to_entries(self):
    ...         return entries_of(self.own, prefix="own_")
    ...     @classmethod
    ...     def from_entries(cls, entries):
    ...         return cls(belief_of(entries, prefix="own_"))
    >>> belief_of(entries_of(Doubtful(DirichletBelief(2, 1)))).n_states
    2
    """
    enter: Callable[[Class], Class] = KINDS.register(name, summary=summary)
    return enter


def save_belief(
    path: Path | str, belief: Any, *, states: Sequence[str] | None = None, actions: Sequence[str] | None = None
) -> None:
    """Write a belief, for `load_belief`; names are for whoever reads the file.

    >>> import tempfile
    >>> from beliefbound import DirichletBelief
    >>> belief = DirichletBelief(2, 1).update(0, 0, 1.0, 1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_belief(f"{folder}/posterior.npz", belief)
    ...     same = load_belief(f"{folder}/posterior.npz")
    >>> bool((same.concentration == belief.concentration).all())
    True
    """
    write_arrays(as_path(path), entries_of(belief, states=states, actions=actions))


def load_belief(path: Path | str) -> Any:
    """Read what `save_belief`, or `beliefbound plan` as `posterior.npz`, wrote.

    Raises:
      FileError: the file is missing, damaged, of another version, of a kind that nobody has registered, or its arrays
        do not fit together.

    It may be the prior of an agent that goes on learning: `make_agent("mcbrl", env, belief=load_belief(path))`.

    >>> import tempfile
    >>> from beliefbound import DirichletBelief
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_belief(f"{folder}/posterior.npz", DirichletBelief(3, 2, terminal=[2]))
    ...     load_belief(f"{folder}/posterior.npz")
    DirichletBelief(3 states, 2 actions, BetaRewards)
    """
    file = as_path(path)
    return belief_of(read_arrays(file), file=file)


def entries_of(
    belief: Any, *, prefix: str = "", states: Sequence[str] | None = None, actions: Sequence[str] | None = None
) -> dict[str, Array]:
    """Everything that a belief is, arrays by name, for `belief_of`: what a file holds; or a part of another belief,
    their names after a `prefix`.

    >>> from beliefbound import DirichletBelief
    >>> sorted(entries_of(DirichletBelief(2, 1)))[:4]
    ['available', 'concentration', 'header', 'observed']
    """
    _check_prefix(prefix)
    check_is_belief(belief)
    states = check_names(states, belief.n_states, "state", BeliefError)
    actions = check_names(actions, belief.n_actions, "action", BeliefError)
    if isinstance(belief, DirichletBelief):
        found = belief_arrays(belief, states=states, actions=actions)
        return {f"{prefix}{name}": array for name, array in found.items()}
    kind = _kind(belief)
    if kind is None:
        raise BeliefError(
            f"{belief!r} cannot be saved: give its class to_entries and from_entries, and register it by "
            f"@belief_kind(name, summary=...)"
            + ("; finite beliefs are written by write_models" if hasattr(belief, "models") else "")
        )
    entries = {}
    for name, value in belief.to_entries().items():
        array = np.asarray(value)
        if not isinstance(name, str) or name == _HEADER or array.dtype.kind not in "biuf":
            raise BeliefError(f"entry {name!r} of a {kind} is {shown(value)}; give numbers, under another name")
        entries[name] = array
    header: dict[str, Any] = {"format": FORMAT, "version": _VERSION, "kind": kind}
    header |= {key: list(names) for key, names in (("states", states), ("actions", actions)) if names is not None}
    entries[_HEADER] = np.frombuffer(msgspec.json.encode(header), dtype=np.uint8)
    return {f"{prefix}{name}": array for name, array in entries.items()}


def _check_prefix(prefix: Any) -> None:
    check_kind(prefix, str, "prefix", BeliefError, fix="give a few letters")


def can_save(belief: Any) -> bool:
    """Whether `save_belief` can write it."""
    return isinstance(belief, DirichletBelief) or _kind(belief) is not None


def _kind(belief: Any) -> str | None:
    """The name that its class is registered by, where it says what it is made of."""
    if not callable(getattr(belief, "to_entries", None)):
        return None
    return next((family.name for family in KINDS.families().values() if family.build is type(belief)), None)


def belief_of(entries: Mapping[str, Array], *, prefix: str = "", file: Path = _MEMORY) -> Any:
    """The belief of entries that `entries_of` gave, with the same `prefix`; a `FileError` names the file and its fault.

    >>> from beliefbound import DirichletBelief
    >>> belief_of(entries_of(DirichletBelief(2, 1)))
    DirichletBelief(2 states, 1 actions, BetaRewards)
    """
    _check_prefix(prefix)
    check_kind(entries, Mapping, "entries", BeliefError, fix="give what entries_of gave")
    own = {name.removeprefix(prefix): array for name, array in entries.items() if name.startswith(prefix)}
    header = read_header(file, own.get(_HEADER))
    if "kind" not in header:
        return read_belief(file, own)
    kind = header["kind"]
    if header["version"] != _VERSION or not isinstance(kind, str):
        raise FileError(f"{file} has version {header['version']!r} of the kind {kind!r}; this program reads version 1")
    try:
        family = KINDS.find(kind)
    except ParameterError as fault:
        raise FileError(
            f"{file} holds a belief of the kind {kind[:60]!r}, which nobody has registered: import its module, or give "
            f"--plugin ({fault})"
        ) from None
    del own[_HEADER]
    try:
        with blamed(f"{file}: the belief {kind!r}", foreign=family.foreign):
            belief: Belief = family.build.from_entries(own)  # type: ignore[attr-defined]
    except BeliefboundError as fault:
        raise FileError(f"{file}: {fault}") from None
    missing = [name for name in NEEDED if not hasattr(belief, name)]
    if missing:
        raise FileError(f"{file}: from_entries of the kind {kind!r} gave {shown(belief)}, which has no {missing[0]}")
    return belief
