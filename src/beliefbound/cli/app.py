"""The application, and the options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

import beliefbound

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
Where = Annotated[str, typer.Option(help="Where blocks of work run: threads, or ray. Never changes a result.")]
Address = Annotated[
    str | None, typer.Option(help="A running Ray cluster, host:port or auto; default: one is started here.")
]
Plugins = Annotated[
    list[str] | None,
    typer.Option("--plugin", help="A module or .py file with agents, environments or priors of your own; repeatable."),
]
Absorbing = Annotated[
    list[str] | None,
    typer.Option("--absorbing", "--terminal", help="A state without rows, where nothing happens any more; repeatable."),
]
Weights = Annotated[
    str | None,
    typer.Option(
        help="Of the models, relative, in place of weights.csv: 3,1,1 or wet=3,dry=1, or a CSV file idoutcome,weight."
    ),
]
Initial = Annotated[
    str | None,
    typer.Option(
        help="The start, in place of initial.csv: a state, low=0.5,high=0.5, or a CSV file idstate,probability."
    ),
]
Horizon = Annotated[int | None, typer.Option(min=1, help="Number of decisions; default: infinite.")]
Gap = Annotated[
    float | None,
    typer.Option("--gap", min=0.0, help="Stop at this share of the value; default 0.01, or 0 with a time."),
]
TimeLimit = Annotated[float | None, typer.Option("--time", min=0.1, help="Stop after so many seconds; default 60.")]
Signal = Annotated[
    str | None,
    typer.Option(help="What the agent sees of rewards: known, deterministic, bernoulli, unobserved, continuous."),
]
Seed = Annotated[int, typer.Option(min=0)]
Effort = Annotated[
    int | None, typer.Option(min=1, help="In place of a time: so many steps of work, the same result every time.")
]
States = Annotated[str | None, typer.Option(help="How many states there are, or their names, by commas.")]
Actions = Annotated[str | None, typer.Option(help="How many actions there are, or their names, by commas.")]
AsNames = Annotated[bool, typer.Option("--names", help="Ids are names though they look like numbers.")]
Sort = Annotated[
    bool, typer.Option("--sort", help="Rows are not in order: sort them by episode and t first, in memory.")
]
KeepSuspicious = Annotated[
    bool, typer.Option("--keep-suspicious", help="Count rows that do not follow each other as they stand.")
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


def load_plugins(plugins: list[str] | None) -> None:
    """Import what the person named, and nothing else."""
    from beliefbound.base.plugins import load_plugin

    for each in plugins or ():
        load_plugin(each)
