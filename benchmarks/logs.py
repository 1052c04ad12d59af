"""Ten million rows of a log counted, beside polars' own group-by on the same file: `python -m benchmarks logs`.

Aims: under 10 s on two cores, and under 500 MB of memory, measured in a process of its own. What ours does more: every
cell is checked, every row follows the one before it, episodes are found, and memory does not grow with the file.
`LOG_ROWS=100000000` for more rows.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.timing import race, show

ROWS = int(os.environ.get("LOG_ROWS", "10000000"))
_BLOCK = 1_000_000
_KEYS = ("state", "action", "next_state", "reward", "terminated")


def write(file: Path, rows: int) -> None:
    """A log of episodes of fifty steps, twenty states, four actions, three rewards."""
    rng = np.random.default_rng(0)
    with file.open("wb") as out:
        for first in range(0, rows, _BLOCK):
            k = np.arange(first, min(rows, first + _BLOCK))
            state = rng.integers(0, 20, len(k) + 1)
            frame = pl.DataFrame(
                {
                    "episode": k // 50,
                    "t": k % 50,
                    "state": state[:-1],
                    "action": rng.integers(0, 4, len(k)),
                    "reward": 0.5 * rng.integers(0, 3, len(k)),
                    "next_state": state[1:],
                    "terminated": np.zeros(len(k), dtype=np.bool_),
                    "truncated": k % 50 == 49,
                }
            )
            frame.write_csv(out, include_header=first == 0)


def ours(file: Path) -> None:
    from beliefbound.logs import read_log

    read_log(file)


def theirs(file: Path) -> None:
    pl.scan_csv(file).group_by(_KEYS).agg(pl.len()).collect(engine="streaming")


def megabytes(file: Path) -> tuple[float, float]:
    """Peak memory of reading in a process of its own, and its seconds, libraries loaded."""
    code = (
        "import resource, sys, time; from beliefbound.logs import read_log; start = time.perf_counter(); "
        "read_log(sys.argv[1]); print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter() - start)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(file)], capture_output=True, text=True, check=True)
    peak, seconds = map(float, done.stdout.split())
    return peak / 1024, seconds


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "log.csv"
        write(file, ROWS)
        print(f"{ROWS:,} rows, {file.stat().st_size / 1e6:.0f} MB")
        peak, seconds = megabytes(file)
        print(f"read and counted in {seconds:.1f} s, at most {peak:.0f} MB   [targets: 10 s, 500 MB]")
        times = race({"read_log": lambda: ours(file), "polars group-by": lambda: theirs(file)}, repeats=3)
        show("the same file", times, "read_log")


if __name__ == "__main__":
    main()
