"""What results have in common: they tell themselves in words, as data, as a file, and as a table in a notebook.

A file of a result is one JSON object, never anything that is executed:

    format    "beliefbound result"
    version   of the entries of its kind: 1, unless they have changed since
    kind      which class it is: "bound", "regret", "bracket", "plan", "best memoryless", "runs" or "information"
    policy    the name of a file beside it with the policy (`policy.files`); null where there is none
    …         what `to_dict()` of that class gives
    job       where a command wrote it (`beliefbound bound`, `robust`): what that has to say besides, an object

Numbers are written so that they are read back bit for bit; one that is not finite is refused.
"""

import html
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Self

import msgspec
import numpy as np

from beliefbound.base.errors import BeliefboundError, FileError, ParameterError
from beliefbound.base.io.atomic import write_text
from beliefbound.base.io.paths import as_path
from beliefbound.policy import Policy, TablePolicy
from beliefbound.policy.naming import Names, printable
from beliefbound.policy.tables import read_table

FORMAT = "beliefbound result"
_HEADER = ("format", "version", "kind", "policy", "job")


def html_table(caption: str, rows: Iterable[tuple[str, str]]) -> str:
    """Names and texts as a notebook shows them, everything escaped."""
    cells = "".join(
        f'<tr><th style="text-align:left">{html.escape(name)}</th>'
        f'<td style="text-align:left">{html.escape(text)}</td></tr>'
        for name, text in rows
    )
    return f"<table><caption>{html.escape(caption)}</caption><tbody>{cells}</tbody></table>"


class Entries(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The entries of one kind of result: the types that its file must have."""


class Result:
    """Mixin: a class gives `_kind`, `_entries`, `to_dict`, `_from_entries` and `_rows`."""

    _kind: ClassVar[str]
    _entries: ClassVar[type[Entries]]
    _version: ClassVar[int] = 1  # of the entries in a file: one more whenever they change

    def to_dict(self) -> dict[str, Any]:
        """The result as numbers, words and lists, ready for JSON; its policy, an object of its own, is left out."""
        raise NotImplementedError

    def _rows(self) -> list[tuple[str, str]]:
        """Names and formatted values: what a table shows."""
        raise NotImplementedError

    @classmethod
    def _from_entries(cls, entries: Any, policy: Policy | None) -> Self:
        raise NotImplementedError

    def summary(self) -> str:
        """What was found, in a few lines."""
        rows = [(printable(name), printable(text)) for name, text in self._rows()]
        width = max(len(name) for name, _ in rows)
        return "\n".join([printable(repr(self)), *(f"  {name:<{width}}  {text}" for name, text in rows)])

    def _repr_html_(self) -> str:
        return html_table(repr(self), self._rows())

    def save(self, path: Path | str) -> None:
        """Write the result as JSON, for `load`; its policy, if it has one, into a file beside it."""
        file = as_path(path)
        policy: Policy | None = getattr(self, "policy", None)
        name = None if policy is None else policy_name(file, policy)
        content = self.as_file(name)
        if policy is not None and name is not None:
            getattr(self, "names", Names()).save(policy, file.parent / name)
        write_text(file, json.dumps(content, ensure_ascii=False) + "\n")

    def as_file(self, policy: str | None, job: dict[str, Any] | None = None) -> dict[str, Any]:
        """What a file of the result holds whose policy is in the file `policy` beside it."""
        content = {"format": FORMAT, "version": self._version, "kind": self._kind, "policy": policy, **self.to_dict()}
        if job is not None:
            content["job"] = job
        try:
            json.dumps(content, allow_nan=False)
        except ValueError:
            raise ParameterError(f"this {self._kind} holds numbers that are not finite; it cannot be saved") from None
        return content

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Read what `save` wrote.

        Raises:
          FileError: the file, or that of its policy, is missing, damaged, of another kind or another version.
        """
        file = as_path(path)
        entries, policy = cls._read(file)
        with damaged(file):
            return cls._from_entries(entries, policy)

    @classmethod
    def _read(cls, file: Path) -> tuple[Any, Policy | None]:
        """The entries of a file, their types checked, and its policy."""
        content = content_of(file)
        entries, name = cls.entries_of(file, content), content.get("policy")
        if name is None:
            return entries, None
        if not isinstance(name, str) or not name or Path(name).name != name:
            raise FileError(f"{file} is damaged: its policy is {name!r}, which is no name of a file beside it")
        return entries, cls._read_policy(file.parent / name)

    @classmethod
    def entries_of(cls, file: Path, content: dict[str, Any]) -> Any:
        """The entries of a file's content, their types checked."""
        entries = {key: held for key, held in content.items() if key not in _HEADER}
        version, kind = content.get("version"), content.get("kind")
        if kind != cls._kind:
            raise FileError(f"{file} is of the kind {kind!r}, not {cls._kind!r}; load it with the class that saved it")
        if type(version) is not int or version != cls._version:
            raise FileError(
                f"{file} has version {version!r} of kind {kind!r}; this program reads version {cls._version}: make it "
                f"again, or read it with the release of beliefbound that wrote it"
            )
        try:
            return msgspec.convert(entries, cls._entries)
        except (msgspec.ValidationError, RecursionError) as cause:
            raise FileError(f"{file} is damaged: {cause}") from None

    @staticmethod
    def _read_policy(file: Path) -> Policy:
        return read_table(file)


def content_of(file: Path, formats: tuple[str, ...] = (FORMAT,)) -> dict[str, Any]:
    """What the file of a result holds, of whichever kind it is."""
    try:
        content = msgspec.json.decode(file.read_bytes())
    except OSError as cause:
        raise FileError(f"cannot read {file}: {cause.strerror or cause}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as cause:
        raise FileError(f"{file} is not a saved result: {cause}") from None
    if not isinstance(content, dict) or content.get("format") not in formats:
        raise FileError(f"{file} is not a saved result: its format is not {FORMAT!r}")
    return content


@contextmanager
def damaged(file: Path) -> Iterator[None]:
    """Where the entries of a file do not fit together, the error names the file."""
    try:
        yield
    except FileError:
        raise
    except BeliefboundError as cause:
        raise FileError(f"{file} is damaged: {cause}") from None


def policy_name(file: Path, policy: Policy) -> str:
    """The name of a policy's file beside that of a result."""
    return f"{file.stem}.policy.{'json' if isinstance(policy, TablePolicy) else 'npz'}"


def array_of(values: Any, shape: tuple[int | None, ...], name: str, dtype: Any = np.float64) -> Any:
    """Nested lists of a file as a read-only array of a shape, `None` being any length."""
    try:
        array = np.array(values, dtype=dtype)
    except ValueError:
        raise ParameterError(f"{name} is not rectangular") from None
    if array.size == 0 and 0 in (expected := tuple(n or 0 for n in shape)):
        array = array.reshape(expected)
    if array.ndim != len(shape) or any(n is not None and n != m for n, m in zip(shape, array.shape, strict=True)):
        raise ParameterError(f"{name} has shape {array.shape}, expected {shape}")
    array.flags.writeable = False
    return array


def axis(ax: Any, **size: Any) -> Any:
    """The matplotlib axis to draw on: the given one, or a new figure's."""
    if ax is None:
        import matplotlib.pyplot as plt

        _, ax = plt.subplots(layout="constrained", **size)
    return ax


def literal(name: str, longest: int = 24) -> str:
    """A name as it is written in a picture: no formula whatever signs it holds, and cut where it is long."""
    cut = name if len(name) <= longest else name[: longest - 1] + "…"
    return printable(cut).replace("$", r"\$")
