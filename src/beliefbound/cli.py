"""The command line: parse, call one function, print. Heavy imports happen inside commands, so `--help` is instant."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import beliefbound
from beliefbound.errors import BeliefboundError

if TYPE_CHECKING:
    import polars as pl

    from beliefbound.experiments.spec import Spec
    from beliefbound.progress import RunDisplay

app = typer.Typer(
    help="Beliefs about Markov decision processes in, policies and proven bounds out.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)

Out = Annotated[Path, typer.Option("--out", "-o", help="Folder for the results; made if missing, continued if begun.")]
Threads = Annotated[int | None, typer.Option(min=1, help="Threads; default: every core. Never changes a result.")]
TimedThreads = Annotated[
    int | None, typer.Option(min=1, help="Threads; default: every core. More of them get more done in the time given.")
]
Where = Annotated[str, typer.Option(help="Where blocks of runs are played: threads, or ray. Never changes a result.")]
Address = Annotated[
    str | None, typer.Option(help="A running Ray cluster, host:port or auto; default: one is started here.")
]
Plugins = Annotated[
    list[str] | None,
    typer.Option("--plugin", help="A module or .py file with agents, environments or priors of your own; repeatable."),
]
Repair = Annotated[bool, typer.Option("--repair", help="Play the runs of corrupt parts again.")]


def _version(asked: bool) -> None:
    if asked:
        print(f"beliefbound {beliefbound.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """Options before a command; the text of the help is the application's."""


@app.command()
def paper(
    out: Out = Path("paper-out"),
    runs: Annotated[int, typer.Option(min=2, help="Runs per row of Table 1.")] = 10_000,
    seed: Annotated[int, typer.Option(min=0, help="Root seed; any gives the same table within its errors.")] = 1,
    n: Annotated[
        list[int] | None, typer.Option("--n", min=1, help="Sampled models in Figure 2(a); repeat for several.")
    ] = None,
    threads: Threads = None,
    executor: Where = "threads",
    address: Address = None,
    repair: Repair = False,
) -> None:
    """Reproduce the paper: Table 1, Figure 1 and Figure 2, beside the published numbers.

    Writes tables (CSV), figures (PNG, SVG), raw runs (parquet) and one self-contained `report.html`.
    Interrupt it when you like: the same command continues where it stopped.

    Example: `beliefbound paper --runs 1000 --out quick`
    """
    with _loading():
        from beliefbound.executors import opened
        from beliefbound.paper.published import SAMPLES
        from beliefbound.paper.reproduce import paper_spec, reproduce
        from beliefbound.paper.table1 import table1_rows

    samples = tuple(n) if n else SAMPLES
    spec = paper_spec(runs=runs, seed=seed, samples=samples)
    with (
        _progress(spec, out / "runs") as show,
        opened(executor, threads=threads, address=address) as where,
    ):
        result = reproduce(
            out,
            runs=runs,
            seed=seed,
            samples=samples,
            executor=where,
            repair=repair,
            progress=show.block,
            say=show.say,
            stage=show.stage,
        )
    _print_table("Table 1: Chain, 1000 steps", *table1_rows(result.table))
    print(f"report: {result.report}")


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
    with _loading():
        from beliefbound.executors import opened
        from beliefbound.experiments.run import run
        from beliefbound.experiments.spec import load_spec

        _load(plugin)
    experiment = load_spec(spec)
    folder = out or spec.with_suffix("")
    with (
        _progress(experiment, folder) as show,
        opened(executor, threads=threads, address=address) as where,
    ):
        run(experiment, folder, executor=where, block=block, repair=repair, progress=show.block, say=show.say)
    _report(folder, experiment.runs)


@app.command()
def report(folder: Annotated[Path, typer.Argument(help="A folder made by `beliefbound run`.")]) -> None:
    """Summarise an experiment: prints the table, writes `summary.csv`, `runs.parquet`, figures and `report.html`."""
    _report(folder)


def _report(folder: Path, runs: int | None = None) -> None:
    with _loading():
        from beliefbound.report.experiment import write_report

    summary, page = write_report(folder, runs=runs)
    shown = ["environment", "agent", "runs", "total", "ci_low", "ci_high", "p10", "p90", "utility", "regret"]
    _table("", summary.select(shown))
    print(f"report: {page}")


@app.command()
def bound(
    models: Annotated[Path, typer.Argument(help="A model folder: training.csv, initial.csv, parameters.csv, …")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder; default: NAME-bounds.")] = None,
    horizon: Annotated[int | None, typer.Option(min=1, help="Number of decisions; default: infinite.")] = None,
    gap: Annotated[
        float | None, typer.Option(min=0.0, help="Stop at this share of the value; default 0.01, or 0 with a time.")
    ] = None,
    time: Annotated[float | None, typer.Option(min=0.1, help="Stop after so many seconds; default 60.")] = None,
    confidence: Annotated[float, typer.Option(min=0.5, max=0.9999, help="Of all bounds together.")] = 0.95,
    reward_signal: Annotated[
        str | None,
        typer.Option(help="What the agent sees of rewards: known, deterministic, bernoulli, unobserved, continuous."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0)] = 1,
    threads: TimedThreads = None,
) -> None:
    """Bracket the Bayes-optimal value of a set of models, and find policies for all of them.

    Writes `bounds.json`; the policy that the certificate is about, `policy.npz` (it learns as it acts) or `policy.json`
    (a table), for `load_policy`; the best memoryless policy, with a gap of its own, as `memoryless.csv` and
    `memoryless.json`; `bracket.png` and a `report.html`.
    Ctrl-C ends the search and writes what was found; a second one leaves at once.

    Example: `beliefbound bound models/ --gap 0.01 --time 30`
    """
    with _loading():
        from beliefbound.report.certificate import best_rows, certify_folder

    with _closing() as (watch, say):
        found = certify_folder(
            models,
            out or Path(f"{models.resolve().name}-bounds"),
            horizon=horizon,
            confidence=confidence,
            target_gap=gap,
            time_limit=time,
            reward_signal=reward_signal,  # type: ignore[arg-type]
            seed=seed,
            threads=threads,
            watch=watch,
            say=say,
        )
    for note in found.folder.notes:
        print(f"note: {note}", file=sys.stderr)
    if found.bracket.compile_seconds >= 2.0:
        print(f"note: compiling took {found.bracket.compile_seconds:.0f} s, not counted as search", file=sys.stderr)
    _print_table("Bounds on the Bayes-optimal value", *best_rows(found.bracket.bounds))
    print(found.bracket.summary())
    for words in found.policy_words():
        print(words)
    print(f"report: {found.report}")
    if found.interrupted:
        print("interrupted: the bracket is as wide as the search had left it", file=sys.stderr)
        raise typer.Exit(130)


@app.command()
def compare(
    models: Annotated[
        Path, typer.Argument(help="A model folder with training.csv and, for the test column, test.csv.")
    ],
    horizon: Annotated[
        list[int] | None, typer.Option(min=1, help="Number of decisions; repeat for several. Default 20, 50, 100, 150.")
    ] = None,
    restarts: Annotated[bool, typer.Option("--restarts", help="Add CADP with all its restarts.")] = False,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write the table to this CSV file.")] = None,
) -> None:
    """Compare memoryless planners: planned on the training models, valued on the test models.

    MVP is the expected MDP's policy, MMBI is "weight-select-update" elsewhere, the oracle knows the model.
    """
    with _loading():
        import polars as pl

        from beliefbound.beliefs.folder import read_models
        from beliefbound.io.atomic import write_aside
        from beliefbound.planning.compare import compare_memoryless

    folder = read_models(models)
    rows = compare_memoryless(
        folder.training,
        folder.test,
        discount=folder.discount,
        horizons=horizon or [20, 50, 100, 150],
        initial=folder.initial,
        expected=folder.average,
        restarts=restarts,
    )
    cells = [[r.method, str(r.horizon), f"{r.training:.3f}", "" if r.test is None else f"{r.test:.3f}"] for r in rows]
    _print_table("Expected value from the start distribution", ["method", "horizon", "training", "test"], cells)
    if out is not None:
        write_aside(out, pl.DataFrame(rows).write_csv)
        print(f"table: {out}")


@app.command()
def agents(
    name: Annotated[str | None, typer.Argument(help="Show this agent's parameters.")] = None, plugin: Plugins = None
) -> None:
    """List the agents, or the parameters of one.

    Parameters follow the name: `mcbrl:n=8,schedule=constant,interval=20`.
    """
    with _loading():
        from beliefbound.agents import agent_parameters
        from beliefbound.agents import agents as known

        _load(plugin)
    _names(agent_parameters(name) if name else known())


@app.command()
def envs(plugin: Plugins = None) -> None:
    """List the environments and their parameters.

    Values follow the name in this order, or as key=value: `grid:10`, `garnet:50,4,5,seed=3`.
    """
    with _loading():
        from beliefbound.envs import environments

        _load(plugin)
    _names(environments())


def _load(plugins: list[str] | None) -> None:
    """Import what the person named, and nothing else."""
    from beliefbound.plugins import load_plugin

    for each in plugins or ():
        load_plugin(each)


def _names(known: dict[str, str]) -> None:
    width = max(map(len, known), default=0)
    for name, text in known.items():
        print(f"{name:<{width}}  {text}")


@contextmanager
def _loading() -> Iterator[None]:
    """Say that something happens while the libraries load."""
    if sys.stderr.isatty():
        print("loading …", end="\r", file=sys.stderr, flush=True)
    yield


@contextmanager
def _closing() -> Iterator[tuple[Any, Any]]:
    """A line that shows the bracket as it closes: what to tell it of new bounds, and of the wish to stop."""
    from beliefbound.progress import closing_display

    def say() -> None:
        print("stopping; what was found is written. Ctrl-C again leaves at once, without it.", file=sys.stderr)

    try:
        with closing_display() as watch:
            yield watch, say
    except KeyboardInterrupt:
        print("stopped; nothing was written.", file=sys.stderr)
        sys.stderr.flush()
        os._exit(130)


@contextmanager
def _progress(spec: "Spec", out: Path) -> Iterator["RunDisplay"]:
    """What an experiment is doing, on standard error; on Ctrl-C, how to continue, and out."""
    from beliefbound.experiments.run import n_missing
    from beliefbound.progress import RunDisplay

    total = spec.runs * len(spec.cells())
    with RunDisplay(total, total - n_missing(spec, out)) as show:
        try:
            yield show
        except KeyboardInterrupt:
            show.close()
            print(f"stopped; {out} keeps every finished run. Run the same command to continue.", file=sys.stderr)
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(130)  # a second Ctrl-C: threads that still play a block would keep the interpreter alive


def _table(title: str, frame: "pl.DataFrame") -> None:
    """Print a frame."""
    _print_table(title, frame.columns, [[_cell(value) for value in row] for row in frame.iter_rows()])


def _print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print formatted cells: the first column left, the others right; as wide as they need when nobody is looking."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title or None, title_justify="left", box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for k, name in enumerate(header):
        table.add_column(name, justify="right" if k else "left", no_wrap=k > 0)
    for row in rows:
        table.add_row(*row)
    Console(width=None if sys.stdout.isatty() else 160).print(table)


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.1f}" if abs(value) >= 100 else f"{value:.2f}"
    return str(value)


def main() -> None:
    """Entry point: user mistakes end with one clear line and exit code 1, never with a traceback."""
    try:
        app()
    except BeliefboundError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
