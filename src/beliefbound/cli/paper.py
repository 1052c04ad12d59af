"""`beliefbound paper`."""

from pathlib import Path
from typing import Annotated

import typer

from beliefbound.cli.app import Address, Out, Repair, Threads, Where, app
from beliefbound.cli.show import loading, progress, show_table


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
