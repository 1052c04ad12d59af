"""`spec.json`: which experiment a folder holds, and which version of the library, in which format, made it.

Runs of another version may differ, so its folders are read and reported but not continued. Older folders said nothing
of this and had no checksums: they are refused.
"""

import hashlib
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from beliefbound.base.errors import FileError
from beliefbound.base.io.atomic import write_text
from beliefbound.lab.experiments.spec import Spec

FORMAT = 2
NAME = "spec.json"


class DamagedMarkerError(FileError):
    """A `spec.json` that cannot be read, or is not as it was written."""


class Marker(NamedTuple):
    """What `spec.json` says: the spec, the version that played it, and the folder of its parts."""

    spec: Spec
    version: str
    folder: str


def write_marker(out: Path, spec: Spec) -> None:
    """Say that the folder holds this experiment, played by this version; a file that says so already stays."""
    said: dict[str, Any] = {
        "format": FORMAT,
        "beliefbound": version("beliefbound"),
        "folder": spec.digest(),
        "spec": msgspec.to_builtins(spec),
    }
    said["checksum"] = _checksum(said)
    text = msgspec.json.format(msgspec.json.encode(said), indent=2).decode() + "\n"
    path = out / NAME
    if not path.is_file() or path.read_bytes() != text.encode():
        write_text(path, text)


def read_marker(out: Path) -> Marker:
    """What a folder holds."""
    path = out / NAME
    try:
        said = msgspec.json.decode(path.read_bytes())
    except (OSError, msgspec.DecodeError, RecursionError, UnicodeDecodeError) as cause:
        raise DamagedMarkerError(f"{path} is corrupt ({cause}); {_REPAIR}") from None
    if isinstance(said, dict) and "agents" in said and "format" not in said:
        raise FileError(
            f"{out} was made by an older beliefbound, which recorded neither its version nor checksums: its runs can "
            f"be neither verified nor continued; choose another folder, or delete this one to play them again"
        )
    if not isinstance(said, dict) or said.get("checksum") != _checksum(said):
        raise DamagedMarkerError(f"{path} is corrupt (its checksum is wrong); {_REPAIR}")
    if said["format"] != FORMAT:
        raise FileError(
            f"{out} was made by beliefbound {said['beliefbound']} in format {said['format']}, this version reads "
            f"format {FORMAT}; choose another folder, or: pip install beliefbound=={said['beliefbound']}"
        )
    try:
        spec = msgspec.convert(said["spec"], Spec)
    except msgspec.ValidationError as cause:
        raise FileError(
            f"{out} was made by beliefbound {said['beliefbound']}, whose spec this version cannot read ({cause}); "
            f"choose another folder, or: pip install beliefbound=={said['beliefbound']}"
        ) from None
    return Marker(spec, said["beliefbound"], said["folder"])


def refuse_other(out: Path, held: Marker, asked: Spec) -> None:
    """Refuse to continue a folder that another version made, or that holds another experiment."""
    now = version("beliefbound")
    if held.version != now:
        raise FileError(
            f"{out} holds runs of beliefbound {held.version}; this is {now}, whose runs may differ, so they are not "
            f"mixed: choose another folder, or continue there with: pip install beliefbound=={held.version}"
        )
    before, wanted = held.spec.identity(), asked.identity()
    differ = [name for name in wanted if before[name] != wanted[name]]
    if differ:
        name = differ[0]
        raise FileError(
            f"{out} holds another experiment: {name} was {msgspec.json.encode(before[name]).decode()}, "
            f"now {msgspec.json.encode(wanted[name]).decode()}; choose another folder or restore the spec"
        )


def _checksum(said: dict[str, Any]) -> str:
    rest = {name: value for name, value in said.items() if name != "checksum"}
    return hashlib.sha256(msgspec.json.encode(rest, order="sorted")).hexdigest()


_REPAIR = "run the same experiment again with --repair to write it anew"
