"""What `bound` and `plan` do with several problems (`jobs.batch`), and commands with samples of one, on a cluster."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from beliefbound.cli.show import end_interrupted, leave_on_interrupt, show_table


def batch(find: Callable[..., Any], total: int, place: Path, given: dict[str, Any]) -> None:
    """Find all of them where was asked, and print the table."""
    from beliefbound.base.executors import opened
    from beliefbound.report.batch import HEADER

    def say() -> None:
        print("stopping; what runs is finished. Ctrl-C again leaves at once.", file=sys.stderr)

    where = {name: given[name] for name in ("threads", "address")}
    with (
        leave_on_interrupt(place, "problem"),
        opened(given["executor"], **where) as executor,
        _counting(total) as done,
    ):
        found = find(executor=executor, say=say, done=done)
    show_table("Bounds on the Bayes-optimal values", HEADER, [row.cells() for row in found.rows])
    failed = sum(row.error is not None for row in found.rows)
    if found.kept:
        print(f"note: {found.kept} were finished before, and are as they were", file=sys.stderr)
    print(f"report: {found.report}")
    end_interrupted(found.interrupted, f"{len(found.rows)} of {total} problems; the same command goes on")
    if failed:
        print(f"error: {failed} of {total} problems have no certificate", file=sys.stderr)
        raise typer.Exit(1)


@contextmanager
def sampled_on(executor: str, threads: int | None, address: str | None) -> Iterator[None]:
    """Samples of one problem on a cluster, where that is asked for."""
    if executor == "threads" and address is None:
        yield
        return
    from beliefbound.base.executors import opened
    from beliefbound.base.executors.elsewhere import sampling_on

    with opened(executor, threads=threads, address=address) as where, sampling_on(where):
        yield


@contextmanager
def _counting(total: int) -> Iterator[Callable[[Any], None]]:
    """A line that counts what is done: what to tell of each row of the table as it is there."""
    there = 0

    def done(row: Any) -> None:
        nonlocal there
        there += 1
        if sys.stderr.isatty():
            print(f"{there} of {total}: {row.problem}\x1b[K", end="\r", file=sys.stderr, flush=True)

    yield done
    if sys.stderr.isatty():
        print("\x1b[K", end="\r", file=sys.stderr, flush=True)
