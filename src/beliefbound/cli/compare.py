"""`beliefbound compare`."""

from pathlib import Path
from typing import Annotated

import typer

from beliefbound.cli.app import Absorbing, app
from beliefbound.cli.show import loading, show_table


@app.command()
def compare(
    models: Annotated[
        Path, typer.Argument(help="A model folder with training.csv and, for the test column, test.csv.")
    ],
    horizon: Annotated[
        list[int] | None, typer.Option(min=1, help="Number of decisions; repeat for several. Default 20, 50, 100, 150.")
    ] = None,
    restarts: Annotated[bool, typer.Option("--restarts", help="Add CADP with all its restarts.")] = False,
    absorbing: Absorbing = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write the table to this CSV file.")] = None,
) -> None:
    """Compare memoryless planners: planned on the training models, valued on the test models.

    The expected MDP's policy is "MVP" elsewhere, MMBI "weight-select-update" elsewhere, the oracle knows the model.
    """
    with loading():
        from beliefbound.base.io.atomic import write_text
        from beliefbound.base.io.csv_table import csv_text
        from beliefbound.beliefs.folder import read_models
        from beliefbound.planning.compare import compare_memoryless

    folder = read_models(models, absorbing=absorbing or ())
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
    show_table("Expected value from the start distribution", ["method", "horizon", "training", "test"], cells)
    if out is not None:
        write_text(out, csv_text({name: [getattr(row, name) for row in rows] for name in vars(rows[0])}))
        print(f"table: {out}")
