"""Play what is missing: blocks of runs on an executor, each written as a part as soon as it is done.

A block is a pure function of its address, and every run's streams derive from its own, so neither the executor, nor the
number of its workers, nor the blocks, nor an interruption changes a bit of the results.

Agents, environments and priors of other people may fail. A cell with one that does is given up, with one line that says
why; the others are played all the same, and `failures.txt` has the tracebacks.
"""

from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from beliefbound.base.errors import ParameterError, PluginError
from beliefbound.base.executors import Executor, ThreadExecutor
from beliefbound.base.interrupt import first_interrupt
from beliefbound.base.io.atomic import write_text
from beliefbound.base.io.paths import as_path
from beliefbound.base.plugins import details_of, load_plugin, loaded_plugins, said
from beliefbound.base.progress import RunDisplay
from beliefbound.base.tables import pl
from beliefbound.base.validation import check_count
from beliefbound.lab.engine.jobs import compile_agents_beside
from beliefbound.lab.engine.registry import AGENTS
from beliefbound.lab.engine.runs import Runs
from beliefbound.lab.envs.registry import ENVIRONMENTS
from beliefbound.lab.experiments.cells import play_cell
from beliefbound.lab.experiments.spec import Cell, Spec, checked
from beliefbound.lab.experiments.store import Store

_STEPS_PER_BLOCK = 250_000

FAILURES = "failures.txt"

Block = tuple[Cell, range]
Failed = Callable[[Cell, str], object]
Progress = Callable[[Cell, int], None]
Say = Callable[[str], object]


class Fault(NamedTuple):
    """Why somebody's own agent, environment or prior could not go on: one line, and the traceback."""

    reason: str
    details: str


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
    failed: Failed | None = None,
) -> Store:
    """Play every run of `spec` that the folder `out` does not hold yet.

    Args:
      spec: the experiment.
      out: a new folder, or one that holds part of the same experiment.
      threads: default: the cores this process may use.
      executor: where blocks run, in place of threads of this process; see `beliefbound.base.executors`.
      block: runs per part; default: about 250 000 steps.
      repair: play the runs of corrupt parts again instead of stopping at them.
      progress: a bar on standard error, or a function that is called with `(cell, runs done)` after each block.
      say: called with a sentence when Ctrl-C was noticed.
      failed: called with `(cell, reason)` for each cell that somebody's own agent, environment or prior has ended;
        default: once all others are done, the first of them is raised.

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
            knobs: dict[str, Any] = {"block": block, "repair": repair, "say": say, "failed": failed}
            return run(spec, out, executor=executor, progress=display.block, **knobs)
    report, tell = progress or (lambda cell, runs: None), say or (lambda text: None)
    finishing = partial(tell, "finishing the blocks in flight; a second Ctrl-C leaves at once")
    if not loaded_plugins():
        compile_agents_beside(spec.environments, spec.agents)
    faults: dict[Cell, Fault] = {}
    with Store.writing(as_path(out), spec, repair=repair) as store, first_interrupt(finishing) as stop:
        cells = ((cell, runs) for cell in spec.cells() for runs in store.missing(cell, block))
        missing = (each for each in cells if each[0] not in faults)
        with closing(executor.map(partial(_play, spec, loaded_plugins()), missing, stop=stop)) as results:
            for (cell, runs), result in results:
                if isinstance(result, Fault):
                    faults.setdefault(cell, result)
                    continue
                store.write(cell, runs, frame_of(runs, result))
                report(cell, len(runs))
        keep_failures(store.out, {f"{c.agent} on {c.environment}, seed {c.seed}": f.details for c, f in faults.items()})
        if stop.is_set():
            raise KeyboardInterrupt
    for cell, fault in faults.items():
        if failed is None:
            raise PluginError(f"{cell.agent} on {cell.environment}: {fault.reason}", fault.details)
        failed(cell, fault.reason)
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


def keep_failures(out: Path, failures: dict[str, str]) -> None:
    """Write what went wrong to `failures.txt`, a traceback each; where nothing did, there is no such file."""
    file = out / FAILURES
    if failures:
        write_text(file, "\n".join(f"{what}\n{details}" for what, details in failures.items()))
    else:
        file.unlink(missing_ok=True)


def _play(spec: Spec, plugins: tuple[str, ...], block: Block) -> Runs | Fault:
    """One block, wherever it runs: a process that has not loaded the plugins does so first. What somebody else's code
    raises is a result, so that it ends nothing but its own cell."""
    try:
        for plugin in plugins:
            load_plugin(plugin)
        return play_cell(spec, *block)
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as cause:
        if not foreign(block[0].agent, block[0].environment):
            raise
        return fault_of(cause)


def foreign(agent: str, environment: str) -> bool:
    """Whether an agent, an environment or a prior is somebody else's."""
    return AGENTS.parse(agent).foreign or ENVIRONMENTS.parse(environment).foreign


def fault_of(cause: BaseException) -> Fault:
    """What an exception says."""
    return Fault(said(cause), getattr(cause, "details", "") or details_of(cause))
