"""What commands print: tables, and what is going on while they work."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer

if TYPE_CHECKING:
    import polars as pl

    from beliefbound.base.progress import RunDisplay
    from beliefbound.lab.experiments.spec import Spec


@contextmanager
def loading() -> Iterator[None]:
    """Say that something happens while the libraries load."""
    if sys.stderr.isatty():
        print("loading …", end="\r", file=sys.stderr, flush=True)
    yield


@contextmanager
def closing() -> Iterator[tuple[Any, Any]]:
    """A line that shows the bracket as it closes: what to tell it of new bounds, and of the wish to stop."""
    from beliefbound.base.progress import closing_display

    def say() -> None:
        print("stopping; what was found is written. Ctrl-C again leaves at once, without it.", file=sys.stderr)

    try:
        with closing_display() as watch:
            yield watch, say
    except KeyboardInterrupt:
        print("stopped at once: what was not finished is lost.", file=sys.stderr)
        sys.stderr.flush()
        os._exit(130)


def doing(watch: Any) -> Callable[[str], None]:
    """What says in a line what is done next, also to whatever watches."""

    def say(text: str) -> None:
        print(f"{text} …", file=sys.stderr)
        watch(text)

    return say


def end_interrupted(interrupted: bool, words: str = "the bounds are as wide as the search had left them") -> None:
    """Where Ctrl-C ended a search, say so, and leave with its exit code."""
    if interrupted:
        print(f"interrupted: {words}", file=sys.stderr)
        raise typer.Exit(130)


@contextmanager
def progress(spec: "Spec", out: Path) -> Iterator["RunDisplay"]:
    """What an experiment is doing, on standard error; on Ctrl-C, how to continue, and out."""
    from beliefbound.base.progress import RunDisplay
    from beliefbound.lab.experiments.run import n_missing

    total = spec.runs * len(spec.cells())
    with RunDisplay(total, total - n_missing(spec, out)) as show:
        try:
            yield show
        except KeyboardInterrupt:
            show.close()
            _leave(out)


@contextmanager
def leave_on_interrupt(out: Path, what: str = "run") -> Iterator[None]:
    """On Ctrl-C, how to continue, and out."""
    try:
        yield
    except KeyboardInterrupt:
        _leave(out, what)


def _leave(out: Path, what: str = "run") -> NoReturn:
    print(f"stopped; {out} keeps every finished {what}. Run the same command to continue.", file=sys.stderr)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(130)  # a second Ctrl-C: threads that still play a block would keep the interpreter alive


def show_frame(title: str, frame: "pl.DataFrame") -> None:
    """Print a frame."""
    show_table(title, frame.columns, [[_cell(value) for value in row] for row in frame.iter_rows()])


def show_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print formatted cells: the first column left, the others right; as wide as they need when nobody is looking."""
    from rich.console import Console
    from rich.table import Table

    from beliefbound.policy.naming import printable

    table = Table(title=title or None, title_justify="left", box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for k, name in enumerate(header):
        table.add_column(name, justify="right" if k else "left", no_wrap=k > 0)
    for row in rows:
        table.add_row(*map(printable, row))
    Console(width=None if sys.stdout.isatty() else 160, markup=False, emoji=False).print(table)


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.1f}" if abs(value) >= 100 else f"{value:.2f}"
    return str(value)


def end_failed(failed: Mapping[str, str], folder: Path) -> None:
    """Say which of other people's agents, environments and priors have failed, and leave with exit code 1; nothing
    where none has."""
    if failed:
        for what, reason in failed.items():
            print(f"failed: {what}: {reason}", file=sys.stderr)
        print(f"error: {len(failed)} failed; the tracebacks are in {folder / 'failures.txt'}", file=sys.stderr)
        raise typer.Exit(1)
