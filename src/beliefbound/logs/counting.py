"""Counts of what a log holds, block by block: memory is that of the distinct transitions, not of the rows.

Rows of one key `(state, action, next state, terminated, reward)` are one row of counts. Where rewards take more than
`MOST_VALUES` values they are kept as moments per `(state, action, next state, terminated)`.

Within an episode steps follow each other: `t` rises by one, a step starts where the one before ended, and nothing
follows the end. What breaks this is counted by kind; the first row of each kind is kept.
"""

from typing import Any, NamedTuple

from beliefbound.base.errors import FileError
from beliefbound.base.tables import pl
from beliefbound.logs.columns import Columns
from beliefbound.logs.episodes import Keeper

MOST_VALUES = 256
_MOST_ROWS = 500_000  # of partial counts that wait to be merged
_MOST_EPISODES = 5_000_000  # ids remembered where episodes do not come in rising order

_CELL = ["state", "action", "next_state", "terminated"]
_SUMS = ("count", "total", "squares", "place", "place_squares")


class Fault(NamedTuple):
    """Rows that do not follow the one before them."""

    kind: str
    rows: int
    row: int  # the first of them
    column: str


FAULTS = {
    "repeated step": ("t", "the same step of the same episode as the row before"),
    "missing step": ("t", "not the step after the row before; rows of an episode stand in the order of t"),
    "step after the end": ("state", "follows a terminated or truncated step of the same episode"),
    "broken episode": ("state", "not where the step before it, of the same episode, ended"),
    "split episode": ("episode", "an episode that was left before; its rows stand together"),
}


class Counter:
    """Blocks in, counts out. With `sort`, rows wait until `finish`, which counts them sorted by episode and `t`."""

    def __init__(self, columns: Columns, *, sort: bool = False) -> None:
        self.columns = columns
        self._waiting: list[pl.DataFrame] | None = [] if sort else None
        self.values = True  # whether rewards are still kept value by value
        self.parts: list[pl.DataFrame] = []
        self.starts: list[pl.DataFrame] = []
        self.faults: dict[str, Fault] = {}
        self.n_rows = self.n_episodes = self.n_truncated = 0
        self.kept = Keeper()
        self._last: pl.DataFrame | None = None
        self._seen: set[object] = set()
        self._rising: Any = None

    def add(self, block: pl.DataFrame, first: int) -> None:
        """Count one block of a file."""
        frame = self.columns.read(block, first)
        if frame.is_empty():
            return
        self.n_rows += len(frame)
        if self._waiting is None:
            self._count(frame)
        else:
            self._waiting.append(frame)

    def finish(self) -> None:
        """Count what waited to be sorted."""
        if not self._waiting:
            return
        if not self.columns.has("t"):
            raise FileError(
                f"{self.columns.file}, row 0: there is no column 't' to sort rows by; name it: --column t=NAME"
            )
        by = ["episode", "t"] if self.columns.has("episode") else ["t"]
        if "episode" in by and len({frame.schema["episode"] for frame in self._waiting}) > 1:
            self._waiting = [frame.with_columns(pl.col("episode").cast(pl.String)) for frame in self._waiting]
        whole = pl.concat(self._waiting).sort(by, maintain_order=True)
        if by == ["t"] and whole["t"].is_duplicated().any():
            row = whole.filter(pl.col("t").is_duplicated())["row"][0]
            raise FileError(
                f"{self.columns.file}, row {row}, column 't': several rows have this step, and no column 'episode' "
                f"says whose they are; name it: --column episode=NAME"
            )
        self._waiting = None
        self._count(whole.with_columns(order=pl.int_range(1, pl.len() + 1, dtype=pl.Int64)))

    def _count(self, frame: pl.DataFrame) -> None:
        self.n_truncated += int((frame["truncated"] & ~frame["terminated"]).sum())
        self._follow(frame)
        self.parts.append(self._counted(frame))
        if sum(map(len, self.parts)) > _MOST_ROWS:
            self.parts = [self._merged()]
        if self.values and self.parts[-1]["reward"].n_unique() > MOST_VALUES:
            self._forget_values()

    def cells(self) -> pl.DataFrame:
        """Everything counted so far, in order."""
        merged = self._merged()
        if self.values and merged["reward"].n_unique() > MOST_VALUES:
            self._forget_values()
            merged = self._merged()
        return merged.sort(self._keys())

    def initial(self) -> pl.DataFrame:
        """`state, count` of the first steps of episodes."""
        return pl.concat(self.starts).group_by("state").agg(pl.col("count").sum()).sort("state")

    def _keys(self) -> list[str]:
        return [*_CELL, "reward"] if self.values else list(_CELL)

    def _counted(self, frame: pl.DataFrame) -> pl.DataFrame:
        paid, place = pl.col("reward"), pl.col("order" if "order" in frame.columns else "row").cast(pl.Float64)
        sums = [pl.len().cast(pl.Int64).alias("count"), place.sum().alias("place")]
        sums.append((place * place).sum().alias("place_squares"))
        if self.values:
            counted = frame.group_by(self._keys()).agg(sums)
            n = pl.col("count")
            return counted.with_columns(
                total=n * paid, squares=n * paid * paid, least=paid, most=paid
            ).select(*self._keys(), *_SUMS, "least", "most")  # fmt: skip
        sums += [paid.sum().alias("total"), (paid * paid).sum().alias("squares")]
        sums += [paid.min().alias("least"), paid.max().alias("most")]
        return frame.group_by(_CELL).agg(sums).select(*_CELL, *_SUMS, "least", "most")

    def _merged(self) -> pl.DataFrame:
        sums = [pl.col(name).sum() for name in _SUMS]
        return (
            pl.concat([part.select(*self._keys(), *_SUMS, "least", "most") for part in self.parts])
            .group_by(self._keys())
            .agg(*sums, pl.col("least").min(), pl.col("most").max())
        )

    def _forget_values(self) -> None:
        self.values = False
        self.parts = [self._merged()]

    def _follow(self, frame: pl.DataFrame) -> None:
        """Where episodes begin, and which rows do not follow the one before."""
        done = (pl.col("terminated") | pl.col("truncated")).alias("done")
        kept = [name for name in ("episode", "t") if self.columns.has(name)]
        now = frame.select("row", "state", "next_state", *kept, done)
        whole = now if self._last is None else pl.concat([self._last, now])
        self._last = now.tail(1)
        last = {name: pl.col(name).shift(1) for name in whole.columns}
        jump = pl.col("state") != last["next_state"]
        if "episode" not in kept:
            step = (pl.col("t") != last["t"] + 1) if "t" in kept else pl.lit(False)
            begins = last["row"].is_null() | last["done"] | jump | step
            self._begin(now.filter(whole.select(begins.fill_null(True)).to_series().tail(len(now))))
            return
        same = (pl.col("episode") == last["episode"]).fill_null(False)
        again = (same & (pl.col("t") == last["t"])) if "t" in kept else pl.lit(False)
        gap = (same & ~again & (pl.col("t") != last["t"] + 1)) if "t" in kept else pl.lit(False)
        late = same & ~again & ~gap & last["done"]
        broken = same & ~again & ~gap & ~last["done"] & jump
        kinds = ("repeated step", "missing step", "step after the end", "broken episode")
        marks = zip((again, gap, late, broken), kinds, strict=True)
        masks = (mark.fill_null(False).alias(kind) for mark, kind in marks)
        marked = whole.select("row", *masks, (~same).alias("new")).tail(len(now))
        for kind in kinds:
            self._fault(kind, marked["row"].filter(marked[kind]))
        new = marked["new"]
        begun = now.filter(new)
        self._begin(begun)
        self._split(begun)
        self.kept.add(frame, new)

    def _begin(self, begun: pl.DataFrame) -> None:
        self.n_episodes += len(begun)
        self.starts.append(begun.group_by("state").agg(pl.len().cast(pl.Int64).alias("count")))
        if len(self.starts) > 64:
            self.starts = [self.initial()]

    def _split(self, begun: pl.DataFrame) -> None:
        """Episodes that come back after another one began."""
        ids = begun["episode"]
        if ids.is_empty():
            return
        if ids.dtype.is_integer() and not self._seen:
            rising = bool((ids.diff().drop_nulls() > 0).all())
            if rising and (self._rising is None or ids[0] > self._rising):
                self._rising = ids[-1]
                return
        if self._rising is not None and not self._seen and ids.dtype.is_integer():
            back = begun.filter(pl.col("episode") <= self._rising)["row"]
            self._fault("split episode", back)
            return
        if len(self._seen) > _MOST_EPISODES:
            return
        again = []
        for row, name in zip(begun["row"], ids, strict=True):
            if name in self._seen:
                again.append(row)
            self._seen.add(name)
        self._fault("split episode", pl.Series(again, dtype=pl.Int64))

    def _fault(self, kind: str, rows: pl.Series) -> None:
        if rows.is_empty():
            return
        known = self.faults.get(kind)
        count, row = len(rows) + (known.rows if known else 0), known.row if known else int(rows[0])
        self.faults[kind] = Fault(kind, count, row, FAULTS[kind][0])
