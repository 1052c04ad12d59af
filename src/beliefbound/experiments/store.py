"""Results as immutable parts: `out/<digest>/<cell>/<first>-<last>.parquet`, written aside and renamed.

The resume rule: a run is done when a part holds it; whatever is missing is played. A process killed at any moment loses
at most the blocks in flight. `out/spec.json` says which experiment a folder holds; another one is refused.
"""

import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import polars as pl

from beliefbound.errors import FileError
from beliefbound.experiments.spec import Cell, Spec
from beliefbound.io.atomic import clean, write_aside, write_text

_PART = re.compile(r"(\d+)-(\d+)\.parquet")


class Store:
    """The results of one experiment in a folder.

    Opening a folder that holds another experiment is an error that names what differs.
    """

    def __init__(self, out: Path, spec: Spec) -> None:
        self.out = out
        self.spec = spec
        self.root = out / spec.digest()

    @classmethod
    def open(cls, out: Path, spec: Spec) -> "Store":
        """Create the folder or continue in it."""
        marker = out / "spec.json"
        if out.exists() and not out.is_dir():
            raise FileError(f"{out} is a file; give a folder for the results")
        if marker.exists():
            held = read_marker(marker)
            _refuse_other(out, held, spec)
            spec = msgspec.structs.replace(spec, runs=max(spec.runs, held.runs))
        elif out.is_dir() and any(out.iterdir()):
            raise FileError(f"{out} holds other files and no spec.json; choose an empty or new folder")
        write_text(marker, msgspec.json.format(msgspec.json.encode(spec), indent=2).decode() + "\n")
        store = cls(out, spec)
        clean(out)
        return store

    @classmethod
    def existing(cls, out: Path) -> "Store":
        """The store in a folder that already has one."""
        marker = out / "spec.json"
        if not marker.is_file():
            raise FileError(f"{out} holds no experiment (there is no spec.json); make one with: beliefbound run")
        return cls(out, read_marker(marker))

    def parts(self, cell: Cell) -> list[tuple[int, int, Path]]:
        """`(first, last, path)` of each part of a cell, in order; `last` is exclusive."""
        folder = self.root / cell.folder
        found = []
        for path in folder.glob("*.parquet") if folder.is_dir() else ():
            match = _PART.fullmatch(path.name)
            if match:
                found.append((int(match[1]), int(match[2]), path))
        return sorted(found)

    def missing(self, cell: Cell, block: int) -> list[range]:
        """Blocks of runs that no part holds yet, cut at multiples of `block`."""
        done = [(first, last) for first, last, _ in self.parts(cell)]
        gaps, position = [], 0
        for first, last in [*done, (self.spec.runs, self.spec.runs)]:
            if position < first:
                gaps.append((position, min(first, self.spec.runs)))
            position = max(position, last)
        return [piece for gap in gaps for piece in _cut(*gap, block)]

    def write(self, cell: Cell, runs: range, frame: pl.DataFrame) -> None:
        """Add one part."""
        path = self.root / cell.folder / f"{runs.start}-{runs.stop}.parquet"
        write_aside(path, frame.write_parquet)

    def check(self, *, repair: bool = False) -> list[Path]:
        """Read every part; a corrupt one is an error that names it, or with `repair` is deleted and returned."""
        removed = []
        for cell in self.spec.cells():
            for first, last, path in self.parts(cell):
                try:
                    runs = pl.read_parquet(path, columns=["run"])["run"]
                    if runs.to_list() != list(range(first, last)):
                        raise FileError(f"holds other runs than its name {path.name} says")
                except (pl.exceptions.PolarsError, OSError, FileError) as cause:
                    if not repair:
                        reason = str(cause).splitlines()[0]
                        raise FileError(
                            f"{path} is corrupt ({reason}); run again with --repair to play those runs again"
                        ) from None
                    path.unlink()
                    removed.append(path)
        return removed

    def read(self, columns: tuple[str, ...] = ("total", "utility")) -> pl.DataFrame:
        """Every finished run up to the spec's number: environment, agent, seed, run and the columns asked for."""
        frames = []
        for cell in self.spec.cells():
            paths = [path for _, _, path in self.parts(cell)]
            if not paths:
                continue
            frame = pl.concat([pl.read_parquet(path, columns=["run", *columns]) for path in paths])
            frame = frame.filter(pl.col("run") < self.spec.runs).sort("run")
            frames.append(
                frame.select(
                    pl.lit(cell.environment).alias("environment"),
                    pl.lit(cell.agent).alias("agent"),
                    pl.lit(cell.seed).alias("seed"),
                    "run",
                    *columns,
                )
            )
        if not frames:
            raise FileError(f"{self.out} holds no finished runs yet; continue it with: beliefbound run")
        return pl.concat(frames)


def read_marker(marker: Path) -> Spec:
    """The spec a folder holds."""
    try:
        return msgspec.json.decode(marker.read_bytes(), type=Spec)
    except (OSError, msgspec.DecodeError) as cause:
        raise FileError(f"{marker} is not a spec ({cause}); choose another folder") from None


def _refuse_other(out: Path, held: Spec, asked: Spec) -> None:
    before, now = held.identity(), asked.identity()
    differ = [name for name in now if before[name] != now[name]]
    if differ:
        name = differ[0]
        raise FileError(
            f"{out} holds another experiment: {name} was {msgspec.json.encode(before[name]).decode()}, "
            f"now {msgspec.json.encode(now[name]).decode()}; choose another folder or restore the spec"
        )


def _cut(first: int, last: int, block: int) -> Iterator[range]:
    edges = [first, *range((first // block + 1) * block, last, block), last]
    return (range(i, j) for i, j in itertools.pairwise(edges))
