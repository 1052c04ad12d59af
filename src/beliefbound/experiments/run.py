"""Play what is missing: blocks of runs on threads, each written as a part as soon as it is done.

A block is played by compiled code that holds no lock, so threads are enough. Every run's streams derive from its
address, so neither the number of threads, nor the blocks, nor an interruption changes a bit of the results.
"""

from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path

import numpy as np
import polars as pl

from beliefbound.agents.play import Runs
from beliefbound.experiments.cells import play_cell
from beliefbound.experiments.spec import Cell, Spec, checked
from beliefbound.experiments.store import Store
from beliefbound.threads import available_threads
from beliefbound.validation import check_count

_STEPS_PER_BLOCK = 250_000

Progress = Callable[[Cell, int], None]


def run(
    spec: Spec,
    out: Path | str,
    *,
    threads: int | None = None,
    block: int | None = None,
    repair: bool = False,
    progress: Progress | None = None,
) -> Store:
    """Play every run of `spec` that the folder `out` does not hold yet.

    Args:
      spec: the experiment.
      out: a new folder, or one that holds part of the same experiment.
      threads: default: the cores this process may use.
      block: runs per part; default: about 250 000 steps.
      repair: play the runs of corrupt parts again instead of stopping at them.
      progress: called with `(cell, runs done)` after each block.

    Returns:
      The complete `Store`. On Ctrl-C the blocks in flight are finished and kept; the same call continues.

    >>> import tempfile
    >>> spec = Spec(agents=("random",), environments=("chain",), runs=4, steps=10)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run(spec, folder).read().shape
    (4, 6)
    """
    spec = checked(spec)
    threads = available_threads() if threads is None else check_count(threads, "threads")
    block = max(1, _STEPS_PER_BLOCK // spec.steps) if block is None else check_count(block, "block")
    store = Store.open(Path(out), spec)
    store.check(repair=repair)
    report = progress or (lambda cell, runs: None)
    queue = ((cell, runs) for cell in store.spec.cells() for runs in store.missing(cell, block))
    pending: dict[Future[Runs], tuple[Cell, range]] = {}
    with ThreadPoolExecutor(threads, thread_name_prefix="runs") as pool:
        try:
            for cell, runs in queue:
                pending[pool.submit(play_cell, store.spec, cell, runs)] = (cell, runs)
                if len(pending) >= 2 * threads:
                    _collect(pending, store, report)
            while pending:
                _collect(pending, store, report)
        except KeyboardInterrupt:
            for future in [future for future in pending if future.cancel()]:
                del pending[future]
            while pending:
                _collect(pending, store, report)
            raise
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return store


def n_missing(spec: Spec, out: Path | str) -> int:
    """How many runs of `spec` the folder does not hold yet."""
    spec = checked(spec)
    store = Store(Path(out), spec)
    return sum(len(runs) for cell in spec.cells() for runs in store.missing(cell, spec.runs))


def _collect(pending: dict[Future[Runs], tuple[Cell, range]], store: Store, report: Progress) -> None:
    done, _ = wait(pending, return_when=FIRST_COMPLETED)
    for future in done:
        cell, runs = pending.pop(future)
        result = future.result()
        columns: dict[str, pl.Series] = {
            "run": pl.Series(np.arange(runs.start, runs.stop)),
            "total": pl.Series(result.total),
            "utility": pl.Series(result.utility),
        }
        if result.curve is not None:
            columns["curve"] = pl.Series(result.curve.tolist(), dtype=pl.List(pl.Float64))
        if result.visits is not None:
            columns["visits"] = pl.Series(result.visits.tolist(), dtype=pl.List(pl.Int64))
        store.write(cell, runs, pl.DataFrame(columns))
        report(cell, len(runs))
