"""Parquet: slices of rows."""

from collections.abc import Iterator
from pathlib import Path

from beliefbound.base.errors import FileError
from beliefbound.base.tables import pl
from beliefbound.logs.log_formats import BLOCK_ROWS, log_format


@log_format("parquet", summary="Parquet", marks=(b"PAR1",), endings=(".parquet",))
def parquet(file: Path) -> Iterator[tuple[int, pl.DataFrame]]:
    """Its rows, a slice at a time."""
    try:
        lazy = pl.scan_parquet(file)
        count = int(lazy.select(pl.len()).collect().item())
        for first in range(0, count, BLOCK_ROWS):
            yield first + 1, lazy.slice(first, BLOCK_ROWS).collect()
    except (pl.exceptions.PolarsError, OSError) as cause:
        raise FileError(f"{file} is damaged, or no Parquet file: {str(cause).splitlines()[0]}") from None
