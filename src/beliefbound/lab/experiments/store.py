"""Results as immutable parts, `out/<digest>/<cell>/<first>-<last>-<checksum>.parquet`, written aside and renamed.

The resume rule: a run is done when a part holds it; whatever is missing is played. A process killed at any moment loses
at most the blocks in flight. The checksum in a part's name covers every byte of it and where it belongs, and is
verified whenever the part is read: damage, or a part in the wrong place, is an error that names it and never a number.

One process at a time writes to a folder (`.lock`); any number may read. Where the filesystem has no locks a second
writer is not noticed and does no harm: it plays the same runs to the same bytes, and parts that overlap are read once.
"""

import hashlib
import io
import itertools
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import msgspec

from beliefbound.base.errors import FileError
from beliefbound.base.io.atomic import PREFIX, as_parquet, check_writable, clean, write_bytes
from beliefbound.base.io.lock import only_one
from beliefbound.base.tables import pl
from beliefbound.lab.experiments.marker import NAME, DamagedMarkerError, Marker, read_marker, refuse_other, write_marker
from beliefbound.lab.experiments.spec import Cell, Spec

_PART = re.compile(r"(\d{1,15})-(\d{1,15})-([0-9a-f]{16})\.parquet", re.ASCII)
_LOCK = ".lock"


class PartFile(NamedTuple):
    """A file that holds runs `first` to `last` (exclusive) of a cell."""

    first: int
    last: int
    checksum: str
    path: Path


class Store:
    """The results of one experiment in a folder."""

    def __init__(self, out: Path, spec: Spec, made_by: Marker | None = None) -> None:
        self.out = out
        self.spec = spec
        self.version = made_by.version if made_by else version("beliefbound")
        self.folder = made_by.folder if made_by else spec.digest()
        self.root = out / self.folder

    @classmethod
    @contextmanager
    def writing(cls, out: Path, spec: Spec, *, repair: bool = False) -> Iterator["Store"]:
        """The store in a new folder, or in one that holds part of the same experiment, to add runs to.

        Refuses a folder that holds something else or that another process writes to. Damage is an error that names the
        file, or is removed with `repair`, so that the runs it held are missing.
        """
        others = _entries(out)
        if others and not (out / NAME).exists() and not (repair and (out / spec.digest()).is_dir()):
            raise FileError(f"{out} holds other files and no {NAME}; choose an empty or new folder")
        check_writable(out)
        with only_one(out / _LOCK, f"writing to {out} already"):
            cls._claim(out, spec, repair=repair)
            clean(out)
            store = cls(out, spec)
            store.check(repair=repair)
            yield store

    @staticmethod
    def _claim(out: Path, spec: Spec, *, repair: bool) -> None:
        """Write the marker; it keeps the largest number of runs ever asked for."""
        runs = spec.runs
        if (out / NAME).exists():
            try:
                held = read_marker(out)
                refuse_other(out, held, spec)
                runs = max(runs, held.spec.runs)
            except DamagedMarkerError:
                if not repair or not (out / spec.digest()).is_dir():
                    raise
        write_marker(out, msgspec.structs.replace(spec, runs=runs))

    @classmethod
    def existing(cls, out: Path, *, runs: int | None = None) -> "Store":
        """The store in a folder that already has one, to read; with `runs`, only the first so many of every cell."""
        if not (out / NAME).is_file():
            raise FileError(f"{out} holds no experiment (there is no {NAME}); make one with: beliefbound run")
        marker = read_marker(out)
        spec = marker.spec if runs is None else msgspec.structs.replace(marker.spec, runs=runs)
        return cls(out, spec, marker)

    def parts(self, cell: Cell) -> list[PartFile]:
        """The parts of a cell, in order, by their names alone."""
        found = []
        for path in self._files(cell):
            match = _PART.fullmatch(path.name)
            if match and int(match[1]) < int(match[2]):
                found.append(PartFile(int(match[1]), int(match[2]), match[3], path))
        return sorted(found)

    def missing(self, cell: Cell, block: int) -> Iterator[range]:
        """Blocks of runs that no part holds yet, cut at multiples of `block`; there may be too many to list."""
        gaps, position = [], 0
        for first, last in [*((part.first, part.last) for part in self.parts(cell)), (self.spec.runs, self.spec.runs)]:
            if position < min(first, self.spec.runs):
                gaps.append((position, min(first, self.spec.runs)))
            position = max(position, last)
        return (piece for gap in gaps for piece in _cut(*gap, block))

    def write(self, cell: Cell, runs: range, frame: pl.DataFrame) -> None:
        """Add one part."""
        data = as_parquet(frame)
        checksum = self._checksum(cell, runs.start, runs.stop, data)
        write_bytes(self.root / cell.folder / f"{runs.start}-{runs.stop}-{checksum}.parquet", data)

    def check(self, *, repair: bool = False) -> list[Path]:
        """Verify every part; a corrupt one is an error that names it, or with `repair` is deleted and returned."""
        removed = []
        for cell in self.spec.cells():
            known = {part.path: part for part in self.parts(cell)}
            for path in self._files(cell):
                try:
                    if path not in known:
                        raise _corrupt(path, "its name has no checksum")
                    self._verified(cell, known[path])
                except FileError:
                    if not repair:
                        raise
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
                    removed.append(path)
        return removed

    def read(self, columns: tuple[str, ...] = ("total", "utility")) -> pl.DataFrame:
        """Every finished run up to the spec's number: environment, agent, seed, run and the columns asked for."""
        frames = []
        for cell in self.spec.cells():
            position = 0
            for part in self.parts(cell):
                if part.first >= self.spec.runs or part.last <= position:
                    continue
                frame = pl.read_parquet(io.BytesIO(self._verified(cell, part)), columns=["run", *columns])
                frames.append(
                    frame.filter(pl.col("run") >= position, pl.col("run") < self.spec.runs).select(
                        pl.lit(cell.environment).alias("environment"),
                        pl.lit(cell.agent).alias("agent"),
                        pl.lit(cell.seed).alias("seed"),
                        "run",
                        *columns,
                    )
                )
                position = part.last
        if not frames:
            raise FileError(f"{self.out} holds no finished runs yet; continue it with: beliefbound run")
        return pl.concat(frames)

    def _files(self, cell: Cell) -> list[Path]:
        folder = self.root / cell.folder
        return sorted(p for p in folder.glob("*.parquet") if not p.name.startswith(PREFIX)) if folder.is_dir() else []

    def _checksum(self, cell: Cell, first: int, last: int, data: bytes) -> str:
        address = f"{self.folder}/{cell.folder}/{first}-{last}\n"
        return hashlib.sha256(address.encode() + data).hexdigest()[:16]

    def _verified(self, cell: Cell, part: PartFile) -> bytes:
        """The bytes of a part, exactly as they were written for this place."""
        try:
            data = part.path.read_bytes()
        except OSError as cause:
            raise _corrupt(part.path, cause.strerror or str(cause)) from None
        if self._checksum(cell, part.first, part.last, data) != part.checksum:
            raise _corrupt(part.path, "its bytes do not match the checksum in its name")
        return data


def _corrupt(path: Path, reason: str) -> FileError:
    return FileError(f"{path} is corrupt ({reason}); run again with --repair to play those runs again")


def _entries(out: Path) -> list[Path]:
    """What a folder holds beside the files a writer may leave there before it has said what it writes."""
    if not out.is_dir():
        return []
    return [path for path in out.iterdir() if path.name != _LOCK and not path.name.startswith(PREFIX)]


def _cut(first: int, last: int, block: int) -> Iterator[range]:
    edges = itertools.chain([first], range((first // block + 1) * block, last, block), [last])
    return (range(i, j) for i, j in itertools.pairwise(edges))
