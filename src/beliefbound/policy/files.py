"""Policies as files. Nothing in them is ever executed: numbers and words only.

*Table policies* are one JSON object:

    format          "beliefbound policy"
    version         1
    kind            "stationary" or "memoryless"
    n_states        number of states
    n_actions       number of actions, or null where the policy does not know
    horizon         number of decisions of a memoryless policy; null for a stationary one
    actions         one action per state, [state] or [stage][state]; or
    probabilities   the chance of each action, [state][action] or [stage][state][action]
    state_names     optional: one name per state
    action_names    optional: one name per action
    note            optional: what whoever reads the file should know, in words

*Policies that learn* are one NumPy `.npz` archive of plain arrays. Its entry `header` holds, as UTF-8 bytes, a JSON
object with the same `format` and `version`, a `kind` of its own and, where they are known, `state_names`,
`action_names` and a `note`, for whoever reads the file; the module of each kind documents the arrays
(`bounds.finite.adaptive_file`, `bounds.finite.alpha_policy`, `bounds.finite.mixed`, `bounds.dirichlet.policy_file`).
Arrays of objects are refused unread.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import numpy as np

from beliefbound.base.errors import FileError, PolicyError
from beliefbound.base.io.arrays import read_arrays, write_arrays
from beliefbound.base.io.atomic import write_text
from beliefbound.base.io.paths import as_path
from beliefbound.base.limits import HEADER_BYTES
from beliefbound.base.validation import FloatArray, IntArray, check_names

FORMAT, VERSION = "beliefbound policy", 1


def write_table(
    path: Path,
    kind: str,
    actions: IntArray | None,
    probabilities: FloatArray | None,
    *,
    horizon: int | None,
    state_names: Sequence[str] | None,
    action_names: Sequence[str] | None,
    note: str | None = None,
) -> None:
    """Write a table policy, whose choices are `actions` or `probabilities`."""
    chosen = actions if probabilities is None else probabilities
    assert chosen is not None
    n_states = chosen.shape[0 if horizon is None else 1]
    n_actions = None if probabilities is None else probabilities.shape[-1]
    if action_names is not None and actions is not None:
        n_actions = max(int(actions.max()) + 1, len(action_names))  # whoever can name them knows how many there are
    content: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "kind": kind,
        "n_states": n_states,
        "n_actions": n_actions,
        "horizon": horizon,
        "actions" if probabilities is None else "probabilities": chosen.tolist(),
    }
    for key, names, count in (("state", state_names, n_states), ("action", action_names, n_actions)):
        if names is not None:
            content[f"{key}_names"] = check_names(names, count or 0, key, PolicyError)
    if note is not None:
        content["note"] = str(note)
    write_text(path, msgspec.json.encode(content).decode() + "\n")


def check_table(content: Mapping[str, Any], kinds: Sequence[str]) -> dict[str, Any]:
    """The choices of a table policy's file, as the keyword argument of its class."""
    allowed = {"format", "version", "kind", "n_states", "n_actions", "horizon"}
    allowed |= {"actions", "probabilities", "state_names", "action_names", "note"}
    unknown = sorted(set(content) - allowed)
    if unknown:
        raise PolicyError(f"there is an unknown entry {unknown[0]!r}; known are {', '.join(sorted(allowed))}")
    if content["kind"] not in kinds:
        raise PolicyError(f"kind is {content['kind']!r}; known are {', '.join(kinds)}")
    given = {key: content[key] for key in ("actions", "probabilities") if key in content}
    if len(given) != 1:
        raise PolicyError("give either actions or probabilities")
    for key in ("n_states", "n_actions", "horizon"):
        if key not in content:
            raise PolicyError(f"the entry {key!r} is missing")
    return given


def check_sizes(
    content: Mapping[str, Any], n_states: int, n_actions: int | None, horizon: int | None, used: int
) -> None:
    """The sizes a file states are those of the policy in it, of which `used` actions are used."""
    for key, found in (("n_states", n_states), ("horizon", horizon)):
        if type(content[key]) is not type(found) or content[key] != found:
            raise PolicyError(f"{key} is {content[key]!r}, but the choices have {found!r}")
    stated = content["n_actions"]
    if stated is not None and (type(stated) is not int or stated < used or n_actions not in (None, stated)):
        raise PolicyError(f"n_actions is {stated!r}, but the choices have {used if n_actions is None else n_actions}")
    _names(content, n_states, stated)


def _names(content: Mapping[str, Any], n_states: int, n_actions: int | None) -> tuple[tuple[str, ...] | None, ...]:
    """Names of states and of actions in a header, where there are any: one each."""
    found = []
    for key, count in (("state", n_states), ("action", n_actions)):
        names = content.get(f"{key}_names")
        if names is not None and not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
            raise PolicyError(f"{key}_names is not a list of names")
        found.append(check_names(names, len(names or ()) if count is None else count, key, PolicyError))
    return tuple(found)


def read_names(path: Path, n_states: int, n_actions: int | None) -> tuple[tuple[str, ...] | None, ...]:
    """Names of states and of actions in the file of a policy that has so many; `None` where it names none."""
    header = read_arrays(path)["header"].tobytes() if path.read_bytes()[:1] != b"{" else path.read_bytes()
    try:
        return _names(_checked(path, header), n_states, n_actions)
    except PolicyError as cause:
        raise FileError(f"{path} is damaged: {cause}") from None


def read_json(path: Path) -> dict[str, Any]:
    """The object of a policy file in JSON, its header checked."""
    try:
        raw = path.read_bytes()
    except OSError as cause:
        raise FileError(f"cannot read {path}: {cause.strerror or cause}") from None
    return _checked(path, raw)


def _checked(path: Path, raw: bytes) -> dict[str, Any]:
    """A JSON object that says it is a policy of a version that this program reads."""
    try:
        content = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as cause:
        raise FileError(f"{path} is not a policy file: {cause}") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise FileError(f"{path} is not a policy file: its format is not {FORMAT!r}")
    if type(content.get("version")) is not int or content["version"] != VERSION:
        raise FileError(f"{path} has version {content.get('version')!r}; this program reads version {VERSION}")
    if not isinstance(content.get("kind"), str):
        raise FileError(f"{path} does not say which kind of policy it holds")
    return dict(content)


class ArchivedPolicy:
    """A policy whose file is an archive: `_arrays` says what is in it, and `_archive` which kind it is."""

    _archive: ClassVar[str]

    def _arrays(self) -> Mapping[str, Any]:
        raise NotImplementedError

    def save(
        self,
        path: Path | str,
        *,
        state_names: Sequence[str] | None = None,
        action_names: Sequence[str] | None = None,
        note: str | None = None,
    ) -> None:
        """Write the policy as an archive of arrays, in the form that the module of its kind documents; names and the
        note are for whoever reads the file. Names that would not fit into the header are left out."""
        content: dict[str, Any] = {"format": FORMAT, "version": VERSION, "kind": self._archive}
        for key, value in (("note", note), ("action_names", action_names), ("state_names", state_names)):
            if value is not None and len(msgspec.json.encode({**content, key: value})) <= HEADER_BYTES:
                content[key] = value
        header = msgspec.json.encode(content)
        write_arrays(as_path(path), {"header": np.frombuffer(header, dtype=np.uint8), **self._arrays()})


def read_archive(path: Path) -> tuple[str, dict[str, np.ndarray[Any, Any]]]:
    """`(kind, arrays)` of a policy's archive, its header checked."""
    arrays = read_arrays(path)
    header = arrays.pop("header", None)
    if header is None or header.dtype != np.uint8 or header.ndim != 1 or header.size > HEADER_BYTES:
        raise FileError(f"{path} is not a policy file: it has no header")
    return str(_checked(path, header.tobytes())["kind"]), arrays
