"""`beliefbound paper`."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from beliefbound.cli.app import Address, Out, Repair, Threads, Where, app
from beliefbound.cli.show import leave_on_interrupt, loading, progress, show_table


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
    discussion: Annotated[
        bool,
        typer.Option("--discussion", help="In place of this, the conjecture of its discussion, on demonstrations."),
    ] = False,
    problems: Annotated[int, typer.Option(min=2, help="Random problems of --discussion.")] = 600,
) -> None:
    """Reproduce the paper: Table 1, Figure 1 and Figure 2, beside the published numbers.

    Writes tables (CSV), figures (PNG, SVG), raw runs (parquet) and one self-contained `report.html`.
    Interrupt it when you like: the same command continues where it stopped.

    With `--discussion`: is MMBI better than the expected MDP where rewards and dynamics are learnt from
    demonstrations? Writes `losses.csv` and `discussion.csv`.

    Example: `beliefbound paper --runs 1000 --out quick`
    """
    if discussion:
        _discussion(out, problems=problems, seed=seed, threads=threads)
        return
    with loading():
        from beliefbound.base.executors import opened
        from beliefbound.lab.paper.published import SAMPLES
        from beliefbound.lab.paper.reproduce import paper_spec, reproduce
        from beliefbound.lab.paper.table1 import table1_rows

    samples = tuple(n) if n else SAMPLES
    spec = paper_spec(runs=runs, seed=seed, samples=samples)
    with (
        progress(spec, out / "runs") as show,
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
    show_table("Table 1: Chain, 1000 steps", *table1_rows(result.table))
    print(f"report: {result.report}")


def _discussion(out: Path, *, problems: int, seed: int, threads: int | None) -> None:
    with loading():
        from beliefbound.lab.paper.discussion import discussion, table_rows

    with leave_on_interrupt(out):
        table = discussion(
            out, problems=problems, seed=seed, threads=threads, say=lambda text: print(text, file=sys.stderr)
        )
    show_table(f"Loss against the optimal policy, {problems} problems: mean ± error [95%]", *table_rows(table))
    print(f"losses: {out / 'losses.csv'}")
