"""Play what is missing: blocks of runs on an executor, each written as a part as soon as it is done.

A block is a pure function of its address, and every run's streams derive from its own, so neither the executor, nor the
number of its workers, nor the blocks, nor an interruption changes a bit of the results.
"""

from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

from beliefbound.engine.jobs import compile_agents_beside
from beliefbound.engine.runs import Runs
from beliefbound.errors import ParameterError
from beliefbound.executors import Executor, ThreadExecutor
from beliefbound.experiments.cells import play_cell
from beliefbound.experiments.spec import Cell, Spec, checked
from beliefbound.experiments.store import Store
from beliefbound.interrupt import first_interrupt
from beliefbound.io.paths import as_path
from beliefbound.plugins import load_plugin, loaded_plugins
from beliefbound.progress import RunDisplay
from beliefbound.validation import check_count

_STEPS_PER_BLOCK = 250_000

Block = tuple[Cell, range]
Progress = Callable[[Cell, int], None]
Say = Callable[[str], object]


def run(
    spec: Spec,
    out: Path | str,
    *,
    threads: int | None = None,
    executor: Executor | None = None,
    block: int | None = None,
    repair: bool = False,
    progress: Progress | bool | None = None,
    say: Say | None = None,
) -> Store:
    """Play every run of `spec` that the folder `out` does not hold yet.

    Args:
      spec: the experiment.
      out: a new folder, or one that holds part of the same experiment.
      threads: default: the cores this process may use.
      executor: where blocks run, in place of threads of this process; see `beliefbound.executors`.
      block: runs per part; default: about 250 000 steps.
      repair: play the runs of corrupt parts again instead of stopping at them.
      progress: a bar on standard error, or a function that is called with `(cell, runs done)` after each block.
      say: called with a sentence when Ctrl-C was noticed.

    Returns:
      The `Store` with all runs of `spec`. On Ctrl-C the blocks in flight are finished and kept; a second one leaves at
      once. Either way the same call continues.

    >>> import tempfile
    >>> spec = Spec(agents=("random",), environments=("chain",), runs=4, steps=10)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run(spec, folder).read().shape
    (4, 6)
    """
    spec = checked(spec)
    block = max(1, _STEPS_PER_BLOCK // spec.steps) if block is None else check_count(block, "block")
    if executor is None:
        executor = ThreadExecutor(threads)
    elif threads is not None:
        raise ParameterError(f"threads is {threads}, but the executor has its own workers; leave one of them out")
    if progress is True:
        total = spec.runs * len(spec.cells())
        with RunDisplay(total, total - n_missing(spec, out)) as display:
            return run(spec, out, executor=executor, block=block, repair=repair, progress=display.block, say=say)
    report, tell = progress or (lambda cell, runs: None), say or (lambda text: None)
    finishing = partial(tell, "finishing the blocks in flight; a second Ctrl-C leaves at once")
    if not loaded_plugins():
        compile_agents_beside(spec.environments, spec.agents)
    with Store.writing(as_path(out), spec, repair=repair) as store, first_interrupt(finishing) as stop:
        missing = ((cell, runs) for cell in spec.cells() for runs in store.missing(cell, block))
        with closing(executor.map(partial(_play, spec, loaded_plugins()), missing, stop=stop)) as results:
            for (cell, runs), result in results:
                store.write(cell, runs, frame_of(runs, result))
                report(cell, len(runs))
        if stop.is_set():
            raise KeyboardInterrupt
    return store


def n_missing(spec: Spec, out: Path | str) -> int:
    """How many runs of `spec` the folder does not hold yet."""
    spec = checked(spec)
    store = Store(as_path(out), spec)
    return sum(len(runs) for cell in spec.cells() for runs in store.missing(cell, spec.runs))


def frame_of(runs: range, result: Runs) -> pl.DataFrame:
    """The columns of a part: run, total, utility, and curve and visits where they were recorded."""
    columns: dict[str, pl.Series] = {
        "run": pl.Series(np.arange(runs.start, runs.stop)),
        "total": pl.Series(result.total),
        "utility": pl.Series(result.utility),
    }
    if result.curve is not None:
        columns["curve"] = pl.Series(result.curve.tolist(), dtype=pl.List(pl.Float64))
    if result.visits is not None:
        columns["visits"] = pl.Series(result.visits.tolist(), dtype=pl.List(pl.Int64))
    return pl.DataFrame(columns)


def _play(spec: Spec, plugins: tuple[str, ...], block: Block) -> Runs:
    """One block, wherever it runs: a process that has not loaded the plugins does so first."""
    for plugin in plugins:
        load_plugin(plugin)
    return play_cell(spec, *block)
