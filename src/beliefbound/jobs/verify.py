"""A certificate, checked: the same steps again, and every file compared with what they give.

A certificate says what was bounded (the models by a digest of their contents, the task, the confidence) and how many
steps were taken (seed, effort, version). The same version on the same kind of machine finds the same, bit for bit, with
any number of threads. So the whole result is written once more, aside, and every file that belongs to it must be there
and be the same: text byte by byte, archives array by array, pictures pixel by pixel; and no other file of its kind may
stand beside it.

What no search can find again is taken from the certificate: seconds, the kind of machine, the version, where the models
lay, and whether somebody ended the search. Pages and `contents.json` repeat it: only who changes it in all of them
alike is not noticed.

Another version or machine may round otherwise, and from there on search otherwise. Then, where files differ, the
numbers of the certificate itself are compared within `TOLERANCE` of the value, and the answer is that the rest was *not
compared*, never that it is the same.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import numpy as np

from beliefbound.base.errors import BeliefboundError, FileError
from beliefbound.base.io.arrays import read_arrays
from beliefbound.base.io.result_folder import CONTENTS, digest, names_in, read_contents, write_contents
from beliefbound.bounds.record import TracePoint
from beliefbound.jobs.made import Again, machine
from beliefbound.policy.results import FORMAT, content_of

TOLERANCE = 1e-6  # of the larger end
_SEARCHED = ("bounds", "trace")  # which another machine may find others of
_TOLD = 8  # differences that are told of one file


_PLAN = "beliefbound certificate"  # the format of plans
_CERTIFIED = "certified policy"
_KINDS = {  # which job makes it again
    "bracket": "bound",
    "robust bracket": "robust",
    _CERTIFIED: "certify",
    _PLAN: "from_log.command",
}


@dataclass(frozen=True)
class Verification:
    """What came of a check.

    Attributes:
      different: what is not as it was found now; nothing else is told where there is some.
      not_compared: what could not be compared: files that are not there; on another machine or version, what differs.
      differs: version or machine, where they are not those that made it; empty where they are.
      found: what was found now, a `Bracket`, a `RobustBracket`, a `Certified` or a `LogPlan`.
      words: all that, in sentences, the weightiest first.
    """

    different: tuple[str, ...]
    not_compared: tuple[str, ...]
    differs: tuple[str, ...]
    found: Any
    words: tuple[str, ...]

    @property
    def same(self) -> bool:
        """Whether everything was compared and is the same."""
        return not self.different and not self.not_compared

    @property
    def code(self) -> int:
        """The exit code: 0 the same, 1 different, 3 not everything could be compared."""
        return 1 if self.different else 3 if self.not_compared else 0


def verify(
    certificate: Path | str,
    models: Path | str | None = None,
    *,
    policy: str | None = None,
    threads: int | None = None,
    watch: Callable[[TracePoint], object] | None = None,
) -> Verification:
    """Take the steps of a `bounds.json`, a `robust.json`, a plan's `certificate.json` or the certificate of a policy
    again and compare everything that was written.

    Args:
      models: the models, or the log; default: the path in the file, as it stands, or from where the file is.
      policy: that which was certified; default: the path in the file. A class, `agent.py:Class`, is loaded only if it
        is named here.

    Raises:
      FileError: the file is damaged or of a certificate that cannot be made again; or the models are others.
    """
    file = Path(certificate)
    content = content_of(file, (FORMAT, _PLAN))
    named = str(content["format"] if content["format"] == _PLAN else content.get("kind"))
    if named not in _KINDS or "job" not in content:
        raise FileError(
            f"{file} is no certificate that can be made again by this command; it takes what `beliefbound bound`, "
            f"`robust`, `certify` and `plan` wrote, and this is of the kind {named!r}: call the function "
            "that made it with its seed and effort"
        )
    kind = import_module(f"beliefbound.jobs.{_KINDS[named]}")
    more = {"policy": policy} if named == _CERTIFIED else {}
    if policy is not None and not more:
        raise FileError(f"{file} is not of a policy that was certified: it needs no --policy")
    try:
        again: Again = kind.again(file, content, models, threads=threads, watch=watch, **more)
    except FileError:
        raise
    except BeliefboundError as cause:
        raise FileError(f"{file} cannot be made again: {cause}") from None
    with TemporaryDirectory() as held:
        place = Path(held)
        again.write_files(place)
        checked = _Check(file, kind, place)
        checked.compare()
        if not checked.different:  # what differs already need not be drawn
            again.write_pages(place)
            if kind.JOB is not None:
                write_contents(place, kind.JOB)
            checked.compare()
            if kind.JOB is not None:
                checked.compare_contents()
        return _judged(checked, content, again)


class _Check:
    """The files of a certificate against those that were written now."""

    def __init__(self, file: Path, kind: Any, place: Path) -> None:
        self.file, self.kind, self.place = file, kind, place
        self.different: list[str] = []
        self.missing: list[str] = []
        self._seen: set[str] = set()

    def compare(self) -> None:
        """What was written and has not been compared yet."""
        for name in (name for name in names_in(self.place) if name not in self._seen):
            self._seen.add(name)
            theirs = self.file if name == self.kind.FILE else self.file.parent / name
            if not theirs.is_file():
                self.missing.append(f"{name} is not beside the certificate")
                continue
            try:
                self.different += _unlike(theirs, self.place / name)
            except (BeliefboundError, OSError, ValueError, SyntaxError, RecursionError) as cause:
                self.different.append(f"{theirs.name} cannot be read: {cause}")

    def compare_contents(self) -> None:
        """Whether the list of files is there, names these files, and their contents; and no other file is there."""
        here, names = self.file.parent, names_in(self.place)
        listed = read_contents(here)
        if not (here / CONTENTS).is_file():
            self.missing.append(f"{CONTENTS} is not beside the certificate")
        elif listed is None or listed.job != self.kind.JOB or sorted(listed.files) != names:
            self.different.append(f"{CONTENTS} is not the list of this certificate's files")
        else:
            paths = {name: self.file if name == self.kind.FILE else here / name for name in names}
            changed = [n for n, path in paths.items() if path.is_file() and digest(path) != listed.files[n]]
            self.different += [f"{name} was changed after it was written, as {CONTENTS} says" for name in changed]
        strays = sorted(name for name in self.kind.SOMETIMES - {*names} if (here / name).exists())
        self.different += [f"{name} is no part of this certificate" for name in strays]


def _unlike(theirs: Path, ours: Path) -> list[str]:
    """How two files differ, in a few sentences; none where they do not."""
    raw = theirs.read_bytes()
    if raw == ours.read_bytes():
        return []
    if ours.suffix == ".npz":
        held, made = (read_arrays(path) for path in (theirs, ours))
        names = sorted({*held} | {*made})
        wrong = [name for name in names if name not in held or name not in made or not _equal(held[name], made[name])]
        return [f"{ours.name} is another policy, or says other things: {', '.join(wrong)}"] if wrong else []
    if ours.suffix == ".png":
        from matplotlib.image import imread

        return [] if np.array_equal(imread(theirs), imread(ours)) else [f"{ours.name} is another picture"]
    if ours.suffix != ".json":
        return [f"{ours.name} is not the same text"]
    held, made = msgspec.json.decode(raw), msgspec.json.decode(ours.read_bytes())
    lines = [f"{ours.name}: {line}" for line in _entries(held, made, "")]
    more = [f"{ours.name}: and {len(lines) - _TOLD} others"] if len(lines) > _TOLD else []
    return [*lines[:_TOLD], *more] or [f"{ours.name} is not written as this program writes it"]


def _equal(x: Any, y: Any) -> bool:
    return bool(x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes())


def _entries(theirs: Any, ours: Any, where: str) -> Iterator[str]:
    """Which entries of two objects differ."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for key in ours.keys() | theirs.keys():
            inside = f"{where}.{key}" if where else str(key)
            if key not in theirs:
                yield f"{inside} is missing"
            elif key not in ours:
                yield f"{inside} does not belong there"
            else:
                yield from _entries(theirs[key], ours[key], inside)
    elif isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        for k, (x, y) in enumerate(zip(theirs, ours, strict=True)):
            yield from _entries(x, y, f"{where}[{k}]")
    elif type(theirs) is not type(ours) or theirs != ours:
        yield f"{where} is {_short(theirs)} in the file and {_short(ours)} now"


def _short(x: Any) -> str:
    text = repr(x)
    return text if len(text) <= 80 else f"{text[:77]}…"


def _near(theirs: Any, ours: Any, scale: float) -> bool:
    """Whether numbers agree within the tolerance, wherever they stand; all else is the same."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        return theirs.keys() == ours.keys() and all(_near(theirs[key], ours[key], scale) for key in ours)
    if isinstance(theirs, list) and isinstance(ours, list):
        return len(theirs) == len(ours) and all(_near(x, y, scale) for x, y in zip(theirs, ours, strict=True))
    if isinstance(ours, float) and isinstance(theirs, int | float):
        return bool(abs(theirs - ours) <= TOLERANCE * max(scale, abs(ours)))
    return bool(theirs == ours)


def _judged(checked: _Check, content: dict[str, Any], again: Again) -> Verification:
    """What all that means, in words."""
    found = again.found
    here = (("version", version("beliefbound"), again.library), ("machine", machine(), again.machine))
    differs = tuple(f"{what} {ours} instead of {theirs}" for what, ours, theirs in here if theirs != ours)
    ends = f"[{found.lower.value!r}, {found.upper.value!r}]"
    words = [f"found again ({again.where}): {ends}", *(f"not the same {difference}" for difference in differs)]
    different, missing = tuple(checked.different), tuple(checked.missing)
    if different and differs:
        ours = msgspec.json.decode((checked.place / (checked.kind.FILE or checked.file.name)).read_bytes())
        scale = max(abs(found.lower.value), abs(found.upper.value))
        written, now = ({key: held for key, held in one.items() if key not in _SEARCHED} for one in (content, ours))
        if _near(written, now, scale):
            first = f"not compared: {'; '.join(differs)}, and there these files differ"
            said = [first, *different, *missing, *words]
            said.append(f"the numbers of the certificate itself are equal within {TOLERANCE:g} of the value")
            return Verification((), (*different, *missing), differs, found, tuple(said))
    if different:
        asked = f"within {TOLERANCE:g} of the value" if differs else "bit for bit"
        words = [f"different: not the same {asked}", *different, *words]
        return Verification(different, missing, differs, found, (*words, *_overlap(again)))
    if missing:
        said = ["not compared: " + "; ".join(missing), *words, "all that is there is identical, bit for bit"]
        return Verification((), missing, differs, found, tuple(said))
    many = len(names_in(checked.place)) + (checked.kind.JOB is not None)  # the list of files too
    words.append("identical, bit for bit" if many == 1 else f"identical: all {many} files, bit for bit")
    return Verification((), (), differs, found, tuple(words))


def _overlap(again: Again) -> list[str]:
    """Whether both brackets can be true, where they are not the same."""
    (low, high), found = again.written, again.found
    if (low, high) == (found.lower.value, found.upper.value):
        return []
    overlap = low <= found.upper.value and found.lower.value <= high
    verdict = "the two brackets overlap" if overlap else "the two brackets contradict each other"
    return [f"the file says [{low!r}, {high!r}]: {verdict}"]
