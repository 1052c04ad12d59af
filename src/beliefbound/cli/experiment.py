"""`beliefbound run` and `beliefbound report`."""

from pathlib import Path
from typing import Annotated

import typer

from beliefbound.cli.app import Address, Plugins, Repair, Threads, Where, app, load_plugins
from beliefbound.cli.show import end_failed, loading, progress, show_frame


@app.command("run")
def run_(
    spec: Annotated[Path, typer.Argument(help="The experiment: a .toml or .json file.")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder; default: the spec's name.")] = None,
    threads: Threads = None,
    executor: Where = "threads",
    address: Address = None,
    block: Annotated[int | None, typer.Option(min=1, help="Runs per part; never changes a result.")] = None,
    repair: Repair = False,
    plugin: Plugins = None,
) -> None:
    """Play an experiment: agents × environments × seeds, for so many runs.

    A spec looks like this:

        agents = ["mcbrl:n=16", "exploit", "oracle"]
        environments = ["chain", "double-loop"]
        runs = 1000
        steps = 1000

    Optional: `seeds = [1, 2]`, `discount`, `accounting = "paper"`, `curve_every`, `visits`, `stuck_below`, `title`.
    Environments are names (see `beliefbound envs`), `folder:PATH,model=0` or `gym:FrozenLake-v1`.
    Finished runs are kept; the same command plays only what is missing. Ctrl-C finishes the blocks in flight, a second
    one leaves at once.
    """
    with loading():
        from beliefbound.base.executors import opened
        from beliefbound.lab.experiments.run import run
        from beliefbound.lab.experiments.spec import load_spec

        load_plugins(plugin)
    experiment = load_spec(spec)
    folder, failed = out or spec.with_suffix(""), dict[str, str]()
    with (
        progress(experiment, folder) as show,
        opened(executor, threads=threads, address=address) as where,
    ):
        run(
            experiment,
            folder,
            executor=where,
            block=block,
            repair=repair,
            progress=show.block,
            say=show.say,
            failed=lambda cell, reason: failed.update(
                {f"{cell.agent} on {cell.environment}, seed {cell.seed}": reason}
            ),
        )
    if len(failed) < len(experiment.cells()):
        _report(folder, experiment.runs)
    end_failed(failed, folder)


@app.command()
def report(folder: Annotated[Path, typer.Argument(help="A folder made by `beliefbound run`.")]) -> None:
    """Summarise an experiment: prints the table, writes `summary.csv`, `runs.parquet`, figures and `report.html`."""
    _report(folder)


def _report(folder: Path, runs: int | None = None) -> None:
    with loading():
        from beliefbound.report.experiment import write_report

    summary, page = write_report(folder, runs=runs)
    shown = ["environment", "agent", "runs", "total", "ci_low", "ci_high", "p10", "p90", "utility", "regret"]
    show_frame("", summary.select(shown))
    print(f"report: {page}")
